"""`goqueue-cli health`, `cluster` and `version`."""

import pytest

from goqueue import __version__
from goqueue.cli.broker.cluster import Info, NodeRow, Versions
from goqueue.cli.parts.exit_codes import ExitCode
from goqueue.client.calls.admin import Readiness
from goqueue.wire.cluster import ClusterState, PartitionInfo
from tests.doors.http.running_door import RunningDoor
from tests.unit.cli.command_line import CommandLine

NOBODY = CommandLine("http://127.0.0.1:1")
"""Port 1 of the loopback: nobody listens there."""


@pytest.mark.parametrize("words", [("health",), ("cluster", "health")])
def test_a_broker_that_works_is_healthy_check_by_check(cli: CommandLine, words: tuple[str, ...]) -> None:
    lines = cli.printed(*words).splitlines()
    told = cli.told(Readiness, *words)

    assert lines[0].split() == ["CHECK", "STATUS", "LATENCY", "MESSAGE"]
    assert {line.split()[0] for line in lines[1:-2]} == set(told.checks)
    assert lines[-1].startswith("pass, up for ")
    assert told.checks["broker"].status == "pass"


def test_a_broker_that_is_stopping_is_not_healthy(
    cli: CommandLine, door: RunningDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door.broker, "is_open", False)

    table = cli.ends(ExitCode.FAILED, "health")
    yaml = cli.ends(ExitCode.FAILED, "health", "-o", "yaml")

    assert "fail: " in table.stdout
    assert "status: fail" in yaml.stdout


def test_a_broker_that_does_not_answer_is_not_healthy_either() -> None:
    told = NOBODY.ends(ExitCode.FAILED, "health")

    assert told.stderr.startswith("Error: no node answers at 127.0.0.1:1")
    assert "--server" in told.stderr


def test_the_cluster_is_shown_as_the_one_node_it_is(cli: CommandLine) -> None:
    info = cli.told(Info, "cluster", "info")
    [node] = cli.told_alike(list[NodeRow], "cluster", "nodes")

    assert (info.version, info.nodes, info.controller) == (__version__, 1, info.node_id)
    assert cli.printed("cluster", "info").startswith(f"Node ID:    {info.node_id}\n")
    assert (node.id, node.client_address, node.status) == (
        info.node_id,
        cli.url.removeprefix("http://"),
        "ready",
    )
    assert cli.rows("cluster", "nodes")[1] == [node.id, node.client_address, "-", "ready", "yes"]


def test_the_state_of_the_cluster_is_told_in_a_line(cli: CommandLine) -> None:
    told = cli.told(ClusterState, "cluster", "state")
    lines = cli.printed("cluster", "state").splitlines()

    assert lines[1].split()[:3] == [told.node_id, "ready", "yes"]
    assert lines[-1].startswith("healthy: ")
    assert lines[-1].endswith(f"0 without a leader, 0 that lack copies; {told.node_id} decides")


def test_a_partition_is_shown_with_its_leader_and_its_copies(cli: CommandLine) -> None:
    cli.printed("topic", "create", "shown", "-p", "2")

    told = cli.told(PartitionInfo, "cluster", "partition", "shown", "1")

    assert told.local_replica is not None
    assert (told.partition, told.local_replica.role) == (1, "leader")
    assert "leader, epoch 1, written up to 0, safe up to 0" in cli.printed(
        "cluster", "partition", "shown", "1"
    )
    assert "no partition 7" in cli.ends(ExitCode.NOT_FOUND, "cluster", "partition", "shown", "7").stderr


def test_versions_are_told_with_and_without_a_broker(cli: CommandLine) -> None:
    assert cli.printed("version") == f"Client Version: {__version__}\nServer Version: {__version__}\n"
    assert cli.told_alike(Versions, "version") == Versions(__version__, __version__)
    assert NOBODY.told(Versions, "version") == Versions(__version__, None)
    assert "Server Version: none (no node answers" in NOBODY.printed("version")
