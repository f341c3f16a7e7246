"""Delayed messages of producers that number theirs, and of transactions, where another node keeps them."""

import asyncio
from collections.abc import Sequence

import pytest

from goqueue.broker.appending import LONG_AGO
from goqueue.broker.broker import Broker
from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.delays.keeping import submit_batches
from goqueue.broker.delays.verbs import delay_stats
from goqueue.broker.producers import init_producer
from goqueue.broker.read.read import read_messages
from goqueue.broker.transactions.hanging import LOOK_INTERVAL_S
from goqueue.broker.transactions.verbs import init_transactional
from goqueue.broker.write.append import append_when_checked
from goqueue.broker.write.kept_batches import find_marks, keep_batches
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.cluster import NodeId
from goqueue.model.commands import Append, Appended, ReadMessages
from goqueue.model.delays import (
    DELIVER_AT_HEADER,
    Asker,
    CountDelayed,
    FindMarks,
    KeepBatches,
    LaterBatch,
)
from goqueue.model.errors import Fenced, InvalidTransactionState, OutOfSequence
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.transaction_commands import InitProducer, PublishOnce, TakeProducerId
from goqueue.model.transactions import Marker, ProducerEpoch, PublishedOnce
from goqueue.records.batch import encode
from goqueue.records.layout import stamp_producer
from tests.unit.broker.remote.several import ORDERS, Several, several

SOURCE = TopicPartition(ORDERS, 0)
PRODUCER = 40
WRITER = "writer"
SOON_MS = 1_000


def later(nodes: Several, value: bytes, delay_ms: int = SOON_MS) -> Message:
    return Message(value, headers=((DELIVER_AT_HEADER, b"%d" % (nodes.clock.wall_ms() + delay_ms)),))


async def send(nodes: Several, messages: Sequence[Message], sequence: int) -> Appended:
    [(body, _)] = encode(messages, now_ms=nodes.clock.wall_ms())
    stamp_producer(body, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)

    async def put(broker: Broker) -> Appended:
        appended = await append_when_checked(broker, Append(SOURCE, body, Acks.ALL))
        if appended.committed is not None:
            await appended.committed
        return appended

    leader = nodes.leader()
    assert leader is not None
    return await nodes.begin(leader, put(nodes.nodes[leader].broker))


async def values(nodes: Several) -> list[bytes]:
    leader = nodes.leader()
    assert leader is not None
    read = await nodes.run(leader, read_messages, ReadMessages(source=SOURCE, limit=1_000))
    return [message.value or b"" for message in read.messages]


async def apart(nodes: Several) -> tuple[NodeId, NodeId]:
    """The partition's leader and the keeper, which are two."""
    await nodes.until(nodes.has_journals)
    await nodes.create(copies=3)
    await nodes.until(nodes.has_journals)
    leader, keeper = nodes.leader(), nodes.leader(DELAYED_TOPIC)
    assert leader is not None and keeper not in (None, leader)
    return leader, keeper


async def pending(nodes: Several) -> int:
    keeper = nodes.leader(DELAYED_TOPIC)
    assert keeper is not None
    return delay_stats(nodes.nodes[keeper].broker, CountDelayed()).pending


def test_a_batch_that_comes_again_is_neither_stored_nor_delayed_twice() -> None:
    async def story(nodes: Several) -> None:
        await apart(nodes)
        batch = [Message(b"a"), later(nodes, b"b"), Message(b"c"), later(nodes, b"d")]
        first = await send(nodes, batch, 0)
        assert [one.number for one in first.later] == [0, 1]
        again = await send(nodes, batch, 0)
        assert [one.number for one in again.later] == [LONG_AGO, LONG_AGO]
        assert again.base_offset == first.base_offset
        assert await values(nodes) == [b"a", b"c"]
        await asyncio.sleep(3)
        assert await values(nodes) == [b"a", b"c", b"b", b"d"]
        # By now all of it would come at once, were it not known by when it parted.
        await send(nodes, batch, 0)
        assert await values(nodes) == [b"a", b"c", b"b", b"d"]
        assert await pending(nodes) == 0

    several(story)


