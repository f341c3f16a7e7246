"""A topic into an Iceberg table, each message once; the lag shows as that of the group `to-{table}`.

    python -m examples.spark.topic_to_iceberg --topic orders --warehouse /data/warehouse --table lake.orders

The value is JSON; what the table holds is said by a schema, and messages that do not fit it have nulls.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import goqueue.spark

ORDER = "id BIGINT, customer STRING, total DOUBLE"


def topic_to_iceberg(
    spark: SparkSession, *, bootstrap: str, topic: str, warehouse: Path, table: str
) -> DataStreamWriter:
    """The stream, ready to start. It goes on where it stopped, from the checkpoint beside the table."""
    messages = spark.readStream.format("goqueue").options(
        bootstrap=bootstrap, topic=topic, startingOffsets="earliest", group=f"to-{table}"
    )
    orders = messages.load().selectExpr(
        f"from_json(CAST(value AS STRING), '{ORDER}') AS order", "timestamp", "partition", "offset"
    )
    columns = orders.select("order.*", "timestamp", "partition", "offset")
    return columns.writeStream.format("goqueue-lake").options(
        path=str(warehouse), table=table, checkpointLocation=str(warehouse / "_checkpoints" / table)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="127.0.0.1:8080")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--warehouse", required=True, type=Path)
    parser.add_argument("--table", required=True)
    given = parser.parse_args()
    spark = goqueue.spark.session("topic-to-iceberg")
    # Each micro-batch is one commit of the table: a minute keeps tables small in commits and files.
    writer = topic_to_iceberg(spark, **vars(given)).trigger(processingTime="1 minute")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
