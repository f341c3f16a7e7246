"""Group commit: what one fsync covers, and who waits for whom."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.ports import P, T, Threads
from goqueue.model.settings import MiB, TopicSettings
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.layout import read_header
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import ORDERS, until


class HeldThreads(Threads):
    """Work that is handed over begins when the test lets it."""

    def __init__(self) -> None:
        self.held: list[asyncio.Future[None]] = []

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.held.append(begun)
        await begun
        return work(*args, **kwargs)

    def release(self, number: int) -> None:
        self.held[number].set_result(None)


def no_commit_log() -> CommitLog:
    return CommitLog(SimulatedDisk(Random(1)), draw_salt=lambda: 1, file_bytes=0, files_max=0)


def open_partition(folder: Path, number: int, flusher: Flusher) -> Partition:
    disk = FolderDisk(folder)
    disk.make_folder(f"{number}")
    partition = Partition(
        TopicPartition(ORDERS, number),
        f"{number}",
        TopicSettings(),
        disk=disk,
        clock=SystemClock(),
        leader_epoch=0,
        on_failure=lambda _: None,
    )
    partition.flusher = flusher
    partition.open()
    return partition


def put(partition: Partition) -> "asyncio.Future[None]":
    """Append a message; done when it is safe."""
    [(body, lane)] = encode([Message(b"x")], now_ms=1)
    partition.append([CheckedBatch(read_header(body), body, Lane(lane))])
    committed = partition.committed(partition.log.end_offset)
    assert committed is not None
    return committed


def test_a_partition_does_not_wait_for_the_fsync_of_another(tmp_path: Path) -> None:
    async def walk() -> None:
        threads = HeldThreads()
        flusher = Flusher(threads, SystemClock(), no_commit_log(), interval_ms=60_000)
        first, second = (open_partition(tmp_path, number, flusher) for number in range(2))
        slow = put(first)
        await until(lambda: len(threads.held) == 1)

        quick = put(second)
        await until(lambda: len(threads.held) == 2)
        threads.release(1)
        await quick

        assert not slow.done()
        threads.release(0)
        await slow

    asyncio.run(walk())


def test_what_comes_during_a_flush_shares_the_next_one(tmp_path: Path) -> None:
    async def walk() -> None:
        threads = HeldThreads()
        flusher = Flusher(threads, SystemClock(), no_commit_log(), interval_ms=60_000)
        partition = open_partition(tmp_path, 0, flusher)
        first = put(partition)
        await until(lambda: len(threads.held) == 1)
        later = [put(partition) for _ in range(3)]

        threads.release(0)
        await first
        await until(lambda: len(threads.held) == 2)
        assert not any(waiter.done() for waiter in later)
        threads.release(1)
        await asyncio.gather(*later)

        assert len(threads.held) == 2

    asyncio.run(walk())


def test_many_partitions_share_a_few_lanes(tmp_path: Path) -> None:
    async def walk() -> None:
        threads = HeldThreads()
        flusher = Flusher(threads, SystemClock(), no_commit_log(), interval_ms=60_000)
        waiters = [put(open_partition(tmp_path, number, flusher)) for number in range(8)]

        await until(lambda: len(threads.held) == 4)
        for number in range(4):
            threads.release(number)
        await until(lambda: len(threads.held) == 6)
        for number in range(4, 6):
            threads.release(number)
        await asyncio.gather(*waiters)

        assert len(threads.held) == 6  # some had two partitions

    asyncio.run(walk())


def test_who_waits_for_a_round_is_served_by_a_sync_that_comes_first(tmp_path: Path) -> None:
    """A partition is in one flush at a time, also when the commit log wants to forget it."""

    async def walk() -> None:
        threads = HeldThreads()
        commit_log = CommitLog(FolderDisk(tmp_path), draw_salt=lambda: 1, file_bytes=MiB, files_max=8)
        commit_log.make_folder()
        flusher = Flusher(threads, SystemClock(), commit_log, interval_ms=60_000)
        first, second = (open_partition(tmp_path, number, flusher) for number in range(2))
        in_round = put(first)
        await until(lambda: len(threads.held) == 1)
        waits = put(second)
        flusher._to_sync[second] = None
        await until(lambda: len(threads.held) == 2)
        behind = put(second)

        threads.release(0)
        await in_round
        await asyncio.sleep(0.01)
        assert len(threads.held) == 2, "a round has begun beside a sync of the same partition"
        threads.release(1)
        await waits
        assert not behind.done()
        await until(lambda: len(threads.held) == 3)
        threads.release(2)
        await behind

    asyncio.run(walk())
