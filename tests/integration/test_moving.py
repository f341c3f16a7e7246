"""Four real nodes under load: partitions move, a node is emptied, nodes restart in turn; nothing is lost."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from confluent_kafka import ElectionType, TopicPartition
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition as OtherPartition

from tests.integration.running_cluster import RunningCluster, cluster
from tests.integration.test_cluster import PARTITIONS, Clients, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with cluster(tmp_path_factory.mktemp("cluster") / "c", "--nodes=4") as running:
        running.start()
        yield running
        assert running.stop() == 0


@contextmanager
def load(clients: Clients, topic: str) -> Iterator[Callable[[], int]]:
    """Messages are published all the while, each acknowledged by all in sync; tells how many there are."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def go_on() -> None:
        try:
            while not is_over.is_set():
                clients.publish(topic, 20)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield lambda: len(clients.acked)
    finally:
        is_over.set()
        thread.join()
    assert failures == [], "with its retries no client has seen a failure"


def http(running: RunningCluster, node: str = "node-1") -> httpx.Client:
    return httpx.Client(base_url=f"http://{running.doors[node, 'http']}", timeout=60)


def told(response: httpx.Response) -> Any:
    assert response.status_code < 300, response.text
    return response.json()


def replicas(clients: Clients, topic: str) -> dict[int, set[int]]:
    return {number: set(at.replicas) for number, at in clients.metadata(topic).partitions.items()}


def test_a_topic_is_moved_while_it_is_written_to(four: RunningCluster) -> None:
    clients = Clients(four)
    clients.create("moved", 2)
    before = replicas(clients, "moved")
    with load(clients, "moved") as count, http(four) as door:
        wait_until(lambda: count() > 500)
        moves = [
            {
                "topic": "moved",
                "partition": number,
                "new_replicas": [f"node-{n}" for n in {1, 2, 3, 4} - held],
            }
            for number, held in before.items()
        ]
        ordered = told(door.post("/admin/reassignment", json={"partitions": moves}))
        path = f"/admin/reassignment/{ordered['reassignment_id']}"
        wait_until(lambda: told(door.get(path))["state"] == "completed")
        moved_at = count()
        wait_until(lambda: count() > moved_at + 200)
        progress = told(door.get(path))["progress"]
        assert len(progress) == PARTITIONS
        assert {move["catchup_percent"] for move in progress.values()} == {100.0}

    assert replicas(clients, "moved") == {number: {1, 2, 3, 4} - held for number, held in before.items()}
    assert clients.read_all("moved") == clients.acked


def test_a_move_under_way_is_told_and_called_back(four: RunningCluster) -> None:
    clients = Clients(four)
    clients.create("called", 1)
    clients.publish("called", 20)
    big = b"x" * 900_000
    with http(four, "node-2") as door:
        [home] = replicas(clients, "called")[0]
        for _ in range(6):
            clients.publish_bytes("called", 0, big)
        target = f"node-{home % 4 + 1}"
        move = {"topic": "called", "partition": 0, "new_replicas": [target]}
        body = {"partitions": [move], "throttle_bytes_per_sec": 300_000}
        name = told(door.post("/admin/reassignment", json=body))["reassignment_id"]

        def progress() -> Any:
            return told(door.get(f"/admin/reassignment/{name}"))["progress"]["called-0"]

        wait_until(
            lambda: progress()["state"] == "catching_up" and progress().get("bytes_transferred", 0) > 0
        )
        assert 0 <= progress().get("catchup_percent", 0) < 100
        again = door.post("/admin/reassignment", json=body)
        assert (again.status_code, again.json()["code"]) == (409, "reassignment_in_progress")
        told(door.delete(f"/admin/reassignment/{name}"))
        wait_until(lambda: told(door.get(f"/admin/reassignment/{name}"))["state"] == "canceled")

    assert replicas(clients, "called")[0] == {home}


