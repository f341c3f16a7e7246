"""`goqueue up`: nodes and etcd as children of one command."""

import signal
import socket
from pathlib import Path

import psutil
import pytest

from tests.integration.running_broker import goqueue
from tests.integration.running_cluster import cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_what_dies_is_started_again_and_a_signal_ends_it_all(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", "--nodes=2") as running:
        running.start()
        assert {door for _, door in running.doors} == {"kafka", "http", "peer"}
        for address in running.doors.values():
            host, _, port = address.partition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        running.child("node-1").kill()
        running.wait_for("node-1   ended with code -9; started again")
        running.wait_for("node-1   ready")
        running.child("etcd").kill()
        running.wait_for("etcd     ended with code -9; started again")
        children = running.children()
        assert len(children) >= 2
        assert running.stop() == 0
        _, alive = psutil.wait_procs(children, timeout=10)
        assert not alive
        running.start()
        assert running.stop(signal.SIGINT) == 0


def test_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with cluster(tmp_path / "c", "--nodes=1") as running:
        running.start()
        children = running.children()
        running.process.kill()
        _, alive = psutil.wait_procs(children, timeout=30)
        assert not alive


def test_a_node_that_cannot_start_stops_it_all_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "c/node-2").mkdir(parents=True)
    (tmp_path / "c/node-2/node.json").write_text('{"cluster_id":"x","node_id":"node-9","folder_id":"f"}')
    with cluster(tmp_path / "c", "--nodes=2") as running:
        running.launch()
        running.wait_for("node-2   goqueue: the data folder is that of node node-9, not of node-2")
        assert running.process.wait(60) == 1


def test_a_node_of_a_cluster_whose_etcd_is_away_says_so_and_makes_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    ended = goqueue(
        f"--data-dir={tmp_path / 'd'}",
        "--cluster-enabled=true",
        f"--cluster-etcd={address}",
        "--listeners-kafka=127.0.0.1:0",
        "--listeners-http=127.0.0.1:0",
    )
    assert ended.returncode == 1
    assert address in ended.stderr
    assert "start etcd, or name its members with GOQUEUE_CLUSTER_ETCD" in ended.stderr
    assert {path.name for path in (tmp_path / "d").iterdir()} == {"goqueue.lock"}
