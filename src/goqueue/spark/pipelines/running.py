"""One pipeline at work: a query for each sink, looked after, begun again when it fails.

Everything happens in `tick`, which the driver calls twice a second: look at what people ask, at what the
queries say, and write the status down. No thread of ours but the driver's.
"""

import os
import time
from typing import TYPE_CHECKING

from goqueue.spark.pipelines.building import build
from goqueue.spark.pipelines.fingerprint import changes, fingerprint, read_fingerprint, write_fingerprint
from goqueue.spark.pipelines.running_query import RunningQuery
from goqueue.spark.pipelines.spec import Pipeline
from goqueue.spark.pipelines.status import (
    AT_REST,
    HEARTBEAT_MS,
    PipelineStatus,
    SinkStatus,
    State,
    overall,
)
from goqueue.spark.pipelines.storage import PipelineLock, Storage
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RunningPipeline:
    """A pipeline and its queries. It holds the pipeline's lock from `begin` to `close`."""

    def __init__(
        self,
        pipeline: Pipeline,
        storage: Storage,
        lock: PipelineLock | None = None,
        *,
        restarts_max: int | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._folder = storage.pipeline(pipeline.name)
        self._lock = lock or PipelineLock(self._folder)
        self._restarts_max = restarts_max
        self._spark: SparkSession | None = None
        self._queries: list[RunningQuery] = []
        self._problems: list[str] = []
        self._is_resting = False
        self._written_ms = 0

    def begin(self, spark: "SparkSession", *, reset: bool = False) -> None:
        """Take the pipeline and start its queries; Busy when somebody else runs it."""
        self._lock.take()
        self._spark = spark
        if reset:
            self._folder.forget([sink.id for sink in self.pipeline.all_sinks])
        self._start()
        self.tick()

    def tick(self) -> PipelineStatus:
        """Do what is asked and what is due; gives the state of things."""
        now_ms = wall_ms()
        if (asked := self._folder.asked_to_reset()) is not None:
            self._stop_queries()
            self._folder.forget(asked or [sink.id for sink in self.pipeline.all_sinks])
            self._folder.reset_is_done()
            self._start()
        if self._folder.is_to_rest != self._is_resting:
            self._stop_queries() if self._folder.is_to_rest else self._start()
        for query in self._queries:
            query.look(now_ms=now_ms)
        status = self.status(now_ms=now_ms)
        if now_ms - self._written_ms >= HEARTBEAT_MS or status.state in AT_REST:
            self._folder.write_status(status)
            self._written_ms = now_ms
        return status

    def status(self, *, now_ms: int) -> PipelineStatus:
        sinks = [query.status for query in self._queries]
        state = State.REFUSED if self._problems else overall([sink.state for sink in sinks])
        if self._is_resting:
            state = State.STOPPED
        return PipelineStatus(
            name=self.pipeline.name,
            file=str(self.pipeline.path.absolute()),
            state=state,
            process_id=os.getpid(),
            heartbeat_ms=now_ms,
            sinks=sinks,
            problems=self._problems,
        )

    def close(self) -> None:
        """Stop the queries and let the pipeline go, if it is held."""
        if not self._lock.is_held:
            return
        self._stop_queries()
        self._folder.write_status(self.status(now_ms=wall_ms()))
        self._lock.release()

    def _start(self) -> None:
        """Build anew and begin. What cannot be run is told in the status, and nothing of it is begun."""
        assert self._spark is not None, "a pipeline is started before it was begun"
        self._is_resting = self._folder.is_to_rest
        self._queries, self._problems = [], []
        try:
            built = [] if self._is_resting else build(self.pipeline, self._spark)
            notes = self._check_unchanged()
        except InvalidPipeline as invalid:
            self._problems = invalid.lines()
            return
        for sink, frame in built:
            checkpoint = self._folder.checkpoint(sink.id)
            write_fingerprint(checkpoint, fingerprint(self.pipeline, sink))
            status = SinkStatus(id=sink.id, target=sink.target, notes=notes.get(sink.id, []))
            self._queries.append(
                RunningQuery(
                    sink,
                    frame,
                    checkpoint,
                    status,
                    pipeline_name=self.pipeline.name,
                    restarts_max=self._restarts_max,
                )
            )

    def _check_unchanged(self) -> dict[str, list[str]]:
        """By sink, what has changed since its checkpoint was begun; refused where it cannot go on so."""
        notes, problems = {}, []
        for sink in self.pipeline.all_sinks:
            checkpoint = self._folder.checkpoint(sink.id)
            before = read_fingerprint(checkpoint)
            if before is None:
                continue
            # Spark keeps this folder for queries with windows, joins or sets, and only for them.
            has_state = (checkpoint / "state").exists()
            found = changes(before, fingerprint(self.pipeline, sink), has_state=has_state)
            notes[sink.id] = [f"changed since the last run: {name}" for name in found.names]
            if found.refused:
                advice = f"goqueue-cli pipeline reset {self.pipeline.name} --sink {sink.id}"
                text = (
                    f"sink {sink.id}: {', '.join(found.refused)} changed since its checkpoint was begun, so "
                    f"it cannot go on from there. Begin anew with `{advice}` (its rows are written again), "
                    "or give the sink a new id"
                )
                problems.append(Problem(sink.position, text))
        if problems:
            raise InvalidPipeline(self.pipeline.path, problems)
        return notes

    def _stop_queries(self) -> None:
        for query in self._queries:
            query.stop()
        self._is_resting = self._folder.is_to_rest


def wall_ms() -> int:
    return time.time_ns() // 1_000_000
