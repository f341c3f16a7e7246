"""Delayed messages: what millions of them cost in memory and at a start, and how late they are."""

import json
import random
import shutil
import time
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from bench.http_rows import KeepAlive
from bench.kafka_rows import create_topic
from bench.measured import Row, at_most, measuring, percentile, reported, resident_mb, running
from tests.integration.running_broker import RunningBroker

DAY_MS = 86_400_000
PENDING = 2_000_000
"""Ten million take minutes to publish; what they would take is worked out from these."""
WANTED = 10_000_000
RATE = 5_000
SECONDS = 10
TOPIC, PARTITIONS = "delayed", 3


def delays(folder: Path, *, pending: int = PENDING) -> list[Row]:
    """Publish over HTTP for the next thirty days, kill the broker, start it again, and let some fall due."""
    with running(folder / "delays") as broker:
        create_topic(broker, TOPIC, PARTITIONS)
        broker.stop()
        empty_s = _start(broker)
        empty_mb = resident_mb(broker)
        with measuring(broker) as spent:
            results = _publish(broker, pending, first_ms=3_600_000, span_ms=30 * DAY_MS)
        full_mb = resident_mb(broker)
        broker.kill()
        started_s = _start(broker)
        started_cpu_s = sum(psutil.Process(broker.process.pid).cpu_times()[:2])
        broker.stop()
        clean_s = _start(broker)
        started_mb = resident_mb(broker)
        cancel = _cancel(broker, results)
        lateness = _lateness(broker)
    shutil.rmtree(folder / "delays")
    # What is read back from the log after a kill has a bound; what is read of the runs grows with them.
    scaled_s = started_s + max(clean_s - empty_s, 0) * (WANTED / pending - 1)
    held = f"{empty_mb:.0f} MB empty, {full_mb:.0f} MB after publishing, {started_mb:.0f} MB after the start"
    return [
        at_most(
            f"{pending:,} delayed messages over 30 days: resident memory a message",
            (started_mb - empty_mb) * 1e6 / pending,
            "bytes",
            8,
            held,
        ),
        at_most(
            f"start after kill -9 with {pending:,} delayed messages, worked out for {WANTED:,}",
            scaled_s,
            "s",
            5,
            f"measured: {started_s:.2f} s, {started_cpu_s:.2f} s of CPU; "
            f"{clean_s:.2f} s after a clean stop, {empty_s:.2f} s without any",
        ),
        lateness,
        cancel,
        reported(
            "delayed publish over HTTP, 1,000 messages of 100 B a request: broker CPU a message",
            spent.cpu_s / pending * 1e6,
            "µs",
            f"{pending / spent.wall_s:,.0f} messages/s on one connection",
        ),
    ]


def _publish(broker: RunningBroker, count: int, *, first_ms: int, span_ms: int) -> list[dict[str, int]]:
    """Messages due at any time in a span; the places of the last thousand."""
    chance = random.Random(1)
    reply = b"{}"
    for _ in range(count // 1000):
        messages = [
            {
                "key": f"key-{n}",
                "value": "x" * 100,
                "delay": f"{first_ms + int(chance.random() * span_ms)}ms",
            }
            for n in range(1000)
        ]
        connection = KeepAlive(
            broker.http, f"/topics/{TOPIC}/messages", json.dumps({"messages": messages}).encode()
        )
        connection.send()
        reply = connection.receive()
        connection.close()
    results: list[dict[str, int]] = json.loads(reply)["results"]
    return results


def _cancel(broker: RunningBroker, places: list[dict[str, int]]) -> Row:
    connection = Deleting(broker.http)
    with measuring(broker) as spent:
        for place in places:
            connection.delete(f"/topics/{TOPIC}/delayed/{place['partition']}/{place['offset']}")
    connection.close()
    return at_most(
        "cancel a delayed message over HTTP, acks=all: broker CPU",
        spent.cpu_s / len(places) * 1e3,
        "ms",
        1,
        f"{spent.wall_s / len(places) * 1e3:.1f} ms a request, one after the other",
    )


class Deleting(KeepAlive):
    """A connection that sends DELETE requests."""

    def __init__(self, address: str) -> None:
        super().__init__(address, "/", b"")

    def delete(self, path: str) -> None:
        self._request = f"DELETE {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self.send()
        self.receive()


def _lateness(broker: RunningBroker) -> Row:
    """How long behind its time each message reaches a Kafka client, while many fall due."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "late",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    count = RATE * SECONDS
    _publish(broker, count, first_ms=15_000, span_ms=SECONDS * 1000)
    taken: list[float] = []
    deadline = time.monotonic() + 60
    with measuring(broker) as spent:
        while len(taken) < count and time.monotonic() < deadline:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                taken.append(time.time() * 1000 - message.timestamp()[1])
    consumer.close()
    if len(taken) < count:
        raise RuntimeError(f"{len(taken)} of {count} messages were delivered")
    if min(taken) < 0:
        raise RuntimeError(f"a message was {-min(taken):.0f} ms early")
    return at_most(
        f"{RATE:,} delayed messages a second fall due: p99 of how late a Kafka client has them",
        percentile(taken, 0.99),
        "ms",
        50,
        f"median {percentile(taken, 0.5):.1f} ms, worst {max(taken):.0f} ms; "
        f"{spent.cpu_s / spent.wall_s:.0%} of a core while waiting and delivering",
    )


def _start(broker: RunningBroker) -> float:
    """From the command to `ready`, with the interpreter's own start in it."""
    began = time.perf_counter()
    broker.start()
    return time.perf_counter() - began
