"""The sink: `df.write.format("goqueue")` and `df.writeStream.format("goqueue")`.

A write passes through three places that share nothing but what Spark carries between them: the
planner makes a writer, tasks run a copy of it, and the driver commits or aborts with what the tasks
returned. For a stream the writer that commits is not even the one that was planned. So a commit
message carries all that a commit needs to know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)

from goqueue.client.connection import Refused
from goqueue.model.errors import Unavailable
from goqueue.spark.sink import door as sink_door
from goqueue.spark.sink.epochs import Stages, Writing, abort_epoch, commit_epoch
from goqueue.spark.sink.options import Delivery, SinkOptions, sink_options
from goqueue.spark.sink.schema import check_schema, refuse_overwrite

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

QUERY_ID = "sql.streaming.queryId"
EPOCH = "streaming.sql.batchId"
RUN_ID = "spark.jobGroup.id"
"""Properties Spark sets in the tasks of a micro-batch. They are its own affair: a test watches them."""
_ONLY_EPOCH = 0


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task has done."""

    message_count: int
    writing: Writing | None = None
    """None where nothing is left to commit: the rows were appended at once."""
    stages: tuple[str, ...] = ()
    generation: int = 0
    """The one the stages were taken in under."""


Messages = Sequence[WriterCommitMessage | None]


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> DataSourceWriter:
    """The writer of one batch write."""
    refuse_overwrite(overwrite)
    taken = sink_options(options, is_streaming=False)
    check_schema(schema, topic=taken.topic)
    return BatchWriter(taken)


def stream_writer(
    options: Mapping[str, str], schema: "StructType", overwrite: bool
) -> DataSourceStreamWriter:
    """The writer of one micro-batch."""
    refuse_overwrite(overwrite)
    taken = sink_options(options, is_streaming=True)
    check_schema(schema, topic=taken.topic)
    return StreamWriter(taken)


class BatchWriter(DataSourceArrowWriter):
    """One write that becomes visible as a whole. Its copies in tasks and driver share the name made here."""

    def __init__(self, options: SinkOptions) -> None:
        run = uuid4().hex
        self._options = options
        self._writing = Writing(options.write_id or f"write-{run}", _ONLY_EPOCH, run)

    def write(self, iterator: Iterator["RecordBatch"]) -> Written:
        """In a task: stage the rows, or append them at once."""
        return _write(self._options, self._writing, iterator)

    def commit(self, messages: Messages) -> None:
        """On the driver, when all tasks are done."""
        _commit(self._options, messages, _ONLY_EPOCH)
        if self._options.write_id is None and _staged(messages):
            self._forget()

    def abort(self, messages: Messages) -> None:
        """On the driver, when a task or the commit has failed."""
        _abort(self._options, messages)

    def _forget(self) -> None:
        """Nobody can write under a name made up for one write again, so a node need not remember it."""
        try:
            sink_door.forget_sink(self._options.connect_briefly(), self._writing.sink)
        except (Refused, Unavailable):
            return  # A name that stays costs a few bytes; the rows are where they belong.


class StreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator["RecordBatch"]) -> Written:
        """In a task: stage the rows under the query's epoch, or append them at once."""
        context = TaskContext.get()
        assert context is not None, "a writer was called outside of a task"
        query_id, epoch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(EPOCH)
        assert query_id is not None and epoch is not None, "Spark no longer names query and epoch in a task"
        run_id = context.getLocalProperty(RUN_ID) or query_id
        writing = Writing(self._options.sink_id or query_id, int(epoch), run_id, query_id)
        return _write(self._options, writing, iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """On the driver, when all tasks are done; Spark notes the epoch as done after it."""
        _commit(self._options, messages, batchId)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """On the driver, when a task or the commit has failed."""
        _abort(self._options, messages)


def _write(options: SinkOptions, writing: Writing, batches: Iterator["RecordBatch"]) -> Written:
    # Planner and driver import this module in processes of their own and need no numpy there.
    from goqueue.spark.sink.rows import Packer

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    client = options.connect()
    packer = Packer(
        topic=options.topic,
        codec=options.codec,
        shape_of=lambda topic: sink_door.shape_of(client, topic),
        first_turn=task,
    )
    try:
        if options.delivery is Delivery.AT_LEAST_ONCE:
            message_count = 0
            for packet in packer.pack(batches):
                sink_door.append(client, packet.body)
                message_count += packet.message_count
            return Written(message_count)
        stages = Stages(client, writing, task=task)
        for packet in packer.pack(batches):
            stages.add(packet)
        return Written(stages.message_count, writing, tuple(stages.names), stages.generation)
    finally:
        client.close()


def _commit(options: SinkOptions, messages: Messages, epoch: int) -> None:
    staged = _staged(messages)
    if not staged:
        return  # An epoch without rows leaves no trace: epochs need not follow one on another.
    writing = staged[0].writing
    assert writing is not None and writing.epoch == epoch, f"epoch {epoch} is committed with {writing}"
    client = options.connect()
    try:
        commit_epoch(client, writing, [name for message in staged for name in message.stages])
    finally:
        client.close()


def _abort(options: SinkOptions, messages: Messages) -> None:
    client = options.connect_briefly()
    for message in _staged(messages):
        assert message.writing is not None
        abort_epoch(client, message.writing, message.stages, generation=message.generation)
    client.close()


def _staged(messages: Messages) -> list[Written]:
    """The messages of tasks that have staged rows; a task that failed has none."""
    return [message for message in messages if isinstance(message, Written) and message.stages]
