"""What pipelines do, told in plain lines: for logs, and for terminals that are none."""

import re
from collections.abc import Callable, Iterable

from goqueue.spark.pipelines.status import PipelineStatus, SinkStatus, State

_EVERY_MS = 10_000
_LENGTH_MAX = 600
_BEHIND = ("=== Streaming Query ===", "JVM stacktrace", ";\n")
"""What Spark writes between its message and the plan, the state or the Java stack."""
_LAST_WORDS = re.compile(r"[A-Za-z_][\w.]*: ")
_OUR_ERROR = re.compile(r"^goqueue\.[\w.]+: ")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+$")


class Reporter:
    """Tells news at once, and how far things are every ten seconds."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: dict[str, tuple[State, str]] = {}
        self._told_ms: dict[str, tuple[int, int]] = {}
        """By sink, when and at which batch its progress was last told."""

    def report(self, statuses: Iterable[PipelineStatus]) -> None:
        for status in statuses:
            self._report_state(status.name, status.state, "; ".join(status.problems))
            for sink in status.sinks:
                name = f"{status.name}/{sink.id}"
                self._report_state(name, sink.state, _error_of(sink))
                self._report_progress(name, sink, now_ms=status.heartbeat_ms)

    def _report_state(self, name: str, state: State, detail: str) -> None:
        if self._told.get(name) != (state, detail):
            self._told[name] = (state, detail)
            self._tell(f"{name} {state}" + (f": {detail}" if detail else ""))

    def _report_progress(self, name: str, sink: SinkStatus, *, now_ms: int) -> None:
        told_ms, told_batch = self._told_ms.get(name, (0, -1))
        is_at_end = sink.state is State.DONE
        if sink.batch in (told_batch, -1) or (now_ms - told_ms < _EVERY_MS and not is_at_end):
            return
        self._told_ms[name] = (now_ms, sink.batch)
        self._tell(f"{name} {progress_text(sink)}")


def progress_text(sink: SinkStatus) -> str:
    """How far a sink is, in a few words."""
    lag = "-" if sink.lag is None else str(sink.lag)
    return f"batch {sink.batch}, {sink.rows} rows, {sink.rows_per_second:.0f} rows/s, lag {lag}"


def short_error(text: str) -> str:
    """The line that tells what went wrong, out of the pages that Spark puts around it."""
    for behind in _BEHIND:
        text = text.split(behind)[0]
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    # What fails inside a Python worker comes with its traceback; its last words stand at its end.
    if any(line.endswith("Traceback (most recent call last):") for line in lines):
        lines = [line for line in lines if _LAST_WORDS.match(line)][-1:] or lines
    told = _SQLSTATE.sub("", lines[0]) if lines else ""
    return _OUR_ERROR.sub("", told)[:_LENGTH_MAX].strip()


def _error_of(sink: SinkStatus) -> str:
    return sink.last_error if sink.state in (State.WAITING, State.FAILED) else ""
