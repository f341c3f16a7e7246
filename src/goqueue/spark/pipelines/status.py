"""What is known of a running pipeline, as its driver writes it down and as others may believe it.

A driver that is killed cannot say so. It writes the time with every status, and a reader takes a status that
has not been renewed for what it is: the last that was heard.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

HEARTBEAT_MS = 1_000
SILENCE_MS = 30_000
"""A driver that has not written for so long is lost. Beginning another pipeline holds it up for seconds."""


class State(StrEnum):
    """What a sink or a whole pipeline is doing."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    """Failed, and to be begun again at a time."""
    DONE = "done"
    FAILED = "failed"
    """Failed as often as it may."""
    STOPPED = "stopped"
    REFUSED = "refused"
    """The file cannot be run as it is: its problems tell why."""
    LOST = "lost"
    """The driver has given no sign of life."""


AT_REST = frozenset({State.DONE, State.FAILED, State.STOPPED, State.REFUSED})
"""States that stay true without anybody who writes them down."""


class SinkStatus(msgspec.Struct, kw_only=True):
    """One query."""

    id: str
    target: str
    state: State = State.STARTING
    rows: int = 0
    """Read in this run."""
    rows_per_second: float = 0.0
    lag: int | None = None
    """Messages that wait in the source; None before the first batch."""
    batch: int = -1
    batch_ms: int = 0
    """How long the last batch with rows took."""
    last_batch_at_ms: int = 0
    restarts: int = 0
    restart_at_ms: int = 0
    last_error: str = ""
    notes: list[str] = []


class PipelineStatus(msgspec.Struct, kw_only=True):
    """One pipeline."""

    name: str
    file: str
    state: State
    process_id: int
    heartbeat_ms: int
    sinks: list[SinkStatus] = []
    problems: list[str] = []


def believed(status: PipelineStatus, *, now_ms: int) -> PipelineStatus:
    """A status as a reader may believe it now."""
    is_silent = now_ms - status.heartbeat_ms > SILENCE_MS
    if status.state in AT_REST or not is_silent:
        return status
    lost = [
        sink
        if sink.state in AT_REST
        else msgspec.structs.replace(sink, state=State.LOST, rows_per_second=0.0)
        for sink in status.sinks
    ]
    return msgspec.structs.replace(status, state=State.LOST, sinks=lost)


def overall(states: list[State]) -> State:
    """The state of a pipeline from those of its sinks: the one that most needs looking at."""
    order = (State.REFUSED, State.FAILED, State.WAITING, State.STARTING, State.RUNNING, State.STOPPED)
    return next((state for state in order if state in states), State.DONE)


def lag_of(end: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]]) -> int:
    """How many messages lie between the end of the last batch and the ends of the partitions."""
    return sum(
        max(offset - end.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def restart_delay_ms(failures: int) -> int:
    """How long to wait before a query that failed so many times in a row is begun again."""
    return min(1_000 << min(failures - 1, 6), 60_000)


class Rate:
    """Rows a second over the last seconds."""

    _SPAN_MS = 10_000

    def __init__(self) -> None:
        self._seen: list[tuple[int, int]] = []

    def note(self, rows: int, *, now_ms: int) -> float:
        """Take in how many rows there were by now; gives the rate."""
        self._seen = [seen for seen in self._seen if now_ms - seen[0] <= self._SPAN_MS]
        self._seen.append((now_ms, rows))
        first_ms, first_rows = self._seen[0]
        return (rows - first_rows) * 1_000 / (now_ms - first_ms) if now_ms > first_ms else 0.0
