"""The command that looks through a data folder: what it prints, how it ends, and when it refuses."""

import asyncio
import shutil
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from goqueue.broker.broker import Broker
from goqueue.broker.health.repair import repair
from goqueue.cli.admin import app
from goqueue.model.errors import CommitLogDamaged
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.lock import FolderLock
from goqueue.node.main import run
from goqueue.node.repair import main
from goqueue.records.frame import FRAME_BYTES
from tests.unit.broker.queue.queue_steps import ack, join, orders, put, take, values
from tests.unit.broker.running import ORDERS_0, running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"

    async def fill() -> None:
        async with running(FolderDisk(root)) as broker:
            await orders(broker)
            for number in range(10):
                await put(broker, str(number))
            await ack(broker, await take(broker, await join(broker), 5))

    asyncio.run(fill())
    return root


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def segment(data: Path) -> Path:
    return data / "logs/orders/0/00000000000000000000.log"


def test_a_folder_that_is_well_ends_with_0(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(data)]) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["damaged"], told["partitions_looked_at"]) == ([], 6)


def test_damage_ends_with_1_until_it_is_repaired(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = segment(data)
    size = path.stat().st_size // 10
    flip(path, size * 4 + size // 2)

    assert main([str(data)]) == 1
    [told] = msgspec.json.decode(capsys.readouterr().out)["damaged"]
    assert (told["partition"], told["lost"], told["is_repaired"]) == ("orders/0", [[4, 5]], False)
    assert told["bad_bytes"] == size

    assert main([str(data), "--apply"]) == 0
    assert main([str(data)]) == 0
    names = sorted(each.name for each in path.parent.glob("*.log"))
    assert names == ["00000000000000000000.log", "00000000000000000005.log"]
    [kept] = (data / "repair").glob(f"*/logs/orders/0/{path.name}")
    assert kept.stat().st_size == size * 10


def test_a_repair_that_was_interrupted_is_gone_on_with(data: Path) -> None:
    path = segment(data)
    size = path.stat().st_size // 10
    whole = path.read_bytes()
    for first, end in ((0, 4), (5, 10)):
        name = f"{first:020d}.log.salvaged-{0:020d}"
        (path.parent / name).write_bytes(whole[size * first : size * end])
    flip(path, size * 4 + size // 2)

    repair(FolderDisk(data), SystemClock(), is_applied=True, kept_in="repair/now")
    # The second time it had come so far that the old segment was out of its place.
    (path.parent / f"{5:020d}.log").rename(path.parent / f"{5:020d}.log.salvaged-{0:020d}")
    path.rename(path.parent / f"{0:020d}.log.salvaged-{0:020d}")
    repair(FolderDisk(data), SystemClock(), is_applied=True, kept_in=None)

    async def look() -> list[tuple[int, int]]:
        async with running(FolderDisk(data)) as broker:
            return broker.partition(ORDERS_0).log.gaps

    assert asyncio.run(look()) == [(4, 5)]


def test_a_partition_without_anything_is_left_to_the_broker(data: Path) -> None:
    shutil.rmtree(data / "logs/orders")

    found = repair(FolderDisk(data), SystemClock(), is_applied=True, kept_in=None)

    assert [(each.partition, each.is_repaired) for each in found.damaged] == [("orders/0", False)]


@pytest.mark.parametrize("journal", ["__metadata", "__consumer_offsets", "__schemas"])
def test_journals_that_are_gone_begin_anew_on_the_word_of_an_operator(data: Path, journal: str) -> None:
    shutil.rmtree(data / "logs" / journal)

    found = repair(FolderDisk(data), SystemClock(), is_applied=True, kept_in=None)

    assert found.is_well
    assert {each.partition.partition("/")[0] for each in found.damaged} == {journal}
    assert found.unknown_topics == (["orders"] if journal == "__metadata" else [])

    async def look() -> Broker:
        async with running(FolderDisk(data)) as broker:
            return broker

    assert asyncio.run(look()).is_closed


def test_a_folder_that_a_broker_works_on_is_left_alone(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FolderLock(data):
        assert main([str(data), "--apply"]) == 1
    assert "is in use" in capsys.readouterr().err


def test_a_start_that_is_refused_says_which_command_helps(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [path] = (data / "logs/__metadata/0").glob("*.log")
    flip(path, FRAME_BYTES + 40)  # in the first batch

    code = run(["--data-dir", str(data)], {})

    assert code == 1
    assert f"goqueue-admin repair {data}" in capsys.readouterr().err


@pytest.mark.slow
def test_people_get_a_table_and_programs_json(data: Path) -> None:
    flip(segment(data), 40)
    runner = CliRunner()

    shown = runner.invoke(app, ["repair", str(data)])
    assert shown.exit_code == 1
    assert "orders/0" in shown.output
    assert "nothing was changed; repair with --apply" in shown.output

    told = runner.invoke(app, ["-o", "json", "repair", str(data), "--apply"])
    assert told.exit_code == 0
    assert msgspec.json.decode(told.output)["damaged"][0]["lost"] == [[0, 1]]
    assert runner.invoke(app, ["repair", str(data)]).output.endswith(
        "6 partitions looked at: nothing is lost\n"
    )
    assert runner.invoke(app, ["repair", str(data / "nowhere")]).exit_code != 0


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """What a broker leaves that is killed at its work."""
    root, copy = tmp_path / "data", tmp_path / "killed"

    async def fill() -> None:
        async with running(FolderDisk(root)) as broker:
            await orders(broker)
            for number in range(10):
                await put(broker, str(number))
            shutil.copytree(root, copy)

    asyncio.run(fill())
    return copy


def values_after_start(data: Path) -> list[str]:
    async def look() -> list[str]:
        async with running(FolderDisk(data)) as broker:
            consumer = await join(broker)
            return values(await take(broker, consumer, 100))

    return asyncio.run(look())


ALL_VALUES = [str(number) for number in range(10)]


def test_what_was_killed_needs_no_repair(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(killed)]) == 0
    assert not msgspec.json.decode(capsys.readouterr().out)["commit_log"]
    assert values_after_start(killed) == ALL_VALUES


def test_what_only_the_commit_log_has_is_put_back_by_a_start_and_by_a_repair(killed: Path) -> None:
    path = segment(killed)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    assert main([str(killed), "--apply"]) == 0
    assert values_after_start(killed) == ALL_VALUES


def test_a_commit_log_that_has_lost_a_round_stops_the_start_until_it_is_repaired(
    killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flip(killed / "commit" / f"{1:020d}", 100)
    with pytest.raises(CommitLogDamaged, match="is missing in commit/"):
        values_after_start(killed)

    assert main([str(killed)]) == 1
    assert "is missing" in msgspec.json.decode(capsys.readouterr().out)["commit_log"]
    shown = CliRunner().invoke(app, ["repair", str(killed)])
    assert (shown.exit_code, "the commit log is damaged" in shown.output) == (1, True)
    assert main([str(killed), "--apply"]) == 0
    assert len(list((killed / "repair").glob("*/commit/*"))) == 1
    assert main([str(killed)]) == 0
    assert values_after_start(killed) == ALL_VALUES


def test_a_commit_log_that_was_removed_stops_the_start_until_it_is_repaired(killed: Path) -> None:
    shutil.rmtree(killed / "commit")
    with pytest.raises(CommitLogDamaged, match="the folder was removed"):
        values_after_start(killed)

    assert main([str(killed)]) == 1
    assert main([str(killed), "--apply"]) == 0
    assert values_after_start(killed) == ALL_VALUES
