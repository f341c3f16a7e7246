"""Verbs that only read ask so little of a partition that another can stand in its place."""

import ast
import asyncio
from pathlib import Path

import pytest

import goqueue.broker
from goqueue.broker.broker import Broker, OpenTopic
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.read.find_offset import end_of_epoch, find_offset
from goqueue.broker.read.frames import offsets_at, read_frames, split_points, watch_offsets
from goqueue.broker.read.read import read, read_messages
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.readable import Readable, ReadableLog
from goqueue.broker.storage.waiters import ReadWaiter
from goqueue.model.commands import (
    BatchesRead,
    FindEpochEnd,
    FindOffset,
    FindOffsets,
    PartitionRead,
    Read,
    ReadFrames,
    ReadMessages,
    SplitRange,
    Spot,
    WatchOffsets,
)
from goqueue.model.group_commands import DescribeLag
from goqueue.model.ids import TopicPartition
from goqueue.node.disk import FolderDisk
from tests.unit.broker.queue.queue_steps import ack, join, orders, put, take, values
from tests.unit.broker.running import ORDERS, ORDERS_0, running

HOUSE = Path(goqueue.broker.__file__).parent
ONLY_READ = [
    *(HOUSE / "read").glob("*.py"),
    HOUSE / "groups/lag.py",
    HOUSE / "groups/reset_offsets.py",
    HOUSE / "queue/poll.py",
    HOUSE / "queue/read.py",
    HOUSE / "queue/delivery.py",
    HOUSE / "storage/commit_written.py",
]


@pytest.mark.parametrize("path", ONLY_READ, ids=lambda path: str(path.relative_to(HOUSE)))
def test_what_only_reads_knows_no_partition_and_no_log(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }

    assert not {"Partition", "PartitionLog"} & imported
    assert "partition" not in {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "broker"
    }


class Narrow:
    """Something of which nothing can be had but what a protocol names."""

    def __init__(self, behind: object, protocol: type) -> None:
        self._behind = behind
        self._names = {name for name in vars(protocol) if not name.startswith("_")}

    def __getattr__(self, name: str) -> object:
        if name not in self._names:
            raise AssertionError(f"{name} is no reader's business")
        return getattr(self._behind, name)


class StandIn(Narrow):
    """As a partition of another node would be: nothing of it is the partition's own object."""

    def __init__(self, partition: Partition) -> None:
        super().__init__(partition, Readable)
        self._waiting: dict[ReadWaiter, ReadWaiter] = {}

    @property
    def log(self) -> object:
        assert isinstance(self._behind, Partition)
        return Narrow(self._behind.log, ReadableLog)

    def add_reader(self, reader: ReadWaiter) -> None:
        passing_on = _PassingOn(self, reader)
        self._waiting[reader] = passing_on
        assert isinstance(self._behind, Partition)
        self._behind.add_reader(passing_on)

    def drop_reader(self, reader: ReadWaiter) -> None:
        assert isinstance(self._behind, Partition)
        self._behind.drop_reader(self._waiting.pop(reader))


class _PassingOn(ReadWaiter):
    """Tells a reader of what comes as if the stand-in did."""

    __slots__ = ("_reader", "_stand_in")

    def __init__(self, stand_in: StandIn, reader: ReadWaiter) -> None:
        super().__init__(1)
        self._stand_in, self._reader = stand_in, reader

    def offer(self, size: int, source: object) -> None:
        self._reader.offer(size, self._stand_in)

    def wake(self) -> None:
        self._reader.wake()


def stand_in_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_ins: dict[Partition, StandIn] = {}

    def one(partition: Partition) -> StandIn:
        return stand_ins.setdefault(partition, StandIn(partition))

    def readable(broker: Broker, source: TopicPartition) -> StandIn:
        return one(broker.partition(source))

    monkeypatch.setattr(Broker, "readable", readable)
    monkeypatch.setattr(OpenTopic, "readables", property(lambda topic: [*map(one, topic.partitions)]))


async def all_that_is_read(broker: Broker) -> list[object]:
    [batches] = await read(broker, Read(partitions=[PartitionRead(ORDERS_0, 0)]))
    assert isinstance(batches, BatchesRead)
    frames = await read_frames(broker, ReadFrames(source=ORDERS_0, offset=0, max_bytes=10_000, wait_ms=0))
    epoch = broker.partition(ORDERS_0).leader_epoch
    return [
        batches.end_offset,
        [bytes(batch) for batch in batches.batches],
        [bytes(piece) for piece in frames.batches],
        await read_messages(broker, ReadMessages(source=ORDERS_0)),
        *[await find_offset(broker, FindOffset(source=ORDERS_0, spot=spot)) for spot in (*Spot, 0)],
        end_of_epoch(broker, FindEpochEnd(source=ORDERS_0, epoch=epoch)),
        await watch_offsets(broker, WatchOffsets(topics=[ORDERS])),
        await offsets_at(broker, FindOffsets(topics=[ORDERS], time_ms=0)),
        await split_points(broker, SplitRange(source=ORDERS_0, from_offset=0, until_offset=5, piece_bytes=1)),
        [
            (lag.lag, lag.end_offset)
            for lag in (await group_lag(broker, DescribeLag(group="workers"))).partitions
        ],
    ]


def test_a_stand_in_with_nothing_but_what_readers_ask_for_serves_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await orders(broker)
            for number in range(5):
                await put(broker, str(number))
            ann = await join(broker)
            await ack(broker, await take(broker, ann, 2))
            here = await all_that_is_read(broker)
            with monkeypatch.context() as standing_in:
                stand_in_for_all(standing_in)
                assert await all_that_is_read(broker) == here
                assert values(await take(broker, ann, 10)) == ["2", "3", "4"]

                late = ReadMessages(source=ORDERS_0, offset=5, wait_ms=10_000)
                reading = asyncio.ensure_future(read_messages(broker, late))
                polling = asyncio.ensure_future(take(broker, ann, 10, wait_ms=10_000))
                while not broker.waiting_reads:
                    await asyncio.sleep(0)
                await put(broker, "late")
                assert [message.value for message in (await reading).messages] == [b"late"]
                assert values(await polling) == ["late"]

    asyncio.run(walk())
