"""The archive job against Spark's own copy of the same rows from Parquet to Parquet, in one run."""

from collections.abc import Callable, Iterator
from itertools import count as counting
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.measured import Row, at_least
from goqueue.spark.jobs.archive import ArchiveJob
from goqueue.spark.source.options import source_options
from tests.integration.running_broker import RunningBroker

_CODEC = "snappy"
"""Spark's default. The archive's own is zstd, which costs Spark more than it costs the job."""


def archiving(
    spark: SparkSession,
    broker: RunningBroker,
    folder: Path,
    rows: DataFrame,
    *,
    topic: str,
    count: int,
    cpu_s: Callable[..., list[float]],
) -> Row:
    """Topic to Parquet by the job, times Parquet to Parquet by Spark: rows a CPU-second."""
    numbers: Iterator[int] = counting()
    source = source_options({"bootstrap": broker.http, "topic": topic}, is_streaming=False)
    copied = str(folder / "to-copy")
    rows.write.parquet(copied)

    def copy() -> None:
        target = str(folder / f"copied-{next(numbers)}")
        spark.read.parquet(copied).write.parquet(target, compression=_CODEC)

    def archive() -> None:
        target = folder / f"archive-{next(numbers)}"
        job = ArchiveJob(topic=topic, source=source, archive=target, compression=_CODEC)
        job.run(spark, planned=lambda items, messages: None, told=lambda items, rows: None)

    by_spark, by_job = cpu_s(copy, archive)
    return at_least(
        f"archive to Parquet, with headers, {_CODEC}: rows a CPU-second, times Spark's Parquet to Parquet",
        by_spark / by_job,
        "",
        2,
        f"{count / by_job:,.0f} against {count / by_spark:,.0f} rows a CPU-second",
    )
