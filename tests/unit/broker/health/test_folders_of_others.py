"""A partition's folder says whose it is: another topic's is never taken for its own."""

import asyncio
import logging
import shutil
import tarfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.damage import accept_loss
from goqueue.broker.health.repair import Repair, repair
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic, delete_topic, describe_topic
from goqueue.broker.write.publish import publish
from goqueue.log.snapshot import load_snapshots, owner_of
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.errors import JournalDamaged, PartitionDamaged, TopicNotFound
from goqueue.model.messages import Message
from goqueue.model.topics import AcceptLoss, CreateTopic, DeleteTopic, DescribeTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from tests.unit.broker.lives import Lives, PowerLost
from tests.unit.broker.running import ORDERS, ORDERS_0, running
from tests.unit.broker.topics.test_epochs import EARLIER

T = TypeVar("T")
FOLDER = "logs/orders/0"


def live(root: Path, work: Callable[[Broker], Awaitable[T]]) -> T:
    async def walk() -> T:
        async with running(FolderDisk(root)) as broker:
            return await work(broker)

    return asyncio.run(walk())


async def put(broker: Broker, *values: bytes) -> object:
    messages = [Message(value, partition=0) for value in values]
    return (await publish(broker, Publish(topic=ORDERS, messages=messages)))[0]


async def read(broker: Broker) -> list[bytes | None]:
    found = await read_messages(broker, ReadMessages(source=ORDERS_0, limit=100))
    return [message.value for message in found.messages]


async def work(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    await put(broker, b"old", b"old")


async def begin_anew(broker: Broker) -> None:
    await delete_topic(broker, DeleteTopic(name=ORDERS))
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    await put(broker, b"new")


async def damage(broker: Broker) -> str:
    return (await describe_topic(broker, DescribeTopic(name=ORDERS))).partitions[0].damage


def with_the_old_folder(root: Path) -> None:
    """A topic was deleted and made anew, and somebody has put the old folder of a partition back."""
    live(root, work)
    shutil.copytree(root / FOLDER, root / "copy")
    live(root, begin_anew)
    shutil.rmtree(root / FOLDER)
    (root / "copy").rename(root / FOLDER)


def test_the_folder_of_a_deleted_topic_is_not_taken_for_that_of_its_namesake(tmp_path: Path) -> None:
    with_the_old_folder(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / FOLDER).iterdir()}

    async def look(broker: Broker) -> None:
        assert (await damage(broker)).startswith("its folder belongs to another topic, which has the id ")
        assert (await describe_topic(broker, DescribeTopic(name=ORDERS))).partitions[1].damage == ""
        assert isinstance(await put(broker, b"more"), PartitionDamaged)
        assert await read(broker) == []

    live(tmp_path, look)
    assert {path.name: path.read_bytes() for path in (tmp_path / FOLDER).iterdir()} == before


def test_whoever_accepts_that_it_is_gone_finds_the_other_folder_beside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_the_old_folder(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / FOLDER).iterdir()}

    async def accept(broker: Broker) -> object:
        with caplog.at_level(logging.WARNING):
            await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        return await put(broker, b"more")

    async def look(broker: Broker) -> tuple[str, list[bytes | None]]:
        return await damage(broker), await read(broker)

    assert live(tmp_path, accept) == Placed(0, 0)
    assert "folder_put_aside" in caplog.text
    assert live(tmp_path, look) == ("", [b"more"])
    [aside] = (tmp_path / "logs/orders").glob("0.of-*")
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == before


def repaired(root: Path, *, is_applied: bool) -> Repair:
    return repair(FolderDisk(root), SystemClock(), is_applied=is_applied, kept_in="repair/now")


def test_repair_tells_of_it_and_puts_it_aside(tmp_path: Path) -> None:
    with_the_old_folder(tmp_path)

    for is_applied in (False, True):
        [told] = repaired(tmp_path, is_applied=is_applied).damaged
        assert (told.partition, told.is_repaired) == ("orders/0", False)
        assert told.problem.startswith("its folder belongs to another topic")

    assert not (tmp_path / FOLDER).exists()
    assert len(list((tmp_path / "logs/orders").glob("0.of-*/*.log"))) == 1
    [told] = repaired(tmp_path, is_applied=True).damaged
    assert told.problem == "its folder is gone, or holds nothing of it"


