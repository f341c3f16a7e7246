"""Where messages go that do not fit their topic's schemas, when the topic keeps them: {topic}.quarantine.

The topic is created with the first of them and has at least as many partitions as the one they were sent
to: a message keeps its partition. Those of a producer that numbers its messages keep their numbers too. By
these they are recognised when a batch is sent again, so that a crash neither loses nor doubles one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TypeVar

from goqueue.broker.appending import UPWARDS, append_once, batches_of, numbered_batches
from goqueue.broker.broker import Broker
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import add_partitions, create_topic
from goqueue.model.commands import AsideRun, KeepAside
from goqueue.model.errors import (
    GoQueueError,
    InvalidPartitionCount,
    QuarantineNotReady,
    TopicExists,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message, StoredMessage
from goqueue.model.names import TOPIC_NAME_CHARACTERS_MAX
from goqueue.model.places import Command
from goqueue.model.schemas import QUARANTINE_SUFFIX
from goqueue.model.topics import AddPartitions, CreateTopic
from goqueue.records.layout import NO_SEQUENCE, BatchHeader

log = logging.getLogger(__name__)

C = TypeVar("C", bound=Command)
STORY_PREFIX = "goqueue-quarantine-"


def quarantine_of(topic: str) -> TopicName | None:
    """The topic for messages that do not fit; None where there can be none, and they are refused."""
    if topic.endswith(QUARANTINE_SUFFIX) or len(topic) + len(QUARANTINE_SUFFIX) > TOPIC_NAME_CHARACTERS_MAX:
        return None
    return TopicName(topic + QUARANTINE_SUFFIX)


async def open_quarantine(broker: Broker, topic: str, target: TopicName) -> None:
    """Create the topic for messages that do not fit, or enlarge it, as need be."""
    count = len(broker.topic(topic).partitions)
    if target not in broker.topics:
        with suppress(TopicExists):  # somebody else was quicker
            await _run(broker, create_topic, CreateTopic(name=target, partitions=count, is_own=True))
    if target not in broker.topics:
        raise QuarantineNotReady(target)  # it is agreed on, and this node is yet to hear of it
    if len(broker.topic(target).partitions) < count:
        with suppress(InvalidPartitionCount):  # and here
            await _run(broker, add_partitions, AddPartitions(name=target, total=count, is_own=True))


async def _run(broker: Broker, verb: Callable[[Broker, C], Awaitable[object]], command: C) -> None:
    """Do something here, or where it is decided for all."""
    if broker.forwarding is None:
        await verb(broker, command)
    else:
        await broker.forwarding.run(verb, command)


def quarantine_partition(broker: Broker, source: TopicPartition, target: TopicName) -> Partition:
    """The partition for messages of another one. Where it is missing it is made, which takes a moment."""
    opened = broker.topics.get(target)
    if opened is None or source.partition >= len(opened.partitions):
        if target not in broker.schemas.quarantines_opening:
            broker.schemas.quarantines_opening.add(target)
            broker.keep(asyncio.get_running_loop().create_task(_open_later(broker, source.topic, target)))
        raise QuarantineNotReady(target)
    return opened.partitions[source.partition]


async def _open_later(broker: Broker, topic: TopicName, target: TopicName) -> None:
    try:
        await open_quarantine(broker, topic, target)
    except GoQueueError as error:
        # Whoever sends such a message next tries again.
        log.warning("quarantine_not_opened topic=%s reason=%s", target, error)
    finally:
        broker.schemas.quarantines_opening.discard(target)


def told(message: Message, topic: str, reason: str, now_ms: int) -> Message:
    """A message as it is kept: the same, with the story why. It is not delayed there."""
    own = tuple(pair for pair in message.headers if not pair[0].startswith(STORY_PREFIX))
    facts = {"original-topic": topic, "reason": reason, "time": now_ms}
    if message.timestamp_ms is not None:
        facts["original-timestamp"] = message.timestamp_ms
    story = tuple((STORY_PREFIX + name, str(fact).encode()) for name, fact in facts.items())
    return message._replace(headers=own + story, timestamp_ms=None, due_ms=None)


def aside_runs(
    source: TopicPartition,
    header: BatchHeader,
    messages: Sequence[StoredMessage],
    problems: Mapping[int, str],
    *,
    now_ms: int,
) -> Iterator[AsideRun]:
    """Those messages of a batch that do not fit, as they are kept."""
    for _, run in groupby(enumerate(problems), key=lambda pair: pair[1] - pair[0]):
        indexes = [index for _, index in run]
        kept = [told(_given(messages[index]), source.topic, problems[index], now_ms) for index in indexes]
        is_numbered = header.producer_id >= 0 and header.base_sequence != NO_SEQUENCE
        first = header.base_sequence + indexes[0] if is_numbered else NO_SEQUENCE
        yield AsideRun(kept, header.producer_id, header.producer_epoch, first)


def store_aside(partition: Partition, runs: Iterable[AsideRun], *, now_ms: int) -> None:
    """Store what does not fit, except what is there already."""
    for kept, producer_id, producer_epoch, first in runs:
        if first == NO_SEQUENCE:
            append_once(partition, batches_of(kept, now_ms=now_ms))
            continue
        batches = numbered_batches(
            kept, producer_id=producer_id, producer_epoch=producer_epoch, first=first, now_ms=now_ms
        )
        for batch in batches:
            append_once(partition, [batch], UPWARDS)  # what lies between did fit, and is not here


async def keep_aside(broker: Broker, command: KeepAside) -> None:
    """At the leader of a partition in quarantine: store what another node was sent, and wait for it."""
    partition = broker.partition(command.target)
    partition.admit_write()
    partition.admit_all()
    store_aside(partition, command.runs, now_ms=broker.clock.wall_ms())
    committed = partition.committed(partition.log.end_offset)
    if committed is not None:
        await committed


def _given(stored: StoredMessage) -> Message:
    return Message(stored.value, stored.key, stored.headers, stored.lane, timestamp_ms=stored.timestamp_ms)
