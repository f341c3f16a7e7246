"""What the leader of a partition tells a coordinator elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from uuid import UUID

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.remote.leader import read_committed, tell_marks
from goqueue.model.errors import TopicNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.marks import MarksKnown, ReadCommitted, TellMarks
from goqueue.records.batch import open_batch
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.queue import queue_steps as steps
from tests.unit.broker.running import ORDERS, running, until
from tests.unit.broker.transactions.transaction_steps import new_writer

SOURCE = TopicPartition(ORDERS, 0)


def in_a_broker(walk: Callable[[Broker], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            await steps.orders(broker)
            await walk(broker)

    asyncio.run(run())


def topic_id(broker: Broker) -> UUID:
    return broker.metadata.topic(ORDERS).topic_id


def reading(broker: Broker, offset: int) -> ReadCommitted:
    return ReadCommitted(source=SOURCE, topic_id=topic_id(broker), offset=offset, max_bytes=1_000_000)


def test_what_was_taken_back_is_left_out_and_what_lies_behind_it_is_not() -> None:
    async def walk(broker: Broker) -> None:
        writer = await new_writer(broker)
        for value, is_kept in (("a", False), ("b", True), ("c", False)):
            await writer.add(0)
            await writer.put(0, value)
            await (writer.commit() if is_kept else writer.abort())
        await until(lambda: broker.partition(SOURCE).last_stable_offset == 6)

        read = await read_committed(broker, reading(broker, 0))

        values = [m.value for body in read.batches for m in open_batch(body, 2)]
        assert (values, read.end_offset, read.aborted) == ([b"b"], 6, ())
        assert (await read_committed(broker, reading(broker, 4)))[:3] == ([], 0, 6)

    in_a_broker(walk)


def test_another_topic_of_the_same_name_is_not_the_one_that_was_meant() -> None:
    async def walk(broker: Broker) -> None:
        command = ReadCommitted(source=SOURCE, topic_id=UUID(int=1), offset=0, max_bytes=1)
        with pytest.raises(TopicNotFound):
            await read_committed(broker, command)
        told = await tell_marks(broker, TellMarks(partitions=[MarksKnown(SOURCE, UUID(int=1))]))
        assert isinstance(told.refused[0], TopicNotFound)

    in_a_broker(walk)


def test_marks_are_told_when_they_are_others_than_known_and_at_once_when_asked() -> None:
    async def walk(broker: Broker) -> None:
        nothing = MarksKnown(SOURCE, topic_id(broker))
        first = (await tell_marks(broker, TellMarks(partitions=[nothing], wait_ms=60_000))).marks[0]
        assert (first.start_offset, first.commit_mark, first.last_stable_offset) == (0, 0, 0)
        known = MarksKnown(SOURCE, topic_id(broker), first.leader_epoch, 0, 0)
        assert (await tell_marks(broker, TellMarks(partitions=[known]))).marks[0] == first
        waits = asyncio.create_task(tell_marks(broker, TellMarks(partitions=[known], wait_ms=60_000)))
        await until(lambda: bool(broker.waiting_reads))
        assert not waits.done()
        await steps.put(broker, "a")
        assert (await waits).marks[0].commit_mark == 1
        assert (await tell_marks(broker, TellMarks(partitions=[known], wait_ms=1))).marks[0].commit_mark == 1
        now = known._replace(commit_mark=1, last_stable_offset=1)
        assert not (await tell_marks(broker, TellMarks(partitions=[now], wait_ms=1))).marks

    in_a_broker(walk)
