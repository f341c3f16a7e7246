"""Memory at rest, and how long it takes to open a large data folder."""

import shutil
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.kafka_rows import IN_FLIGHT, create_topic
from bench.measured import Row, at_most, resident_mb, running
from bench.raw_client import RawClient, batch_of, produce_request
from tests.integration.running_broker import RunningBroker


def idle_memory(folder: Path) -> Row:
    """100 topics of 3 partitions, no data: after a restart, as a broker lives most of its life."""
    with running(folder / "idle") as broker:
        admin = AdminClient({"bootstrap.servers": broker.kafka})
        for done in admin.create_topics([NewTopic(f"topic-{n}", 3, 1) for n in range(100)]).values():
            done.result()
        fresh_mb = resident_mb(broker)
        broker.stop()
        broker.start()
        return at_most(
            "resident memory, idle, 100 topics × 3 partitions, no data",
            max(resident_mb(broker), fresh_mb),
            "MB",
            120,
            f"{fresh_mb:.0f} MB after creating them, {resident_mb(broker):.0f} MB after a restart",
        )


def opening(folder: Path, *, gigabytes: float) -> list[Row]:
    """Fill a data folder, then open it after a clean stop and after kill -9 in the middle of a load."""
    topics, partitions = 2, 3
    with running(folder / "large") as broker:
        batch = batch_of(100, b"x" * 10_000)
        requests = []
        for topic in range(topics):
            create_topic(broker, f"large-{topic}", partitions)
            requests += [produce_request(f"large-{topic}", n, batch, acks=1) for n in range(partitions)]
        _publish(broker, requests, int(gigabytes * 1e9 / len(batch)))
        broker.stop()
        clean_s = _start(broker)
        _publish(broker, requests, int(0.3e9 / len(batch)))
        broker.kill()
        killed_s = _start(broker)
        size_gb = sum(path.stat().st_size for path in broker.folder.rglob("*.log")) / 1e9
    shutil.rmtree(folder / "large")
    detail = f"{size_gb:.1f} GB in {topics * partitions} partitions"
    return [
        at_most("opening a data folder, cleanly closed", clean_s, "s", 2, detail),
        at_most("opening a data folder, after kill -9 under load", killed_s, "s", 10, detail),
    ]


def _publish(broker: RunningBroker, requests: list[bytes], count: int) -> None:
    with RawClient(broker.kafka) as client:
        for n in range(count):
            client.send(requests[n % len(requests)])
            if n >= IN_FLIGHT:
                client.receive()


def _start(broker: RunningBroker) -> float:
    """From the command to `ready`, with the interpreter's own start in it."""
    began = time.perf_counter()
    broker.start()
    return time.perf_counter() - began
