"""A command says all there is to say: as bytes, what one broker was asked is the same story on another."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import msgspec

from goqueue.broker.broker import Broker
from goqueue.model.commands import Append, FindOffset, Publish, ReadMessages, Spot
from goqueue.model.delays import CountDelayed
from goqueue.model.delivery import Action, Poll, Receipt, Settle
from goqueue.model.group_commands import CommitOffsets, DescribeLag, FetchOffsets, JoinAssigned
from goqueue.model.groups import NO_GENERATION, Membership, Sharing, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Lane, Message
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.tenant_commands import CreateTenant, ListTenants
from goqueue.model.topics import AddPartitions, CreateTopic, DescribeTopic
from goqueue.model.transaction_commands import (
    AddPartitionsToTransaction,
    EndTransaction,
    InitProducer,
    PublishOnce,
)
from goqueue.model.transactions import Marker
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from tests.unit.broker.running import ORDERS, ORDERS_0, running
from tests.unit.broker.verbs_of_doors import VERB_OF

Told = list[tuple[type, bytes]]
LATER_MS = 4_000_000_000_000


async def ask(broker: Broker, kind: type, encoded: bytes) -> Any:
    """What a node does with a command that another has sent: it needs the class and the bytes."""
    answer = VERB_OF[kind](broker, msgspec.msgpack.decode(bytearray(encoded), type=kind))
    return await answer if inspect.isawaitable(answer) else answer


async def first_time(broker: Broker, told: Told) -> None:
    """People at work. Whatever they ask is kept as it would be sent."""

    async def say(command: Any) -> Any:
        told.append((type(command), msgspec.msgpack.encode(command)))
        return await ask(broker, *told[-1])

    await say(CreateTopic(name=ORDERS, partitions=1, settings={"retention.ms": "3600000"}))
    await say(AddPartitions(name=ORDERS, total=2))
    await say(CreateTenant(name="acme", tenant_id="acme"))
    schema = SchemaText(SchemaKind.AVRO, '"string"')
    await say(RegisterSchema(subject="orders-value", schema=schema))
    messages = [Message(b"one", b"key", (("h", None),), Lane.HIGH, 0), Message(b"two", partition=0)]
    await say(Publish(topic=ORDERS, messages=[*messages, Message(b"x", partition=0, due_ms=LATER_MS)]))
    [(batch, _)] = encode([Message(b"three")], now_ms=1)
    await say(Append(ORDERS_0, memoryview(batch), Acks.LEADER))
    producer = await say(InitProducer(transactional_id="writer", timeout_ms=10_000))
    await say(AddPartitionsToTransaction(transactional_id="writer", producer=producer, targets=[ORDERS_0]))
    await say(PublishOnce(topic=ORDERS, message=Message(b"four", partition=0), producer=producer))
    await say(
        EndTransaction(
            transactional_id="writer", producer=producer, marker=Marker.COMMIT, until_complete=True
        )
    )
    who = Membership("readers", "", NO_GENERATION)
    await say(CommitOffsets(who, [TopicCommit(ORDERS, [(0, 2, -1, "half way")])]))
    joined = await say(JoinAssigned(group="workers", client_id="c", topics=[ORDERS], sharing=Sharing.SHARED))
    polled = await say(Poll(group="workers", member_id=joined.member_id, limit=2))
    [part] = polled.parts
    receipts = [str(Receipt(ORDERS, 0, message.offset, 1, part.nonce)) for message in part.messages]
    await say(Settle(action=Action.ACK, receipts=receipts))


async def seen(broker: Broker) -> list[object]:
    """What anybody can see of it, but for the times. The marker of the transaction counts in the lag."""

    async def look(command: Any) -> Any:
        return await ask(broker, type(command), msgspec.msgpack.encode(command))

    read = await look(ReadMessages(source=ORDERS_0))
    topic = await look(DescribeTopic(name=ORDERS))
    return [
        [message._replace(timestamp_ms=0) for message in read.messages],
        (topic.topic_id, topic.settings, [view[:3] for view in topic.partitions]),
        await look(FindOffset(source=TopicPartition(ORDERS, 0), spot=Spot.LATEST)),
        await look(FetchOffsets(group="readers", wanted=None)),
        (await look(DescribeLag(group="workers"))).total,
        [tenant.tenant_id for tenant in await look(ListTenants())],
        broker.schemas.registry.version("orders-value", "latest"),
        (await look(CountDelayed())).pending,
    ]


def test_commands_that_were_kept_as_bytes_tell_another_broker_the_same_story(tmp_path: Path) -> None:
    async def walk() -> None:
        told: Told = []
        async with running(FolderDisk(tmp_path / "first")) as broker:
            await first_time(broker, told)
            first = await seen(broker)
        async with running(FolderDisk(tmp_path / "second")) as broker:
            for kind, encoded in told:
                await ask(broker, kind, encoded)
            second = await seen(broker)

        assert second == first
        assert [message.value for message in first[0]] == [b"one", b"two", b"three", b"four"]  # type: ignore[attr-defined]
        assert first[4:6] == [3, ["__system", "acme"]]
        assert first[7] == 1

    asyncio.run(walk())
