"""A data folder with everything in it, and one file after the other spoilt in every way.

Nothing that was acknowledged may be missing without a word; what can be made anew may not stop a start.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from goqueue.broker.backup.verbs import create_backup
from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import create_schedule, schedule_names
from goqueue.broker.delays.verbs import list_delayed
from goqueue.broker.health.repair import repair
from goqueue.broker.read.read import read_messages
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.sinks.verbs import take_generation
from goqueue.broker.write.publish import publish
from goqueue.model.backups import CreateBackup
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.delays import CreateSchedule, ListDelayed, ListSchedules, ScheduledMessage
from goqueue.model.errors import Corrupt, GoQueueError, PartitionDamaged
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.sinks import TakeGeneration
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from tests.unit.broker.queue.queue_steps import ack, floor, join, orders, take
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until
from tests.unit.broker.sinks.sink_steps import SINK, put_stage
from tests.unit.broker.transactions.transaction_steps import new_writer

T = TypeVar("T")
COUNT = 24
"""Messages of orders/0, in three segments; a marker stands behind them."""
ORDERS_1 = TopicPartition(ORDERS, 1)


def live(root: Path, work: Callable[[Broker], Awaitable[T]]) -> T:
    async def walk() -> T:
        async with running(FolderDisk(root)) as broker:
            return await work(broker)

    return asyncio.run(walk())


async def fill(broker: Broker) -> None:
    """Something of every kind that lies in a data folder."""
    await orders(broker, partitions=2)
    for number in range(COUNT):
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"%d" % number, partition=0)]))
        if number % 10 == 9:
            broker.partition(ORDERS_0).log.roll()
    ann = await join(broker)
    await ack(broker, await take(broker, ann, 5))
    writer = await new_writer(broker)
    await writer.add(0)
    await writer.put(0, "never seen")
    await writer.abort()
    now_ms = broker.clock.wall_ms()
    soon = Message(b"soon", partition=1, due_ms=now_ms + 20)
    later = Message(b"later", partition=1, due_ms=now_ms + 3_600_000)
    await publish(broker, Publish(topic=ORDERS, messages=[soon, later]))
    await until(lambda: broker.partition(ORDERS_1).log.end_offset == 1)
    tick = ScheduledMessage(value=b"tick")
    command = CreateSchedule(topic=ORDERS, name="yearly", cron="0 0 1 1 *", time_zone="UTC", message=tick)
    await create_schedule(broker, command)
    await broker.delays._upkeep.write_run()
    await register_schema(
        broker,
        RegisterSchema(subject="orders-value", schema=SchemaText(SchemaKind.JSON, '{"type": "integer"}')),
    )
    await take_generation(broker, TakeGeneration(sink=SINK))
    await put_stage(broker, 0, "a", [(1, "staged")])
    await create_backup(broker, CreateBackup())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("whole")
    live(root, fill)
    yield root


@dataclass(frozen=True)
class Kind:
    """A kind of file: which one, and how the start fares when it is spoilt."""

    name: str
    pattern: str
    outcomes: str
    """By `SPOIL`, a letter each: w well, d damaged, c a read says corrupt, r refused."""


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _halve(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"garbage behind the end")


def _beside(path: Path) -> None:
    (path.parent / ".DS_Store").write_bytes(b"not ours")
    path.with_name(path.name + "~").write_bytes(b"not ours")
    (path.parent / "lost+found").mkdir()
    (path.parent / "odd folder.log").mkdir()


SPOIL: dict[str, Callable[[Path], None]] = {
    "emptied": _empty,
    "deleted": Path.unlink,
    "cut in half": _halve,
    "one bit flipped": _flip,
    "garbage appended": _append,
    "foreign files beside": _beside,
}
KINDS = [
    Kind("first segment", "logs/orders/0/00000000000000000000.log", "dddcww"),
    Kind("middle segment", "logs/orders/0/00000000000000000010.log", "dddcww"),
    Kind("last segment", "logs/orders/0/00000000000000000020.log", "dddcww"),
    Kind("index of a sealed segment", "logs/orders/0/00000000000000000010.index", "wwwwww"),
    Kind("index of the last segment", "logs/orders/0/00000000000000000020.index", "wwwwww"),
    Kind("time index", "logs/orders/0/00000000000000000010.timeindex", "wwwwww"),
    Kind("aborted transactions", "logs/orders/0/*.txnindex", "wwwwww"),
    Kind("newest recovery point", "logs/orders/0/*.snapshot", "wwwwww"),
    Kind("metadata", "logs/__metadata/0/*.log", "rrrrww"),
    Kind("metadata's recovery point", "logs/__metadata/0/*.snapshot", "wwwwww"),
    Kind("groups", "logs/__consumer_offsets/*/*.log", "rrrrww"),
    Kind("transactions", "logs/__transactions/*/*.log", "rrrrww"),
    Kind("schemas", "logs/__schemas/0/*.log", "rrrrww"),
    Kind("delayed messages", "logs/__delayed/0/*.log", "rrrcww"),
    Kind("checkpoint of the delays", "delays/checkpoint", "wwwwww"),
    Kind("run of the delays", "delays/*.run", "wwwwww"),
    Kind("stage", f"stages/{SINK}/*.stage", "wwwwww"),
    Kind("backup", "backups/*/metadata.json", "wwwwww"),
]
CASES = [(kind, how) for kind in KINDS for how in SPOIL]


@pytest.mark.parametrize(("kind", "how"), CASES, ids=[f"{kind.name}, {how}" for kind, how in CASES])
def test_a_start_tells_what_is_lost_and_makes_anew_what_can_be(
    whole: Path, tmp_path: Path, kind: Kind, how: str
) -> None:
    root = tmp_path / "data"
    shutil.copytree(whole, root)
    [*_, path] = sorted(path for path in root.glob(kind.pattern) if path.stat().st_size)
    SPOIL[how](path)

    outcome = "r"
    try:
        outcome = live(root, look)
    except Corrupt as error:
        assert "/" in str(error), "it names what is lost"

    assert outcome == kind.outcomes[list(SPOIL).index(how)]


@pytest.mark.parametrize(("kind", "how"), CASES, ids=[f"{kind.name}, {how}" for kind, how in CASES])
def test_a_repair_tells_what_is_lost_and_lets_the_broker_go_on(
    whole: Path, tmp_path: Path, kind: Kind, how: str
) -> None:
    root = tmp_path / "data"
    shutil.copytree(whole, root)
    [*_, path] = sorted(path for path in root.glob(kind.pattern) if path.stat().st_size)
    SPOIL[how](path)
    spoilt = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    disk, clock = FolderDisk(root), SystemClock()

    found = repair(disk, clock, is_applied=False, kept_in=None)

    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == spoilt
    is_lossless = kind.outcomes[list(SPOIL).index(how)] == "w"
    assert [each.partition for each in found.damaged] == ([] if is_lossless else [partition_of(root, path)])

    done = repair(disk, clock, is_applied=True, kept_in="repair/now")

    assert done.is_well
    assert [each.lost for each in done.damaged] == [each.lost for each in found.damaged]
    assert repair(disk, clock, is_applied=False, kept_in=None).damaged == []
    lost = {
        o for each in done.damaged if each.partition == "orders/0" for run in each.lost for o in range(*run)
    }
    if how == "one bit flipped" and not is_lossless:
        assert list((root / "repair/now").rglob("*.log")), "what was replaced is kept"

    async def go_on(broker: Broker) -> None:
        if ORDERS not in broker.topics:
            assert kind.name == "metadata", "only who loses that forgets topics"
            await orders(broker, partitions=2)
        offsets, is_corrupt = await readable(broker)
        assert not is_corrupt
        assert offsets == [offset for offset in range(COUNT) if offset not in lost]
        [stored] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"new", partition=0)]))
        assert isinstance(stored, Placed)
        assert stored.offset >= COUNT + 2

    live(root, go_on)


def partition_of(root: Path, path: Path) -> str:
    """The partition that a file in a data folder belongs to."""
    return "/".join(path.relative_to(root / "logs").parts[:2])


async def look(broker: Broker) -> str:
    """What became of the messages: w, d or c; asserts what holds in any case."""
    offsets, is_corrupt = await readable(broker)
    [stored] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"new", partition=0)]))
    is_damaged = isinstance(stored, PartitionDamaged)
    assert is_damaged or (isinstance(stored, Placed) and stored.offset >= COUNT + 2)
    assert floor(broker) == 5
    assert schedule_names(broker, ListSchedules(topic=ORDERS)) == ["yearly"]
    delayed = await delayed_messages(broker)
    delivered = await read_messages(broker, ReadMessages(source=ORDERS_1, limit=100))
    assert [message.value for message in delivered.messages] == [b"soon"], "nothing is delivered twice"
    if is_damaged:
        return "d"
    if is_corrupt or delayed < 2:
        return "c"
    assert offsets == list(range(COUNT)), "nothing is missing without a word"
    return "w"


async def readable(broker: Broker) -> tuple[list[int], bool]:
    """The offsets of orders/0 that can be read, and whether a read met something corrupt."""
    found: list[int] = []
    try:
        while True:
            offset = found[-1] + 1 if found else 0
            page = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=offset, limit=100))
            if not page.messages:
                return found, False
            found += [message.offset for message in page.messages]
    except GoQueueError:
        return found, True


async def delayed_messages(broker: Broker) -> int:
    """How many messages wait: one that was delayed, and the schedule's next."""
    return len(await list_delayed(broker, ListDelayed(topic=ORDERS, limit=100)))


