"""A topic of changes into a table of what is now: the newest value of each key, none for a deleted one.

    python -m examples.spark.upsert --topic customers --table /data/lake/customers

A message is the new value of its key, and one without a value deletes it, as in a compacted topic or in
the change feed of a database. The table is a Delta table.
"""

import argparse
from pathlib import Path

from deltalake import DeltaTable, Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

import goqueue.spark


def upsert(spark: SparkSession, *, bootstrap: str, topic: str, table: Path) -> DataStreamWriter:
    """The stream of changes into the table, ready to start."""
    changes = spark.readStream.format("goqueue").options(
        bootstrap=bootstrap, topic=topic, startingOffsets="earliest", group=f"upsert-{table.name}"
    )
    writer = changes.load().writeStream.foreachBatch(lambda batch, _: merge(batch, table))
    return writer.option("checkpointLocation", f"{table}.checkpoint")


def merge(changes: DataFrame, table: Path) -> None:
    """Bring the changes of one micro-batch into the table, as one commit.

    Doing it again changes nothing, so a micro-batch that Spark repeats does no harm. All messages of a key
    are in one partition, where the largest offset is the newest.
    """
    newest = changes.where("key IS NOT NULL").selectExpr("CAST(key AS STRING) AS key", "value", "offset")
    newest = newest.groupBy("key").agg(expr("max(struct(offset, value)) AS newest"))
    rows = newest.selectExpr("key", "CAST(newest.value AS STRING) AS value", "newest.offset").toArrow()
    delta = DeltaTable.create(table, schema=Schema.from_arrow(rows.schema), mode="ignore")
    (
        delta.merge(rows, predicate="is.key = new.key", source_alias="new", target_alias="is")
        .when_matched_delete("new.value IS NULL")
        .when_matched_update_all()
        .when_not_matched_insert_all("new.value IS NOT NULL")
        .execute()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:8080")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--table", required=True, type=Path)
    spark = goqueue.spark.session("upsert")
    writer = upsert(spark, **vars(parser.parse_args())).trigger(processingTime="10 seconds")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
