"""Each Kafka client of Python on three brokers: three copies, a broker that dies, a group that goes on."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic as PyNewTopic

from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PARTITIONS, COPIES = 6, 3
HALF = 100
WAIT_S = 90.0


class Client(Protocol):
    """What is asked of each: create, publish with acks=all, and read as a member of a group that commits."""

    def create(self, topic: str) -> None: ...
    def publish(self, topic: str, values: list[bytes]) -> None: ...
    def reader(self, topic: str) -> "Reader": ...


class Reader(Protocol):
    def take(self, count: int) -> list[bytes]:
        """So many messages, and commit behind them."""

    def close(self) -> None: ...


class Confluent:
    def __init__(self, servers: str) -> None:
        self._servers = servers

    def create(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        admin.create_topics([NewTopic(topic, PARTITIONS, COPIES)])[topic].result(30)

    def publish(self, topic: str, values: list[bytes]) -> None:
        refused: list[object] = []
        producer = Producer({"bootstrap.servers": self._servers, "acks": "all", "retry.backoff.ms": 50})
        for value in values:
            producer.produce(topic, value, value, on_delivery=lambda error, _: refused.append(error))
        assert producer.flush(WAIT_S) == 0
        assert refused == [None] * len(values)

    def reader(self, topic: str) -> Reader:
        return _ConfluentReader(self._servers, topic)


class _ConfluentReader:
    def __init__(self, servers: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"{topic}-readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def take(self, count: int) -> list[bytes]:
        taken: list[bytes] = []
        deadline_s = time.monotonic() + WAIT_S
        while len(taken) < count and time.monotonic() < deadline_s:
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                taken.append(message.value() or b"")
        if taken:
            self._consumer.commit(asynchronous=False)
        return taken

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    def __init__(self, servers: str) -> None:
        self._servers = servers.split(",")

    def create(self, topic: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self._servers)
        admin.create_topics([PyNewTopic(topic, PARTITIONS, COPIES)])
        admin.close()

    def publish(self, topic: str, values: list[bytes]) -> None:
        producer = KafkaProducer(bootstrap_servers=self._servers, acks="all", retries=1_000)
        sent = [producer.send(topic, value, key=value) for value in values]
        producer.flush(WAIT_S)
        assert all(one.succeeded() for one in sent)
        producer.close()

    def reader(self, topic: str) -> Reader:
        return _KafkaPythonReader(self._servers, topic)


class _KafkaPythonReader:
    def __init__(self, servers: list[str], topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=f"{topic}-readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    def take(self, count: int) -> list[bytes]:
        taken: list[bytes] = []
        deadline_s = time.monotonic() + WAIT_S
        while len(taken) < count and time.monotonic() < deadline_s:
            for messages in self._consumer.poll(timeout_ms=500).values():
                taken += [message.value for message in messages]
        if taken:
            self._consumer.commit()
        return taken

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """On a loop of its own, which runs while it is asked."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._loop = asyncio.new_event_loop()

    def create(self, topic: str) -> None:
        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self._servers)
            await admin.start()
            await admin.create_topics([AioNewTopic(topic, PARTITIONS, COPIES)])
            await admin.close()

        self._loop.run_until_complete(create())

    def publish(self, topic: str, values: list[bytes]) -> None:
        async def publish() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._servers, acks="all", request_timeout_ms=int(WAIT_S * 1_000)
            )
            await producer.start()
            await asyncio.gather(*[await producer.send(topic, value, key=value) for value in values])
            await producer.stop()

        self._loop.run_until_complete(publish())

    def reader(self, topic: str) -> Reader:
        return _AiokafkaReader(self._loop, self._servers, topic)


class _AiokafkaReader:
    def __init__(self, loop: asyncio.AbstractEventLoop, servers: str, topic: str) -> None:
        self._loop = loop

        async def begin() -> Any:
            consumer = AIOKafkaConsumer(
                topic,
                bootstrap_servers=servers,
                group_id=f"{topic}-readers",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            await consumer.start()
            return consumer

        self._consumer = loop.run_until_complete(begin())

    def take(self, count: int) -> list[bytes]:
        return self._loop.run_until_complete(self._take(count))

    async def _take(self, count: int) -> list[bytes]:
        taken: list[bytes] = []
        deadline_s = time.monotonic() + WAIT_S
        while len(taken) < count and time.monotonic() < deadline_s:
            for messages in (await self._consumer.getmany(timeout_ms=500)).values():
                taken += [message.value for message in messages]
        if taken:
            await self._consumer.commit()
        return taken

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=3") as running:
        running.start()
        yield running


@contextmanager
def read_by(client: Client, topic: str) -> Iterator[Reader]:
    reader = client.reader(topic)
    try:
        yield reader
    finally:
        reader.close()


@pytest.mark.parametrize("kind", [Confluent, KafkaPython, Aiokafka])
def test_a_group_reads_on_when_the_broker_that_coordinates_it_dies(
    three: RunningCluster, kind: type[Confluent] | type[KafkaPython] | type[Aiokafka]
) -> None:
    servers = ",".join(at for (_, door), at in three.doors.items() if door == "kafka")
    topic, client = f"of-{kind.__name__.lower()}", kind(servers)
    before = [b"before %d" % number for number in range(HALF)]
    after = [b"after %d" % number for number in range(HALF)]
    _wait_until_whole(three)
    client.create(topic)
    _wait_until_whole(three)
    _check_copies(servers, topic)
    client.publish(topic, before)
    with read_by(client, topic) as reader:
        assert sorted(reader.take(HALF)) == sorted(before)

        three.child(_coordinator(three, servers, f"{topic}-readers")).kill()
        client.publish(topic, after)  # acks=all, with a broker down
        found = reader.take(HALF)

        # Who commits and then hears nothing more may be given again what lies behind its last commit, and
        # nothing else: all that was read before the kill had been committed.
        assert sorted(set(found)) == sorted(after)
    client.publish(topic, [b"last"])
    with read_by(client, topic) as reader:
        assert reader.take(1) == [b"last"]


def _check_copies(servers: str, topic: str) -> None:
    known = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=30)
    partitions = known.topics[topic].partitions.values()
    assert len(known.brokers) == COPIES
    assert [len(partition.replicas) for partition in partitions] == [COPIES] * PARTITIONS


def _coordinator(three: RunningCluster, servers: str, group: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers})  # futures of one that is gone are never done
    port = admin.describe_consumer_groups([group])[group].result(30).coordinator.port
    return next(
        node for (node, door), at in three.doors.items() if door == "kafka" and at.endswith(f":{port}")
    )


def _wait_until_whole(three: RunningCluster) -> None:
    urls = [f"http://{at}/cluster/health" for (_, door), at in three.doors.items() if door == "http"]
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        try:
            if all(httpx.get(url, timeout=10).json()["status"] == "healthy" for url in urls):
                return
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.1)
    raise AssertionError("the cluster does not become whole")