def test_kafkas_own_admin_moves_partitions_and_has_leaders_elected(four: RunningCluster) -> None:
    clients = Clients(four)
    clients.create("byhand", 1)
    clients.publish("byhand", 100)
    admin = KafkaAdminClient(bootstrap_servers=clients.servers.split(","))
    try:
        [home] = replicas(clients, "byhand")[0]
        wanted = [home % 4 + 1, home]
        admin.alter_partition_reassignments({OtherPartition("byhand", 0): wanted})
        wait_until(lambda: not admin.list_partition_reassignments())
        wait_until(lambda: clients.metadata("byhand").partitions[0].replicas == wanted)
    finally:
        admin.close()

    place = TopicPartition("byhand", 0)
    if clients.metadata("byhand").partitions[0].leader != wanted[0]:
        outcome = clients.admin.elect_leaders(ElectionType.PREFERRED, [place]).result(30)
        assert outcome[place] is None, outcome
    wait_until(lambda: clients.metadata("byhand").partitions[0].leader == wanted[0])
    outcome = clients.admin.elect_leaders(ElectionType.PREFERRED, [place]).result(30)
    assert outcome[place].name() == "ELECTION_NOT_NEEDED"
    assert clients.read_all("byhand") == clients.acked


def test_nodes_restart_one_behind_the_other_and_no_publish_fails(four: RunningCluster) -> None:
    clients = Clients(four)
    clients.create("rolling", 3)
    with load(clients, "rolling") as count:
        for name in ("node-1", "node-2", "node-3", "node-4"):
            before = count()
            wait_until(lambda before=before: count() > before + 100)  # type: ignore[misc]
            four.child(name).terminate()
            four.wait_for(f"{name}   ready")
            wait_until(
                lambda: {len(at.isrs) for at in clients.metadata("rolling").partitions.values()} == {3}
            )
    assert clients.read_all("rolling") == clients.acked


def test_a_node_is_emptied_under_load_and_retired(four: RunningCluster) -> None:
    clients = Clients(four)
    clients.create("emptied", 3)
    with load(clients, "emptied") as count, http(four, "node-2") as door:
        wait_until(lambda: count() > 200)
        told(door.post("/admin/decommission/node-4", json={"throttle_bytes_per_sec": -1}))
        path = "/admin/decommission/node-4"
        wait_until(lambda: told(door.get(path))["state"] == "retired")
        assert told(door.get(path))["partitions_left"] == 0
        refused = door.post(
            "/admin/reassignment",
            json={"partitions": [{"topic": "emptied", "partition": 0, "new_replicas": ["node-4"]}]},
        )
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_replica_assignment")
        moved_at = count()
        wait_until(lambda: count() > moved_at + 200)

    for topic in ("emptied", "moved", "rolling"):
        assert not any(4 in held for held in replicas(clients, topic).values())
    assert clients.read_all("emptied") == clients.acked
    four.child("node-4").terminate()
    four.wait_for("was retired from the cluster")
    clients.publish("emptied", 10)


def test_copies_are_placed_by_hand_over_http_or_refused_whole(four: RunningCluster) -> None:
    growing = "/admin/topics/by-hand/partitions"
    wanted = {"0": ["node-2", "node-3"], "1": ["node-3", "node-1"]}
    made: tuple[dict[str, object], ...] = (
        {"num_partitions": 2, "replica_assignments": {"0": ["node-1"]}},
        {"replica_assignments": {"0": ["node-1"], "2": ["node-2"]}},
        {"replica_assignments": {"0": ["node-1", "node-1"]}},
        {"replica_assignments": {"0": ["node-7"]}},
        {"replication_factor": 2, "replica_assignments": {"0": ["node-1"]}},
    )
    with http(four, "node-3") as door:
        for body in made:
            refused = door.post("/topics", json={"name": "by-hand", **body})
            assert (refused.status_code, refused.json()["code"]) == (400, "invalid_replica_assignment"), body
        assert door.get("/topics/by-hand").status_code == 404
        assert (
            door.post("/topics", json={"name": "by-hand", "replica_assignments": wanted}).status_code == 201
        )
        for nodes in ({"6": ["node-1"]}, {"3": ["node-1"]}, {"2": ["node-1"], "3": ["node-9"]}):
            refused = door.post(growing, json={"count": 4, "replica_assignments": nodes})
            assert (refused.status_code, refused.json()["code"]) == (400, "invalid_replica_assignment"), nodes

        more = {"2": ["node-1", "node-2"]}
        told(door.post(growing, json={"count": 3, "replica_assignments": more}))

        placed = told(door.get("/topics/by-hand/partitions"))["partitions"]
        assert {str(one["partition"]): one["replicas"] for one in placed} == {**wanted, **more}
        assert told(door.post(growing, json={"count": 5}))["partitions_added"] == [3, 4]
        assert door.post("/topics", json={"name": "twofold", "replication_factor": 2}).status_code == 201
        placed = told(door.get("/topics/twofold/partitions"))["partitions"]
        assert {len(one["replicas"]) for one in placed} == {2}
