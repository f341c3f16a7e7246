"""One query over all its beginnings, with a Spark that does as it is told and a clock in the test's hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from goqueue.spark.pipelines.running_query import RunningQuery
from goqueue.spark.pipelines.spec import Sink, SinkFormat
from goqueue.spark.pipelines.status import SinkStatus, State
from goqueue.spark.pipelines.triggers import AVAILABLE_NOW, CONTINUOUS, Trigger
from goqueue.spark.pipelines.yaml_nodes import START


class FakeQuery:
    """A query that runs until the test says otherwise."""

    def __init__(self) -> None:
        self.isActive = True
        self.recentProgress: list[SimpleNamespace] = []
        self._error: PySparkException | None = None

    @property
    def lastProgress(self) -> SimpleNamespace | None:  # noqa: N802 - Spark's name
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> PySparkException | None:
        return self._error

    def stop(self) -> None:
        self.isActive = False

    def fail(self, text: str) -> None:
        self.isActive, self._error = False, PySparkException(text)

    def batch(self, number: int, rows: int, *, end: int, latest: int | None) -> None:
        offsets = [
            f'{{"orders": {{"0": {offset}}}}}' if offset is not None else "null" for offset in (end, latest)
        ]
        source = SimpleNamespace(endOffset=offsets[0], latestOffset=offsets[1])
        self.recentProgress.append(
            SimpleNamespace(
                batchId=number, numInputRows=rows, durationMs={"triggerExecution": 40}, sources=[source]
            )
        )


class FakeFrame:
    """A frame whose writer notes what it is told and starts queries."""

    def __init__(self) -> None:
        self.told: dict[str, object] = {}
        self.started: list[FakeQuery] = []
        self.refuses = False
        self.sparkSession = SimpleNamespace(
            sparkContext=SimpleNamespace(setLocalProperty=lambda name, value: self.told.update({name: value}))
        )

    @property
    def writeStream(self) -> "FakeFrame":  # noqa: N802 - Spark's name
        return self

    def format(self, name: str) -> "FakeFrame":
        return self._note(format=name)

    def options(self, **options: str) -> "FakeFrame":
        return self._note(**options)

    def option(self, name: str, value: str) -> "FakeFrame":
        return self._note(**{name: value})

    def outputMode(self, mode: str) -> "FakeFrame":  # noqa: N802 - Spark's name
        return self._note(mode=mode)

    def queryName(self, name: str) -> "FakeFrame":  # noqa: N802 - Spark's name
        return self._note(name=name)

    def trigger(self, **trigger: object) -> "FakeFrame":
        return self._note(trigger=trigger)

    def start(self) -> FakeQuery:
        if self.refuses:
            raise PySparkException("Spark will not have it")
        self.started.append(FakeQuery())
        return self.started[-1]

    def _note(self, **told: object) -> "FakeFrame":
        self.told |= told
        return self


@pytest.fixture
def frame() -> FakeFrame:
    return FakeFrame()


def query_of(
    frame: FakeFrame, *, trigger: Trigger = CONTINUOUS, restarts_max: int | None = None
) -> RunningQuery:
    sink = Sink(
        id="lake",
        format=SinkFormat.TABLE,
        target="parquet lake",
        options={"path": "/lake"},
        columns={},
        trigger=trigger,
        position=START,
    )
    return RunningQuery(
        sink,
        cast(DataFrame, frame),
        Path("/state/lake"),
        SinkStatus(id="lake", target="parquet lake"),
        pipeline_name="clean",
        restarts_max=restarts_max,
    )


def test_a_query_is_started_as_its_sink_says(frame: FakeFrame) -> None:
    query = query_of(frame, trigger=Trigger(is_bounded=False, every_ms=60_000))

    query.look(now_ms=0)

    assert query.status.state is State.RUNNING
    assert frame.told == {
        "spark.scheduler.pool": "clean",
        "format": "goqueue-lake",
        "path": "/lake",
        "checkpointLocation": "/state/lake",
        "mode": "append",
        "name": "clean/lake",
        "trigger": {"processingTime": "60000 milliseconds"},
    }


def test_rows_lag_and_the_last_batch_are_taken_from_what_spark_tells(frame: FakeFrame) -> None:
    query = query_of(frame)
    query.look(now_ms=0)
    query.look(now_ms=500)
    assert query.status.lag is None

    frame.started[0].batch(0, 10, end=10, latest=None)
    frame.started[0].batch(1, 20, end=30, latest=50)
    query.look(now_ms=1_000)
    query.look(now_ms=2_000)

    status = query.status
    assert (status.rows, status.lag, status.batch, status.batch_ms) == (30, 20, 1, 40)
    assert (status.last_batch_at_ms, status.rows_per_second) == (1_000, 20.0)


def test_a_query_that_fails_waits_longer_each_time_until_a_batch_is_done(frame: FakeFrame) -> None:
    query = query_of(frame)
    query.look(now_ms=0)
    frame.started[0].fail("no node answers")
    query.look(now_ms=100)
    assert (query.status.state, query.status.last_error) == (State.WAITING, "no node answers")
    query.look(now_ms=1_099)
    assert len(frame.started) == 1

    query.look(now_ms=1_100)
    frame.started[1].fail("no node answers")
    query.look(now_ms=1_200)
    assert (query.status.restarts, query.status.restart_at_ms) == (1, 3_200)

    query.look(now_ms=3_200)
    frame.started[2].batch(0, 1, end=1, latest=1)
    query.look(now_ms=3_300)
    frame.started[2].fail("again")
    query.look(now_ms=3_400)
    assert query.status.restart_at_ms == 4_400


def test_a_query_that_cannot_be_started_is_tried_again_too(frame: FakeFrame) -> None:
    frame.refuses = True
    query = query_of(frame)

    query.look(now_ms=0)
    assert (query.status.state, query.status.last_error) == (State.WAITING, "Spark will not have it")
    frame.refuses = False
    query.look(now_ms=1_000)

    assert query.status.state is State.RUNNING


def test_a_query_gives_up_when_it_has_been_begun_again_often_enough(frame: FakeFrame) -> None:
    query = query_of(frame, restarts_max=1)
    query.look(now_ms=0)
    frame.started[0].fail("first")
    query.look(now_ms=0)
    query.look(now_ms=1_000)
    frame.started[1].fail("second")
    query.look(now_ms=1_000)
    query.look(now_ms=99_000)

    assert (query.status.state, query.status.last_error) == (State.FAILED, "second")
    assert len(frame.started) == 2


def test_a_bounded_query_is_done_when_it_ends_and_its_last_batch_is_counted(frame: FakeFrame) -> None:
    query = query_of(frame, trigger=AVAILABLE_NOW)
    query.look(now_ms=0)
    frame.started[0].batch(0, 7, end=7, latest=7)
    frame.started[0].stop()

    query.look(now_ms=100)

    assert frame.told["trigger"] == {"availableNow": True}
    assert (query.status.state, query.status.rows) == (State.DONE, 7)


def test_a_query_that_is_stopped_stays_so(frame: FakeFrame) -> None:
    query = query_of(frame)
    query.look(now_ms=0)

    query.stop()
    query.look(now_ms=100)

    assert query.status.state is State.STOPPED
    assert not frame.started[0].isActive
    assert len(frame.started) == 1