def test_what_follows_a_delayed_batch_is_no_gap_and_what_follows_nothing_is() -> None:
    async def story(nodes: Several) -> None:
        await apart(nodes)
        await send(nodes, [later(nodes, b"a"), later(nodes, b"b")], 0)
        await send(nodes, [Message(b"c")], 2)
        with pytest.raises(OutOfSequence):
            await send(nodes, [Message(b"x")], 4)
        with pytest.raises(OutOfSequence):
            await send(nodes, [later(nodes, b"x")], 4)
        assert await values(nodes) == [b"c"]
        assert await pending(nodes) == 2

    several(story)


def test_another_keeper_knows_what_was_delayed() -> None:
    async def story(nodes: Several) -> None:
        _, keeper = await apart(nodes)
        batch = [later(nodes, b"a"), Message(b"b")]
        await send(nodes, batch, 0)
        nodes.kill(keeper)
        await nodes.until(lambda: nodes.leader(DELAYED_TOPIC) not in (None, keeper))
        await nodes.until(lambda: nodes.leader() not in (None, keeper))
        await asyncio.sleep(SOON_MS / 1_000)
        await send(nodes, batch, 0)
        await asyncio.sleep(5)
        assert sorted(await values(nodes)) == [b"a", b"b"]

    several(story)


def test_a_question_that_was_given_up_keeps_nothing_when_it_arrives() -> None:
    async def story(nodes: Several) -> None:
        leader, _ = await apart(nodes)
        broker = nodes.nodes[leader].broker
        epoch = broker.partition(SOURCE).leader_epoch
        topic_id = broker.metadata.topic(ORDERS).topic_id

        def asker(number: int, leader_epoch: int = epoch) -> Asker:
            return Asker(SOURCE, topic_id, leader_epoch, number, broker.metadata.revision)

        due_ms = nodes.clock.wall_ms() + SOON_MS
        batch = LaterBatch(PRODUCER, 0, 0, 1, 1, nodes.clock.wall_ms(), [Message(b"x", due_ms=due_ms)])
        found = FindMarks(asker=asker(5), producer_ids=[PRODUCER])
        assert await nodes.run(leader, find_marks, found) == []
        with pytest.raises(Fenced):
            await nodes.run(leader, keep_batches, KeepBatches(asker=asker(4), batches=[batch]))
        with pytest.raises(Fenced):
            late = KeepBatches(asker=asker(6, leader_epoch=epoch - 1), batches=[batch])
            await nodes.run(leader, keep_batches, late)
        assert await pending(nodes) == 0
        keep = KeepBatches(asker=asker(6), batches=[batch])
        assert await nodes.run(leader, keep_batches, keep) == [0]
        again = KeepBatches(asker=asker(7), batches=[batch])
        assert await nodes.run(leader, keep_batches, again) == [LONG_AGO]
        assert await pending(nodes) == 1

    several(story)


def test_a_message_that_is_published_once_comes_later_and_once() -> None:
    async def story(nodes: Several) -> None:
        leader, _ = await apart(nodes)
        producer = ProducerEpoch(await nodes.run(leader, init_producer, TakeProducerId()), 0)

        async def publish(sequence: int | None, delay_ms: int | None) -> PublishedOnce:
            due_ms = None if delay_ms is None else nodes.clock.wall_ms() + delay_ms
            message = Message(b"%d" % (sequence or 0), partition=0, due_ms=due_ms)
            command = PublishOnce(
                topic=ORDERS, message=message, producer=producer, sequence=sequence, names_time=True
            )
            return await nodes.run(leader, publish_once, command)

        first = await publish(1, SOON_MS)
        assert first.due_ms is not None and not first.is_duplicate
        assert (await publish(1, SOON_MS)).is_duplicate
        await asyncio.sleep(3)
        assert (await publish(1, None)).is_duplicate  # its time has passed: it is not named any more
        assert (await publish(2, None)).due_ms is None
        assert (await publish(None, SOON_MS)).due_ms is not None
        assert await values(nodes) == [b"1", b"2"]

    several(story)


class Writer:
    """A transactional producer that sends to the partition's leader, as Kafka's do."""

    def __init__(self, nodes: Several, producer: ProducerEpoch) -> None:
        self._nodes = nodes
        self.producer = producer
        self._sequence = 0

    async def send(self, *messages: Message) -> None:
        [(body, _)] = encode(messages, now_ms=self._nodes.clock.wall_ms())
        stamp_producer(
            body,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            base_sequence=self._sequence,
            is_transactional=True,
        )
        self._sequence += len(messages)

        async def put(broker: Broker) -> None:
            command = Append(SOURCE, body, Acks.ALL, may_join=True, transactional_id=WRITER)
            appended = await append_when_checked(broker, command)
            if appended.committed is not None:
                await appended.committed

        leader = self._nodes.leader()
        assert leader is not None
        await self._nodes.begin(leader, put(self._nodes.nodes[leader].broker))

    async def end(self, marker: Marker) -> None:
        await self._nodes.end(next(iter(self._nodes.nodes)), WRITER, self.producer, marker)


