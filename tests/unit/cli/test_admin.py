"""`goqueue-admin`: its options, and the backups it makes and brings back."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from goqueue.cli.admin import app
from goqueue.cli.operators import call as admin_call
from goqueue.cli.parts.calling import queue_at
from goqueue.cli.parts.contexts import Target
from goqueue.client import GoQueue
from tests.doors.http.running_door import RunningDoor

runner = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker of the user's is spoken to, and files are written to a folder of the test's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOQUEUE_ADMIN_API_KEY", raising=False)
    monkeypatch.setenv("GOQUEUE_ADMIN_SERVER", "http://127.0.0.1:1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningDoor]:
    """A broker with one topic, which is the one that is meant."""
    with RunningDoor(tmp_path / "data") as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 2}).raise_for_status()
        monkeypatch.setenv("GOQUEUE_ADMIN_SERVER", running.url)
        yield running


def printed(*arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(code: int, *arguments: str) -> str:
    result = runner.invoke(app, arguments)
    assert result.exit_code == code, result.stdout + result.stderr
    return result.stderr


def made(*flags: str) -> str:
    """The id of a new backup."""
    backup_id: str = json.loads(printed("backup", "create", *flags, "-o", "json"))["backup_id"]
    return backup_id


def test_a_backup_is_made_and_told_in_one_line(broker: RunningDoor) -> None:
    assert "holds 1 topic, 0 groups and 0 schemas" in printed("backup", "create")
    told = printed("backup", "create", "--no-topics")
    assert told.startswith("✓ backup ")
    assert "holds 0 topics" in told


def test_backups_are_listed_in_three_forms(broker: RunningDoor) -> None:
    assert printed("backup", "list") == "there is no backup\n"
    backup_id = made()

    assert printed("backup", "list").splitlines()[0].split() == [
        "BACKUP",
        "ID",
        "TIMESTAMP",
        "TOPICS",
        "GROUPS",
        "SCHEMAS",
    ]
    [row] = json.loads(printed("backup", "list", "-o", "json"))
    assert (row["backup_id"], row["topics"]) == (backup_id, 1)
    assert yaml.safe_load(printed("-o", "yaml", "backup", "list"))[0]["backup_id"] == backup_id


def test_a_backup_is_shown_with_what_it_holds(broker: RunningDoor) -> None:
    backup_id = made()

    shown = printed("backup", "get", backup_id)

    lines = shown.splitlines()
    assert lines[0].split() == ["Backup", "ID:", backup_id]
    assert lines[6].split() == ["Partitions:", "2"]
    assert lines[-1].split() == ["orders", "2"]
    assert json.loads(printed("backup", "get", backup_id, "-o", "json"))["topics"] == [
        {"name": "orders", "num_partitions": 2}
    ]


def test_a_backup_goes_to_another_broker_through_a_file(
    broker: RunningDoor, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    backup_id = made()
    assert f"{backup_id}.json" in printed("backup", "download", backup_id)
    with RunningDoor(tmp_path_factory.mktemp("other")) as other:
        there = ("--server", other.url)
        assert backup_id in printed("backup", "upload", f"{backup_id}.json", *there)

        told = printed("backup", "restore", backup_id, *there)

        assert told == (
            f"✓ backup {backup_id}: 1 topic, 0 groups, 0 schemas and 0 tenants restored, 0 skipped\n"
        )
        assert other.client.get("/topics").json() == {"topics": ["orders"]}
        again = json.loads(printed("backup", "restore", backup_id, "-o", "json", *there))
        assert (again["topics_restored"], again["skipped"]) == (0, ["topic orders is here already"])
    assert "File exists" in refused(1, "backup", "download", backup_id)
    (tmp_path / "backup.json").write_bytes(b"{}")
    assert "--id" in refused(2, "backup", "upload", "backup.json")


def test_what_is_in_the_way_of_a_restore_is_told_once(broker: RunningDoor) -> None:
    backup_id = made()
    broker.client.delete("/topics/orders").raise_for_status()
    broker.client.post("/topics", json={"name": "orders"}).raise_for_status()

    told = refused(1, "backup", "restore", backup_id)

    assert told.count("topic orders is another one here") == 1
    assert told.startswith("Error: backup")
    assert "  skipped: topic orders is another one here" in printed(
        "backup", "restore", backup_id, "--skip-existing"
    )


def test_a_deleted_backup_is_gone_and_not_found(broker: RunningDoor) -> None:
    backup_id = made()

    assert printed("backup", "delete", backup_id) == f"✓ backup {backup_id} is deleted\n"

    for command in ("get", "delete", "restore", "download"):
        told = refused(3, "backup", command, backup_id)
        assert told.count("there is no backup") == 1


def test_a_broker_that_is_not_there_is_told_with_what_to_do() -> None:
    told = refused(4, "backup", "list")

    assert "no node answers at 127.0.0.1:1" in told
    assert "--server" in told


def test_a_wrong_command_line_is_told_apart() -> None:
    refused(2, "backup", "create", "--upload")
    refused(2, "backup", "restore")


def test_the_key_and_the_server_are_flags_or_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOQUEUE_ADMIN_API_KEY", "of the shell")
    asked: list[Target] = []

    def note(where: Target) -> GoQueue:
        asked.append(where)
        return queue_at(where)

    monkeypatch.setattr(admin_call, "queue_at", note)

    refused(4, "backup", "list")
    refused(4, "backup", "list", "-s", "127.0.0.1:2", "--api-key", "of the line", "--timeout", "5")

    assert asked == [
        Target("http://127.0.0.1:1", 30, "of the shell"),
        Target("127.0.0.1:2", 5, "of the line"),
    ]


def test_the_version_is_printed_without_a_broker() -> None:
    told = json.loads(printed("version", "-o", "json"))

    assert told["version"].startswith("0.")
    assert told["runtime"].startswith("python3.")


def test_the_health_of_a_broker_is_told_check_by_check(broker: RunningDoor) -> None:
    told = printed("health")

    assert told.splitlines()[0].split() == ["CHECK", "STATUS", "LATENCY", "MESSAGE"]
    assert "pass" in told.splitlines()[-1]
    assert json.loads(printed("health", "-o", "json"))["status"] == "pass"


def test_a_broker_that_is_not_there_is_not_healthy() -> None:
    assert "no node answers" in refused(1, "health")


def test_the_status_of_a_cluster_is_that_of_its_one_node(
    broker: RunningDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A name that only `goqueue-cli` knows: this tool has no contexts.
    monkeypatch.setenv("GOQUEUE_CONTEXT", "nowhere")

    status = json.loads(printed("cluster", "status", "-o", "json"))

    assert (status["node_id"], status["topics"], status["nodes"]) == ("node-1", 1, 1)
    assert printed("cluster", "status").startswith("Node ID:")


def test_every_command_that_people_were_promised_is_there() -> None:
    promised = {
        "backup": {"create", "list", "get", "delete", "restore"},
        "tenant": {"create", "list", "get", "update", "delete", "suspend", "activate", "disable"},
        "quota": {"get", "set"},
        "usage": {"show", "stats", "topics", "groups", "reset"},
        "cluster": {"status"},
    }

    for noun, verbs in promised.items():
        told = printed(noun, "--help")
        missing = {verb for verb in verbs if f" {verb} " not in told}
        assert not missing, f"goqueue-admin {noun} lacks {missing}"
