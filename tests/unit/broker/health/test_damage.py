"""A disk that has lost what was acknowledged: told everywhere, written nowhere, until somebody decides."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.damage import accept_loss
from goqueue.broker.measures.table import FAMILIES
from goqueue.broker.measures.view import View
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import delete_records, describe_topic
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.checks import Verdict
from goqueue.log.snapshot import begin_at
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.delays import Postponed
from goqueue.model.errors import Corrupt, JournalDamaged, NotDamaged, PartitionDamaged
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.topics import AcceptLoss, DeleteRecords, DescribeTopic
from goqueue.node.disk import FolderDisk
from tests.unit.broker.queue.queue_steps import Consumer, ack, floor, join, orders, put, take, values
from tests.unit.broker.running import ORDERS, ORDERS_0, running

T = TypeVar("T")
COUNT = 20


def live(root: Path, work: Callable[[Broker], Awaitable[T]]) -> T:
    async def walk() -> T:
        async with running(FolderDisk(root)) as broker:
            return await work(broker)

    return asyncio.run(walk())


async def work(broker: Broker) -> None:
    """Something in every journal, and a group that has settled some of the messages."""
    await orders(broker, partitions=2)
    messages = [Message(b"%d" % n, partition=0) for n in range(COUNT)]
    for message in messages:
        await publish(broker, Publish(topic=ORDERS, messages=[message]))
    ann = await join(broker)
    await ack(broker, await take(broker, ann, 5))


async def put_one(broker: Broker) -> object:
    [result] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"new", partition=0)]))
    return result


async def read_from(broker: Broker, offset: int) -> list[int]:
    found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=offset, limit=100))
    return [message.offset for message in found.messages]


def _empty(folder: Path) -> None:
    for path in folder.glob("*.log"):
        path.write_bytes(b"")


def _delete(folder: Path) -> None:
    for path in folder.glob("*.log"):
        path.unlink()


def _halve(folder: Path) -> None:
    for path in folder.glob("*.log"):
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)


SPOIL: dict[str, Callable[[Path], None]] = {
    "emptied": _empty,
    "deleted": _delete,
    "cut in half": _halve,
    "folder gone": shutil.rmtree,
}


@pytest.mark.parametrize("how", SPOIL)
def test_a_partition_that_has_lost_messages_is_told_and_not_written_to(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    live(tmp_path, work)
    SPOIL[how](tmp_path / "logs/orders/0")

    async def look(broker: Broker) -> None:
        assert isinstance(await put_one(broker), PartitionDamaged)
        with pytest.raises(PartitionDamaged):
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=-1))
        other = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=1)]))
        assert isinstance(other[0], Placed), "the other partitions are served"

        first, second = (await describe_topic(broker, DescribeTopic(name=ORDERS))).partitions
        assert (bool(first.damage), bool(second.damage)) == (True, False)
        check = (await broker.health.check(broker))["damage"]
        assert (check.verdict, "orders/0" in check.message) == (Verdict.WARN, True)
        assert any("orders/0" in warning for warning in broker.health.warnings)
        [family] = [each for each in FAMILIES if each.name == "goqueue_storage_damaged_partitions"]
        assert dict(family.read(await View(broker).look())) == {(): 1}

    live(tmp_path, look)
    live(tmp_path, look)  # a clean stop does not make it well
    assert "partition_damaged partition=orders/0" in caplog.text


def test_messages_that_may_go_anywhere_pass_over_damaged_partitions(tmp_path: Path) -> None:
    async def begin(broker: Broker) -> None:
        await orders(broker, partitions=4)
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")] * 8))

    live(tmp_path, begin)
    for number in (1, 2):
        shutil.rmtree(tmp_path / f"logs/orders/{number}")

    async def look(broker: Broker) -> None:
        placed = await publish(
            broker, Publish(topic=ORDERS, messages=[Message(b"%d" % n) for n in range(40)])
        )
        assert {each.partition for each in placed if isinstance(each, Placed)} == {0, 3}
        for number in (0, 3):
            offsets = [
                each.offset for each in placed if isinstance(each, Placed) and each.partition == number
            ]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), "in the order they came"
        assert len([each for each in placed if isinstance(each, Placed)]) == 40

        for _ in range(8):
            [alone] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"alone")]))
            assert isinstance(alone, Placed)
        assert {broker.topic(ORDERS).take_turn() for _ in range(8)} == {0, 3}

        due_ms = broker.clock.wall_ms() + 60_000
        later = [Message(b"later", due_ms=due_ms)] * 8
        postponed = await publish(broker, Publish(topic=ORDERS, messages=later))
        assert {each.partition for each in postponed if isinstance(each, Postponed)} == {0, 3}

        keyed = [Message(b"x", b"%d" % n) for n in range(40)] + [Message(b"x", partition=1)]
        refused = await publish(broker, Publish(topic=ORDERS, messages=keyed))
        assert {each.partition for each in refused if isinstance(each, PartitionDamaged)} == {1, 2}
        assert isinstance(refused[-1], PartitionDamaged), "whoever names a partition is told about it"

    live(tmp_path, look)
    shutil.rmtree(tmp_path / "logs/orders")

    async def look_at_ruins(broker: Broker) -> None:
        [refused] = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"alone")]))
        assert isinstance(refused, PartitionDamaged)

    live(tmp_path, look_at_ruins)


@pytest.mark.parametrize("how", ["emptied", "deleted", "cut in half"])
def test_a_loss_that_is_accepted_gives_no_offset_out_again(tmp_path: Path, how: str) -> None:
    live(tmp_path, work)
    SPOIL[how](tmp_path / "logs/orders/0")

    async def decide(broker: Broker) -> list[int]:
        damage = await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        [(first, end)] = damage.lost
        assert end == COUNT
        assert await put_one(broker) == Placed(0, COUNT)
        assert await read_from(broker, 0) == [*range(first), COUNT]
        with pytest.raises(NotDamaged):
            await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        return list(range(first))

    kept = live(tmp_path, decide)

    async def look(broker: Broker) -> None:
        assert broker.partition(ORDERS_0).damage is None
        assert await read_from(broker, 0) == [*kept, COUNT]
        bob = await join(broker, "bob", group="late")
        taken = await take(broker, bob)
        assert values(taken) == [*(str(n) for n in kept), "new"]
        await ack(broker, taken)
        assert floor(broker, "late") == COUNT + 1, "what is lost holds nobody up"

    live(tmp_path, look)


def test_reads_of_what_is_lost_fail_until_it_is_accepted(tmp_path: Path) -> None:
    live(tmp_path, work)
    _halve(tmp_path / "logs/orders/0")

    async def look(broker: Broker) -> None:
        kept = await read_from(broker, 0)
        assert kept == list(range(len(kept)))
        with pytest.raises(Corrupt, match="lost are the offsets"):
            await read_from(broker, len(kept))

    live(tmp_path, look)


def test_a_topic_without_its_folder_goes_on_behind_what_groups_know_of_it(tmp_path: Path) -> None:
    live(tmp_path, work)
    shutil.rmtree(tmp_path / "logs/orders")

    async def decide(broker: Broker) -> None:
        assert [
            bool(p.damage) for p in (await describe_topic(broker, DescribeTopic(name=ORDERS))).partitions
        ] == [
            True,
            True,
        ]
        check = (await broker.health.check(broker))["damage"]
        assert check.verdict is Verdict.FAIL, "no partition is left to serve"
        await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        assert await put_one(broker) == Placed(0, 5)
        await accept_loss(broker, AcceptLoss(target=TopicPartition(ORDERS, 1), end_offset=1_000))
        other = await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=1)]))
        assert other == [Placed(1, 1_000)]

    live(tmp_path, decide)


@pytest.mark.parametrize("how", SPOIL)
@pytest.mark.parametrize(
    "journal", ["__metadata", "__consumer_offsets", "__transactions", "__delayed", "__schemas"]
)
def test_a_journal_that_has_lost_something_stops_the_start(tmp_path: Path, journal: str, how: str) -> None:
    live(tmp_path, work)
    for folder in (tmp_path / "logs" / journal).iterdir():
        SPOIL[how](folder)

    async def nothing(broker: Broker) -> None:
        raise AssertionError("it must not start")

    if how != "folder gone" and journal in ("__transactions", "__delayed", "__schemas"):
        live(tmp_path, put_nothing)  # nothing was ever in it
        return
    with pytest.raises(JournalDamaged, match=f"the journal {journal}/"):
        live(tmp_path, nothing)


async def put_nothing(broker: Broker) -> None:
    await put(broker, "more")


def test_a_partition_that_ends_before_what_a_group_has_had_of_it_is_damaged(tmp_path: Path) -> None:
    live(tmp_path, work)
    folder = tmp_path / "logs/orders/0"
    for path in folder.iterdir():
        path.unlink()
    begin_at(FolderDisk(tmp_path), "logs/orders/0", 2)  # as a broker that had lost it would have gone on

    async def look(broker: Broker) -> None:
        damage = broker.partition(ORDERS_0).damage
        assert str(damage) == "group workers has had messages that are not there; lost are the offsets 2 to 4"
        assert broker.health.recovery.offsets_above_end == 1
        assert isinstance(await put_one(broker), PartitionDamaged)

    live(tmp_path, look)
    live(tmp_path, look)  # a clean stop does not make it well

    async def decide(broker: Broker) -> None:
        await accept_loss(broker, AcceptLoss(target=ORDERS_0))
        assert await put_one(broker) == Placed(0, 5), "no offset is given out twice"
        at_work = broker.coordinator.known_active("workers")
        assert at_work is not None
        [ann] = at_work.membership.members
        assert values(await take(broker, Consumer("workers", ann))) == ["new"]

    live(tmp_path, decide)

    async def is_well(broker: Broker) -> bool:
        return broker.partition(ORDERS_0).damage is None

    assert live(tmp_path, is_well)
