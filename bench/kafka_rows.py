"""The Kafka door: CPU a million messages, latency, and shares of what disk and loopback give."""

import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.measured import Row, at_least, at_most, fsync_latencies_ms, measuring, percentile, reported
from bench.raw_client import RawClient, batch_of, fetch_request, fetched_records, produce_request
from tests.integration.running_broker import RunningBroker

MILLION = 1_000_000
PARTITIONS = 3
IN_FLIGHT = 5


def create_topic(broker: RunningBroker, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    for done in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        done.result()


def cpu_per_million(broker: RunningBroker, *, acks: str, count: int = MILLION) -> Row:
    """Publish and consume 100-byte messages with librdkafka's defaults."""
    topic = f"cpu-{acks}"
    create_topic(broker, topic, PARTITIONS)
    bound = {"1": 0.45, "all": 0.6}[acks]
    with measuring(broker) as published:
        publish_all(broker.kafka, topic, acks, count)
    with measuring(broker) as consumed:
        consume_all(broker.kafka, topic, count)
    per_million = (published.cpu_s + consumed.cpu_s) * MILLION / count
    return at_most(
        f"Kafka door, 100 B, librdkafka, acks={acks}: broker CPU per million published and consumed",
        per_million,
        "CPU-s",
        bound,
        f"publish {published.cpu_s * MILLION / count:.3f} ({count / published.wall_s:,.0f}/s), "
        f"consume {consumed.cpu_s * MILLION / count:.3f} ({count / consumed.wall_s:,.0f}/s)",
    )


def publish_all(
    kafka: str,
    topic: str,
    acks: str,
    count: int,
    *,
    partitions: int = PARTITIONS,
    settings: Mapping[str, int] | None = None,
) -> None:
    """`settings`: of the producer, besides."""
    producer = Producer(
        {
            "bootstrap.servers": kafka,
            "acks": acks,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            **(settings or {}),
        }
    )
    value = b"x" * 100
    for n in range(count):
        producer.produce(topic, value, partition=n % partitions)
        if not n % 10_000:
            producer.poll(0)
    left = producer.flush(120)
    if left:
        raise RuntimeError(f"{left} messages were not acknowledged")


def consume_all(kafka: str, topic: str, count: int, *, partitions: int = PARTITIONS) -> None:
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    seen = 0
    deadline = time.monotonic() + 120
    while seen < count:
        messages = consumer.consume(10_000, timeout=1)
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
        seen += len(messages)
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {seen} of {count} messages came back")
    consumer.close()


def publish_share(broker: RunningBroker, folder: Path, *, megabytes: int = 512, rounds: int = 3) -> Row:
    """1 KiB messages in batches of 1 MiB, against a process that just writes the same bytes."""
    create_topic(broker, "share", 1)
    batch = batch_of(1000, b"x" * 1024)
    request, last_request = (produce_request("share", 0, batch, acks=acks) for acks in (1, -1))
    count = megabytes * 1024 * 1024 // len(batch)
    ours, plain = [], []
    for _ in range(rounds):
        plain.append(_write_plainly(folder, batch, count))
        ours.append(_publish_raw(broker, request, last_request, len(batch), count))
    share = sum(ours) / sum(plain)
    return at_least(
        "1 KiB messages, batches of 1 MiB, acks=leader: publish, share of one process writing the same",
        share * 100,
        "%",
        60,
        f"{sum(ours) / rounds:,.0f} against {sum(plain) / rounds:,.0f} MB/s, "
        "both with an fsync each second and at the end",
    )


def _publish_raw(
    broker: RunningBroker, request: bytes, last_request: bytes, batch_bytes: int, count: int
) -> float:
    with RawClient(broker.kafka) as client:
        began = time.perf_counter()
        for n in range(count):
            client.send(request if n < count - 1 else last_request)
            if n >= IN_FLIGHT:
                client.receive()
        for _ in range(IN_FLIGHT):
            client.receive()
        return batch_bytes * count / (time.perf_counter() - began) / 1e6


def _write_plainly(folder: Path, batch: bytes, count: int) -> float:
    path = folder / "plain.bench"
    # Data to be stored comes from somewhere: writing one buffer again and again would only show the cache.
    batches = [bytes(bytearray(batch)) for _ in range(64)]
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        began = synced = time.perf_counter()
        for n in range(count):
            os.write(descriptor, batches[n % len(batches)])
            if time.perf_counter() - synced >= 1:
                os.fdatasync(descriptor)
                synced = time.perf_counter()
        os.fdatasync(descriptor)
        return len(batch) * count / (time.perf_counter() - began) / 1e6
    finally:
        os.close(descriptor)
        path.unlink()


def fetch_share(broker: RunningBroker, folder: Path, *, megabytes: int = 512, rounds: int = 3) -> Row:
    """Fetch what lies in the page cache, against a plain copy of the same bytes over loopback."""
    create_topic(broker, "fetch", 1)
    batch = batch_of(256, b"x" * 1024)
    count = megabytes * 1024 * 1024 // len(batch)
    request = produce_request("fetch", 0, batch, acks=1)
    _publish_raw(broker, request, request, len(batch), count)
    plain_file = folder / "plain.bench"
    plain_file.write_bytes(batch * count)
    chunk = 4 * 1024 * 1024
    ours, plain = [], []
    for _ in range(rounds):
        plain.append(_copy_plainly(plain_file, chunk))
        ours.append(_fetch_raw(broker, "fetch", len(batch) * count, chunk))
    plain_file.unlink()
    return at_least(
        "fetch from page cache, share of a plain loopback copy of the same bytes",
        sum(ours) / sum(plain) * 100,
        "%",
        60,
        f"{sum(ours) / rounds:,.0f} against {sum(plain) / rounds:,.0f} MB/s",
    )


def _fetch_raw(broker: RunningBroker, topic: str, total: int, chunk: int) -> float:
    with RawClient(broker.kafka) as client:
        offset = got = 0
        began = time.perf_counter()
        while got < total:
            client.send(fetch_request(topic, 0, offset, max_bytes=chunk))
            records = fetched_records(client.receive(), topic)
            got += len(records)
            offset += _messages_in(records)
        return got / (time.perf_counter() - began) / 1e6


def _messages_in(records: memoryview) -> int:
    """All batches are alike here, so the first one tells."""
    size = int.from_bytes(records[8:12], "big") + 12
    return len(records) // size * int.from_bytes(records[57:61], "big")


def _copy_plainly(path: Path, chunk: int) -> float:
    """One thread reads the file and sends it, this one receives: the least that a server could do."""
    listener = socket.create_server(("127.0.0.1", 0))
    total = path.stat().st_size

    def serve() -> None:
        connection, _ = listener.accept()
        descriptor = os.open(path, os.O_RDONLY)
        with connection:
            position = 0
            while position < total:
                connection.recv(100)
                data = os.pread(descriptor, chunk, position)
                connection.sendall(data)
                position += len(data)
        os.close(descriptor)

    thread = threading.Thread(target=serve)
    thread.start()
    buffer = memoryview(bytearray(chunk))
    began = time.perf_counter()
    with socket.create_connection(listener.getsockname()) as client:
        got = 0
        while got < total:
            client.sendall(b"x" * 80)
            wanted = min(chunk, total - got)
            filled = 0
            while filled < wanted:
                filled += client.recv_into(buffer[filled:wanted])
            got += wanted
    taken = time.perf_counter() - began
    thread.join()
    listener.close()
    return total / taken / 1e6


def latency(broker: RunningBroker, folder: Path, *, seconds: int = 5) -> list[Row]:
    """One message at a time at 1,000 a second, linger 0."""
    create_topic(broker, "latency", 1)
    producer = Producer({"bootstrap.servers": broker.kafka, "acks": "1", "linger.ms": 0})
    taken: list[float] = []
    for n in range(seconds * 1000 + 200):
        due = time.perf_counter() + 0.001
        began = time.perf_counter()

        def delivered(_error: object, _message: object, began: float = began, n: int = n) -> None:
            if n >= 200:
                taken.append((time.perf_counter() - began) * 1e3)

        producer.produce("latency", b"x" * 100, on_delivery=delivered)
        while time.perf_counter() < due:
            producer.poll(0.0002)
    producer.flush(10)
    fsync_ms = percentile(fsync_latencies_ms(folder), 0.99)
    return [
        reported("publish latency at 1,000 msg/s, acks=1, linger 0: p50", percentile(taken, 0.5), "ms"),
        reported(
            "publish latency at 1,000 msg/s, acks=1, linger 0: p99",
            percentile(taken, 0.99),
            "ms",
            f"the disk's own fsync p99: {fsync_ms:.2f} ms",
        ),
    ]


def tail_latency(broker: RunningBroker, folder: Path, *, seconds: int = 5) -> list[Row]:
    """From a publish with acks=1 to a consumer that waits: messages are shown when the disk has them."""
    create_topic(broker, "tail", 1)
    taken: list[float] = []
    count = seconds * 1000
    consumer = Consumer({"bootstrap.servers": broker.kafka, "group.id": "tail", "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition("tail", 0, 0)])

    def consume() -> None:
        seen = 0
        while seen < count and (message := consumer.poll(10)) is not None:
            value = message.value()
            if message.error() is None and isinstance(value, bytes):
                seen += 1
                taken.append((time.perf_counter() - float(value)) * 1e3)

    consuming = threading.Thread(target=consume)
    consuming.start()
    producer = Producer({"bootstrap.servers": broker.kafka, "acks": "1", "linger.ms": 0})
    with measuring(broker) as spent:
        for _ in range(count):
            due = time.perf_counter() + 0.001
            producer.produce("tail", f"{time.perf_counter():020.9f}".encode())
            while time.perf_counter() < due:
                producer.poll(0.0002)
        producer.flush(10)
        consuming.join()
    consumer.close()
    fsync_ms = percentile(fsync_latencies_ms(folder), 0.5)
    what = "publish to waiting consumer at 1,000 msg/s, acks=1, linger 0"
    detail = f"the disk's own fsync p50: {fsync_ms:.2f} ms; {spent.cpu_s * 1e6 / count:.0f} µs of CPU each"
    settled = taken[200:]
    return [
        reported(f"{what}: p50", percentile(settled, 0.5), "ms", detail),
        reported(f"{what}: p99", percentile(settled, 0.99), "ms"),
    ]
