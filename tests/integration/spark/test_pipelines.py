"""Pipelines at work: rows go where they belong, once; failures, stops and changed files are survived."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from pyspark.sql import Row, SparkSession

from goqueue.spark.pipelines.building import build
from goqueue.spark.pipelines.parsing import read_pipeline
from goqueue.spark.pipelines.runner import Runner
from goqueue.spark.pipelines.running import RunningPipeline
from goqueue.spark.pipelines.status import AT_REST, PipelineStatus, State
from goqueue.spark.pipelines.storage import Storage
from goqueue.spark.pipelines.yaml_nodes import InvalidPipeline
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.published import Publisher

_TIMEOUT_S = 120
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "total": {"type": "number"}},
}
UNSTEADY = """\
import os

from pyspark.sql import functions as f


def unsteady(frame):
    @f.udf("binary")
    def pass_on(value):
        if os.path.exists(%r):
            raise RuntimeError("the flag is up")
        return value

    return frame.withColumn("value", pass_on("value"))
"""


class Workshop:
    """Files, storage and a broker for pipelines."""

    def __init__(self, spark: SparkSession, broker: RunningBroker, folder: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.folder = folder
        self.storage = Storage(folder / "storage")
        self.bootstrap = broker.http.removeprefix("http://")
        self._opened: list[RunningPipeline] = []

    def write(self, text: str, *, name: str = "pipeline.yaml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def begin(self, path: Path, *, restarts_max: int | None = None) -> RunningPipeline:
        pipeline = read_pipeline(path, bootstrap=self.bootstrap)
        running = RunningPipeline(pipeline, self.storage, restarts_max=restarts_max)
        self._opened.append(running)
        running.begin(self.spark)
        return running

    def run(self, path: Path) -> PipelineStatus:
        """Run a pipeline with bounded triggers to its end; a machine that is short of breath may stumble."""
        running = self.begin(path, restarts_max=3)
        status = wait_for(running.tick, lambda told: told.state in AT_REST)
        running.close()
        return status

    def publish(self, topic: str, values: Sequence[bytes]) -> None:
        publisher = Publisher(self.broker.kafka, topic)
        for number, value in enumerate(values):
            publisher.publish(
                value, partition=number % 2, key=f"k{number}".encode(), headers=[("shop", b"7")]
            )
        publisher.flush()

    def values(self, topic: str) -> list[str]:
        return [bytes(row.value).decode() for row in self.rows(topic)]

    def rows(self, topic: str) -> list[Row]:
        options = {"bootstrap": self.bootstrap, "topic": topic}
        return self.spark.read.format("goqueue").options(**options).load().collect()

    def count(self, topic: str) -> int:
        """How many messages a topic holds; asked over HTTP, which is quicker than Spark."""
        reply = httpx.get(f"{self.broker.http}/topics/{topic}")
        return int(reply.json()["total_messages"]) if reply.status_code == 200 else 0

    def close(self) -> None:
        for running in self._opened:
            running.close()


@pytest.fixture
def workshop(spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path) -> Iterator[Workshop]:
    made = Workshop(spark, shared_broker, tmp_path)
    yield made
    made.close()


def wait_for(look: Callable[[], PipelineStatus], is_so: Callable[[PipelineStatus], bool]) -> PipelineStatus:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_so(status := look()):
        assert time.monotonic() < deadline, status
        time.sleep(0.05)
    return status


def test_each_row_goes_to_its_sinks_or_to_the_dead_letters_and_tells_why(workshop: Workshop) -> None:
    create_topic(workshop.broker.kafka, "shop-orders", partitions=2)
    good = [json.dumps({"id": number, "total": number / 2}).encode() for number in range(20)]
    workshop.publish("shop-orders", [*good, b"no JSON", b'{"total": 1}', b'{"id": "seven"}'])
    (workshop.folder / "orders.schema.json").write_text(json.dumps(SCHEMA))
    (workshop.folder / "doubling.py").write_text(
        "def doubled(frame):\n    return frame.selectExpr('key', 'id', 'total * 2 AS total')\n"
    )
    path = workshop.write("""\