async def fill_with_large_steps(broker: Broker, steps: int) -> None:
    """Appends that span several entries of an index; the middle of the file is in the midst of one."""
    await orders(broker, partitions=2)
    due_ms = broker.clock.wall_ms() + 3_600_000
    lanes = (Lane.HIGH, Lane.LOW)
    for _ in range(steps):
        in_lanes = [Message(bytes(200), partition=0, lane=lanes[number % 2]) for number in range(100)]
        await publish(broker, Publish(topic=ORDERS, messages=in_lanes))
        delayed = [Message(bytes(200), partition=1, due_ms=due_ms) for _ in range(100)]
        await publish(broker, Publish(topic=ORDERS, messages=delayed))


@pytest.mark.parametrize("how", ["emptied", "deleted", "cut in half"])
@pytest.mark.parametrize("folder", ["orders", "__delayed"])
@pytest.mark.parametrize("steps", [1, 3])
def test_what_a_repair_says_of_large_steps_is_what_every_later_start_finds(
    tmp_path: Path, steps: int, folder: str, how: str
) -> None:
    live(tmp_path, partial(fill_with_large_steps, steps=steps))
    SPOIL[how](tmp_path / f"logs/{folder}/0/{0:020d}.log")
    disk, clock = FolderDisk(tmp_path), SystemClock()
    [found] = repair(disk, clock, is_applied=False, kept_in=None).damaged

    assert repair(disk, clock, is_applied=True, kept_in="repair/now").is_well

    async def count(broker: Broker) -> int:
        assert broker.partition(ORDERS_0).damage is None
        if folder == "orders":
            return len((await readable(broker))[0])
        return len(await list_delayed(broker, ListDelayed(topic=ORDERS, limit=1_000)))

    for _ in range(2):
        assert live(tmp_path, count) == 100 * steps - found.lost_offsets
        assert repair(disk, clock, is_applied=False, kept_in=None).damaged == []
