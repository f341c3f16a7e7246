"""Steps of stories about the work queue: join, publish, take, settle."""

from collections.abc import Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delivery import Action, Poll, Receipt, Settle, SettleOutcome
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.groups import Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers, Lane, Message, StoredMessage
from goqueue.model.topics import CreateTopic
from tests.unit.broker.running import ORDERS

DEAD_ORDERS = TopicName("orders.dlq")


class Consumer(NamedTuple):
    group: str
    member_id: str


class Taken(NamedTuple):
    """A message as its consumer sees it."""

    partition: int
    offset: int
    value: str
    delivery_count: int
    receipt: str
    headers: Headers
    key: str


async def orders(broker: Broker, *, partitions: int = 1, **settings: str) -> None:
    """A topic; settings are given with underscores for dots."""
    texts = {f"goqueue.{name.replace('_', '.')}": value for name, value in settings.items()}
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=partitions, settings=texts))


async def put(broker: Broker, *values: str, lane: Lane = Lane.NORMAL, headers: Headers = ()) -> None:
    messages = [Message(value.encode(), None, headers, lane) for value in values]
    await publish(broker, Publish(topic=ORDERS, messages=messages))


async def put_keyed(broker: Broker, *pairs: tuple[str, str]) -> None:
    """Pairs of key and value."""
    messages = [Message(value.encode(), key.encode()) for key, value in pairs]
    await publish(broker, Publish(topic=ORDERS, messages=messages))


async def join(
    broker: Broker,
    client_id: str = "ann",
    *,
    group: str = "workers",
    topic: str = ORDERS,
    sharing: Sharing = Sharing.EAGER,
    key_order: bool = False,
) -> Consumer:
    joined = await join_assigned(
        broker,
        JoinAssigned(
            group=group,
            client_id=client_id,
            topics=[topic],
            sharing=sharing,
            key_order=key_order,
            session_timeout_ms=1_800_000,
        ),
    )
    return Consumer(group, joined.member_id)


async def take(
    broker: Broker,
    consumer: Consumer,
    limit: int = 100,
    *,
    wait_ms: int = 0,
    visibility_ms: int | None = None,
) -> list[Taken]:
    polled = await poll(
        broker,
        Poll(
            group=consumer.group,
            member_id=consumer.member_id,
            generation=0,
            limit=limit,
            wait_ms=wait_ms,
            visibility_ms=visibility_ms,
        ),
    )
    taken = []
    for source, nonce, messages, counts in polled.parts:
        for message in messages:
            count = counts.get(message.offset, 1)
            receipt = str(Receipt(source.topic, source.partition, message.offset, count, nonce))
            value, key = (message.value or b"").decode(), (message.key or b"").decode()
            taken.append(Taken(source.partition, message.offset, value, count, receipt, message.headers, key))
    return taken


def values(taken: Sequence[Taken]) -> list[str]:
    return [message.value for message in taken]


async def ack(broker: Broker, taken: Sequence[Taken]) -> SettleOutcome:
    return await settle(broker, Settle(action=Action.ACK, receipts=[one.receipt for one in taken]))


async def nack(
    broker: Broker, taken: Sequence[Taken], *, delay_ms: int | None = None, reason: str = ""
) -> SettleOutcome:
    receipts = [one.receipt for one in taken]
    command = Settle(action=Action.NACK, receipts=receipts, delay_ms=delay_ms, reason=reason)
    return await settle(broker, command)


async def reject(broker: Broker, taken: Sequence[Taken], reason: str = "bad") -> SettleOutcome:
    receipts = [one.receipt for one in taken]
    return await settle(broker, Settle(action=Action.REJECT, receipts=receipts, reason=reason))


async def extend(broker: Broker, taken: Sequence[Taken], visibility_ms: int) -> SettleOutcome:
    receipts = [one.receipt for one in taken]
    return await settle(broker, Settle(action=Action.EXTEND, receipts=receipts, visibility_ms=visibility_ms))


def floor(broker: Broker, group: str = "workers", partition: int = 0, topic: TopicName = ORDERS) -> int:
    """The group's committed offset, as every Kafka tool sees it."""
    record = broker.coordinator.journals.record(group)
    assert record is not None
    topic_id = broker.metadata.topic(topic).topic_id
    return record.offsets.of(topic, topic_id)[partition][1]


async def stored(broker: Broker, topic: TopicName, partition: int = 0) -> list[StoredMessage]:
    """All messages of a partition, in log order; none when the topic is not there."""
    if topic not in broker.topics:
        return []
    source = TopicPartition(topic, partition)
    return (await read_messages(broker, ReadMessages(source=source, limit=10_000))).messages
