"""What the leader of a partition takes from the keeper of the delays: each delivery once, from the newest."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.batches import batches_due
from goqueue.broker.delays.deliveries import deliver_due, find_delivered
from goqueue.broker.delays.records import Waiting
from goqueue.broker.delays.stock import Ready
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.upkeep import DelayUpkeep
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.core.delays.delivered import Step
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delays import DeliverDue, DeliveredFound, FindDelivered
from goqueue.model.errors import Fenced, TopicNotFound
from goqueue.model.messages import Message
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until


def walk(tmp_path: Path, work: Callable[[Broker], Awaitable[None]]) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
            await work(broker)

    asyncio.run(walk())


def due(broker: Broker, *values: bytes, known_offset: int, epoch: int = 1, end_offset: int = 5) -> DeliverDue:
    topic_id = broker.metadata.topic(ORDERS).topic_id
    items = [Ready(7, at, 0, Waiting(at, 7, topic_id, 0, Message(value))) for at, value in enumerate(values)]
    batches = batches_due(broker, items, Step(7, end_offset))
    return DeliverDue(
        target=ORDERS_0,
        topic_id=topic_id,
        keeper_epoch=epoch,
        known_offset=known_offset,
        batches=[bytes(batch.body) for batch in batches],
        lanes=[batch.lane for batch in batches],
        numbers=list(range(len(values))),
    )


async def found(broker: Broker, *, epoch: int = 1, from_offset: int | None = 0) -> DeliveredFound:
    command = FindDelivered(
        target=ORDERS_0,
        topic_id=broker.metadata.topic(ORDERS).topic_id,
        keeper_epoch=epoch,
        from_offset=from_offset,
        delayed_end=9,
    )
    return await find_delivered(broker, command)


async def stored(broker: Broker) -> list[bytes | None]:
    read = await read_messages(broker, ReadMessages(source=ORDERS_0))
    return [message.value for message in read.messages]


def test_a_delivery_is_told_by_the_log_and_the_next_builds_on_it(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        assert await found(broker, from_offset=None) == ((), 0)
        end_offset = await deliver_due(broker, due(broker, b"a", b"b", known_offset=0))
        assert end_offset == 2
        assert await found(broker) == ([Step(7, 5)], 2)
        assert await deliver_due(broker, due(broker, b"c", known_offset=end_offset)) == 3
        assert await stored(broker) == [b"a", b"b", b"c"]

    walk(tmp_path, work)


def test_a_call_that_comes_twice_or_late_appends_nothing(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        first = due(broker, b"a", known_offset=0)
        await deliver_due(broker, first)
        with pytest.raises(Fenced):
            await deliver_due(broker, first)
        # Another leadership has forgotten what it took, and looks into the log.
        broker.delays.received.clear()
        with pytest.raises(Fenced):
            await deliver_due(broker, first)
        assert await stored(broker) == [b"a"]

    walk(tmp_path, work)


def test_two_calls_side_by_side_that_know_the_same_append_one(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        calls = [deliver_due(broker, due(broker, value, known_offset=0)) for value in (b"a", b"b")]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(outcome, Fenced) for outcome in outcomes) == 1
        assert len(await stored(broker)) == 1

    walk(tmp_path, work)


def test_messages_of_others_behind_what_the_keeper_knows_are_no_reason_to_refuse(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")] * 3))
        assert await deliver_due(broker, due(broker, b"a", known_offset=0)) == 4

    walk(tmp_path, work)


def test_a_keeper_that_was_replaced_is_refused_by_who_heard_of_the_next(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await found(broker, epoch=4)
        with pytest.raises(Fenced):
            await deliver_due(broker, due(broker, b"a", known_offset=0, epoch=3))
        with pytest.raises(Fenced):
            await found(broker, epoch=3)
        await deliver_due(broker, due(broker, b"a", known_offset=0, epoch=4))
        assert await stored(broker) == [b"a"]

    walk(tmp_path, work)


def test_a_topic_made_anew_gets_nothing_of_its_namesake(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        command = replace(due(broker, b"a", known_offset=0), topic_id=broker.new_id())
        with pytest.raises(TopicNotFound):
            await deliver_due(broker, command)

    walk(tmp_path, work)


def test_who_takes_the_journal_over_knows_from_it_alone_what_was_delivered(tmp_path: Path) -> None:
    """Also when the journal was shortened: what it tells of each partition is written anew before."""

    async def work(broker: Broker) -> None:
        keeper = broker.delays.store
        now_ms = broker.clock.wall_ms()
        messages = [Message(b"soon", due_ms=now_ms + 1)] * 3 + [Message(b"far", due_ms=now_ms + 3_600_000)]
        await publish(broker, Publish(topic=ORDERS, messages=messages))
        await until(lambda: keeper.targets.pending == 1)
        await until(lambda: bool(keeper.targets.all[0].confirmed.steps))
        keeper.is_shared = True  # from now on it does as one of several does
        await keeper.checkpoint()
        [target] = keeper.targets.all
        assert target.told_offset == target.scan_offset == 3
        await DelayUpkeep(keeper).reclaim()
        assert keeper.journal.partition.log.start_offset == 3, "what was delivered is gone from it"

        other = DelayStore(
            keeper.journal.partition,
            broker.config.delays,
            disk=FolderDisk(tmp_path / "other"),
            threads=broker.threads,
            is_shared=True,
        )
        await broker.threads.run(other.journal.replay)

        [known] = other.targets.all
        assert (known.noted_offset, known.scan_offset) == (0, 3)
        assert known.confirmed.steps == target.confirmed.steps
        known.delivered = known.confirmed.copy()
        assert other.count_pending(other.parts()) == [1]

    walk(tmp_path, work)
