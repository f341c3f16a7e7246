"""Delta tables, through the deltalake library. Idempotence is part of the format: the version of a writer."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction

from goqueue.spark.lake.options import TablePlace
from goqueue.spark.lake.schema import conform, plain_type
from goqueue.spark.lake.table import NO_EPOCH, Conflict, DataFile, LakeCommit


class DeltaLakeTable:
    """One table in a folder."""

    def __init__(self, place: TablePlace) -> None:
        self._folder = place.folder
        self._table: DeltaTable | None = None
        self.refresh()

    def refresh(self) -> None:
        try:
            self._table = DeltaTable(self._folder)
        except TableNotFoundError:
            self._table = None

    def schema(self) -> pa.Schema | None:
        if self._table is None:
            return None
        fields = pa.schema(self._table.schema().to_arrow())
        return pa.schema([pa.field(field.name, plain_type(field.type)) for field in fields])

    def last_epoch(self, sink: str) -> int:
        if self._table is None:
            return NO_EPOCH
        version = self._table.transaction_version(sink)
        return NO_EPOCH if version is None else version

    def create(self, schema: pa.Schema) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            DeltaTable.create(self._folder, schema=Schema.from_arrow(schema), mode="ignore")
        except CommitFailedError:
            return  # Somebody else was quicker, and the table is there all the same.

    def append(self, commit: LakeCommit, added: Sequence[pa.Field]) -> None:
        table = self._table
        assert table is not None, "the table is made before rows are added"
        done = [Transaction(app_id=commit.sink, version=commit.epoch)] if commit.is_remembered else []
        try:
            if added:
                # A commit of its own: columns that no file has yet do no harm if the next one fails.
                table.alter.add_columns([Field.from_arrow(field) for field in added])
            table.create_write_transaction(
                [self._action(file) for file in commit.files],
                mode="overwrite" if commit.replaces else "append",
                schema=table.schema(),
                commit_properties=CommitProperties(app_transactions=done, max_commit_retries=0),
            )
        except CommitFailedError as failed:
            raise Conflict from failed

    def parts(self) -> list[str]:
        return [] if self._table is None else sorted(self._table.file_uris())

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        assert self._table is not None, "a table that is read is there"
        schema = self.schema()
        wanted = {Path(part).name for part in parts}
        dataset = self._table.to_pyarrow_dataset()
        for fragment in dataset.get_fragments():
            if Path(fragment.path).name in wanted:
                for rows in fragment.to_batches(schema=dataset.schema):
                    yield conform(rows, schema)

    def _action(self, file: DataFile) -> AddAction:
        return AddAction(
            path=str(Path(file.path).relative_to(self._folder)),
            size=file.size_bytes,
            partition_values={},
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=json.dumps({"numRecords": file.row_count}),
        )
