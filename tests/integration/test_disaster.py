"""The disaster exercise: everything in use, a whole backup, the folder destroyed, and all of it back."""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

ROOT = {"X-API-Key": "gq_root_of_the_exercise"}


def admin(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "goqueue.cli.admin", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def publishing(broker: RunningBroker) -> Iterator[list[int]]:
    """Somebody publishes one number after the other; those that were acknowledged."""
    acknowledged: list[int] = []
    stop = threading.Event()

    def publish() -> None:
        with httpx.Client(base_url=broker.http, headers=ROOT) as client:
            while not stop.is_set():
                number = len(acknowledged)
                client.post(
                    "/topics/busy/messages", json={"messages": [{"value": str(number)}]}
                ).raise_for_status()
                acknowledged.append(number)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        thread.join()


def read_all(broker: RunningBroker, topic: str, isolation: str) -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.kafka,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    try:
        while (message := consumer.poll(20)) is not None and not message.error():
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


def test_all_that_was_there_at_the_moment_comes_back_and_goes_on(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    flags = (
        f"--backup-folder={tmp_path / 'kept'}",
        f"--api-root-key={ROOT['X-API-Key']}",
        "--listeners-http=SASL_PLAINTEXT://127.0.0.1:0",
    )
    broker = start_broker(*flags, folder=tmp_path / "data")
    with httpx.Client(base_url=broker.http, headers=ROOT) as client:
        for topic in ("busy", "paid", "later", "work"):
            client.post("/topics", json={"name": topic, "num_partitions": 1}).raise_for_status()
        client.post("/admin/users", json={"name": "ann", "password": "long enough, ann"}).raise_for_status()
        work = {"messages": [{"value": value} for value in ("a", "b", "c")]}
        client.post("/topics/work/messages", json=work).raise_for_status()
        joined = client.post("/groups/workers/join", json={"client_id": "w", "topics": ["work"]}).json()
        query = {"member_id": joined["member_id"], "limit": 2, "visibility_timeout": "1h"}
        done, out = client.get("/groups/workers/poll", params=query).json()["messages"]
        client.post("/messages/ack", json={"receipt_handle": done["receipt_handle"]}).raise_for_status()
        delayed = {"messages": [{"value": "in an hour", "delay": "1h"}, {"value": "soon", "delay": "8s"}]}
        client.post("/topics/later/messages", json=delayed).raise_for_status()
        whole, open_one = (producer(broker, name) for name in ("whole", "open"))
        whole.begin_transaction()
        whole.produce("paid", b"committed")
        whole.commit_transaction(20)
        open_one.begin_transaction()
        open_one.produce("paid", b"never committed")
        assert open_one.flush(20) == 0

        with publishing(broker) as acknowledged:
            deadline_s = time.monotonic() + 30
            while len(acknowledged) < 20:
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            before = len(acknowledged)
            made = admin(
                "--server", broker.http, "--api-key", ROOT["X-API-Key"], "backup", "create", "--whole"
            )
            assert made.returncode == 0, made.stderr
        late = {"messages": [{"value": "too late"}]}
        client.post("/topics/work/messages", json=late).raise_for_status()
    broker.kill()
    shutil.rmtree(tmp_path / "data")

    assert admin("backup", "verify", str(tmp_path / "kept")).returncode == 0
    restored = admin("backup", "recover", str(tmp_path / "kept"), "--into", str(tmp_path / "again"))
    assert restored.returncode == 0, restored.stderr
    again = start_broker(*flags, folder=tmp_path / "again")

    busy = read_all(again, "busy", "read_committed")
    assert busy == [str(number) for number in range(len(busy))]
    assert before <= len(busy) <= len(acknowledged) + 1
    assert read_all(again, "paid", "read_committed") == ["committed"]
    assert read_all(again, "work", "read_committed") == ["a", "b", "c"]
    with httpx.Client(base_url=again.http, headers=ROOT, timeout=60) as client:
        ann = httpx.BasicAuth("ann", "long enough, ann")
        assert httpx.get(f"{again.http}/topics", auth=ann).status_code == 200
        waiting = client.get("/topics/later/delayed").json()["messages"]
        assert len(waiting) in (1, 2), "one is due in an hour, the other may have come"
        gone_on = client.post("/topics/work/messages", json={"messages": [{"value": "d"}]}).json()
        assert gone_on["results"][0]["offset"] == 3
        assert client.post("/messages/ack", json={"receipt_handle": out["receipt_handle"]}).is_success
    assert read_all(again, "work", "read_committed") == ["a", "b", "c", "d"]
    fenced = producer(again, "open")
    fenced.begin_transaction()
    fenced.produce("paid", b"after")
    fenced.commit_transaction(20)
    assert read_all(again, "paid", "read_committed") == ["committed", "after"]


def producer(broker: RunningBroker, name: str) -> Producer:
    made = Producer({"bootstrap.servers": broker.kafka, "transactional.id": name})
    made.init_transactions(20)
    return made
