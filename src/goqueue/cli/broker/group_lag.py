"""`goqueue-cli group lag`: how far groups are behind, once or again and again."""

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import msgspec
import typer
from rich.console import RenderableType

from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.completing import group_names
from goqueue.cli.parts.frame import Output, invocation
from goqueue.cli.parts.live import watch
from goqueue.cli.parts.output import Columns, Row, is_screen, rows_table, show_line, show_rows
from goqueue.cli.parts.times import seconds_text
from goqueue.client import GoQueue
from goqueue.client.calls.groups import GroupLag
from goqueue.model.errors import NotFound


class PartitionLag(msgspec.Struct, omit_defaults=True):
    """A group in one partition; -1 stands for what cannot be told, or was never committed."""

    group_id: str
    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int
    lag_seconds: float
    held_back_by: str = ""


class TotalLag(msgspec.Struct):
    """A group over all partitions."""

    group_id: str
    lag: int
    lag_seconds: float
    partitions: int


def _behind(row: Row) -> str:
    seconds = row["lag_seconds"]
    return seconds_text(seconds) if isinstance(seconds, float) and seconds >= 0 else "-"


_PARTITIONS: Columns = {"TOPIC": "topic", "PARTITION": "partition", "OFFSET": "offset"} | {
    "END": "end_offset",
    "LAG": "lag",
    "BEHIND": _behind,
    "HELD BACK BY": "held_back_by",
}
_TOTALS: Columns = {"GROUP ID": "group_id", "PARTITIONS": "partitions", "LAG": "lag", "BEHIND": _behind}
_EMPTY = "nothing was committed"


def lag(
    context: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The group; without it, all.", autocompletion=group_names),
    ] = None,
    is_watched: Annotated[
        bool, typer.Option("-w", "--watch", help="Look again and again; q or Ctrl-C ends it.")
    ] = False,
    interval_s: Annotated[
        float, typer.Option("-n", "--interval", min=0.1, help="Seconds between two looks.")
    ] = 2.0,
) -> None:
    """Show how far groups are behind: messages, and how long the first of them has waited."""
    output = invocation(context).output
    columns = _TOTALS if group is None else _PARTITIONS
    with connect(context) as queue:
        take = _look(queue, group)
        if not is_watched:
            show_rows(output, take(), columns, empty=_EMPTY)
            return

        def draw(rows: list[TotalLag] | list[PartitionLag]) -> RenderableType:
            return rows_table(rows, columns)

        def tell(rows: list[TotalLag] | list[PartitionLag]) -> None:
            if output is Output.TABLE:
                show_rows(output, rows, columns, empty=_EMPTY)
            else:
                show_line(output, rows)

        watch(take, draw, tell, interval_s=interval_s, on_screen=is_screen(output))


def _look(queue: GoQueue, group: str | None) -> Callable[[], list[TotalLag] | list[PartitionLag]]:
    if group is None:
        return lambda: _totals(queue)
    return lambda: _partitions(queue, group)


def _partitions(queue: GoQueue, group: str) -> list[PartitionLag]:
    return [
        PartitionLag(
            group,
            row.topic,
            row.partition,
            row.offset,
            row.end_offset,
            row.lag,
            row.lag_seconds,
            "" if row.held_back_by is None else row.held_back_by.transactional_id,
        )
        for row in queue.groups.lag(group).partitions
    ]


def all_lags(queue: GoQueue, *, internal: bool = False) -> list[GroupLag]:
    """How far every group is behind; with the broker's own, if wanted."""
    lags = []
    for group in queue.groups.list(internal=internal):
        # It may go between two questions.
        with suppress(NotFound):
            lags.append(queue.groups.lag(group.id))
    return lags


def _totals(queue: GoQueue) -> list[TotalLag]:
    rows = [
        TotalLag(each.group_id, each.total, each.max_seconds, len(each.partitions))
        for each in all_lags(queue)
    ]
    return sorted(rows, key=lambda row: (-row.lag, row.group_id))
