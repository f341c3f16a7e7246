"""A data folder that has lost its logs as a whole is no new one: the start refuses, and tells why."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.repair import repair
from goqueue.broker.topics.verbs import list_topics
from goqueue.model.errors import JournalDamaged
from goqueue.model.topics import ListTopics
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.main import run
from goqueue.node.repair import main
from tests.unit.broker.queue.queue_steps import ack, join, orders, put, take
from tests.unit.broker.running import running


async def fill(root: Path, killed: Path | None = None) -> None:
    async with running(FolderDisk(root)) as broker:
        await orders(broker)
        for number in range(10):
            await put(broker, str(number))
        await ack(broker, await take(broker, await join(broker), 5))
        if killed is not None:
            for partition in broker.all_partitions():  # so that the commit log no longer has all of them
                await partition.save_recovery_point()
            await put(broker, "last")
            shutil.copytree(root, killed)


async def start(root: Path) -> Broker:
    async with running(FolderDisk(root)) as broker:
        return broker


@pytest.fixture(params=["stopped", "killed"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder that a broker has worked on."""
    if request.param == "stopped":
        asyncio.run(fill(tmp_path / "data"))
        return tmp_path / "data"
    asyncio.run(fill(tmp_path / "data", tmp_path / "killed"))
    return tmp_path / "killed"


def empty(logs: Path) -> None:
    shutil.rmtree(logs)
    logs.mkdir()


def unlink_files(logs: Path) -> None:
    for path in logs.rglob("*"):
        if path.is_file():
            path.unlink()


@pytest.mark.parametrize("lose", [shutil.rmtree, empty, unlink_files])
def test_a_folder_without_its_logs_does_not_start_however_often_it_is_tried(data: Path, lose: object) -> None:
    assert callable(lose)
    lose(data / "logs")

    for _ in range(3):
        with pytest.raises(JournalDamaged, match="is damaged: "):
            asyncio.run(start(data))


def test_the_refusal_tells_what_shows_it_and_what_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    asyncio.run(fill(data))
    shutil.rmtree(data / "logs")

    assert run(["--data-dir", str(data)], {}) == 1

    told = capsys.readouterr().err
    assert "logs/ is gone, or holds nothing, and commit/spare shows that a broker has worked" in told
    assert "put logs/ back, or begin anew in an empty folder" in told
    assert f"goqueue-admin repair {data}" in told


def test_repair_tells_that_the_metadata_is_gone_and_begins_anew_on_an_operators_word(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(data / "logs")

    assert main([str(data)]) == 1
    found = msgspec.json.decode(capsys.readouterr().out)
    assert "__metadata/0" in [each["partition"] for each in found["damaged"]]
    assert not (data / "logs").exists(), "looking changes nothing"

    applied = repair(FolderDisk(data), SystemClock(), is_applied=True, kept_in=None)
    assert all(each.is_repaired for each in applied.damaged if each.is_journal)
    broker = asyncio.run(start(data))
    assert broker.is_closed
    assert asyncio.run(start(data)).cluster_id == broker.cluster_id


def test_a_folder_that_is_put_back_starts_as_before(data: Path, tmp_path: Path) -> None:
    (data / "logs").rename(tmp_path / "kept")
    with pytest.raises(JournalDamaged):
        asyncio.run(start(data))
    shutil.rmtree(data / "logs", ignore_errors=True)
    (tmp_path / "kept").rename(data / "logs")

    async def look() -> list[str]:
        async with running(FolderDisk(data)) as broker:
            return [topic.name for topic in await list_topics(broker, ListTopics())]

    assert asyncio.run(look()) == ["orders"]


def test_a_folder_that_nobody_has_worked_on_starts(tmp_path: Path) -> None:
    for name in ("logs", "commit", "delays", "stages", "backups/2026-01-01-000000", "lost+found"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "backups/2026-01-01-000000/metadata.json").write_bytes(b"{}")
    (tmp_path / "commit/.DS_Store").write_bytes(b"x")
    for name in ("goqueue.lock", "goqueue.pid", "reserve", "notes.txt"):
        (tmp_path / name).write_bytes(b"x")

    assert main([str(tmp_path)]) == 3
    assert asyncio.run(start(tmp_path)).is_closed
