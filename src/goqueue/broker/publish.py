"""publish: messages are routed, encoded and stored; the answer tells each one's place."""

from collections.abc import Awaitable, Sequence

import mmh3

from goqueue.broker.append import appended
from goqueue.broker.broker import Broker, OpenTopic
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Appended, Placed, Publish, Published
from goqueue.model.errors import GoQueueError, MessageTooLarge, PartitionNotFound
from goqueue.model.messages import Acks, Message
from goqueue.records.batch import encode
from goqueue.records.layout import read_header


async def publish(broker: Broker, command: Publish) -> Published:
    """Take in messages: admit, route, encode, store, wait for the disk. A bad one does not spoil the rest."""
    broker.admit(command.topic)
    topic = broker.topic(command.topic)
    max_bytes = min(
        broker.config.limits.message_bytes, broker.metadata.topic(command.topic).settings.max_message_bytes
    )
    results: list[Placed | GoQueueError | None] = [None] * len(command.messages)
    routed: dict[int, list[int]] = {}
    for index, message in enumerate(command.messages):
        size = len(message.value or b"") + len(message.key or b"")
        if size > max_bytes:
            results[index] = MessageTooLarge(f"a message of {size} bytes is over the limit of {max_bytes}")
            continue
        partition = route(topic, message)
        if not 0 <= partition < len(topic.partitions):
            results[index] = PartitionNotFound(command.topic, partition)
            continue
        routed.setdefault(partition, []).append(index)
    waiting: list[tuple[list[int], Awaitable[None]]] = []
    for partition, indexes in routed.items():
        try:
            stored = _store(broker, topic, partition, [command.messages[i] for i in indexes], command.acks)
        except GoQueueError as error:
            _fill(results, indexes, error)
            continue
        for offset, index in enumerate(indexes, stored.base_offset):
            results[index] = Placed(partition, offset)
        if stored.committed is not None:
            waiting.append((indexes, stored.committed))
    for indexes, committed in waiting:
        try:
            await committed
        except GoQueueError as error:
            _fill(results, indexes, error)
    return [result for result in results if result is not None]


def route(topic: OpenTopic, message: Message) -> int:
    """The partition asked for, else the key's, else the next in turn."""
    if message.partition is not None:
        return message.partition
    count = len(topic.partitions)
    if message.key:
        return mmh3.hash(message.key, 0, False) % count
    partition = topic.next_partition % count
    topic.next_partition = partition + 1
    return partition


def _store(
    broker: Broker, topic: OpenTopic, number: int, messages: Sequence[Message], acks: Acks
) -> Appended:
    partition = topic.partitions[number]
    batches = [
        CheckedBatch(read_header(body), body, lane)
        for body, lane in encode(messages, now_ms=broker.clock.wall_ms())
    ]
    return appended(partition, partition.append(batches), len(messages), acks)


def _fill(results: list[Placed | GoQueueError | None], indexes: list[int], error: GoQueueError) -> None:
    for index in indexes:
        results[index] = error
