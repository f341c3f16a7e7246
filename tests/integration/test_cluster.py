"""Three real nodes, an etcd and Kafka's own client: what was acknowledged is there, whoever dies."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from goqueue.client import GoQueue
from goqueue.client.log import extents
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.fetch import read_range
from goqueue.spark.source.nearest import with_sources
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import source_options
from tests.integration.running_cluster import RunningCluster, cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
TOPIC = "orders"
PARTITIONS = 6


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(
        tmp_path_factory.mktemp("cluster") / "c", "--nodes=3", "--racks=north,south,east"
    ) as running:
        running.start()
        yield running
        assert running.stop() == 0


class Clients:
    """A producer that remembers what was acknowledged, and readers."""

    def __init__(self, running: RunningCluster, acked: dict[bytes, tuple[int, int]] | None = None) -> None:
        self.servers = ",".join(at for (_, door), at in running.doors.items() if door == "kafka")
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.acked = acked or {}
        self._count = len(self.acked)
        self._producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "acks": "all",
                "enable.idempotence": True,
                "retry.backoff.ms": 50,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )

    def create(self, topic: str, copies: int) -> None:
        # One that has come back may be in sync before it says that it is ready.
        wait_until(lambda: len(self.admin.list_topics(timeout=20).brokers) >= copies)
        for made in self.admin.create_topics([NewTopic(topic, PARTITIONS, copies)]).values():
            made.result(30)
        # Each node hears of it by itself, a moment later.
        for at in self.servers.split(","):
            admin = AdminClient({"bootstrap.servers": at})
            wait_until(lambda admin=admin: topic in admin.list_topics(timeout=20).topics)  # type: ignore[misc]

    def metadata(self, topic: str) -> Any:
        return self.admin.list_topics(topic, timeout=20).topics[topic]

    def publish(self, topic: str, count: int) -> float:
        """Have messages acknowledged by all in sync; how long that took."""
        begun_s = time.monotonic()
        for _ in range(count):
            self._count += 1
            value = f"{topic}-{self._count}"
            self._producer.produce(topic, value.encode(), key=value, on_delivery=self._told)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0
        return time.monotonic() - begun_s

    def publish_bytes(self, topic: str, partition: int, value: bytes) -> None:
        """Have one message acknowledged, of which nobody keeps a note."""
        self._producer.produce(topic, value, partition=partition)
        assert self._producer.flush(60) == 0

    def _told(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert value is not None and partition is not None and offset is not None
        self.acked[value] = (partition, offset)

    def read_all(self, topic: str) -> dict[bytes, tuple[int, int]]:
        """Every message of a topic and its place; a value that is there twice fails."""
        settings = {"bootstrap.servers": self.servers, "group.id": "none", "enable.auto.commit": False}
        consumer = Consumer({**settings, "auto.offset.reset": "error"})
        ends = {}
        for number in range(PARTITIONS):
            _, ends[number] = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        found: dict[bytes, tuple[int, int]] = {}
        deadline_s = time.monotonic() + 60
        while len(found) < sum(ends.values()):
            assert time.monotonic() < deadline_s, f"{len(found)} of {ends}"
            message = consumer.poll(1)
            if message is None:
                continue
            assert message.error() is None, message.error()
            value, partition, offset = message.value(), message.partition(), message.offset()
            assert value is not None and partition is not None and offset is not None
            assert value not in found
            found[value] = (partition, offset)
        consumer.close()
        return found


def leaders(clients: Clients, topic: str) -> set[int]:
    return {partition.leader for partition in clients.metadata(topic).partitions.values()}


def in_sync(clients: Clients, topic: str) -> set[int]:
    return {len(partition.isrs) for partition in clients.metadata(topic).partitions.values()}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def wait_until_in_sync(clients: Clients, topic: str, copies: int) -> None:
    wait_until(lambda: in_sync(clients, topic) == {copies})


def test_clients_see_all_nodes_and_partitions_spread_over_them(three: RunningCluster) -> None:
    clients = Clients(three)
    seen = clients.admin.list_topics(timeout=20)
    assert set(seen.brokers) == {1, 2, 3}
    assert seen.controller_id in {1, 2, 3}
    clients.create("spread", 3)
    assert leaders(clients, "spread") == {1, 2, 3}
    assert in_sync(clients, "spread") == {3}
    clients.publish("spread", 200)
    assert clients.read_all("spread") == clients.acked


def test_every_node_tells_how_the_cluster_is(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create("told", 3)

    def answers(path: str) -> list[Any]:
        doors = [at for (_, door), at in three.doors.items() if door == "http"]
        return [httpx.get(f"http://{at}/cluster/{path}", timeout=20).json() for at in doors]

    states = answers("state")
    assert {state["node_id"] for state in states} == {"node-1", "node-2", "node-3"}
    assert len({(state["cluster_id"], state["controller_id"]) for state in states}) == 1
    for state in states:
        assert [(node["id"], node["status"]) for node in state["nodes"]] == [
            ("node-1", "ready"),
            ("node-2", "ready"),
            ("node-3", "ready"),
        ]
        assert sum(node["leads"] for node in state["nodes"]) == state["partitions"]
        assert sum(node["is_controller"] for node in state["nodes"]) == 1
    with GoQueue(next(at for (_, door), at in three.doors.items() if door == "http")) as queue:
        assert [node.id for node in queue.admin.cluster_state().nodes] == ["node-1", "node-2", "node-3"]
        assert queue.admin.cluster_health().healthy_nodes == 3
    healths = answers("health")
    assert {health["status"] for health in healths} == {"healthy"}
    assert sorted(health["role"] for health in healths) == ["controller", "member", "member"]


def test_a_topic_with_one_copy_is_served_by_the_node_that_has_it(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create("single", 1)
    assert in_sync(clients, "single") == {1}
    clients.publish("single", 200)
    assert clients.read_all("single") == clients.acked
    for gone in clients.admin.delete_topics(["single"]).values():
        gone.result(30)
    assert "single" not in clients.admin.list_topics(timeout=20).topics


def test_a_reader_is_served_by_the_copy_in_its_rack_and_by_the_leader_when_that_is_gone(
    three: RunningCluster,
) -> None:
    clients = Clients(three)
    clients.create("near", copies=3)
    wait_until_in_sync(clients, "near", 3)
    wait_until(lambda: leaders(clients, "near") == {1, 2, 3})
    read_at: dict[int, int] = {}

    def note(statistics: str) -> None:
        partitions = json.loads(statistics)["topics"].get("near", {"partitions": {}})["partitions"]
        read_at.update({int(number): told["broker"] for number, told in partitions.items() if number != "-1"})

    consumer = Consumer(
        {
            "bootstrap.servers": clients.servers,
            "group.id": "near",
            "client.rack": "south",
            "statistics.interval.ms": 200,
            "stats_cb": note,
        }
    )
    consumer.assign([TopicPartition("near", number, 0) for number in range(PARTITIONS)])
    found: set[bytes | None] = set()

    def has_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            assert message.value() not in found
            found.add(message.value())
        return len(found) == len(clients.acked)

    clients.publish("near", 60)
    wait_until(has_all)
    wait_until(lambda: not consumer.poll(0.2) and read_at == dict.fromkeys(range(PARTITIONS), 2))
    clients.publish("near", 60)  # what comes while it reads there
    wait_until(has_all)

    three.child("node-2").kill()
    clients.publish("near", 60)
    wait_until(has_all)
    consumer.close()
    wait_until_in_sync(clients, "near", 3)


def is_served_at(url: str) -> bool:
    """Whether the node asked has answered by itself."""
    return "goqueue-leader" not in httpx.get(url, params={"rack": "south"}).headers


def test_frames_come_from_the_copy_in_the_readers_rack_and_from_others_when_that_is_gone(
    three: RunningCluster,
) -> None:
    clients = Clients(three)
    clients.create("near-frames", copies=3)
    wait_until_in_sync(clients, "near-frames", 3)
    wait_until(lambda: leaders(clients, "near-frames") == {1, 2, 3})
    clients.publish("near-frames", 60)
    given = {"bootstrap": ",".join(three.http), "topic": "near-frames", "kafka.client.rack": "south"}
    options = source_options(given, is_streaming=False)
    client = options.connect()
    ends = extents(client, options.which)["near-frames"]
    ranges = [OffsetRange("near-frames", int(number), 0, extent.end, 0) for number, extent in ends.items()]

    ranges = with_sources(client, ranges, rack=options.rack)

    south = three.doors["node-2", "http"]
    assert {wanted.source for wanted in ranges} == {south}
    for number in range(PARTITIONS):
        wait_until(partial(is_served_at, f"http://{south}/topics/near-frames/partitions/{number}/frames"))
    columns = Columns(pa.schema([("value", pa.binary())]))

    def rows() -> list[bytes]:
        batches = [batch for wanted in ranges for batch in read_range(options, columns, wanted)]
        return sorted(value for batch in batches for value in batch.column(0).to_pylist())

    assert rows() == sorted(clients.acked)
    three.child("node-2").kill()
    assert rows() == sorted(clients.acked)
    client.close()
    wait_until_in_sync(clients, "near-frames", 3)


def test_a_node_that_is_killed_takes_nothing_with_it_and_comes_back(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create(TOPIC, 3)
    clients.publish(TOPIC, 300)
    for name, number in (("node-1", 1), ("node-2", 2), ("node-3", 3)):
        three.child(name).kill()
        took_s = clients.publish(TOPIC, 300)
        assert took_s < 30, "others lead"
        three.wait_for(f"{name}   ready")
        wait_until_in_sync(clients, TOPIC, 3)
        assert number in {node for at in clients.metadata(TOPIC).partitions.values() for node in at.isrs}
    assert clients.read_all(TOPIC) == clients.acked


def test_a_node_that_stops_in_order_hands_over_first(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create("handed", 3)
    clients.publish("handed", 100)
    three.child("node-2").terminate()
    clients.publish("handed", 300)
    three.wait_for("node-2   ready")
    wait_until_in_sync(clients, "handed", 3)
    assert clients.read_all("handed") == clients.acked


def test_messages_go_on_while_etcd_is_away(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create("without", 3)
    clients.publish("without", 10)
    etcd: psutil.Process = three.child("etcd")
    etcd.suspend()
    try:
        assert clients.publish("without", 300) < 10
        assert clients.read_all("without") == clients.acked
    finally:
        etcd.resume()
    clients.create("behind", 3)
    clients.publish("behind", 10)


def test_a_group_goes_on_over_the_deaths_of_its_coordinators(three: RunningCluster) -> None:
    clients = Clients(three)
    clients.create("grouped", 3)
    settings = {"bootstrap.servers": clients.servers, "group.id": "readers", "session.timeout.ms": 10_000}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["grouped"])
    seen: list[bytes] = []
    for node in ("node-1", "node-2"):
        clients.publish("grouped", 100)
        three.child(node).kill()
        clients.publish("grouped", 100)
        wanted = {value for value in clients.acked if value.startswith(b"grouped-")}

        def has_all(wanted: set[bytes] = wanted) -> bool:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                seen.append(message.value() or b"")
            return wanted <= set(seen)

        wait_until(has_all)
        consumer.commit(asynchronous=False)
        three.wait_for(f"{node}   ready")
    consumer.close()

    assert len(seen) == len(set(seen)) == 400, "what was committed is not delivered again"
    late = Consumer({**settings, "enable.auto.commit": False})
    places = [TopicPartition("grouped", number) for number in range(PARTITIONS)]
    committed = {place.partition: place.offset for place in late.committed(places, timeout=30)}
    ends = {
        place.partition: late.get_watermark_offsets(place, timeout=30)[1]
        for place in places
        if committed[place.partition] >= 0
    }
    late.close()
    assert ends == {number: offset for number, offset in committed.items() if offset >= 0}
    assert sum(ends.values()) == 400


def test_a_node_whose_folder_was_emptied_gets_everything_again(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", "--nodes=3") as running:
        running.start()
        clients = Clients(running)
        clients.create(TOPIC, 3)
        clients.publish(TOPIC, 300)
        assert running.stop() == 0
        shutil.rmtree(tmp_path / "c/node-2")
        running.start()
        clients = Clients(running, clients.acked)
        wait_until_in_sync(clients, TOPIC, 3)
        clients.publish(TOPIC, 100)
        assert clients.read_all(TOPIC) == clients.acked
        assert running.stop() == 0
    logs = {
        node: {path.name: path.read_bytes() for path in (tmp_path / f"c/{node}/logs/{TOPIC}/0").glob("*.log")}
        for node in ("node-1", "node-2", "node-3")
    }
    assert logs["node-2"] == logs["node-1"] == logs["node-3"] != {}


def test_any_node_serves_the_queue_of_any_group_and_a_group_outlives_its_coordinator(
    three: RunningCluster,
) -> None:
    clients = Clients(three)
    clients.create("jobs", 3)
    doors = {node: f"http://{at}" for (node, door), at in three.doors.items() if door == "http"}
    done: set[str] = set()
    with httpx.Client(timeout=30) as http:

        def ask(node: str, method: str, path: str, **request: Any) -> Any:
            """As clients do: what a node that died may have done is asked for again."""
            replies: list[httpx.Response] = []

            def is_answered() -> bool:
                replies.append(http.request(method, f"{doors[node]}{path}", **request))
                return replies[-1].status_code != httpx.codes.SERVICE_UNAVAILABLE

            wait_until(is_answered)
            return replies[-1].json()

        def join(node: str) -> str:
            joining = {"client_id": "ann", "topics": ["jobs"], "mode": "shared"}
            return str(ask(node, "POST", "/groups/workers/join", json=joining)["member_id"])

        who = join("node-1")
        for node in ("node-1", "node-2", "node-3"):
            others = [name for name in doors if name != node]
            values = [f"{node}-{number}" for number in range(30)]
            messages = [{"value": value, "key": value} for value in values]
            ask(node, "POST", "/topics/jobs/messages", json={"messages": messages})
            three.child(node).kill()
            while not done >= set(values):
                path = f"/groups/workers/poll?member_id={who}&limit=7&timeout=1s"
                reply = ask(others[len(done) % 2], "GET", path)
                if reply.get("code") == "unknown_member":
                    who = join(others[0])  # its session may have ended meanwhile
                polled = reply.get("messages", [])
                handles = [message["receipt_handle"] for message in polled]
                if handles:
                    body = {"receipt_handles": handles}
                    told = ask(others[0], "POST", "/messages/ack", json=body)
                    assert all(result["success"] for result in told["results"]), told
                    assert done.isdisjoint(message["value"] for message in polled), "acked and came again"
                    done |= {message["value"] for message in polled}
            three.wait_for(f"{node}   ready")
        lag = ask("node-2", "GET", "/groups/workers/lag")
        assert lag["total"] == 0
