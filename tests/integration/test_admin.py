"""`goqueue-admin` and a broker as processes: a backup outlives the broker, and another one becomes it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow


def goqueue_admin(broker: RunningBroker, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "goqueue.cli.admin", "--server", broker.http, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def publish(broker: RunningBroker, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.kafka})
    for value in values:
        producer.produce("orders", value)
    assert producer.flush(30) == 0


def consume(broker: RunningBroker, count: int) -> list[tuple[int | None, bytes | None]]:
    """The next messages of a group, which says so only when it had offsets to begin with."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "workers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    try:
        taken = consumer.consume(count, timeout=30)
        consumer.commit(message=taken[-1], asynchronous=False)
        return [(message.offset(), message.value()) for message in taken]
    finally:
        consumer.close()


def test_a_backup_outlives_a_kill_and_another_broker_goes_on_from_it(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    old = start_broker("--topics-partitions=1", "--groups-initial-delay-ms=0")
    publish(old, b"one", b"two", b"three")
    assert [value for _, value in consume(old, 2)] == [b"one", b"two"]
    created = json.loads(goqueue_admin(old, "backup", "create", "-o", "json"))
    backup_id = created["backup_id"]
    old.kill()
    new = start_broker("--groups-initial-delay-ms=0", folder=tmp_path / "new")
    shutil.copytree(old.folder / "backups", new.folder / "backups")

    told = goqueue_admin(new, "backup", "restore", backup_id)

    assert told == f"✓ backup {backup_id}: 1 topic, 1 group, 0 schemas and 0 tenants restored, 0 skipped\n"
    publish(new, b"four")
    # Without its data the topic goes on where it ended, and so does the group: no offset means two messages.
    assert consume(new, 1) == [(3, b"four")]
