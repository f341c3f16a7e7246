"""Three real nodes and Spark: with one of them killed in between, each row is read and written once."""

import json
import time
from itertools import cycle
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.client import GoQueue
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.running import RunningPipeline
from goqueue.spark.pipelines.status import AT_REST, State
from goqueue.spark.pipelines.storage import Storage
from goqueue.spark.source.batch import TopicReader
from goqueue.spark.source.reader import batch_reader
from tests.integration.running_cluster import RunningCluster
from tests.integration.spark.test_pipelines import wait_for
from tests.integration.spark.test_source_stream import Copy

PARTITIONS = 6


def publish(queue: GoQueue, topic: str, numbers: range) -> None:
    with queue.producer() as producer:
        futures = [producer.send(topic, str(number), partition=number % PARTITIONS) for number in numbers]
    for future in futures:
        future.result()


@pytest.fixture
def queue(all_three: RunningCluster) -> GoQueue:
    return GoQueue(all_three.http, retry_for_s=60)


def test_a_plan_names_the_leader_of_each_partition(
    spark: SparkSession, all_three: RunningCluster, queue: GoQueue
) -> None:
    queue.topics.create("planned", partitions=PARTITIONS)
    publish(queue, "planned", range(60))
    options = {"bootstrap": ",".join(all_three.http), "topic": "planned"}
    frame = spark.read.format("goqueue").options(**options).load()
    reader = batch_reader(options, frame.schema)
    assert isinstance(reader, TopicReader)

    leaders = [partition.value.source for partition in reader.partitions()]

    doors = {node.id: node.client_address for node in queue.admin.cluster_state().nodes}
    assert leaders == [doors[place.leader] for place in queue.topics.partitions("planned")]
    assert set(leaders) <= set(all_three.http)
    assert frame.count() == 60


def test_a_batch_and_a_stream_read_each_row_once_though_a_node_is_killed(
    spark: SparkSession, all_three: RunningCluster, queue: GoQueue, tmp_path: Path
) -> None:
    queue.topics.create("surviving-rows", partitions=PARTITIONS)
    publish(queue, "surviving-rows", range(600))
    options = {"topic": "surviving-rows", "bootstrap": ",".join(all_three.http), "retryForMs": "60000"}
    planned = spark.read.format("goqueue").options(**options).load()
    copy = Copy(spark, _Nowhere(), tmp_path, {**options, "maxRecordsPerBatch": 200})  # type: ignore[arg-type]
    copy.run()

    all_three.child("node-1").kill()

    rows = sorted(int(bytes(row.value)) for row in planned.select("value").collect())
    assert rows == list(range(600))
    publish(queue, "surviving-rows", range(600, 900))
    copy.run()
    assert copy.numbers() == list(range(900))
    all_three.wait_for("node-1   ready")
    frame = spark.createDataFrame([(json.dumps(n),) for n in range(900, 1_000)], "value string")
    frame.write.format("goqueue").mode("append").options(
        bootstrap=options["bootstrap"], topic="surviving-rows", delivery="at-least-once"
    ).save()
    copy.run()
    assert copy.numbers() == list(range(1_000)), "what Spark has appended is there, too"


def test_an_exactly_once_stream_writes_each_row_once_though_one_node_after_the_other_is_killed(
    spark: SparkSession, all_three: RunningCluster, queue: GoQueue, tmp_path: Path
) -> None:
    rows, rows_an_epoch, kills = 1_200, 100, 3
    for topic in ("once-in", "once-out"):
        queue.topics.create(topic, partitions=PARTITIONS)
    publish(queue, "once-in", range(rows))
    options = {"bootstrap": ",".join(all_three.http), "retryForMs": "90000"}
    source = spark.readStream.format("goqueue").options(**options, topic="once-in")
    frame = source.options(startingOffsets="earliest", maxRecordsPerBatch=str(rows_an_epoch)).load()
    writer = frame.selectExpr("value").writeStream.format("goqueue")
    writer = writer.options(**options, topic="once-out", checkpointLocation=str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    try:
        for killed, number in zip(range(kills), cycle((1, 2, 3)), strict=False):
            wait_for_epoch(query, killed * 3 + 1)
            all_three.child(f"node-{number}").kill()
            all_three.wait_for(f"node-{number}   ready")
        assert query.awaitTermination(120), "the query has not ended"
    finally:
        query.stop()

    written = spark.read.format("goqueue").options(**options, topic="once-out").load()
    numbers = sorted(int(bytes(row.value)) for row in written.select("value").collect())
    assert numbers == list(range(rows))


PIPELINE = """\
name: sorted-out
source: {topics: [pipe-in], startingOffsets: earliest}
sinks:
  - {id: all, topic: pipe-all, value: value}
  - {id: even, topic: pipe-even, value: value, where: "CAST(CAST(value AS STRING) AS INT) % 2 = 0"}
trigger: availableNow
"""


def test_a_pipeline_writes_each_row_once_to_the_topics_of_a_cluster_though_a_node_is_killed(
    spark: SparkSession, all_three: RunningCluster, queue: GoQueue, tmp_path: Path
) -> None:
    for topic in ("pipe-in", "pipe-all", "pipe-even"):
        queue.topics.create(topic, partitions=PARTITIONS)
    publish(queue, "pipe-in", range(300))
    path = tmp_path / "pipeline.yaml"
    path.write_text(PIPELINE)
    pipeline = read_pipeline(path, bootstrap=",".join(all_three.http))
    running = RunningPipeline(pipeline, Storage(tmp_path / "storage"), restarts_max=3)
    try:
        running.begin(spark)
        all_three.child("node-2").kill()
        status = wait_for(running.tick, lambda told: told.state in AT_REST)
    finally:
        running.close()
    all_three.wait_for("node-2   ready")

    assert status.state is State.DONE, status
    for topic, expected in (("pipe-all", range(300)), ("pipe-even", range(0, 300, 2))):
        options = {"bootstrap": ",".join(all_three.http), "topic": topic}
        rows = spark.read.format("goqueue").options(**options).load().select("value").collect()
        assert sorted(int(bytes(row.value)) for row in rows) == list(expected)


def wait_for_epoch(query: StreamingQuery, epoch: int) -> None:
    deadline_s = time.monotonic() + 90
    while query.isActive and (query.lastProgress is None or query.lastProgress["batchId"] < epoch):
        assert time.monotonic() < deadline_s, f"epoch {epoch} is not reached: {query.status}"
        time.sleep(0.05)


class _Nowhere:
    """A broker whose address the options replace."""

    http = ""
