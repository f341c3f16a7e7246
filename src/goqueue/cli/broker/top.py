"""`goqueue-cli top`: topics at work, the busiest first, looked at every other second."""

import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from goqueue.cli.broker.group_lag import all_lags
from goqueue.cli.broker.top_rates import Look, TopRow, look_of, top_rows, total_of
from goqueue.cli.parts.calling import connect
from goqueue.cli.parts.frame import Output, invocation
from goqueue.cli.parts.live import watch
from goqueue.cli.parts.output import Columns, Row, as_size, is_screen, rows_table, show_line, show_rows
from goqueue.client import GoQueue

_ONCE_S = 1.0
_EMPTY = "there is no topic"


def _rate(field: str) -> Callable[[Row], object]:
    def show(row: Row) -> object:
        rate = row.get(field)
        return f"{rate:,.1f}" if isinstance(rate, float) else rate

    return show


_COLUMNS: Columns = {
    "TOPIC": "topic",
    "PARTITIONS": "partitions",
    "MESSAGES": "messages",
    "SIZE": as_size("size_bytes"),
    "IN/S": _rate("in_per_second"),
    "OUT/S": _rate("out_per_second"),
    "GROUPS": "groups",
    "LAG": "lag",
    "DEAD": "dead_letters",
    "DELAYED": "delayed",
}


def top(
    context: typer.Context,
    interval_s: Annotated[
        float | None,
        typer.Option("-n", "--interval", min=0.1, help="Seconds between two looks. [default: 2]"),
    ] = None,
    is_once: Annotated[
        bool, typer.Option("--once", help="One table and no more; rates are of one second.")
    ] = False,
) -> None:
    """Watch topics at work: messages in and out a second, lag, dead letters, delayed. q ends it."""
    output = invocation(context).output
    with connect(context) as queue:
        looking = Looking(queue)
        if is_once:
            looking.rows()
            time.sleep(interval_s or _ONCE_S)
            show_rows(output, looking.rows(), _COLUMNS, empty=_EMPTY)
            return

        def tell(rows: list[TopRow]) -> None:
            if output is Output.TABLE:
                show_rows(output, [*rows, total_of(rows)], _COLUMNS)
                print()
            else:
                show_line(output, rows)

        watch(looking.rows, _draw, tell, interval_s=interval_s or 2.0, on_screen=is_screen(output))


class Looking:
    """Looks at a broker, and remembers the last look to tell what has happened since."""

    def __init__(self, queue: GoQueue) -> None:
        self._queue = queue
        self._before: Look | None = None

    def rows(self) -> list[TopRow]:
        queue = self._queue
        names = queue.topics.list()
        now = look_of(
            time_ns=time.monotonic_ns(),
            extents=queue.extents(names) if names else {},
            lags=all_lags(queue, internal=True),
            delayed=queue.delayed.stats().by_topic,
        )
        rows = top_rows(now, self._before)
        self._before = now
        return rows


def _draw(rows: list[TopRow]) -> RenderableType:
    title = Text(f"{time.strftime('%H:%M:%S')}  {len(rows)} topics; q ends", style="dim")
    return Group(title, rows_table([*rows, total_of(rows)], _COLUMNS))
