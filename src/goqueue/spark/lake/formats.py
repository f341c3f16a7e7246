"""Which kind of table lies at a place: the one part that knows all of them."""

from goqueue.spark.lake.options import LakeFormat, TablePlace
from goqueue.spark.lake.table import LakeTable


def open_table(place: TablePlace) -> LakeTable:
    """The table at a place, whether it is there yet or not."""
    # Each library takes a second to import, and nobody needs all of them.
    match place.format:
        case LakeFormat.ICEBERG:
            from goqueue.spark.lake.iceberg import IcebergTable

            return IcebergTable(place)
        case LakeFormat.DELTA:
            from goqueue.spark.lake.delta import DeltaLakeTable

            return DeltaLakeTable(place)
        case LakeFormat.PARQUET:
            from goqueue.spark.lake.parquet import ParquetTable

            return ParquetTable(place)
