"""Iceberg tables, through pyiceberg and a catalog in a SQL database.

Files, new columns, the epoch as a property of the snapshot and the newest epoch as a property of the
table are one transaction. The snapshot's property tells which snapshot brought an epoch; the table's is the
one that is asked, because snapshots expire.
"""

import base64
import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import DayTransform

from goqueue.spark.lake.options import TablePlace
from goqueue.spark.lake.schema import conform, plain_type
from goqueue.spark.lake.table import NO_EPOCH, Conflict, LakeCommit

_EPOCH = "goqueue.epoch."
_NAMESPACE = "default"


class IcebergTable:
    """One table of a catalog."""

    def __init__(self, place: TablePlace) -> None:
        self._place = place
        # The catalog's database makes its file, but not the folder around it.
        place.path.mkdir(parents=True, exist_ok=True)
        uri = place.catalog or f"sqlite:///{place.path / 'catalog.db'}"
        self._catalog = load_catalog("goqueue", type="sql", uri=uri, warehouse=place.path.as_uri())
        name = place.table if "." in place.table else f"{_NAMESPACE}.{place.table}"
        self._namespace, self._name = name.rpartition(".")[0], name
        self._table: Table | None = None
        self.refresh()

    def refresh(self) -> None:
        try:
            self._table = self._catalog.load_table(self._name)
        except NoSuchTableError:
            self._table = None
            return
        # The library would commit again by itself on top of whatever another writer did, without a look at
        # the epoch. This changes our copy of the table's properties, not the table.
        self._table.metadata.properties[TableProperties.COMMIT_NUM_RETRIES] = "0"

    def schema(self) -> pa.Schema | None:
        if self._table is None:
            return None
        fields = schema_to_pyarrow(self._table.schema(), include_field_ids=False)
        return pa.schema([pa.field(field.name, plain_type(field.type)) for field in fields])

    def last_epoch(self, sink: str) -> int:
        return NO_EPOCH if self._table is None else int(self._table.properties.get(_EPOCH + sink, NO_EPOCH))

    def create(self, schema: pa.Schema) -> None:
        self._catalog.create_namespace_if_not_exists(self._namespace)
        try:
            made = self._catalog.create_table_transaction(
                self._name, schema=schema, location=self._place.folder.as_uri()
            )
            if self._place.day_column:
                with made.update_spec() as spec:
                    spec.add_field(self._place.day_column, DayTransform(), f"{self._place.day_column}_day")
            made.commit_transaction()
        except (TableAlreadyExistsError, CommitFailedException):
            return  # Somebody else was quicker, and the table is there all the same.

    def append(self, commit: LakeCommit, added: Sequence[pa.Field]) -> None:
        assert self._table is not None, "the table is made before rows are added"
        epoch = {_EPOCH + commit.sink: str(commit.epoch)}
        try:
            with self._table.transaction() as transaction:
                if added:
                    with transaction.update_schema() as columns:
                        columns.union_by_name(pa.schema(added))
                if commit.replaces and self._table.current_snapshot() is not None:
                    transaction.delete(AlwaysTrue(), snapshot_properties=epoch)
                if commit.files:
                    # Names are never used twice, so the library need not compare them with all others.
                    transaction.add_files(
                        [file.path for file in commit.files],
                        snapshot_properties=epoch,
                        check_duplicate_files=False,
                    )
                if commit.is_remembered:
                    transaction.set_properties(epoch)
        except CommitFailedException as failed:
            raise Conflict from failed

    def parts(self) -> list[str]:
        """The scan tasks of the newest snapshot; they know of deletes, too."""
        if self._table is None:
            return []
        tasks = self._table.scan().plan_files()
        return [base64.b85encode(pickle.dumps(task)).decode() for task in tasks]

    def read(self, parts: Sequence[str]) -> Iterator[pa.RecordBatch]:
        table = self._table
        assert table is not None, "a table that is read is there"
        # What the driver of this very job has written, as Spark itself does with its plans.
        tasks = [pickle.loads(base64.b85decode(part)) for part in parts]  # noqa: S301
        schema = self.schema()
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        for rows in scan.to_record_batches(tasks):
            yield conform(rows, schema)