async def new_writer(nodes: Several) -> Writer:
    command = InitProducer(transactional_id=WRITER, timeout_ms=60_000)
    return Writer(nodes, await nodes.run(next(iter(nodes.nodes)), init_transactional, command))


def test_what_a_transaction_delays_comes_with_its_commit_and_never_with_its_abort() -> None:
    async def story(nodes: Several) -> None:
        await apart(nodes)
        writer = await new_writer(nodes)
        await writer.send(later(nodes, b"a"), Message(b"b"))
        await asyncio.sleep(3)
        assert await values(nodes) == []
        assert await pending(nodes) == 0
        await writer.end(Marker.COMMIT)
        await asyncio.sleep(3)
        assert await values(nodes) == [b"b", b"a"]
        await writer.send(later(nodes, b"c"))
        await writer.end(Marker.ABORT)
        await writer.send(later(nodes, b"d", 3_000))
        await writer.end(Marker.COMMIT)
        assert await pending(nodes) == 1
        await asyncio.sleep(6)
        assert await values(nodes) == [b"b", b"a", b"d"]

    several(story)


def test_another_keeper_holds_what_a_transaction_has_delayed_until_it_ends() -> None:
    async def story(nodes: Several) -> None:
        _, keeper = await apart(nodes)
        writer = await new_writer(nodes)
        await writer.send(later(nodes, b"a"))
        nodes.kill(keeper)
        await nodes.until(lambda: nodes.leader(DELAYED_TOPIC) not in (None, keeper))
        await nodes.until(lambda: nodes.leader() not in (None, keeper))
        await asyncio.sleep(10)
        assert await values(nodes) == []
        await writer.send(later(nodes, b"b"))
        await writer.end(Marker.COMMIT)
        await asyncio.sleep(5)
        assert await values(nodes) == [b"a", b"b"]

    several(story)


def test_what_was_sent_in_a_transaction_that_has_ended_does_not_come_to_count_with_the_next() -> None:
    async def story(nodes: Several) -> None:
        leader, _ = await apart(nodes)
        writer = await new_writer(nodes)
        await writer.send(Message(b"a"))
        broker = nodes.nodes[leader].broker
        partition = broker.partition(SOURCE)
        name = broker.transactions.verified.name_of(partition, *writer.producer)
        assert name
        await writer.end(Marker.ABORT)
        await writer.send(Message(b"b"))  # the next one is open
        asker = Asker(
            SOURCE,
            broker.metadata.topic(ORDERS).topic_id,
            partition.leader_epoch,
            broker.delays.turns.next_number(),
            broker.metadata.revision,
        )
        message = Message(b"late", due_ms=nodes.clock.wall_ms() + SOON_MS)
        batch = LaterBatch(*writer.producer, 1, 1, 1, nodes.clock.wall_ms(), [message], is_held=True)
        with pytest.raises(InvalidTransactionState):
            late = KeepBatches(asker=asker, batches=[batch], transaction_id=name)
            await nodes.run(leader, keep_batches, late)
        await writer.end(Marker.COMMIT)
        await asyncio.sleep(3)
        assert await values(nodes) == [b"b"]

    several(story)


def test_what_is_held_for_a_transaction_that_nobody_answers_for_is_cancelled() -> None:
    async def story(nodes: Several) -> None:
        _, keeper = await apart(nodes)
        writer = await new_writer(nodes)
        broker = nodes.nodes[keeper].broker
        message = Message(b"x", due_ms=nodes.clock.wall_ms() + SOON_MS)
        batch = LaterBatch(*writer.producer, 0, 1, 1, nodes.clock.wall_ms(), [message], is_held=True)
        submit_batches(broker, SOURCE, [batch])  # as if the coordinator's journal had lost that it joined
        await asyncio.sleep(2 * LOOK_INTERVAL_S)
        assert delay_stats(broker, CountDelayed()).held == 0
        assert delay_stats(broker, CountDelayed()).cancelled == 1

    several(story)
