"""`make bench-spark`: topics read by Spark, against the same rows read from Parquet in the same run.

CPU is that of the driver's whole tree: the JVM and every Python worker. The broker's is counted apart.
What is compared runs in turn, a few rounds of each before the first that counts: the JVM grows faster as it
goes, and whatever came first would pay for the others.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import psutil
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

import goqueue.spark
from bench.__main__ import table
from bench.kafka_rows import create_topic
from bench.measured import Row, at_least, at_most, measuring, percentile, running
from bench.spark_archive_rows import archiving
from tests.integration.running_broker import RunningBroker

PARTITIONS = 2
ROUNDS_WARM_UP, ROUNDS = 2, 5
_BATCHES_WARM_UP, _BATCHES = 15, 40
_LATENCY_TIMEOUT_S = 120
_EPOCHS = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-spark", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="messages to read (default 2,000,000)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix=".bench-", dir=Path.cwd()))
    try:
        with running(folder / "data") as broker:
            spark = goqueue.spark.session("goqueue-bench", master="local[2]")
            rows = [
                *reading(spark, broker, folder, count=options.rows),
                copying(spark, broker, folder, count=options.rows),
                latency(spark, broker, folder),
            ]
            spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(rows))
    print(json.dumps([asdict(row) for row in rows], ensure_ascii=False))
    return 0 if all(row.is_met is not False for row in rows) else 1


def reading(spark: SparkSession, broker: RunningBroker, folder: Path, *, count: int) -> list[Row]:
    """Topic to noop, as a share of Parquet to noop: rows a CPU-second."""
    publish(broker, "bench-spark", count)
    with_headers = topic(spark, broker, includeHeaders="true")
    without = topic(spark, broker, includeHeaders="false")
    rows = []
    for name, frame, reach in (("without headers", without, 0.7), ("with headers", with_headers, 0.55)):
        path = str(folder / name.replace(" ", "-"))
        frame.write.parquet(path)
        from_topic, from_parquet = cpu_s(partial(to_noop, frame), partial(to_noop, spark.read.parquet(path)))
        rows.append(
            at_least(
                f"topic to noop, 100 B, {name}: rows a CPU-second, share of Parquet to noop",
                from_parquet / from_topic,
                "",
                reach,
                f"{count / from_topic:,.0f} against {count / from_parquet:,.0f} rows a CPU-second",
            )
        )
    with measuring(broker) as spent:
        to_noop(without)
    rows.append(
        at_most(
            "broker CPU per million rows read by Spark",
            spent.cpu_s / count * 1e6,
            "CPU-s",
            0.3,
            f"{count / spent.wall_s:,.0f} rows/s",
        )
    )
    rows.append(archiving(spark, broker, folder, with_headers, topic="bench-spark", count=count, cpu_s=cpu_s))
    return rows


def copying(spark: SparkSession, broker: RunningBroker, folder: Path, *, count: int) -> Row:
    """Topic to SQL to topic as a stream, exactly once, as a share of at least once: rows a CPU-second."""
    create_topic(broker, "bench-copy", PARTITIONS)
    numbers = iter(range(1_000))

    def copy(delivery: str) -> None:
        frame = spark.readStream.format("goqueue").options(
            bootstrap=broker.http,
            topic="bench-spark",
            startingOffsets="earliest",
            maxRecordsPerBatch=str(count // _EPOCHS),
            columns="key,value",
        )
        frame.load().createOrReplaceTempView("bench_source")
        rows = spark.sql("SELECT key, reverse(value) AS value FROM bench_source WHERE length(value) > 50")
        writer = rows.writeStream.format("goqueue").options(
            bootstrap=broker.http,
            topic="bench-copy",
            delivery=delivery,
            checkpointLocation=str(folder / f"copy-{next(numbers)}"),
        )
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()

    once, at_least_once = cpu_s(partial(copy, "exactly-once"), partial(copy, "at-least-once"))
    return at_least(
        "topic to SQL to topic, exactly once: rows a CPU-second, share of at least once",
        at_least_once / once,
        "",
        0.8,
        f"{count / once:,.0f} against {count / at_least_once:,.0f} rows a CPU-second, {_EPOCHS} epochs",
    )


def latency(spark: SparkSession, broker: RunningBroker, folder: Path) -> Row:
    """How long a micro-batch takes while messages keep coming."""
    create_topic(broker, "bench-latency", PARTITIONS)
    frame = spark.readStream.format("goqueue").options(bootstrap=broker.http, topic="bench-latency").load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").start()
    producer = Producer({"bootstrap.servers": broker.kafka, "linger.ms": 5, "log_level": 0})
    taken_ms: dict[int, float] = {}
    give_up_s = time.monotonic() + _LATENCY_TIMEOUT_S
    while len(taken_ms) < _BATCHES_WARM_UP + _BATCHES:
        for number in range(10):
            producer.produce("bench-latency", b"x" * 100, partition=number % PARTITIONS)
        producer.flush(30)
        if (problem := query.exception()) is not None:
            raise RuntimeError("the stream failed") from problem
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"{len(taken_ms)} micro-batches in {_LATENCY_TIMEOUT_S} s: {query.status}")
        for progress in query.recentProgress:
            if progress.numInputRows:
                taken_ms[progress.batchId] = progress.durationMs["triggerExecution"]
        # The load is a message now and then; how many does not matter.
        time.sleep(0.05)
    # Stopped in the middle of a batch, Spark would tell of it at length.
    query.processAllAvailable()
    query.stop()
    warm = [taken_ms[batch] for batch in sorted(taken_ms)][_BATCHES_WARM_UP:]
    return at_most(
        "micro-batch of a stream to noop, warm: p50",
        statistics.median(warm),
        "ms",
        250,
        f"p90 {percentile(warm, 0.9):.0f} ms",
    )


def topic(spark: SparkSession, broker: RunningBroker, **options: str) -> DataFrame:
    return spark.read.format("goqueue").options(bootstrap=broker.http, topic="bench-spark", **options).load()


def to_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def publish(broker: RunningBroker, name: str, count: int) -> None:
    """Messages with a key of 16 bytes, a value of 100 and one header."""
    create_topic(broker, name, PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.kafka,
            "linger.ms": 20,
            "batch.num.messages": 1_000,
            "queue.buffering.max.messages": 200_000,
            "log_level": 0,
        }
    )
    headers: list[tuple[str, str | bytes | None]] = [("source", b"bench")]
    # Bytes without a pattern: Parquet would keep equal values once.
    noise = random.Random(count).randbytes(1 << 20)
    for number in range(count):
        if number % 50_000 == 0:
            producer.flush(60)
        start = number * 101 % (len(noise) - 100)
        value = noise[start : start + 100]
        producer.produce(name, value, key=b"%016d" % number, partition=number % PARTITIONS, headers=headers)
    left = producer.flush(60)
    assert left == 0, f"{left} messages are not acknowledged"


def cpu_s(*runs: Callable[[], None]) -> list[float]:
    """The CPU of this process's tree for each of some runs, taken in turn: the medians."""
    taken: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS_WARM_UP + ROUNDS):
        for run, spent in zip(runs, taken, strict=True):
            before = _tree_cpu_s()
            run()
            if number >= ROUNDS_WARM_UP:
                spent.append(_tree_cpu_s() - before)
    return [statistics.median(spent) for spent in taken]


def _tree_cpu_s() -> float:
    """All processes below this one, also those that have ended; not the broker, which is below it, too."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "goqueue.node.main" in process.cmdline():
                continue
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


if __name__ == "__main__":
    sys.exit(main())
