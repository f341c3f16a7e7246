"""publish: messages are routed, encoded and stored; the answer tells each one's place.

A message goes to the partition it names, else to its key's, else to the next in turn.
"""

from collections.abc import Awaitable, Sequence
from typing import cast

import mmh3

from goqueue.broker.append import appended
from goqueue.broker.broker import Broker, OpenTopic
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Appended, Placed, Publish, Published
from goqueue.model.errors import GoQueueError, MessageTooLarge, PartitionNotFound
from goqueue.model.messages import Acks, Message
from goqueue.records.batch import encode
from goqueue.records.layout import read_header

_hash = mmh3.hash
_new_placed = tuple.__new__
"""Past the named tuple's own constructor, which is Python and would be a tenth of all the work here."""


async def publish(broker: Broker, command: Publish) -> Published:
    """Take in messages: admit, route, encode, store, wait for the disk. A bad one does not spoil the rest."""
    broker.admit(command.topic)
    topic = broker.topic(command.topic)
    max_bytes = min(
        broker.config.limits.message_bytes, broker.metadata.topic(command.topic).settings.max_message_bytes
    )
    results: list[Placed | GoQueueError | None] = [None] * len(command.messages)
    routed: dict[int, list[int]] = {}
    count = len(topic.partitions)
    # A thousand messages pass here at a time: tuples are unpacked, nothing is called that need not be.
    for index, (value, key, _, _, partition, _) in enumerate(command.messages):
        size = (len(value) if value else 0) + (len(key) if key else 0)
        if size > max_bytes:
            results[index] = MessageTooLarge(f"a message of {size} bytes is over the limit of {max_bytes}")
            continue
        if partition is None:
            partition = _hash(key, 0, False) % count if key else topic.take_turn()
        elif not 0 <= partition < count:
            results[index] = PartitionNotFound(command.topic, partition)
            continue
        if partition in routed:
            routed[partition].append(index)
        else:
            routed[partition] = [index]
    waiting: list[tuple[list[int], Awaitable[None]]] = []
    for partition, indexes in routed.items():
        try:
            stored = _store(broker, topic, partition, [command.messages[i] for i in indexes], command.acks)
        except GoQueueError as error:
            _fill(results, indexes, error)
            continue
        for offset, index in enumerate(indexes, stored.base_offset):
            results[index] = _new_placed(Placed, (partition, offset))
        if stored.committed is not None:
            waiting.append((indexes, stored.committed))
    for indexes, committed in waiting:
        try:
            await committed
        except GoQueueError as error:
            _fill(results, indexes, error)
    return cast(Published, results)


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
