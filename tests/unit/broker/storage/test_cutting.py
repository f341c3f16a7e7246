"""Cutting a partition at work: what goes, what stays, and that a power cut at any step of it does no harm."""

import asyncio
from collections.abc import Coroutine
from random import Random
from uuid import UUID

import pytest

from goqueue.broker.storage.cutting import Cutter
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.errors import NotLeader, PartitionDamaged, StorageFailed
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import KiB, TopicSettings
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import read_header
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut
from goqueue.testing.world.loop import SimulatedLoop, Stalled
from goqueue.testing.world.threads import SimulatedThreads

SOURCE = TopicPartition(TopicName("orders"), 0)
TOPIC_ID = UUID(int=3)
SMALL = TopicSettings(segment_bytes=4 * KiB)
WHY = NotLeader(*SOURCE)


class Node:
    """One partition with all that it needs, on a simulated disk."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.clock = SimulatedClock()
        self.loop = SimulatedLoop(self.clock)
        threads = SimulatedThreads(Random(1))
        commit_log = CommitLog(disk, draw_salt=lambda: 5, file_bytes=64 * KiB, files_max=4)
        self.flusher = Flusher(threads, self.clock, commit_log, interval_ms=3_600_000)
        self.cutter = Cutter(self.flusher, threads)
        self.partition = Partition(
            SOURCE,
            "logs/orders/0",
            SMALL,
            disk=disk,
            clock=self.clock,
            leader_epoch=1,
            on_failure=lambda _: None,
            topic_id=TOPIC_ID,
            commit_log=commit_log,
        )
        self.partition.flusher = self.flusher
        commit_log.open()
        commit_log.make_folder()
        disk.make_folder(self.partition.folder)
        is_new = not disk.list(self.partition.folder)
        self.recovered = self.partition.open(must_exist=not is_new)
        self.loop.run(self._end_start())

    async def _end_start(self) -> None:
        self.flusher.end_start([])

    def put(self, *values: bytes, epoch: int = 1) -> None:
        """Append each value by itself, and wait until the commit log has it."""

        async def write() -> None:
            self.partition.leader_epoch = epoch
            for value in values:
                batches = encode([Message(value)], now_ms=1)
                self.partition.append([CheckedBatch(read_header(b), b, lane) for b, lane in batches])
                waiter = self.partition.committed(self.partition.log.end_offset)
                assert waiter is not None
                await waiter

        self.loop.run(write())

    def save_point(self) -> None:
        self.loop.run(self.partition.save_recovery_point())

    def cut_to(self, end_offset: int) -> None:
        self.run(self.cutter.cut_to(self.partition, end_offset, why=WHY))

    def begin_at(self, offset: int) -> None:
        self.run(self.cutter.begin_at(self.partition, offset, why=WHY))

    def run(self, work: Coroutine[object, object, None]) -> None:
        self.loop.run(work)

    @property
    def values(self) -> list[bytes]:
        log = self.partition.log
        offset, found = log.start_offset, list[bytes]()
        while offset < log.end_offset:
            chunk = log.read(offset, 1 << 20, end_offset=log.end_offset, read_bytes=from_disk)
            found += [m.value or b"" for body in chunk.batches for m in open_batch(body, 2)]
            offset = chunk.end_offset
        return found

    def restarted(self, *, has_lost_power: bool = True) -> "Node":
        disk = self.disk.crash() if has_lost_power else self.disk.kill()
        self.loop.abandon()
        return Node(disk)


def node() -> Node:
    return Node(SimulatedDisk(Random(1)))


OLD = [b"old %d, " % number * 30 for number in range(30)]
NEW = [b"new %d" % number for number in range(4)]


def test_what_lies_behind_a_cut_is_gone_and_other_messages_take_its_place() -> None:
    one = node()
    one.put(*OLD)

    one.cut_to(10)
    one.put(*NEW, epoch=2)

    assert one.values == OLD[:10] + NEW
    assert one.partition.log.epochs == [(1, 0), (2, 10)]
    assert one.partition.commit_mark == 14
    assert one.restarted().values == OLD[:10] + NEW


def test_the_commit_log_does_not_bring_back_what_was_cut() -> None:
    one = node()
    one.put(*OLD)
    one.cut_to(10)

    again = one.restarted()

    assert again.values == OLD[:10]
    assert again.recovered.damage is None


def test_a_cut_goes_behind_recovery_points() -> None:
    one = node()
    one.put(*OLD[:5])
    one.save_point()
    one.put(*OLD[5:])
    one.save_point()

    one.cut_to(10)

    assert one.values == OLD[:10]
    assert one.restarted().values == OLD[:10]


def test_with_no_recovery_point_before_the_cut_all_is_read_back_from_the_start() -> None:
    one = node()
    for value in OLD[:6]:
        one.put(value)
        one.save_point()

    one.cut_to(2)

    assert one.values == OLD[:2]
    assert one.restarted().values == OLD[:2]


def test_a_cut_at_the_end_does_nothing() -> None:
    one = node()
    one.put(*OLD[:3])

    one.cut_to(3)

    assert one.values == OLD[:3]


def test_a_partition_begun_anew_has_nothing_and_goes_on_there() -> None:
    for offset in (0, 10, 30, 45):
        one = node()
        one.put(*OLD)

        one.begin_at(offset)

        assert (one.partition.log.start_offset, one.partition.log.end_offset) == (offset, offset)
        assert one.partition.log.last_epoch == -1
        one.put(*NEW, epoch=7)
        assert one.values == NEW
        again = one.restarted()
        assert again.values == NEW
        assert again.partition.log.start_offset == offset
        assert again.partition.log.epochs == [(7, offset)]


def test_a_log_never_begins_before_its_first_segment() -> None:
    one = node()
    one.put(*OLD)
    one.partition.log.move_start(20)
    first_offset = one.partition.log.first_offset
    assert 0 < first_offset < 20

    one.begin_at(3)

    assert (one.partition.log.start_offset, one.partition.log.end_offset) == (first_offset, first_offset)
    one.put(*NEW)
    assert one.restarted().values == NEW


def test_a_log_can_begin_before_its_start() -> None:
    one = node()
    one.put(*OLD)
    one.partition.log.move_start(20)

    one.begin_at(19)

    assert (one.partition.log.start_offset, one.partition.log.end_offset) == (19, 19)
    one.put(*NEW)
    assert one.restarted().values == NEW


def test_whoever_comes_while_it_is_cut_hears_why() -> None:
    one = node()
    one.put(*OLD)

    async def read_meanwhile() -> None:
        cut = asyncio.ensure_future(one.cutter.cut_to(one.partition, 10, why=WHY))
        await asyncio.sleep(0)
        with pytest.raises(NotLeader):
            _ = one.partition.log
        with pytest.raises(NotLeader):
            one.partition.committed(40)
        await cut

    one.run(read_meanwhile())
    assert one.values == OLD[:10]


def test_a_partition_whose_disk_fails_while_it_is_cut_stops() -> None:
    one = node()
    one.put(*OLD)
    one.disk.faults.fail_syncs(under="logs/")

    with pytest.raises(StorageFailed):
        one.cut_to(10)

    assert one.partition.is_failed


def test_a_damaged_partition_is_not_cut() -> None:
    one = node()
    one.put(*OLD)
    one.partition.declare_lost("for this test", 50)

    with pytest.raises(PartitionDamaged):
        one.cut_to(10)
    with pytest.raises(PartitionDamaged):
        one.begin_at(60)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("begins", [False, True])
def test_a_power_cut_at_any_step_leaves_the_log_whole_or_cut(seed: int, begins: bool) -> None:
    ends: set[int] = set()
    for changes in range(100):
        one = Node(SimulatedDisk(Random(seed)))
        one.put(*OLD[:12])
        one.save_point()
        one.put(*OLD[12:])
        one.disk.faults.cut_power(after_changes=changes)
        try:
            one.begin_at(10) if begins else one.cut_to(10)
        except (PowerCut, Stalled):
            again = one.restarted()
        else:
            one.disk.faults.heal()
            assert ends >= {10, 30}, "the power went at every step before"
            return
        log = again.partition.log
        assert again.recovered.damage is None
        assert again.values == OLD[: len(again.values)]
        assert log.end_offset >= 10
        is_begun = log.start_offset == 10
        assert is_begun <= begins
        assert is_begun or len(again.values) == log.end_offset
        ends.add(log.end_offset)
        again.put(*NEW, epoch=2)
        assert again.restarted().values[-4:] == NEW
    raise AssertionError("it came to no end")
