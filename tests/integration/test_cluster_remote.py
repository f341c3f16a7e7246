"""Five real nodes: groups whose coordinator holds nothing, or only some, of what it hands out."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka import AcknowledgeType, ShareConsumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from goqueue.broker.storage.journal_set import journal_number
from goqueue.core.cluster.numbers import node_number
from goqueue.model.cluster import NodeId
from tests.integration.clients import begin_with_the_first
from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
NODES = [f"node-{number}" for number in range(1, 6)]
NAMES = {node_number(NodeId(node)): node for node in NODES}
PARTITIONS = 5
DEAD = (503, 504)


class Five:
    """HTTP clients of all nodes, which ask again what a node that died could not answer."""

    def __init__(self, running: RunningCluster) -> None:
        self.running = running
        self._http = httpx.Client(timeout=60)
        self.kafka = ",".join(at for (_, door), at in running.doors.items() if door == "kafka")
        self._admin = AdminClient({"bootstrap.servers": self.kafka})

    def create(self, topic: str, copies: int) -> None:
        for made in self._admin.create_topics([NewTopic(topic, PARTITIONS, copies)]).values():
            made.result(30)
        for node in NODES:
            self.until(lambda node=node: self.send(node, "GET", f"/topics/{topic}").status_code == 200)  # type: ignore[misc]

    def send(self, node: str, method: str, path: str, **request: Any) -> httpx.Response:
        return self._http.request(method, f"http://{self.running.doors[(node, 'http')]}{path}", **request)

    def ask(self, node: str, method: str, path: str, **request: Any) -> Any:
        replies: list[httpx.Response] = []

        def is_answered() -> bool:
            try:
                replies.append(self.send(node, method, path, **request))
            except httpx.TransportError:
                return False
            return replies[-1].status_code not in DEAD

        self.until(is_answered)
        return replies[-1].json()

    def until(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)

    def leaders(self, topic: str) -> list[str]:
        partitions = self._admin.list_topics(topic, timeout=20).topics[topic].partitions
        return [NAMES.get(partitions[number].leader, "") for number in sorted(partitions)]

    def holders(self, topic: str) -> list[set[str]]:
        partitions = self._admin.list_topics(topic, timeout=20).topics[topic].partitions
        return [{NAMES[one] for one in partitions[number].replicas} for number in sorted(partitions)]

    def coordinator(self, group: str) -> str:
        return self.leaders("__consumer_offsets")[journal_number(group)]

    def publish(self, node: str, topic: str, values: list[str], number: int | None = None) -> None:
        messages = [
            {"value": value, "partition": at % PARTITIONS if number is None else number}
            for at, value in enumerate(values)
        ]
        results = self.ask(node, "POST", f"/topics/{topic}/messages", json={"messages": messages})["results"]
        assert not [result for result in results if result.get("code")], results


class Consumer:
    """A member of a group that joins again when it is told to."""

    def __init__(self, five: Five, node: str, group: str, topic: str) -> None:
        self._five, self.node, self.group, self._topic = five, node, group, topic
        self.done: Counter[str] = Counter()
        self.joins = 0
        self.join()

    def join(self) -> None:
        joining = {"client_id": "ann", "topics": [self._topic], "mode": "shared"}
        told = self._five.ask(self.node, "POST", f"/groups/{self.group}/join", json=joining)
        self.member_id = told["member_id"]
        self.joins += 1

    def poll(self, limit: int = 10, timeout: str = "1s") -> list[Any]:
        path = f"/groups/{self.group}/poll?member_id={self.member_id}&limit={limit}&timeout={timeout}"
        reply = self._five.ask(self.node, "GET", path)
        if reply.get("code") == "unknown_member":
            self.join()
        else:
            assert "code" not in reply, reply
        return list(reply.get("messages", ()))

    def settle(self, verb: str, messages: list[Any], **more: Any) -> None:
        handles = [message["receipt_handle"] for message in messages]
        told = self._five.ask(
            self.node, "POST", f"/messages/{verb}", json={"receipt_handles": handles, **more}
        )
        assert all(result["success"] for result in told["results"]), told

    def take_all(self, wanted: set[str]) -> None:
        """Take and acknowledge until all of these were there."""
        deadline_s = time.monotonic() + 60
        while not self.done.keys() >= wanted:
            assert time.monotonic() < deadline_s, wanted - self.done.keys()
            if polled := self.poll():
                self.settle("ack", polled)
                self.done.update(message["value"] for message in polled)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=5") as running:
        running.start()
        yield running
        assert running.stop() == 0


@pytest.fixture
def five(running: RunningCluster) -> Five:
    return Five(running)


@pytest.mark.parametrize("copies", [1, 2])
def test_a_coordinator_hands_out_what_it_holds_nothing_of(five: Five, copies: int) -> None:
    topic = f"far-{copies}"
    five.create(topic, copies)
    consumer = Consumer(five, "node-1", f"workers-{copies}", topic)
    coordinator = five.coordinator(consumer.group)
    assert any(coordinator not in holders for holders in five.holders(topic)), "it holds them all"
    values = [f"v{number}" for number in range(100)]
    for door, share in zip(NODES, (values[n::5] for n in range(5)), strict=True):
        five.publish(door, topic, share)
    assert five.ask("node-2", "GET", f"/groups/{consumer.group}/lag")["total"] == 100

    consumer.take_all(set(values))

    assert set(consumer.done.values()) == {1}
    lag = five.ask("node-3", "GET", f"/groups/{consumer.group}/lag")
    assert (lag["total"], len(lag["partitions"])) == (0, PARTITIONS), lag


def test_a_poll_that_waits_hears_of_a_publish_at_another_node_at_once(five: Five) -> None:
    five.create("news", 1)
    consumer = Consumer(five, "node-2", "readers", "news")
    coordinator = five.coordinator("readers")
    number = next(at for at, holders in enumerate(five.holders("news")) if coordinator not in holders)
    latencies_ms: list[float] = []
    for _ in range(10):
        came_s: list[float] = []

        def wait(came_s: list[float] = came_s) -> None:
            polled = consumer.poll(timeout="30s")
            came_s.append(time.monotonic())
            consumer.settle("ack", polled)

        waits = threading.Thread(target=wait)
        waits.start()
        time.sleep(0.3)  # it is on its way to where it waits
        five.publish("node-3", "news", ["v"], number)
        acknowledged_s = time.monotonic()
        waits.join(30)
        latencies_ms.append((came_s[0] - acknowledged_s) * 1_000)
    print(f"behind the acknowledgement: {[round(one, 1) for one in sorted(latencies_ms)]} ms")
    assert sorted(latencies_ms)[5] < 500


def test_nothing_is_lost_or_done_twice_when_a_leader_and_a_coordinator_are_killed(five: Five) -> None:
    five.create("kept", 2)
    consumer = Consumer(five, "node-2", "movers", "kept")
    victims = []
    for kind in ("leader", "coordinator"):
        coordinator = five.coordinator("movers")
        victim = next(node for node in five.leaders("kept") if node != coordinator)
        consumer.node = next(node for node in NODES if node not in (coordinator, victim))
        if kind == "coordinator":
            victim = coordinator
        values = [f"{kind}-{number}" for number in range(200)]
        five.publish(consumer.node, "kept", values)
        consumer.take_all(set(values[:50]))
        five.running.child(victim).kill()
        killed_s = time.monotonic()
        consumer.take_all(set(values))
        victims.append((kind, victim, round(time.monotonic() - killed_s, 1)))
        five.running.wait_for(f"{victim}   ready")
    print(f"killed: {victims}, joined {consumer.joins} times")
    assert {value: count for value, count in consumer.done.items() if count > 1} == {}
    assert five.ask(consumer.node, "GET", "/groups/movers/lag")["total"] == 0


def test_what_is_given_back_comes_again_and_what_is_rejected_is_a_dead_letter(five: Five) -> None:
    five.create("jobs", 1)
    consumer = Consumer(five, "node-2", "fixers", "jobs")
    values = [f"v{number}" for number in range(20)]
    five.publish("node-4", "jobs", values)
    held: dict[str, Any] = {}
    while len(held) < len(values):
        held |= {message["value"]: message for message in consumer.poll()}
    back, bad, lost, good = (values[at::4] for at in range(4))
    consumer.settle("nack", [held[value] for value in back], delay="0s")
    consumer.settle("reject", [held[value] for value in bad], reason="bad")
    five.ask("node-3", "POST", "/messages/ack", json={"receipt_handles": handles_of(held, good)})
    # Whoever had these is gone without a word: they come back when their time is up.
    body = {"receipt_handles": handles_of(held, lost), "timeout": "1s"}
    five.ask("node-5", "POST", "/messages/visibility", json=body)

    consumer.take_all({*back, *lost})

    assert set(consumer.done) == {*back, *lost}

    def dead() -> list[str]:
        found = five.ask("node-4", "GET", "/topics/jobs/dlq?limit=100")
        return sorted(message["value"] for message in found["messages"])

    five.until(lambda: len(dead()) >= len(bad))
    assert dead() == sorted(bad)
    assert five.ask("node-1", "GET", "/groups/fixers/lag")["total"] == 0
    five.ask("node-3", "POST", "/groups/fixers/leave", json={"member_id": consumer.member_id})
    told = five.ask("node-4", "POST", "/groups/fixers/offsets/reset", json={"to": "earliest"})
    assert told["reset_count"] == PARTITIONS, told
    again = Consumer(five, "node-5", "fixers", "jobs")
    again.take_all(set(values))


def handles_of(held: dict[str, Any], values: list[str]) -> list[str]:
    return [held[value]["receipt_handle"] for value in values]


def share_consumer(five: Five, group: str, topic: str) -> ShareConsumer:
    begin_with_the_first(five.kafka, group)
    opened = ShareConsumer(
        {"bootstrap.servers": five.kafka, "group.id": group, "share.acknowledgement.mode": "explicit"}
    )
    opened.subscribe([topic])
    return opened


def test_share_consumers_take_from_all_leaders_what_one_coordinator_leases(five: Five) -> None:
    five.create("shared", 2)
    values = {f"v{number}" for number in range(300)}
    five.publish("node-2", "shared", sorted(values))
    workers = [share_consumer(five, "sharers", "shared") for _ in range(2)]
    done: Counter[str] = Counter()
    released: set[str] = set()
    deadline_s = time.monotonic() + 60
    while not done.keys() >= values:
        assert time.monotonic() < deadline_s, len(done)
        for worker in workers:
            for message in worker.poll(0.2):
                assert message.error() is None, message.error()
                value = (message.value() or b"").decode()
                if len(released) < 20 and value not in released:
                    released.add(value)
                    worker.acknowledge(message, AcknowledgeType.RELEASE)
                else:
                    done[value] += 1
                    worker.acknowledge(message, AcknowledgeType.ACCEPT)
            assert not [error for error in worker.commit_sync(10).values() if error is not None]
    for worker in workers:
        worker.close()
    assert len({*five.leaders("shared"), five.coordinator("sharers")}) > 2
    assert set(done.values()) == {1}
    assert five.ask("node-3", "GET", "/groups/sharers/lag")["total"] == 0
