"""Transactions over three real nodes, with Kafka's own client: each whole or not at all, whoever dies."""

import time
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.integration.running_cluster import RunningCluster, cluster
from tests.integration.test_cluster import PARTITIONS, Clients, wait_until, wait_until_in_sync

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WAIT_S = 30
SOURCE, TARGET = "source", "target"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running
        assert running.stop() == 0


def new_producer(servers: str, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 60_000,
            "retry.backoff.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    producer.init_transactions(WAIT_S)
    return producer


def seen(servers: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """All that a reader sees up to the end of each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int | None] = set()
    deadline_s = time.monotonic() + WAIT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline_s, f"{topic} does not end: {ended}"
        message = reader.poll(1)
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value() or b"")
        else:
            ended.add(message.partition())
    reader.close()
    return values


def test_what_is_committed_is_seen_on_all_partitions_and_what_is_aborted_on_none(
    three: RunningCluster,
) -> None:
    clients = Clients(three)
    clients.create("both", 3)
    producer = new_producer(clients.servers, "clerk")
    for number, ends in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("both", f"{number}".encode(), partition=partition)
        assert producer.flush(WAIT_S) == 0  # an abort would drop what is still to be sent
        ends(WAIT_S)

    whole = dict.fromkeys((b"0", b"2", b"4"), PARTITIONS)
    wait_until(lambda: Counter(seen(clients.servers, "both")) == whole)
    assert len(seen(clients.servers, "both", "read_uncommitted")) == 6 * PARTITIONS


class Pipeline:
    """Reads one topic, writes each message to all partitions of another, and commits both together."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "pipeline",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
            }
        )
        self._consumer.subscribe([SOURCE])
        self._producer = new_producer(servers, "pipeline")
        self.committed = 0
        self.failed: list[str] = []

    def step(self) -> None:
        """One message more, or none. What fails is aborted, and comes again."""
        message = self._consumer.poll(0.2)
        if message is None or message.error() is not None:
            return
        try:
            self._producer.begin_transaction()
            for partition in range(PARTITIONS):
                self._producer.produce(TARGET, message.value(), partition=partition)
            at = self._consumer.position(self._consumer.assignment())
            self._producer.send_offsets_to_transaction(at, self._consumer.consumer_group_metadata(), WAIT_S)
            self._producer.commit_transaction(WAIT_S)
            self.committed += 1
        except KafkaException as error:
            self.failed.append(str(error))
            self._begin_again(error)

    def go_on(self, count: int) -> None:
        """So many messages more."""
        goal, deadline_s = self.committed + count, time.monotonic() + 90
        while self.committed < goal:
            assert time.monotonic() < deadline_s, self.failed
            self.step()

    def _begin_again(self, error: KafkaException) -> None:
        """As the guides say: abort, and read on from what is committed; after a fatal error with another."""
        try:
            assert not error.args[0].fatal(), error
            self._producer.abort_transaction(WAIT_S)
        except (KafkaException, AssertionError):
            self._producer = new_producer(self._servers, "pipeline")
        for place in self._consumer.committed(self._consumer.assignment(), WAIT_S):
            place.offset = max(place.offset, 0)
            self._consumer.seek(place)

    def close(self) -> None:
        self._consumer.close()


def test_each_message_is_carried_over_once_though_each_node_is_killed_in_turn(three: RunningCluster) -> None:
    clients = Clients(three)
    for topic in (SOURCE, TARGET):
        clients.create(topic, 3)
        wait_until_in_sync(clients, topic, 3)
    clients.publish(SOURCE, 40)
    wanted = set(clients.acked)
    pipeline = Pipeline(clients.servers)
    pipeline.go_on(5)
    for number in (1, 2, 3):
        victim = three.child(f"node-{number}")
        victim.kill()
        pipeline.go_on(8)
        wait_until(lambda name=f"node-{number}", dead=victim: is_back(three, name, dead))  # type: ignore[misc]
        wait_until_in_sync(clients, TARGET, 3)

    deadline_s = time.monotonic() + 60
    while set(found := Counter(seen(clients.servers, TARGET))) != wanted:
        assert time.monotonic() < deadline_s, f"{len(found)} of {len(wanted)}: {pipeline.failed}"
        pipeline.step()
    pipeline.close()

    assert found == dict.fromkeys(wanted, PARTITIONS)


def is_back(three: RunningCluster, name: str, dead: psutil.Process) -> bool:
    try:
        return three.child(name).pid != dead.pid
    except (AssertionError, psutil.Error):
        return False
