"""`goqueue-cli dlq`: dead letters, and the way back."""

import sys
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from goqueue.cli.messages.view import short_value, view_of
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import topic_names
from goqueue.cli.parts.frame import Output, invocation, noun
from goqueue.cli.parts.output import Columns, counted, show_done, show_rows, show_value
from goqueue.cli.parts.progress import progress
from goqueue.cli.parts.times import now, parse_moment
from goqueue.client import GoQueue
from goqueue.client.calls.dead_letters import DeadLetter, Redriven
from goqueue.model.errors import GoQueueError

app = noun("Look at messages that could not be handled, and send them back.")

Topic = Annotated[str, typer.Argument(help="The topic from which they came.", autocompletion=topic_names)]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Dead since 2026-01-31T12:00:00Z, or 15m ago.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Dead before that time.")]


PAGE_COUNT = 1_000
STEP_COUNT = 5_000


class Why(StrEnum):
    """Why a message is a dead letter."""

    MAX_RETRIES_EXCEEDED = "MAX_RETRIES_EXCEEDED"
    REJECTED = "REJECTED"
    TTL_EXPIRED = "TTL_EXPIRED"


class LetterRow(msgspec.Struct, omit_defaults=True):
    """A dead letter, and how it became one."""

    partition: int
    offset: int
    dead_since: datetime
    reason: str
    attempts: int
    group: str
    error: str
    original_partition: int
    original_offset: int
    key: str | None
    value: str | None
    headers: dict[str, str | None] = {}
    encoding: str = ""


class RedriveSummary(msgspec.Struct):
    """What a redrive came to."""

    topic: str
    matched: int
    redriven: int
    dry_run: bool


class Wanted(msgspec.Struct, frozen=True):
    """Which dead letters are to be sent back, and how fast."""

    topic: str
    reasons: list[Why] | None
    group: str | None
    key: str | None
    since: datetime | None
    until: datetime | None
    rate: float | None

    def ask(self, queue: GoQueue, *, limit: int | None, dry_run: bool = False) -> Redriven:
        return queue.dead_letters.redrive(
            self.topic,
            reason=self.reasons,
            group=self.group,
            key=self.key,
            since=self.since,
            until=self.until,
            rate=self.rate,
            limit=limit,
            dry_run=dry_run,
        )


_COLUMNS: Columns = {
    "PARTITION": "partition",
    "OFFSET": "offset",
    "DEAD SINCE": "dead_since",
    "REASON": "reason",
    "ATTEMPTS": "attempts",
    "GROUP": "group",
    "ERROR": "error",
    "KEY": "key",
    "VALUE": short_value,
}


@app.command("list")
def list_letters(
    context: typer.Context,
    topic: Topic,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="At most so many.")] = 100,
    partition: Annotated[int, typer.Option("-p", "--partition", min=-1, help="-1: of all.")] = -1,
    reason: Annotated[
        Why | None, typer.Option("--reason", case_sensitive=False, help="Why they died.")
    ] = None,
    group: Annotated[str | None, typer.Option("--group", help="Of this group alone.")] = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """List dead letters that were not sent back, the oldest first."""
    moment = now()
    first = None if since is None else parse_moment(since, now=moment)
    end = None if until is None else parse_moment(until, now=moment)
    rows: list[LetterRow] = []
    with connect(context) as queue:
        for letter in _letters(queue, topic, partition):
            is_wanted = (
                reason in (None, letter.reason)
                and group in (None, letter.last_group)
                and (first is None or letter.dlq_time >= first)
                and (end is None or letter.dlq_time < end)
            )
            if is_wanted:
                rows.append(_row(letter))
            if len(rows) == limit:
                break
    show_rows(invocation(context).output, rows, _COLUMNS, empty="there are no dead letters")


@app.command("redrive")
def redrive(
    context: typer.Context,
    topic: Topic,
    reasons: Annotated[
        list[Why] | None,
        typer.Option("--reason", case_sensitive=False, help="Why they died; may be repeated."),
    ] = None,
    group: Annotated[str | None, typer.Option("--group", help="Only what died with this group.")] = None,
    key: Annotated[str | None, typer.Option("-k", "--key", help="Only messages of this key.")] = None,
    since: Since = None,
    until: Until = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.1, help="Messages a second; as fast as it goes without.")
    ] = None,
    limit: Annotated[int | None, typer.Option("-n", "--limit", min=1, help="At most so many.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many there are.")] = False,
) -> None:
    """Send dead letters back to the partitions they came from, each once, whatever breaks it off."""
    moment = now()
    wanted = Wanted(
        topic=topic,
        reasons=reasons or None,
        group=group,
        key=key,
        since=None if since is None else parse_moment(since, now=moment),
        until=None if until is None else parse_moment(until, now=moment),
        rate=rate,
    )
    output = invocation(context).output
    with connect(context) as queue:
        if dry_run:
            count = wanted.ask(queue, limit=limit, dry_run=True).matched
            if output is Output.TABLE:
                print(f"would be sent back: {counted(count, 'dead letter')} of {topic}; nothing was changed")
            else:
                show_value(output, RedriveSummary(topic, count, 0, True))
            return
        sent = _send_back(queue, wanted, limit)
    text = f"sent back: {counted(sent, 'dead letter')} of {topic}"
    show_done(output, text, RedriveSummary(topic, sent, sent, False))


def _send_back(queue: GoQueue, wanted: Wanted, limit: int | None) -> int:
    """Send them in steps of about a second, so that there is something to see."""
    step = STEP_COUNT if wanted.rate is None else max(int(wanted.rate), 1)
    sent = 0
    is_complete = False
    try:
        with progress("looking") as bar:
            if bar.is_shown:
                bar.expect(wanted.ask(queue, limit=limit, dry_run=True).matched)
            while not is_complete and (limit is None or sent < limit):
                done_now = wanted.ask(queue, limit=step if limit is None else min(step, limit - sent))
                sent += done_now.redriven
                is_complete = done_now.complete
                bar.advance(done_now.redriven, f"{sent:,} sent back")
    except (GoQueueError, KeyboardInterrupt):
        print(f"sent back before it stopped: {sent:,}; the same command goes on", file=sys.stderr)
        raise
    return sent


def _letters(queue: GoQueue, topic: str, partition: int) -> Iterator[DeadLetter]:
    page = queue.dead_letters.list(topic, limit=PAGE_COUNT, partition=partition)
    yield from page.letters
    for number, offset in page.next.items():
        next_offset: int | None = offset
        while next_offset is not None:
            more = queue.dead_letters.list(topic, limit=PAGE_COUNT, partition=int(number), offset=next_offset)
            yield from more.letters
            next_offset = more.next.get(number)


def _row(letter: DeadLetter) -> LetterRow:
    view = view_of(letter.message)
    return LetterRow(
        letter.message.partition,
        letter.message.offset,
        letter.dlq_time,
        letter.reason,
        letter.delivery_attempts,
        letter.last_group,
        letter.last_error,
        letter.original_partition,
        letter.original_offset,
        view.key,
        view.value,
        view.headers,
        view.encoding,
    )
