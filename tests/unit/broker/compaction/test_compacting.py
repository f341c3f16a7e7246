"""Compaction of a partition at work: what stays, where it stays, and what a power cut leaves of a round."""

import asyncio
from copy import deepcopy
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.compaction.compacting import compact_all
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.errors import KeyRequired
from goqueue.model.messages import Message
from goqueue.node.disk import FolderDisk
from tests.unit.broker.compaction.compacted_topics import (
    CARS,
    CARS_0,
    compact_now,
    make_cars,
    put,
    stored,
    table,
)
from tests.unit.broker.lives import Lives, PowerLost
from tests.unit.broker.running import running

PAIRS = [(b"car-%d" % (number % 7), b"%04d" % number + b"." * 300) for number in range(100)]
NEWEST = dict(PAIRS)
LATER = [(b"car-%d" % (number % 9), b"later %d" % number + b"." * 300) for number in range(40)]


def test_of_each_key_the_newest_message_stays_at_its_offset(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            offsets = await put(broker, *PAIRS)
            size = partition.log.size_bytes
            done = await compact_now(broker)
            assert done is not None
            assert (done.records_before, done.records_after) == (100, 7)
            assert [message.offset for message in stored(partition)] == offsets[-7:]
            assert table(partition) == NEWEST
            assert partition.log.size_bytes < size / 5
            assert [*partition.log.gaps] == []
            later = await put(broker, *LATER)
            assert later[0] == offsets[-1] + 1
        async with running(FolderDisk(tmp_path)) as broker:
            partition = broker.partition(CARS_0)
            assert table(partition) == NEWEST | dict(LATER)
            await compact_now(broker)
            assert len(stored(partition)) == 9
            assert table(partition) == NEWEST | dict(LATER)

    asyncio.run(walk())


def test_a_partition_that_is_due_is_compacted_by_itself_and_small_segments_become_one(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS)
            assert partition.log.segment_count > 5
            await compact_all(broker)
            grown_count = partition.log.segment_count
            await put(broker, *PAIRS)
            await compact_all(broker)
            assert partition.log.segment_count <= grown_count + 2
            assert table(partition) == NEWEST
            assert broker.compaction.rounds == 2
            assert broker.compaction.removed_records > 150
            names = sorted(path.name for path in (tmp_path / "logs" / CARS / "0").iterdir())
            assert not [name for name in names if name.endswith(".cleaned")]
            assert sum(name.endswith(".log") for name in names) == partition.log.segment_count

    asyncio.run(walk())


def test_a_message_without_a_key_is_refused_and_those_beside_it_are_not(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            messages = [Message(b"1", b"a"), Message(b"2"), Message(b"3", b""), Message(b"4", due_ms=2**40)]
            results = await publish(broker, Publish(topic=CARS, messages=messages))
            assert [isinstance(result, KeyRequired) for result in results] == [False, True, False, True]
            assert [message.value for message in stored(partition)] == [b"1", b"3"]

    asyncio.run(walk())


def test_readers_that_began_before_a_swap_go_on_undisturbed(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS)
            old = [*partition.log.sealed_segments]
            before = [segment.file.read(0, segment.size) for segment in old]
            await compact_now(broker)
            assert [segment.file.read(0, segment.size) for segment in old] == before
            assert not set(old) & set(partition.log.sealed_segments)

    asyncio.run(walk())


async def _fill(broker: Broker) -> None:
    await make_cars(broker)
    await put(broker, *PAIRS[:40])
    await compact_now(broker)
    await put(broker, *PAIRS[40:], (b"car-0", None))
    await broker.partition(CARS_0).save_recovery_point()


async def _round(broker: Broker) -> None:
    await compact_now(broker)


async def _whole(broker: Broker) -> list[bytes]:
    partition = broker.partition(CARS_0)
    assert partition.damage is None
    expected = {key: value for key, value in NEWEST.items() if key != b"car-0"}
    assert table(partition) == expected
    await compact_now(broker)
    assert table(partition) == expected
    await put(broker, (b"car-0", b"again"))
    names = broker.disk.list(partition.folder)
    return [name.encode() for name in names if name.endswith(".cleaned")]


def _cut_at_each(seed: int, *, stride: int, is_killed: bool) -> int:
    """Cut the power after more and more changes until a round comes to its end; after how many it does."""
    filled = Lives(seed)
    filled.live(_fill)
    cut_after, is_done = 1 + seed, False
    while not is_done:
        lives = deepcopy(filled)
        try:
            lives.live(_round, cut_after=cut_after, is_killed=is_killed)
            is_done = True
        except PowerLost:
            pass
        assert lives.live(_whole) == []
        cut_after += stride
    return cut_after


def test_a_power_cut_during_a_round_leaves_the_log_whole() -> None:
    assert _cut_at_each(0, stride=13, is_killed=False) > 30


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_step_of_a_round_leaves_the_log_whole(seed: int, is_killed: bool) -> None:
    assert _cut_at_each(seed, stride=1, is_killed=is_killed) > 30
