"""A replica's folder goes when it is none any more, and never before."""

from contextlib import suppress
from random import Random

import msgspec
import pytest

from goqueue.broker.topics.folders import SEEN_FILE, Folders, LeftFolder, _left, _remove
from goqueue.broker.topics.verbs import delete_topic
from goqueue.model.cluster import Loaded, NodeId
from goqueue.model.ids import TopicName
from goqueue.model.topics import DeleteTopic
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut
from tests.unit.broker.moving.town import FOLDER, ORDERS, A, B, C, D, Town, live


async def three(town: Town) -> None:
    await town.start(A, B, C)
    await town.create(A, copies=1)
    await town.publish([b"first"])


def others(town: Town) -> tuple[NodeId, NodeId, NodeId]:
    """Who holds the partition, and two that do not."""
    [holder] = town.record(A).replicas
    first, second = (node for node in (A, B, C) if node != holder)
    return holder, first, second


def test_what_has_moved_away_leaves_no_folder_behind() -> None:
    async def story(town: Town) -> None:
        await three(town)
        holder, first, second = others(town)
        assert town.has_folder(holder)

        await town.moved(A, first, second)

        await town.until(lambda: not town.has_folder(holder))
        assert town.has_folder(first) and town.has_folder(second)
        assert await town.publish([b"second"]) == [1]

    live(story)


def test_a_folder_that_was_wanted_again_for_a_moment_goes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    is_wanted = Folders._is_wanted

    def wanted(folders: Folders, folder: LeftFolder, loaded: Loaded) -> bool:
        asked.append(folder.path)
        return len(asked) == 1 or is_wanted(folders, folder, loaded)

    async def story(town: Town) -> None:
        await three(town)
        holder, first, second = others(town)
        monkeypatch.setattr(Folders, "_is_wanted", wanted)
        await town.moved(A, first)
        await town.until(lambda: len(asked) == 1)
        await town.moved(A, second)
        await town.until(lambda: not town.has_folder(holder) and not town.has_folder(first))

    live(story)


def test_a_partition_that_comes_back_begins_from_nothing_and_has_everything() -> None:
    async def story(town: Town) -> None:
        await three(town)
        holder, first, _ = others(town)
        await town.moved(A, first)
        await town.until(lambda: not town.has_folder(holder))
        await town.publish([b"second"])

        await town.moved(A, holder)
        town.kill(holder)
        await town.start(holder)

        assert await town.publish([b"third"]) == [2]
        log = town.broker(holder).topics[ORDERS].partitions[0].log
        assert (log.start_offset, log.end_offset) == (0, 3)

    live(story)


def test_who_was_away_while_a_partition_moved_removes_its_folder_when_it_is_back() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=2)
        await town.publish([b"first"])
        record = town.record(A)
        [free] = {A, B, C} - set(record.replicas)
        gone, stays = record.replicas
        town.kill(gone)
        await town.until(lambda: town.record(stays).isr == (stays,))

        await town.moved(stays, stays, free)
        assert town.has_folder(gone)
        await town.start(gone)

        await town.until(lambda: not town.has_folder(gone))
        assert await town.publish([b"second"]) == [1]

    live(story)


def test_who_was_away_while_a_topic_was_deleted_and_made_anew_has_nothing_of_the_old_one() -> None:
    async def story(town: Town) -> None:
        await town.start(A, B, C)
        await town.create(A, copies=3)
        await town.create(A, copies=3, name=TopicName("other"))
        await town.publish([b"old"] * 5)
        await town.publish([b"old"], TopicName("other"))
        town.kill(C)
        for name in (ORDERS, TopicName("other")):
            await town.at(A, delete_topic(town.broker(A), DeleteTopic(name=name)))
        await town.create(A, copies=2)

        await town.start(C)
        await town.until(lambda: "other" not in town.disks[C].list("logs"))
        await town.moved(A, A, B, C)

        await town.until(lambda: town.disks[C].list(f"logs/{ORDERS}") == ["0"])
        log = town.broker(C).topics[ORDERS].partitions[0].log
        assert log.end_offset == 0

    live(story)


@pytest.mark.parametrize("changes", range(8))
def test_a_power_cut_while_a_folder_is_removed_leaves_a_whole_replica_or_none(changes: int) -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        disk.make_folder(FOLDER)
        for name in ("00000000000000000000.log", "00000000000000000000.snapshot", "aborted"):
            disk.replace(f"{FOLDER}/{name}", b"x")
        for folder in (FOLDER, f"logs/{ORDERS}", "logs", ""):
            disk.sync_folder(folder)
        before = sorted(disk.list(FOLDER))
        disk.faults.cut_power(after_changes=changes)

        with suppress(PowerCut):
            _remove(disk, FOLDER)

        found = disk.crash()
        assert sorted(found.list(FOLDER)) in (before, [])
        _left(found, frozenset())
        assert found.list(f"logs/{ORDERS}") in (["0"], []), "what was begun is brought to its end"


def test_nothing_is_removed_while_the_store_knows_less_than_it_did() -> None:
    async def story(town: Town) -> None:
        await three(town)
        holder, first, second = others(town)
        town.kill(holder, loses_power=False)
        seen = msgspec.json.decode(town.disks[holder].read_whole(SEEN_FILE) or b"{}")
        assert seen["revision"] > 0
        ahead = msgspec.json.encode({"revision": seen["revision"] + 100_000})
        town.disks[holder].replace(SEEN_FILE, ahead)
        await town.start(holder)
        await town.moved(A, first, second)
        await town.until(
            lambda: msgspec.json.decode(town.disks[holder].read_whole(SEEN_FILE) or b"{}").get("is_doubted")
        )

        assert town.has_folder(holder)

    live(story)


def test_a_folder_that_is_held_or_tells_of_no_topic_is_let_alone() -> None:
    async def story(town: Town) -> None:
        await three(town)
        holder, *_ = others(town)
        disk = town.disks[holder]
        disk.make_folder("logs/mine/0")
        await town.start(D)
        await town.moved(A, holder, D)
        await town.moved(A, D)

        await town.until(lambda: not town.has_folder(holder, FOLDER))
        assert "0" in disk.list("logs/mine")
        assert "__consumer_offsets" in disk.list("logs")

    live(story)