def test_a_journal_in_whose_place_lies_a_topic_stops_the_start_until_it_is_repaired(tmp_path: Path) -> None:
    live(tmp_path, work)
    shutil.rmtree(tmp_path / "logs/__schemas/0")
    shutil.copytree(tmp_path / FOLDER, tmp_path / "logs/__schemas/0")

    with pytest.raises(JournalDamaged, match="belongs to another topic"):
        live(tmp_path, damage)
    assert repaired(tmp_path, is_applied=True).is_well
    assert live(tmp_path, damage) == ""


def test_a_folder_of_before_is_its_own_from_the_first_start_on(tmp_path: Path) -> None:
    with tarfile.open(EARLIER) as folder:
        folder.extractall(tmp_path, filter="data")
    disk = FolderDisk(tmp_path)
    assert owner_of(load_snapshots(disk, FOLDER)) is None

    async def owners(broker: Broker) -> set[bool]:
        assert await read(broker) == [b"1", b"2", b"3"]
        known = {topic.name: topic.topic_id for topic in broker.metadata.topics.values()}
        return {
            owner_of(load_snapshots(disk, partition.folder)) == known[partition.source.topic]
            for topic in broker.topics.values()
            for partition in topic.partitions
        }

    assert live(tmp_path, owners) == {True}


def test_a_topic_that_is_created_over_a_folder_without_metadata_has_it_for_good(tmp_path: Path) -> None:
    live(tmp_path, work)
    shutil.rmtree(tmp_path / "logs/__metadata")
    repaired(tmp_path, is_applied=True)

    async def create(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))

    live(tmp_path, create)
    assert live(tmp_path, damage) == ""
    assert live(tmp_path, read) == [b"old", b"old"]


@pytest.mark.parametrize("cut_after", range(1, 60, 2))
def test_no_power_cut_leaves_a_topic_with_the_folder_of_its_namesake(cut_after: int) -> None:
    lives = Lives(cut_after)
    lives.live(work)
    with suppress(PowerLost):
        lives.live(begin_anew, cut_after=cut_after)

    async def look(broker: Broker) -> None:
        try:
            view = await describe_topic(broker, DescribeTopic(name=ORDERS))
        except TopicNotFound:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            assert await read(broker) == []
        else:
            assert [partition.damage for partition in view.partitions] == ["", ""]
            assert await read(broker) in ([b"old", b"old"], [b"new"], [])
        await put(broker, b"last")
        assert (await read(broker))[-1] == b"last"

    lives.live(look)
    lives.live(damage)


@pytest.mark.parametrize("cut_after", range(1, 40, 2))
def test_no_power_cut_spoils_the_acceptance_or_loses_the_other_folder(cut_after: int) -> None:
    lives = Lives(cut_after)
    lives.live(work)
    old = {name: lives.disk.read_whole(f"{FOLDER}/{name}") or b"" for name in lives.disk.list(FOLDER)}
    lives.live(begin_anew)
    for name in lives.disk.list(FOLDER):
        lives.disk.remove(f"{FOLDER}/{name}")
    for name, data in old.items():
        lives.disk.replace(f"{FOLDER}/{name}", data)
    lives.disk.sync_folder(FOLDER)

    async def accept(broker: Broker) -> None:
        if await damage(broker):
            await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        await put(broker, b"more")

    with suppress(PowerLost):
        lives.live(accept, cut_after=cut_after)
    lives.live(accept)

    # The message of the topic made anew was in the commit log, which nobody had copied over.
    assert lives.live(read) in ([b"new", b"more"], [b"new", b"more", b"more"])
    kept = [name for name in lives.disk.list("logs/orders") if name.startswith("0.of-")]
    assert [set(lives.disk.list(f"logs/orders/{name}")) for name in kept] == [set(old)]
