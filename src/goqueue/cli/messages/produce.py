"""`goqueue-cli produce`: publish one message, or the lines of a file or a pipe."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from io import BufferedIOBase
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from goqueue.cli.messages.lines import Input, batches
from goqueue.cli.parts.arguments import Delay, DeliverAt, Headers, Key, Lane, Topic
from goqueue.cli.parts.calling import connect, connect_to_follow
from goqueue.cli.parts.exit_codes import ExitCode, WrongCommand
from goqueue.cli.parts.frame import Output, done, invocation
from goqueue.cli.parts.output import counted, show_rows, show_value
from goqueue.cli.parts.progress import progress
from goqueue.cli.parts.times import parse_duration, parse_time, time_text
from goqueue.cli.parts.values import pairs
from goqueue.client import GoQueue
from goqueue.client.errors import Refused
from goqueue.client.messages import Acks, Outgoing, Placed
from goqueue.model.errors import GoQueueError

STDIN = Path("-")
RESULTS_MAX = 1_000
"""With more messages than this only the refused ones are listed, and of them as many at most."""
_COLUMNS = {"PARTITION": "partition", "OFFSET": "offset", "PRIORITY": "priority"} | {
    "DELAYED": "delayed",
    "ERROR": "error",
}


class Result(msgspec.Struct, omit_defaults=True, rename={"deliver_at": "deliverAt"}):
    """What became of one message."""

    partition: int
    offset: int
    priority: str = ""
    delayed: bool = False
    deliver_at: datetime | None = None
    error: str = ""
    code: str = ""
    quarantined: str = ""


class Summary(msgspec.Struct):
    """What became of all of them."""

    topic: str
    published: int
    refused: int
    seconds: float
    results: list[Result]


class Tally:
    """Counts what becomes of messages, and keeps as many results as anybody wants to read."""

    def __init__(self) -> None:
        self.published = 0
        self.refused = 0
        self._placed: list[Result] = []
        self._refused: list[Result] = []

    def add(self, outcomes: Sequence[Placed | Refused]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                self.refused += 1
                kept = self._refused
            else:
                self.published += 1
                kept = self._placed
            if len(kept) < RESULTS_MAX:
                kept.append(_result(outcome))

    @property
    def count(self) -> int:
        return self.published + self.refused

    def results(self) -> list[Result]:
        """All of them, those that were refused first; or these alone, where there are too many."""
        return self._refused + (self._placed if self.count <= RESULTS_MAX else [])


def produce(
    context: typer.Context,
    topic: Topic,
    source: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The same as --file; - is standard input.")
    ] = None,
    message: Annotated[str | None, typer.Option("-m", "--message", help="The value of one message.")] = None,
    key: Key = None,
    partition: Annotated[int, typer.Option("-p", "--partition", min=-1, help="-1: by the key.")] = -1,
    delay: Delay = None,
    deliver_at: DeliverAt = None,
    priority: Lane = None,
    headers: Headers = None,
    ttl: Annotated[
        str | None, typer.Option("--ttl", metavar="DURATION", help="Not delivered to groups when older.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("-f", "--file", help="Lines of JSON, or of plain values; - is standard input."),
    ] = None,
    is_raw: Annotated[
        bool, typer.Option("--raw", help="Every line is a value as it stands, JSON or not, blank or not.")
    ] = False,
    acks: Annotated[
        Acks, typer.Option("--acks", help="What to wait for: the disk, the write, nothing.")
    ] = "all",
) -> None:
    """Publish one message, or the lines of a file or of standard input."""
    template = Outgoing(
        value=None if message is None else os.fsencode(message),
        key=None if key is None else os.fsencode(key),
        headers=pairs(headers or (), what="a header"),
        partition=None if partition < 0 else partition,
        priority=priority,
        delay=None if delay is None else parse_duration(delay),
        deliver_at=None if deliver_at is None else parse_time(deliver_at),
        ttl=None if ttl is None else parse_duration(ttl),
    )
    output = invocation(context).output
    lines_from = _source(message, file, source)
    if lines_from is None:
        with connect(context) as queue:
            _tell_placed(output, topic, queue.publish_many(topic, [template], acks=acks)[0])
        return
    # A broker that says "later", because of a tenant's rate, is believed: half a file helps nobody.
    with connect_to_follow(context) as queue:
        _publish_lines(queue, topic, lines_from, template, is_raw=is_raw, acks=acks, output=output)


def _source(message: str | None, file: Path | None, source: Path | None) -> Path | None:
    given = [each for each in (message, file, source) if each is not None]
    if len(given) > 1:
        raise WrongCommand("give one of a message, --file and a file as argument")
    if message is not None:
        return None
    if not given and sys.stdin.isatty():
        raise WrongCommand("what is to be published? Give --message, --file, or lines on standard input")
    return file or source or STDIN


def _publish_lines(
    queue: GoQueue,
    topic: str,
    lines_from: Path,
    template: Outgoing,
    *,
    is_raw: bool,
    acks: Acks,
    output: Output,
) -> None:
    tally = Tally()
    began_s = time.monotonic()
    try:
        with _opened(lines_from) as source, progress("reading", _size(lines_from)) as bar:
            for batch in batches(source, template, is_raw=is_raw):
                tally.add(queue.publish_many(topic, batch.messages, acks=acks))
                bar.advance(batch.size_bytes, counted(tally.count, "message"))
    except (GoQueueError, KeyboardInterrupt):
        if tally.published:
            print(f"published before it stopped: {counted(tally.published, 'message')}", file=sys.stderr)
        raise
    _sum_up(
        output, Summary(topic, tally.published, tally.refused, time.monotonic() - began_s, tally.results())
    )


def _sum_up(output: Output, summary: Summary) -> None:
    if output is not Output.TABLE:
        show_value(output, summary)
    else:
        if summary.results:
            show_rows(output, summary.results, _COLUMNS)
        rate = summary.published / max(summary.seconds, 0.001)
        count = counted(summary.published, "message")
        done(f"{count} to {summary.topic} in {summary.seconds:.1f} s ({rate:,.0f}/s)")
    if summary.refused:
        print(f"Error: refused: {counted(summary.refused, 'message')}", file=sys.stderr)
        raise typer.Exit(ExitCode.PARTIAL if summary.published else ExitCode.FAILED)


def _tell_placed(output: Output, topic: str, outcome: Placed | Refused) -> None:
    if isinstance(outcome, Refused):
        raise outcome
    if output is not Output.TABLE:
        show_value(output, _result(outcome))
    elif outcome.quarantined:
        done(f"does not fit its schema and is in {outcome.quarantined}: {outcome.reason}")
    elif outcome.deliver_at is not None:
        # The pair names it until then, for `delay cancel`.
        done(f"{topic}/{outcome.partition} number {outcome.offset}, due {time_text(outcome.deliver_at)}")
    else:
        done(f"{topic}/{outcome.partition} @{outcome.offset}")


def _result(outcome: Placed | Refused) -> Result:
    if isinstance(outcome, Refused):
        return Result(-1, -1, error=str(outcome), code=outcome.code)
    return Result(
        outcome.partition,
        outcome.offset,
        outcome.priority,
        outcome.delayed,
        outcome.deliver_at,
        quarantined=outcome.quarantined or "",
    )


@contextmanager
def _opened(source: Path) -> Iterator[Input]:
    if source == STDIN:
        standard_input = sys.stdin.buffer
        assert isinstance(standard_input, BufferedIOBase)
        yield standard_input
        return
    with source.open("rb") as file:
        yield file


def _size(source: Path) -> int | None:
    """What there is to read, where that can be known."""
    return source.stat().st_size if source.is_file() else None
