"""Pipelines as people look at them: rows of tables, and the live one that `pipeline run` shows."""

import msgspec
from rich.progress_bar import ProgressBar
from rich.table import Table

from goqueue.spark.pipelines.status import PipelineStatus, SinkStatus, State

LISTED = {"NAME": "name", "STATE": "state", "SINKS": "sinks", "ROWS/S": "rows_per_second", "LAG": "lag"} | {
    "HEARD": "heard",
    "FILE": "file",
}
SINK_COLUMNS = {"SINK": "id", "TARGET": "target", "STATE": "state", "ROWS": "rows", "ROWS/S": "rate"} | {
    "LAG": "lag",
    "BATCH": "batch",
    "TOOK": "took",
    "LAST": "last",
    "RESTARTS": "restarts",
}
_STYLES = {
    State.RUNNING: "green",
    State.DONE: "green",
    State.WAITING: "yellow",
    State.STARTING: "yellow",
    State.FAILED: "red",
    State.REFUSED: "red",
    State.LOST: "red",
}


class ListedPipeline(msgspec.Struct):
    """A pipeline in a list."""

    name: str
    state: State
    sinks: int
    rows_per_second: float
    lag: int | None
    heard: str
    file: str


class SinkRow(msgspec.Struct):
    """A sink in a table."""

    id: str
    target: str
    state: State
    rows: int
    rate: str
    lag: int | None
    batch: str
    took: str
    last: str
    restarts: int


def listed(status: PipelineStatus, *, now_ms: int) -> ListedPipeline:
    lags = [sink.lag for sink in status.sinks if sink.lag is not None]
    return ListedPipeline(
        name=status.name,
        state=status.state,
        sinks=len(status.sinks),
        rows_per_second=round(sum(sink.rows_per_second for sink in status.sinks), 1),
        # Every sink reads the source by itself: the one that is furthest behind tells how late things are.
        lag=max(lags) if lags else None,
        heard=_ago(status.heartbeat_ms, now_ms),
        file=status.file,
    )


def sink_row(sink: SinkStatus, *, now_ms: int) -> SinkRow:
    return SinkRow(
        id=sink.id,
        target=sink.target,
        state=sink.state,
        rows=sink.rows,
        rate=f"{sink.rows_per_second:.0f}",
        lag=sink.lag,
        batch=str(sink.batch) if sink.batch >= 0 else "",
        took=f"{sink.batch_ms} ms" if sink.batch_ms else "",
        last=_ago(sink.last_batch_at_ms, now_ms),
        restarts=sink.restarts,
    )


def live_table(status: PipelineStatus, *, now_ms: int) -> Table:
    """The table that `pipeline run` keeps on the screen."""
    table = Table(title=f"{status.name}: {status.state}", title_justify="left", expand=False)
    for heading in ("SINK", "STATE", "PROGRESS", "ROWS", "ROWS/S", "LAG", "LAST BATCH", "LAST ERROR"):
        table.add_column(heading, overflow="fold")
    for sink in status.sinks:
        row = sink_row(sink, now_ms=now_ms)
        table.add_row(
            sink.id,
            f"[{_STYLES.get(sink.state, 'white')}]{sink.state}[/]",
            ProgressBar(total=max(sink.rows + (sink.lag or 0), 1), completed=sink.rows, width=20),
            str(sink.rows),
            row.rate,
            "-" if sink.lag is None else str(sink.lag),
            f"{row.batch} {row.took} {row.last}".strip() or "-",
            sink.last_error or "-",
        )
    return table


def _ago(time_ms: int, now_ms: int) -> str:
    return f"{max(now_ms - time_ms, 0) // 1_000} s ago" if time_ms else ""
