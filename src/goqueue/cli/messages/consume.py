"""`goqueue-cli consume`: look at messages of a topic, or take them as a member of a group."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from goqueue.cli.messages.consume_group import member, taken
from goqueue.cli.messages.consume_log import EVERY_PARTITION, Span, pages
from goqueue.cli.messages.view import COLUMNS, COLUMNS_OF_MANY, Found, line_of, view_of, write_values
from goqueue.cli.parts.arguments import Topic
from goqueue.cli.parts.calling import connect, connect_to_follow
from goqueue.cli.parts.completing import group_names
from goqueue.cli.parts.exit_codes import WrongCommand
from goqueue.cli.parts.frame import Output, invocation
from goqueue.cli.parts.output import show_line, show_rows
from goqueue.cli.parts.times import now, parse_moment
from goqueue.model.errors import GoQueueError

LIMIT = 10


def consume(
    context: typer.Context,
    topic: Topic,
    partition: Annotated[int, typer.Option("-p", "--partition", min=-1, help="The partition; -1: all.")] = 0,
    offset: Annotated[
        int | None,
        typer.Option("--offset", "--from-offset", help="The first offset; -5: the last five. [default: 0]"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("-n", "--limit", min=1, help="At most so many. [default: 10; none with -f]")
    ] = None,
    is_followed: Annotated[bool, typer.Option("-f", "--follow", help="Wait for more, until Ctrl-C.")] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="From the first there is.")
    ] = False,
    from_latest: Annotated[bool, typer.Option("--from-latest", help="Only what comes from now on.")] = False,
    from_time: Annotated[
        str | None,
        typer.Option(
            "--from-time", metavar="TIME", help="From that time on: 2026-01-31T12:00:00Z, or 15m ago."
        ),
    ] = None,
    to_time: Annotated[
        str | None, typer.Option("--to-time", metavar="TIME", help="Up to the first message of that time.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            help="Take them as a member of this group, and acknowledge what is printed.",
            autocompletion=group_names,
        ),
    ] = None,
    is_raw: Annotated[bool, typer.Option("--raw", help="Print the values alone, a line each.")] = False,
) -> None:
    """Show messages of a topic: from an offset, from a time, or as a member of a group."""
    starts = [offset is not None, from_beginning, from_latest, from_time is not None]
    if sum(starts) > 1:
        raise WrongCommand(
            "say once where to begin: --offset, --from-beginning, --from-latest or --from-time"
        )
    if group is not None and (any(starts) or to_time is not None or partition > 0):
        raise WrongCommand(
            "a group goes on where it is, in all partitions; `goqueue-cli group reset-offsets` moves it"
        )
    if from_latest and not is_followed:
        raise WrongCommand("behind the last message there is nothing yet: add --follow to wait for it")
    count = limit or (None if is_followed else LIMIT)
    with_partition = group is not None or partition == EVERY_PARTITION
    printer = _Printer(
        invocation(context).output, is_raw=is_raw, is_stream=is_followed, with_partition=with_partition
    )
    connected = connect_to_follow(context) if is_followed else connect(context)
    with connected as queue, _until_interrupted(is_followed):
        if group is not None:
            with member(queue, group, topic) as member_id:
                printer.print_all(taken(queue, group, member_id, count, is_followed=is_followed))
            return
        moment = now()
        span = Span(
            offset=offset or 0,
            from_time=None if from_time is None else parse_moment(from_time, now=moment),
            to_time=None if to_time is None else parse_moment(to_time, now=moment),
            is_new_only=from_latest,
            is_followed=is_followed,
        )
        printer.print_all(pages(queue, topic, partition, span, count))


class _Printer:
    """Prints what is found, and lets it be settled once it is printed."""

    def __init__(self, output: Output, *, is_raw: bool, is_stream: bool, with_partition: bool) -> None:
        self._output = output
        self._is_raw = is_raw
        self._is_stream = is_stream
        self._with_partition = with_partition

    def print_all(self, found: Iterator[Found]) -> None:
        if self._is_stream or self._is_raw:
            for page in found:
                self._print_each(page)
                page.settle()
            return
        good: list[Found] = []
        try:
            good.extend(found)
        except GoQueueError:
            if good:
                self._print_table(good)  # what stands before a damaged place is good
            raise
        self._print_table(good)

    def _print_table(self, pages: Sequence[Found]) -> None:
        views = [view_of(message) for page in pages for message in page.messages]
        columns = COLUMNS_OF_MANY if self._with_partition else COLUMNS
        show_rows(self._output, views, columns, empty="no messages")
        for page in pages:
            page.settle()

    def _print_each(self, page: Found) -> None:
        if self._is_raw:
            write_values(page.messages)
            return
        for message in page.messages:
            if self._output is Output.TABLE:
                print(line_of(view_of(message), with_partition=self._with_partition))
            else:
                show_line(self._output, view_of(message))
        sys.stdout.flush()


@contextmanager
def _until_interrupted(is_stream: bool) -> Iterator[None]:
    """Ctrl-C is the usual way to end what has no end."""
    try:
        yield
    except KeyboardInterrupt:
        if not is_stream:
            raise
