"""One streaming query: started, looked at, begun again with growing pauses when it fails."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from goqueue.client.connection import Refused
from goqueue.model.errors import Unavailable
from goqueue.spark.pipelines.reporting import short_error
from goqueue.spark.pipelines.spec import Sink, SinkFormat
from goqueue.spark.pipelines.status import Rate, SinkStatus, State, lag_of, restart_delay_ms
from goqueue.spark.pipelines.topics import ensure_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_POOL = "spark.scheduler.pool"


class RunningQuery:
    """The query of one sink, over all its beginnings."""

    def __init__(
        self,
        sink: Sink,
        frame: "DataFrame",
        checkpoint: Path,
        status: SinkStatus,
        *,
        pipeline_name: str,
        restarts_max: int | None,
    ) -> None:
        self.status = status
        self._sink = sink
        self._frame = frame
        self._checkpoint = checkpoint
        self._pipeline_name = pipeline_name
        self._restarts_max = restarts_max
        self._query: StreamingQuery | None = None
        self._rate = Rate()
        self._failures = 0
        """In a row: a batch that is done begins the count anew."""

    def look(self, *, now_ms: int) -> None:
        """Take in what has happened, and do what is due."""
        match self.status.state:
            case State.STARTING:
                self._start(now_ms)
            case State.RUNNING:
                self._watch(now_ms)
            case State.WAITING if now_ms >= self.status.restart_at_ms:
                self.status.restarts += 1
                self._start(now_ms)
            case _:
                pass

    def stop(self) -> None:
        """End the query, if there is one. What it had in hand is done again the next time."""
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self.status.state in (State.STARTING, State.RUNNING, State.WAITING):
            self.status.state = State.STOPPED
            self.status.rows_per_second = 0.0

    def _start(self, now_ms: int) -> None:
        # Queries of different pipelines take turns on the cores instead of queueing behind each other.
        self._frame.sparkSession.sparkContext.setLocalProperty(_POOL, self._pipeline_name)
        writer = (
            self._frame.writeStream.format(self._sink.format)
            .options(**self._sink.options)
            .option("checkpointLocation", str(self._checkpoint))
            .outputMode("append")
            .queryName(f"{self._pipeline_name}/{self._sink.id}")
        )
        trigger = self._sink.trigger
        try:
            if self._sink.format is SinkFormat.TOPIC:
                ensure_topic(self._sink.options)
            if trigger.is_bounded:
                self._query = writer.trigger(availableNow=True).start()
            else:
                self._query = writer.trigger(processingTime=f"{trigger.every_ms} milliseconds").start()
        except (PySparkException, Refused, Unavailable) as error:
            self._failed(error, now_ms)
        else:
            self.status.state = State.RUNNING

    def _watch(self, now_ms: int) -> None:
        query = self._query
        assert query is not None, "a query is said to run and is not there"
        # Asked before the progress is read, so that the last batch of a query that ends is not missed.
        is_active = query.isActive
        self._take_progress(query, now_ms)
        if is_active:
            return
        self.status.rows_per_second = 0.0
        error = query.exception()
        self._query = None
        if error is not None:
            self._failed(error, now_ms)
        else:
            # Nobody but us stops it, and we would have noted that: it has come to its end.
            self.status.state = State.DONE

    def _take_progress(self, query: "StreamingQuery", now_ms: int) -> None:
        last = query.lastProgress
        if last is not None and last.batchId != self.status.batch:
            fresh = query.recentProgress if last.batchId > self.status.batch + 1 else [last]
            for progress in fresh:
                if progress.batchId > self.status.batch and progress.numInputRows:
                    self.status.rows += progress.numInputRows
                    self.status.batch_ms = progress.durationMs.get("triggerExecution", 0)
                    self.status.last_batch_at_ms = now_ms
            self.status.batch = last.batchId
            self._failures = 0
        if last is not None:
            self.status.lag = _lag(last)
        self.status.rows_per_second = self._rate.note(self.status.rows, now_ms=now_ms)

    def _failed(self, error: Exception, now_ms: int) -> None:
        self._failures += 1
        self.status.last_error = short_error(str(error)) or type(error).__name__
        if self._restarts_max is not None and self.status.restarts >= self._restarts_max:
            self.status.state = State.FAILED
            return
        self.status.state = State.WAITING
        self.status.restart_at_ms = now_ms + restart_delay_ms(self._failures)


def _lag(progress: "StreamingQueryProgress") -> int | None:
    """Messages that wait; None where the source has not yet looked for the ends of its partitions."""
    lags = []
    for source in progress.sources:
        end, latest = (json.loads(text) if text else None for text in (source.endOffset, source.latestOffset))
        if end and latest:
            lags.append(lag_of(end, latest))
    return sum(lags) if lags else None