name: shop
warehouse: lake
source: {topic: shop-orders, startingOffsets: earliest, schema: orders.schema.json, group: shop-lag}
steps:
  - sql: SELECT key, body.id, body.total FROM source
  - python: doubling:doubled
sinks:
  - {topic: shop-large, value: "to_json(struct(id, total))", where: total >= 10}
  - {table: shop.orders, format: parquet, columns: {id: id, total: total}}
errors: {topic: shop-dead}
trigger: availableNow
""")

    status = workshop.run(path)

    assert (status.state, status.problems) == (State.DONE, [])
    assert {sink.id: (sink.rows, sink.lag) for sink in status.sinks} == dict.fromkeys(
        ("shop-large", "shop.orders", "errors"), (23, 0)
    )
    large = [json.loads(value) for value in workshop.values("shop-large")]
    assert sorted(order["id"] for order in large) == list(range(10, 20))
    assert all(order["total"] == order["id"] for order in large)
    options = {"path": str(workshop.folder / "lake"), "table": "shop.orders", "tableFormat": "parquet"}
    table = workshop.spark.read.format("goqueue-lake").options(**options).load()
    assert sorted(row.id for row in table.collect()) == list(range(20))
    dead = {
        bytes(row.value): {each.key: bytes(each.value).decode() for each in row.headers}
        for row in workshop.rows("shop-dead")
    }
    assert {value: headers["goqueue-dlq-error"] for value, headers in dead.items()} == {
        b"no JSON": "the value is not JSON as orders.schema.json says",
        b'{"total": 1}': "id is missing",
        b'{"id": "seven"}': "the value is not JSON as orders.schema.json says",
    }
    story = dead[b"no JSON"]
    assert int(story.pop("goqueue-dlq-time")) >= int(story.pop("goqueue-dlq-original-timestamp")) > 0
    assert story == {
        "shop": "7",
        "goqueue-dlq-original-topic": "shop-orders",
        "goqueue-dlq-original-partition": "0",
        "goqueue-dlq-original-offset": "10",
        "goqueue-dlq-reason": "REJECTED",
        "goqueue-dlq-group": "shop",
        "goqueue-dlq-error": "the value is not JSON as orders.schema.json says",
    }
    groups = httpx.get(f"{workshop.broker.http}/groups").text
    assert all(f"shop-lag.{sink}" in groups for sink in ("shop-large", "shop.orders", "errors"))


def test_a_query_that_fails_is_begun_again_and_loses_nothing(workshop: Workshop) -> None:
    create_topic(workshop.broker.kafka, "unsteady-in", partitions=2)
    workshop.publish("unsteady-in", [b"1", b"2", b"3"])
    flag = workshop.folder / "flag"
    flag.touch()
    (workshop.folder / "unsteady_step.py").write_text(UNSTEADY % str(flag))
    running = workshop.begin(
        workshop.write("""\
name: unsteady
source: {topic: unsteady-in, startingOffsets: earliest}
steps: [{python: "unsteady_step:unsteady"}]
sinks: [{topic: unsteady-out}]
""")
    )

    waiting = wait_for(running.tick, lambda told: "flag" in told.sinks[0].last_error)
    assert (waiting.state, waiting.sinks[0].last_error) == (State.WAITING, "RuntimeError: the flag is up")
    assert workshop.count("unsteady-out") == 0
    flag.unlink()

    again = wait_for(running.tick, lambda told: told.sinks[0].batch >= 0)
    assert again.sinks[0].restarts >= 1
    assert sorted(workshop.values("unsteady-out")) == ["1", "2", "3"]

    folder = workshop.storage.pipeline("unsteady")
    folder.ask_to_stop()
    stopped = running.tick()
    assert (stopped.state, folder.read_status()) == (State.STOPPED, stopped)
    workshop.publish("unsteady-in", [b"4"])

    folder.ask_to_start()
    wait_for(running.tick, lambda _: workshop.count("unsteady-out") == 4)

    folder.ask_to_reset(["unsteady-out"])
    wait_for(running.tick, lambda _: workshop.count("unsteady-out") == 8)
    assert folder.asked_to_reset() is None


def test_a_changed_file_goes_on_where_it_can_and_is_refused_where_it_cannot(workshop: Workshop) -> None:
    for topic in ("change-in", "change-other"):
        create_topic(workshop.broker.kafka, topic, partitions=2)
    workshop.publish("change-in", [b"a"])
    text = """\
