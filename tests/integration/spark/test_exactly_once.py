"""Each row once: a story for every step at which a write can fail, and one in which everything is killed."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from goqueue.client.addresses import parse_addresses
from goqueue.client.connection import Client, Refused
from goqueue.model.errors import Fenced
from goqueue.records.layout import Codec
from goqueue.spark.sink import door as sink_door
from goqueue.spark.sink import epochs as sink_epochs
from goqueue.spark.sink.door import TopicShape
from goqueue.spark.sink.epochs import Stages, Writing, abort_epoch, commit_epoch
from goqueue.spark.sink.options import sink_options
from goqueue.spark.sink.rows import Packer, Packet
from goqueue.spark.sink.writer import Messages, StreamWriter, Written
from pyspark_goqueue import DefaultSource
from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.spark.soak import Plan, copy_under_kills
from tests.integration.spark.test_sink import numbers_in

# Spark's workers get the writers made here as they are: they need not find the tests.
register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # it has no types


class Copy:
    """A query that copies files of numbers to a topic, started as often as a test likes."""

    def __init__(self, spark: SparkSession, broker: RunningBroker, folder: Path, topic: str) -> None:
        self._spark = spark
        self._broker = broker
        self._folder = folder
        self.topic = topic
        self.checkpoint = folder / "checkpoint"
        create_topic(broker.kafka, topic, partitions=2)
        self._count = 0

    def add_rows(self, count: int) -> None:
        """One more file, which becomes an epoch of its own."""
        rows = self._spark.range(self._count, self._count + count)
        rows.coalesce(1).write.mode("append").parquet(str(self._folder / "files"))
        self._count += count

    def start(self, source: str = "goqueue", **options: str) -> StreamingQuery:
        """Start the query; it ends when all rows are copied."""
        rows = (
            self._spark.readStream.schema("id bigint")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._folder / "files"))
        )
        return (
            rows.selectExpr("CAST(id AS STRING) AS value")
            .writeStream.format(source)
            .option("bootstrap", self._broker.http)
            .option("topic", self.topic)
            .option("checkpointLocation", str(self.checkpoint))
            .options(**options)
            .trigger(availableNow=True)
            .start()
        )

    def run(self, source: str = "goqueue", **options: str) -> StreamingQuery:
        query = self.start(source, **options)
        query.awaitTermination()
        return query

    def found(self) -> list[int]:
        return numbers_in(self._broker, self.topic, partitions=2)

    def expected(self) -> list[int]:
        return list(range(self._count))


@pytest.fixture
def copy(spark: SparkSession, shared_broker: RunningBroker, tmp_path: Path) -> Copy:
    """A query of its own, with 1,000 rows before it."""
    made = Copy(spark, shared_broker, tmp_path, f"once-{tmp_path.name}")
    made.add_rows(1_000)
    return made


def is_first(marker: str) -> bool:
    """Whether nobody has asked this before, in whichever process."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def register(spark: SparkSession, name: str, writer: type[StreamWriter]) -> None:
    """Make a data source like ours, whose stream is written by this writer."""

    class Faulty(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return name

        def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
            return writer(sink_options(self.options, is_streaming=True))

    spark.dataSource.register(Faulty)


def test_spark_tells_its_tasks_query_epoch_and_run(spark: SparkSession, copy: Copy, tmp_path: Path) -> None:
    told = tmp_path / "told"

    class Telling(StreamWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
            written = super().write(iterator)
            told.write_text(repr(written.writing))
            return written

    register(spark, "telling", Telling)
    query = copy.run("telling")

    assert told.read_text() == repr(Writing(query.id, 0, query.runId, query.id))


def test_a_task_that_fails_after_its_write_leaves_nothing_behind(
    spark: SparkSession, copy: Copy, tmp_path: Path
) -> None:
    marker = str(tmp_path / "failed")

    class FailsAfterWriting(StreamWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
            written = super().write(iterator)
            if is_first(marker):
                raise RuntimeError("the task fails after its write")
            return written

    register(spark, "task-fails", FailsAfterWriting)
    with pytest.raises(StreamingQueryException, match="the task fails after its write"):
        copy.run("task-fails")
    assert copy.found() == []

    copy.run("task-fails")

    assert copy.found() == copy.expected()


def test_a_commit_that_took_effect_and_raised_is_not_undone_and_not_repeated(
    spark: SparkSession, copy: Copy, tmp_path: Path
) -> None:
    failed, aborted = str(tmp_path / "failed"), str(tmp_path / "aborted")

    class RaisesAfterCommitting(StreamWriter):
        def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
            super().commit(messages, batchId)
            if is_first(failed):
                raise RuntimeError("the answer to the commit was lost")

        def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
            super().abort(messages, batchId)
            is_first(aborted)

    register(spark, "commit-raises", RaisesAfterCommitting)
    with pytest.raises(StreamingQueryException, match="the answer to the commit was lost"):
        copy.run("commit-raises")
    assert os.path.exists(aborted)
    assert copy.found() == copy.expected()

    copy.add_rows(100)
    copy.run("commit-raises")

    assert copy.found() == copy.expected()


def test_an_epoch_that_comes_again_is_dropped(copy: Copy) -> None:
    copy.run()
    for name in ("0", ".0.crc"):
        (copy.checkpoint / "commits" / name).unlink(missing_ok=True)

    query = copy.run()

    assert query.recentProgress[0]["batchId"] == 0
    assert query.recentProgress[0]["numInputRows"] == 1_000
    assert copy.found() == copy.expected()


def test_a_new_checkpoint_under_an_old_sink_id_is_refused_and_loses_nothing_in_silence(copy: Copy) -> None:
    copy.run(sinkId=copy.topic)
    # Its first epoch has the number of the old one's last.
    copy.checkpoint = copy.checkpoint.with_name("new")

    with pytest.raises(StreamingQueryException, match="a new checkpoint, needs another sink"):
        copy.run(sinkId=copy.topic)

    assert copy.found() == copy.expected()


def test_a_driver_whose_sink_was_taken_over_writes_nothing_more(
    spark: SparkSession, copy: Copy, tmp_path: Path, bootstrap: str
) -> None:
    marker, sink = str(tmp_path / "taken-over"), copy.topic

    class TakenOver(StreamWriter):
        """Another driver begins to write while this one is about to commit its second epoch."""

        def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
            if batchId == 1 and is_first(marker):
                sink_door.take_generation(Client(parse_addresses(bootstrap)), sink)
            super().commit(messages, batchId)

    register(spark, "taken-over", TakenOver)
    copy.add_rows(100)
    with pytest.raises(StreamingQueryException, match="may not write to it"):
        copy.run("taken-over", sinkId=sink)
    assert copy.found() == list(range(1_000))

    copy.run("taken-over", sinkId=sink)

    assert copy.found() == copy.expected()


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    connected = Client(parse_addresses(bootstrap))
    yield connected
    connected.close()


def packet_of(topic: str, *values: bytes) -> Packet:
    packer = Packer(topic=topic, codec=Codec.NONE, shape_of=lambda _: TopicShape(1), first_turn=0)
    [packet] = packer.pack([pa.RecordBatch.from_pydict({"value": pa.array(values)})])
    return packet


def stage(client: Client, writing: Writing, packet: Packet) -> Stages:
    stages = Stages(client, writing, task=0)
    stages.add(packet)
    return stages


def test_of_two_drivers_the_one_that_began_later_goes_on(
    shared_broker: RunningBroker, client: Client
) -> None:
    create_topic(shared_broker.kafka, "two-drivers", partitions=1)

    def commit(run: str, epoch: int, value: bytes) -> None:
        writing = Writing("two-drivers", epoch, run)
        commit_epoch(client, writing, stage(client, writing, packet_of("two-drivers", value)).names)

    commit("first", 0, b"0")
    commit("second", 1, b"1")
    with pytest.raises(Refused, match="may not write to it") as refused:
        commit("first", 2, b"99")
    commit("second", 2, b"2")

    assert refused.value.code == sink_door.FENCED
    assert numbers_in(shared_broker, "two-drivers") == [0, 1, 2]


def test_a_run_that_was_idle_for_long_is_known_again(
    shared_broker: RunningBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(shared_broker.kafka, "idle-run", partitions=1)

    def commit_in_a_new_process(run: str, epoch: int, *, writer: str = "query") -> None:
        monkeypatch.setattr(sink_epochs, "_states", {})
        writing = Writing("idle-run", epoch, run, writer)
        commit_epoch(client, writing, stage(client, writing, packet_of("idle-run", b"%d" % epoch)).names)

    commit_in_a_new_process("first", 0)
    commit_in_a_new_process("second", 1)
    commit_in_a_new_process("second", 2)

    with pytest.raises(Refused, match="may not write to it"):
        commit_in_a_new_process("first", 3)
    with pytest.raises(Refused, match="a new checkpoint, needs another sink"):
        commit_in_a_new_process("third", 0, writer="another query")
    commit_in_a_new_process("second", 3)
    assert numbers_in(shared_broker, "idle-run") == [0, 1, 2, 3]


def test_a_driver_that_another_has_overtaken_is_told_so(shared_broker: RunningBroker, client: Client) -> None:
    create_topic(shared_broker.kafka, "overtaken", partitions=1)
    for epoch in (0, 1):
        writing = Writing("overtaken", epoch, "ahead")
        commit_epoch(client, writing, stage(client, writing, packet_of("overtaken", b"%d" % epoch)).names)

    behind = Writing("overtaken", 0, "behind")
    with pytest.raises(Fenced, match="has committed epoch 1, and now epoch 0"):
        commit_epoch(client, behind, stage(client, behind, packet_of("overtaken", b"99")).names)

    assert numbers_in(shared_broker, "overtaken") == [0, 1]


def test_an_abort_drops_a_stage_and_leaves_a_commit_alone(
    shared_broker: RunningBroker, client: Client
) -> None:
    create_topic(shared_broker.kafka, "aborted", partitions=1)
    writing = Writing("aborted", 0, "run")
    kept = stage(client, writing, packet_of("aborted", b"1"))
    dropped = stage(client, writing, packet_of("aborted", b"99"))
    commit_epoch(client, writing, kept.names)

    abort_epoch(client, writing, [*kept.names, *dropped.names], generation=kept.generation)

    assert numbers_in(shared_broker, "aborted") == [1]
    commit_epoch(client, writing, dropped.names)
    assert numbers_in(shared_broker, "aborted") == [1]


def test_each_row_is_copied_once_while_driver_and_broker_are_killed(
    tmp_path: Path,
) -> None:
    broker = RunningBroker(tmp_path / "data")
    # A driver takes seconds to start, so the one that stalls and comes back is left to `make soak-spark`.
    plan = Plan(
        rows=16_000, rows_an_epoch=999, driver_kills=1, driver_stalls=0, broker_kills=3, seed=20_261_115
    )
    try:
        copy_under_kills(broker.start(), tmp_path, plan, tell=print)
    finally:
        broker.kill()
