"""Messages that do not fit go into quarantine where another node leads it."""

from collections.abc import Sequence

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.producers import init_producer
from goqueue.broker.read.read import read_messages
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.write.append import append_when_checked
from goqueue.broker.write.append_entries import append_entries
from goqueue.broker.write.publish import publish
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.commands import Append, Appended, AppendEntries, Placed, Publish, Quarantined, ReadMessages
from goqueue.model.errors import OutOfSequence
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.transaction_commands import PublishOnce, TakeProducerId
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.entries import encode_entry
from tests.unit.broker.remote.several import ORDERS, Several, several
from tests.unit.broker.schemas.test_check import BAD, GOOD, QUARANTINE, batch_of

COUNT = 4


async def prepared(nodes: Several) -> None:
    """A topic that keeps aside what is no number, of which some node leads each partition."""
    await nodes.create(partitions=COUNT, copies=1, schema_validation="full", schema_on_invalid="quarantine")
    schema = SchemaText(SchemaKind.JSON, '{"type": "integer"}')
    command = RegisterSchema(subject="orders-value", schema=schema)
    await nodes.run(next(iter(nodes.nodes)), register_schema, command)


async def send(nodes: Several, number: int, *values: bytes, sequence: int = -1) -> Appended:
    batch = batch_of(*values, sequence=sequence)
    leader = nodes.leader(ORDERS, number)
    assert leader is not None

    async def put(broker: Broker) -> Appended:
        command = Append(TopicPartition(ORDERS, number), batch, Acks.ALL)
        appended = await append_when_checked(broker, command)
        if appended.committed is not None:
            await appended.committed
        return appended

    return await nodes.begin(leader, put(nodes.nodes[leader].broker))


async def kept(nodes: Several, topic: str, numbers: Sequence[int] = range(COUNT)) -> list[bytes]:
    found: list[bytes] = []
    for number in numbers:
        source = TopicPartition(topic, number)  # type: ignore[arg-type]
        command = ReadMessages(source=source, limit=100)
        read = await nodes.run(next(iter(nodes.nodes)), read_messages, command)
        found += [message.value or b"" for message in read.messages]
    return found


def test_batches_and_messages_of_all_partitions_keep_aside_what_does_not_fit() -> None:
    async def story(nodes: Several) -> None:
        await prepared(nodes)
        for number in range(COUNT):
            appended = await send(nodes, number, GOOD, BAD)
            assert list(appended.quarantined) == [1]
        assert {nodes.leader(QUARANTINE, n) == nodes.leader(ORDERS, n) for n in range(COUNT)} != {True}
        messages = [Message(value, partition=n) for n in range(COUNT) for value in (BAD, GOOD)]
        told = await nodes.run(next(iter(nodes.nodes)), publish, Publish(topic=ORDERS, messages=messages))
        assert [type(one) for one in told] == [Quarantined, Placed] * COUNT
        assert await kept(nodes, QUARANTINE) == [BAD, BAD] * COUNT
        assert await kept(nodes, ORDERS) == [GOOD, GOOD] * COUNT

    several(story)


def test_a_numbered_batch_that_comes_again_is_kept_aside_once_and_one_behind_a_gap_not_at_all() -> None:
    async def story(nodes: Several) -> None:
        await prepared(nodes)
        for number in range(COUNT):
            first = await send(nodes, number, GOOD, BAD, sequence=0)
            again = await send(nodes, number, GOOD, BAD, sequence=0)
            assert again.base_offset == first.base_offset
            with pytest.raises(OutOfSequence):
                await send(nodes, number, BAD, sequence=5)
        assert await kept(nodes, QUARANTINE) == [BAD] * COUNT

    several(story)


def test_a_message_published_once_and_a_bulk_write_keep_aside_what_does_not_fit() -> None:
    async def story(nodes: Several) -> None:
        await prepared(nodes)
        name = next(iter(nodes.nodes))
        producer = ProducerEpoch(await nodes.run(name, init_producer, TakeProducerId()), 0)
        for number in range(COUNT):
            for _ in range(2):
                message = Message(BAD, partition=number)
                command = PublishOnce(topic=ORDERS, message=message, producer=producer, sequence=0)
                told = await nodes.run(name, publish_once, command)
                assert told.is_quarantined or told.is_duplicate
        entries = b"".join(
            encode_entry(TopicPartition(ORDERS, number), 2, batch_of(GOOD, BAD)) for number in range(COUNT)
        )
        bulk = AppendEntries(entries=memoryview(bytearray(entries)), acks=Acks.ALL)
        placed = await nodes.run(name, append_entries, bulk)
        assert [list(one.quarantined) for one in placed] == [[1]] * COUNT
        assert await kept(nodes, QUARANTINE) == [BAD, BAD] * COUNT

    several(story)