name: change
source: {topic: change-in, startingOffsets: earliest}
steps: [{sql: SELECT value FROM source}]
sinks: [{id: out, topic: change-out}]
trigger: availableNow
"""
    assert workshop.run(workshop.write(text)).state is State.DONE
    workshop.publish("change-in", [b"b"])

    other_steps = workshop.run(workshop.write(text.replace("value FROM", "upper(string(value)) value FROM")))
    other_topic = workshop.run(workshop.write(text.replace("topic: change-in", "topic: change-other")))

    assert other_steps.sinks[0].notes == ["changed since the last run: steps"]
    assert sorted(workshop.values("change-out")) == ["B", "a"]
    assert other_topic.state is State.REFUSED
    (problem,) = other_topic.problems
    assert problem.startswith(f"{workshop.folder}/pipeline.yaml:4:9: sink out: source topics changed")
    assert "pipeline reset change --sink out" in problem


def test_steps_with_state_cannot_be_changed_under_it(workshop: Workshop) -> None:
    create_topic(workshop.broker.kafka, "state-in", partitions=2)
    workshop.publish("state-in", [b"a"])
    text = """\
name: state
source: {topic: state-in, startingOffsets: earliest}
steps:
  - watermark: {column: timestamp, delay: 1 minute}
  - sql: SELECT DISTINCT timestamp, string(value) value FROM prev
sinks: [{id: out, topic: state-out}]
trigger: availableNow
"""
    assert workshop.run(workshop.write(text)).state is State.DONE

    changed = workshop.run(workshop.write(text.replace("string(value)", "upper(string(value))")))

    assert changed.state is State.REFUSED
    assert "sink out: steps changed" in changed.problems[0]


def test_sql_that_spark_does_not_understand_is_told_with_its_line(workshop: Workshop) -> None:
    path = workshop.write("""\
name: wrong
source: {topic: orders}
steps:
  - sql: SELECT key, value FROM source
  - sql: SELECT kee FROM prev
sinks: [{topic: out}]
""")

    with pytest.raises(InvalidPipeline) as refused:
        build(read_pipeline(path, bootstrap=workshop.bootstrap), workshop.spark)

    (line,) = refused.value.lines()
    assert line.startswith(f"{path}:5:5: [UNRESOLVED_COLUMN")
    assert "kee" in line
    assert "JVM" not in line
    path = workshop.write("name: wrong\nsource: {topic: orders}\nsinks: [{topic: out, value: offset}]\n")
    with pytest.raises(InvalidPipeline, match=r"yaml:3:9: column value must be binary or string, not bigint"):
        build(read_pipeline(path, bootstrap=workshop.bootstrap), workshop.spark)


def test_the_runner_follows_the_files_of_its_folder(workshop: Workshop) -> None:
    create_topic(workshop.broker.kafka, "folder-in", partitions=2)
    workshop.publish("folder-in", [b"a"])
    text = """\
name: {name}
source: {{topic: folder-in, startingOffsets: earliest}}
sinks: [{{topic: folder-{name}}}]
trigger: availableNow
"""
    lines: list[str] = []
    runner = Runner(
        workshop.folder, workshop.spark, workshop.storage, bootstrap=workshop.bootstrap, tell=lines.append
    )
    first = workshop.write(text.format(name="one"), name="one.yaml")
    workshop.write("name: [", name="broken.yaml")

    def tick(name: str) -> PipelineStatus:
        return {status.name: status for status in runner.tick()}[name]

    wait_for(lambda: tick("one"), lambda told: told.state is State.DONE)
    assert lines[0].startswith(f"{workshop.folder}/broken.yaml:1:8: this is not YAML")
    workshop.write("also: broken", name="one.yaml")
    assert tick("one").state is State.DONE
    assert any("one.yaml:1:1: a pipeline has no also" in line for line in lines)

    workshop.write(text.format(name="two"), name="two.yml")
    wait_for(lambda: tick("two"), lambda told: told.state is State.DONE)
    first.unlink()

    assert [status.name for status in runner.tick()] == ["two"]
    assert workshop.values("folder-two") == ["a"]
    runner.close()
