"""The lake's sink: `df.write.format("goqueue-lake")` and `df.writeStream.format("goqueue-lake")`.

It is built as the sink for topics: planner, tasks and driver share nothing but what Spark carries between
them, so a commit message carries all that a commit needs to know.
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
from pyspark.sql.pandas.types import to_arrow_schema

from goqueue.spark.lake.files import FileWriter, abandon, clear_others, drop, epoch_folder, mark_kept, sweep
from goqueue.spark.lake.formats import open_table
from goqueue.spark.lake.options import LakeOptions, lake_options
from goqueue.spark.lake.schema import added_columns, lake_schema
from goqueue.spark.lake.table import DataFile, LakeCommit, commit_epoch
from goqueue.spark.sink.writer import EPOCH, QUERY_ID

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema
    from pyspark.sql.types import StructType

_ONLY_EPOCH = 0
_swept: set[str] = set()
"""The tables that this process has looked through for what failed epochs left: once a run is enough."""


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """What one task has done."""

    sink: str
    epoch: int
    files: tuple[DataFile, ...]


Messages = Sequence[WriterCommitMessage | None]


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> DataSourceWriter:
    """The writer of one batch write."""
    writing = _Writing.planned(options, schema, overwrite)
    return LakeBatchWriter(writing, writing.options.write_id or f"write-{uuid4().hex}")


def stream_writer(
    options: Mapping[str, str], schema: "StructType", overwrite: bool
) -> DataSourceStreamWriter:
    """The writer of one micro-batch."""
    return LakeStreamWriter(_Writing.planned(options, schema, overwrite))


@dataclass(frozen=True)
class _Writing:
    """What a write is about: options, the table's columns, and whether old rows stay."""

    options: LakeOptions
    schema: "Schema"
    replaces: bool

    @classmethod
    def planned(cls, options: Mapping[str, str], schema: "StructType", overwrite: bool) -> "_Writing":
        """Refuse rows that the table cannot take before the first is written."""
        taken = lake_options(options)
        offered = lake_schema(to_arrow_schema(schema, timezone="UTC"), taken.place.format)
        known = open_table(taken.place).schema()
        if known is not None:
            added_columns(known, offered)
        return cls(taken, offered, overwrite)

    def write(self, sink: str, epoch: int, batches: Iterator["RecordBatch"]) -> WrittenFiles:
        context = TaskContext.get()
        writer = FileWriter(
            epoch_folder(self.options.place.folder, sink, epoch),
            self.schema,
            task=0 if context is None else context.partitionId(),
            compression=self.options.compression,
            file_bytes=self.options.file_bytes,
        )
        return WrittenFiles(sink, epoch, writer.write(batches))

    def commit(self, messages: Messages, *, is_remembered: bool) -> None:
        written = _written(messages)
        if not written:
            return
        sink, epoch = written[0].sink, written[0].epoch
        files = tuple(file for message in written for file in message.files)
        table = open_table(self.options.place)
        if not files and not self.replaces and table.schema() is not None:
            return  # An epoch without rows leaves no trace: epochs need not follow one on another.
        commit = LakeCommit(
            sink=sink,
            epoch=epoch,
            files=files,
            schema=self.schema,
            is_remembered=is_remembered,
            replaces=self.replaces,
        )
        folder = epoch_folder(self.options.place.folder, sink, epoch)
        mark_kept(folder)
        if commit_epoch(table, commit):
            clear_others(folder, files)
        else:
            drop(files)
        self._sweep_once()

    def abort(self, messages: Messages) -> None:
        for message in _written(messages):
            abandon(epoch_folder(self.options.place.folder, message.sink, message.epoch), message.files)

    def _sweep_once(self) -> None:
        folder = self.options.place.folder
        if str(folder) not in _swept:
            _swept.add(str(folder))
            sweep(folder)


class LakeBatchWriter(DataSourceArrowWriter):
    """One write that becomes visible as a whole. Its copies in tasks and driver share the name."""

    def __init__(self, writing: _Writing, write_id: str) -> None:
        self._writing = writing
        self._write_id = write_id

    def write(self, iterator: Iterator["RecordBatch"]) -> WrittenFiles:
        """In a task: rows into files."""
        return self._writing.write(self._write_id, _ONLY_EPOCH, iterator)

    def commit(self, messages: Messages) -> None:
        """On the driver, when all tasks are done."""
        # A name that was made up for this write cannot come again.
        self._writing.commit(messages, is_remembered=self._writing.options.write_id is not None)

    def abort(self, messages: Messages) -> None:
        """On the driver, when a task or the commit has failed."""
        self._writing.abort(messages)


class LakeStreamWriter(DataSourceStreamArrowWriter):
    """One micro-batch of a query."""

    def __init__(self, writing: _Writing) -> None:
        self._writing = writing

    def write(self, iterator: Iterator["RecordBatch"]) -> WrittenFiles:
        """In a task: rows into files of the query's epoch."""
        context = TaskContext.get()
        assert context is not None, "a writer was called outside of a task"
        query_id, epoch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(EPOCH)
        assert query_id is not None and epoch is not None, "Spark no longer names query and epoch in a task"
        return self._writing.write(self._writing.options.sink_id or query_id, int(epoch), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """On the driver, when all tasks are done; Spark notes the epoch as done after it."""
        self._writing.commit(messages, is_remembered=True)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """On the driver, when a task or the commit has failed."""
        self._writing.abort(messages)


def _written(messages: Messages) -> list[WrittenFiles]:
    """The messages of tasks that are done; a task that failed has none."""
    return [message for message in messages if isinstance(message, WrittenFiles)]
