"""What being stored once costs: idempotent producers, transactions, and a partition with many of them."""

import asyncio
import time
from pathlib import Path

from confluent_kafka import Producer

from bench.kafka_rows import create_topic
from bench.measured import Row, at_least, at_most, fsync_latencies_ms, measuring, percentile
from bench.raw_client import RawClient, batch_of, produce_request
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.storage.data_folder import LOGS_FOLDER
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import create_topic as create_topic_here
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.ids import NO_PRODUCER, TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.model.topics import CreateTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.records.batch import encode
from goqueue.records.layout import read_header, stamp_producer
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.integration.running_broker import RunningBroker

MANY = TopicName("many")
PARTITIONS = 3
IN_FLIGHT = 5
PATIENCE_S = 60
COMMITS_PER_S = 1_000
SHARE_OF_CEILING = 0.8
"""Where the client itself cannot reach that."""
CPU_US = 700


def idempotent_cpu(broker: RunningBroker, *, batches: int = 10_000, rounds: int = 5) -> Row:
    """Broker CPU of the same requests with and without sequence numbers; the least of some rounds each.

    By raw requests: librdkafka builds other batches, and sends fewer at a time, when it is idempotent.
    """
    create_topic(broker, "once", 1)
    spent: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for is_idempotent in (False, True):
            producer_id = 1_000_000 + number if is_idempotent else NO_PRODUCER
            requests = [_request(producer_id, sequence) for sequence in range(0, batches * 100, 100)]
            spent[is_idempotent].append(_publish(broker, requests))
    plain, once = min(spent[False]), min(spent[True])
    return at_most(
        "idempotent against plain publish, Kafka door: extra broker CPU",
        max(once / plain - 1, 0) * 100,
        "%",
        10,
        f"{once:.2f} against {plain:.2f} CPU-seconds for {batches:,} requests of 100 messages of 100 bytes, "
        "acks=1",
    )


def _request(producer_id: int, sequence: int) -> bytes:
    body = memoryview(bytearray(batch_of(100, b"x" * 100)))
    if producer_id != NO_PRODUCER:
        stamp_producer(body, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return produce_request("once", 0, bytes(body), acks=1)


def _publish(broker: RunningBroker, requests: list[bytes]) -> float:
    with RawClient(broker.kafka) as client, measuring(broker) as spent:
        for number, request in enumerate(requests):
            client.send(request)
            if number >= IN_FLIGHT:
                client.receive()
        for _ in range(IN_FLIGHT):
            client.receive()
    return spent.cpu_s


def commit_rate(broker: RunningBroker, folder: Path, *, commits: int = 300) -> list[Row]:
    """Transactions one behind the other by one librdkafka producer."""
    create_topic(broker, "transfers", PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.kafka, "transactional.id": "bench", "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    fsync_ms = fsync_latencies_ms(folder)
    _transfer(producer, 20)
    with measuring(broker) as spent:
        _transfer(producer, commits)
    rate = commits / spent.wall_s
    fsync_rate = 1000 * len(fsync_ms) / sum(fsync_ms)
    ceiling = _client_ceiling(commits)
    return [
        at_least(
            "transactions of 100 messages over 3 partitions, one producer, with fsync",
            rate,
            "commits/s",
            min(COMMITS_PER_S, SHARE_OF_CEILING * ceiling),
            f"the client alone, with the broker that it pretends: {ceiling:,.0f}/s; "
            f"the disk's own fsync rate then: {fsync_rate:,.0f}/s, p99 {percentile(fsync_ms, 0.99):.2f} ms",
        ),
        at_most("the same: broker CPU a transaction", spent.cpu_s / commits * 1e6, "µs", CPU_US),
    ]


def _client_ceiling(commits: int) -> float:
    """What the client reaches with librdkafka's own mock of a broker, which keeps nothing."""
    producer = Producer({"test.mock.num.brokers": 1, "transactional.id": "bench", "linger.ms": 0})
    producer.init_transactions(PATIENCE_S)
    _transfer(producer, 20)
    began_s = time.perf_counter()
    _transfer(producer, commits)
    return commits / (time.perf_counter() - began_s)


def _transfer(producer: Producer, commits: int) -> None:
    value = b"x" * 100
    for _ in range(commits):
        producer.begin_transaction()
        for number in range(100):
            producer.produce("transfers", value, partition=number % PARTITIONS)
        producer.commit_transaction(PATIENCE_S)


def opening_producers(folder: Path, *, count: int = 100_000) -> Row:
    """Open a partition to which so many producers have written, from its recovery point."""
    asyncio.run(_write_as_many(folder, count))
    source = TopicPartition(MANY, 0)
    partition = Partition(
        source,
        f"{LOGS_FOLDER}/{MANY}/0",
        TopicSettings(),
        disk=FolderDisk(folder),
        clock=SystemClock(),
        leader_epoch=0,
        on_failure=lambda _: None,
    )
    began_s = time.perf_counter()
    partition.open()
    seconds = time.perf_counter() - began_s
    assert len(partition.producers) == count
    return at_most(f"opening a partition with {count:,} producer ids", seconds, "s", 1)


async def _write_as_many(folder: Path, count: int) -> None:
    threads = WorkerThreads()
    broker = await open_broker(
        config=BrokerConfig(),
        disk=FolderDisk(folder),
        clock=SystemClock(),
        threads=threads,
        workshop=WorkshopAtHand(),
    )
    await create_topic_here(broker, CreateTopic(name=MANY, partitions=1))
    partition = broker.partition(TopicPartition(MANY, 0))
    for first in range(1, count + 1, 1_000):
        partition.append([_batch_of(producer_id) for producer_id in range(first, first + 1_000)])
    await close_broker(broker)
    threads.close()


def _batch_of(producer_id: int) -> CheckedBatch:
    [(body, _)] = encode([Message(b"x")], now_ms=1)
    stamp_producer(body, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    return CheckedBatch(read_header(body), body, Lane.NORMAL)
