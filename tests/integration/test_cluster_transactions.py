"""Transactions over three real nodes, with Kafka's own client: each whole or not at all, whoever dies."""

import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, cycle
from types import MappingProxyType
from typing import Any

import httpx
import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.integration.running_cluster import RunningCluster, cluster
from tests.integration.test_cluster import PARTITIONS, Clients, wait_until, wait_until_in_sync
from tests.integration.test_transactions import Copying, Employ, Reader, employ
from tests.integration.transaction_history import History
from tests.integration.transaction_worker import ACCOUNTS, Worker
from tests.integration.transaction_worker import PARTITIONS as ACCOUNT_PARTITIONS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WAIT_S = 30
MESSAGES = 200
__all__ = ["employ"]
"""A fixture that came with the others."""


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


class Clerks:
    """Two clients of two libraries that move amounts; one that gives up is replaced by another."""

    ROLES = MappingProxyType({"first": "confluent", "second": "aiokafka"})

    def __init__(self, servers: str, employ: Employ) -> None:
        self._servers, self._employ = servers, employ
        self._seeds = count()
        self._workers: dict[str, list[Worker]] = {name: [] for name in self.ROLES}
        self.see_to_them()

    def see_to_them(self) -> None:
        for name, workers in self._workers.items():
            if not workers or workers[-1].process.poll() is not None:
                workers.append(self._employ(self.ROLES[name], self._servers, name, str(next(self._seeds))))

    def history(self) -> History:
        """What they were told, when they are gone, and whoever has taken over has ended what they left."""
        history = History(parts_each=2)
        for name, workers in self._workers.items():
            workers[-1].kill()
            Producer({"bootstrap.servers": self._servers, "transactional.id": name}).init_transactions(WAIT_S)
            for worker in workers:
                history.note_writer(worker.lines)
        return history


def test_transfers_and_a_copy_are_exact_though_each_node_is_killed_in_turn(
    three: RunningCluster, employ: Employ
) -> None:
    clients = Clients(three)
    for topic, partitions in (("source", 2), ("target", 2), (ACCOUNTS, ACCOUNT_PARTITIONS)):
        for made in clients.admin.create_topics([NewTopic(topic, partitions, 3)]).values():
            made.result(WAIT_S)
        wait_until_in_sync(clients, topic, 3)
    producer = Producer({"bootstrap.servers": clients.servers, "enable.idempotence": True})
    for number in range(MESSAGES):
        producer.produce("source", b"%d" % number, partition=number % 2)
    assert producer.flush(WAIT_S) == 0
    copying, clerks = Copying(clients.servers, employ), Clerks(clients.servers, employ)

    for number in (1, 2, 3):
        copying.wait_for(MESSAGES * number // 5)
        victim = three.child(f"node-{number}")
        victim.kill()
        wait_until(lambda name=f"node-{number}", dead=victim: is_back(three, name, dead))  # type: ignore[misc]
        wait_until_in_sync(clients, ACCOUNTS, 3)
        clerks.see_to_them()
    copying.wait_for(MESSAGES)
    copying.copier.kill()
    history = clerks.history()

    assert sorted(copying.copied()) == list(range(MESSAGES))
    reader, total = Reader(clients.servers, ACCOUNTS, ACCOUNT_PARTITIONS), 0
    while (message := reader.poll()) is not None:
        name, part, amount = message.value().decode().split()
        history.reads.append((message.partition(), message.offset(), name, int(part)))
        total += int(amount)
    reader.close()
    assert history.anomalies() == []
    assert total == 0
    assert len(history.committed) > 10


def is_back(three: RunningCluster, name: str, dead: psutil.Process) -> bool:
    try:
        return three.child(name).pid != dead.pid
    except (AssertionError, psutil.Error):
        return False


def test_over_http_each_step_of_a_transaction_may_be_asked_of_another_node(three: RunningCluster) -> None:
    doors = [httpx.Client(base_url=f"http://{at}") for (_, door), at in three.doors.items() if door == "http"]
    turns = cycle(doors)

    def post(path: str, **body: object) -> dict[str, Any]:
        reply = next(turns).post(path, json=body, timeout=30)
        assert reply.status_code == 200, (path, reply.text)
        return dict(reply.json())

    clients = Clients(three)
    clients.create("letters", 3)
    taken = post("/producers/init", transactional_id="poet")
    who = {"producer_id": taken["producer_id"], "epoch": taken["epoch"]}
    for value, ending in (("kept", "commit"), ("dropped", "abort")):
        post("/transactions/begin", **who)
        for partition in range(PARTITIONS):
            post("/transactions/publish", **who, topic="letters", partition=partition, value=value)
        post("/transactions/add-offsets", **who, group="poets", offsets={"letters": {"0": len(value)}})
        assert any(row["transactional_id"] == "poet" for row in transactions(next(turns)))
        post(f"/transactions/{ending}", **who)
    post(f"/producers/{taken['producer_id']}/heartbeat", epoch=taken["epoch"], transactional_id="poet")

    wait_until(lambda: Counter(seen(clients.servers, "letters")) == {b"kept": PARTITIONS})
    again = post("/producers/init", transactional_id="poet")
    assert again["epoch"] > taken["epoch"]
    fenced = next(turns).post("/transactions/begin", json=who, timeout=30)
    assert fenced.status_code in (403, 409), fenced.text


def transactions(door: httpx.Client) -> list[dict[str, Any]]:
    return list(door.get("/transactions", timeout=30).json()["transactions"])
