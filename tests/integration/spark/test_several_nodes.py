"""Three real nodes and Spark: with one of them killed in between, each row is read once."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from goqueue.client import GoQueue
from goqueue.spark.source.batch import TopicReader
from goqueue.spark.source.reader import batch_reader
from tests.integration.running_cluster import RunningCluster
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

    leaders = [partition.value.leader for partition in reader.partitions()]

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


class _Nowhere:
    """A broker whose address the options replace."""

    http = ""
