"""group_lag: how far a group is behind, in messages and in time, partition by partition.

In time: how long ago the first message that the group has not read was stored. Its time stands in its
batch, so a batch is read for it, in a thread and a few partitions at a time; the answer is remembered,
because a group that stands still is asked for again and again.

Members over HTTP and consumers of queues see nothing behind the first open transaction of a partition, so
they cannot be behind there. Of the consumers of Kafka clients nobody knows what they read: their end is the
high watermark, as Kafka's tools have it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_chunk
from goqueue.broker.remote.partition import RemoteLog
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable, ReadableLog
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.groups import GroupRecord
from goqueue.log.reading import Chunk, from_disk
from goqueue.model.errors import GoQueueError, GroupNotFound, ShuttingDown
from goqueue.model.group_commands import DescribeLag
from goqueue.model.groups import GroupKind, GroupLag, PartitionLag
from goqueue.model.ids import ProducerId, TopicName, TopicPartition, places_of
from goqueue.model.names import checked_group_name
from goqueue.model.transactions import Isolation, OpenTransaction, ProducerEpoch
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header

_LOOK_UPS_AT_ONCE = 32
_UNKNOWN = _NEVER = -1
_number_of: Callable[[tuple[int, int]], int] = itemgetter(0)
_offset_of: Callable[[tuple[int, int]], int] = itemgetter(1)
_ISOLATIONS = {GroupKind.HTTP: Isolation.COMMITTED, GroupKind.SHARE: Isolation.COMMITTED}


class Unread(NamedTuple):
    """A partition in which the group has something to read, and where that begins."""

    at: int
    log: ReadableLog
    offset: int


async def group_lag(broker: Broker, command: DescribeLag) -> GroupLag:
    """How far a group is behind in each partition that it has committed for or is to read."""
    if not broker.is_open:
        raise ShuttingDown
    if not command.group:
        checked_group_name(command.group)
    record = broker.coordinator.journals.record(command.group)
    if record is None:
        raise GroupNotFound(command.group)
    slices = Slices(broker.clock)
    await commit_written(_partitions(broker, record))
    await slices.pause()
    lags, unread = await lags_of(broker, record)
    for at, stored_ms in (await stored_times(broker, unread)).items():
        age_ms = max(broker.clock.wall_ms() - stored_ms, 0) if stored_ms >= 0 else _UNKNOWN
        lags[at] = lags[at]._replace(lag_ms=age_ms)
        if slices.is_over:
            await slices.pause()
    return GroupLag(command.group, tuple(lags))


async def lags_of(broker: Broker, record: GroupRecord) -> tuple[list[PartitionLag], list[Unread]]:
    """How far a group is behind in messages, and where to look for how long; waits for no disk."""
    slices = Slices(broker.clock)
    lags: list[PartitionLag] = []
    unread: list[Unread] = []
    isolation = _ISOLATIONS.get(record.kind, Isolation.UNCOMMITTED)
    for target, committed_offset in _positions(broker, record):
        lag, log, offset = _lag_of(broker, target, committed_offset, isolation)
        if log is not None and lag.lag > 0:
            unread.append(Unread(len(lags), log, offset))
        lags.append(lag)
        if slices.is_over:
            await slices.pause()
    return lags, unread


def _positions(broker: Broker, record: GroupRecord) -> Iterator[tuple[TopicPartition, int]]:
    """Partitions of the group with the offset committed for each, in order, as they are at the first of them.

    A group of HTTP members begins at the start where it has committed nothing, so that is behind, too.
    """
    offsets: defaultdict[TopicName, dict[int, int]] = defaultdict(dict)
    membership = record.membership
    if isinstance(membership, AssignedGroup) and membership.terms.kind is GroupKind.HTTP:
        for topic, count in membership.topics.items():
            offsets[topic] = dict.fromkeys(range(count), _NEVER)
    for topic, topic_id, rows, _ in record.offsets.topics():
        known = broker.metadata.topics.get(topic)
        if known is not None and known.topic_id == topic_id:
            offsets[topic].update({row[0]: row[1] for row in rows})
    for topic in sorted(offsets):
        numbers = sorted(offsets[topic].items())
        yield from zip(places_of(topic, map(_number_of, numbers)), map(_offset_of, numbers), strict=True)


def _partitions(broker: Broker, record: GroupRecord) -> Iterator[Readable]:
    """All of its partitions that there are."""
    for target, _ in _positions(broker, record):
        topic = broker.topics.get(target.topic)
        if topic is not None and target.partition < len(topic.readables):
            yield topic.readables[target.partition]


def _lag_of(
    broker: Broker, target: TopicPartition, committed_offset: int, isolation: Isolation
) -> tuple[PartitionLag, ReadableLog | None, int]:
    """The lag in messages, and where the first of them is. What retention has removed is no longer behind."""
    try:
        partition = broker.readable(target)
        log, end_offset = partition.log, partition.end_for(isolation)
    except GoQueueError:
        return PartitionLag(*target, committed_offset, _UNKNOWN, _UNKNOWN, _UNKNOWN), None, 0
    offset = max(committed_offset, log.start_offset)
    lag = max(end_offset - offset, 0)
    held_back_by = _open_transaction(broker, partition)
    return PartitionLag(*target, committed_offset, end_offset, lag, 0, held_back_by), log, offset


def _open_transaction(broker: Broker, partition: Readable) -> OpenTransaction | None:
    """The transaction that holds back readers of committed messages, if one does."""
    oldest = partition.oldest_transaction
    if oldest is None:
        return None
    owner = broker.transactions.of_producer(oldest.producer_id)
    return OpenTransaction(
        transaction_id="" if owner is None else owner.transaction_id,
        transactional_id="" if owner is None else owner.transactional_id,
        producer=ProducerEpoch(ProducerId(oldest.producer_id), oldest.epoch),
        first_offset=oldest.first_offset,
        started_ms=oldest.started_ms if owner is None else owner.started_ms,
    )


async def stored_times(broker: Broker, unread: list[Unread]) -> dict[int, int]:
    """When the first unread messages were stored, by their place in the list of lags; -1: cannot be told."""
    times: dict[int, int] = {}
    missing: list[Unread] = []
    slices = Slices(broker.clock)
    for place in unread:
        if slices.is_over:
            await slices.pause()
        known = broker.coordinator.stored_times.get(place.log, place.offset)
        if known is None:
            missing.append(place)
        else:
            times[place.at] = known
    at_other_nodes = [place for place in missing if isinstance(place.log, RemoteLog)]
    if at_other_nodes:
        missing = [place for place in missing if not isinstance(place.log, RemoteLog)]
        times |= await _look_up_elsewhere(broker, at_other_nodes)
    rest = iter(missing)
    # A few at a time, so that others get at the threads and at the interpreter in between.
    while some := list(islice(rest, _LOOK_UPS_AT_ONCE)):
        for place, stored_ms in zip(some, await broker.threads.run(_look_up, some), strict=True):
            times[place.at] = stored_ms
            if stored_ms >= 0:
                broker.coordinator.stored_times.remember(place.log, place.offset, stored_ms)
    return times


async def _look_up_elsewhere(broker: Broker, places: list[Unread]) -> dict[int, int]:
    """The same of what other nodes hold, which is asked for a few at a time and waits in no thread."""

    async def look_up(place: Unread) -> int:
        try:
            log, offset = place.log, place.offset
            return _time_in(await read_chunk(broker, log, offset, 1, log.end_offset, framed=False), offset)
        except (GoQueueError, IndexError, StopIteration):
            return _UNKNOWN

    times: dict[int, int] = {}
    rest = iter(places)
    while some := list(islice(rest, _LOOK_UPS_AT_ONCE)):
        for place, stored_ms in zip(some, await asyncio.gather(*map(look_up, some)), strict=True):
            times[place.at] = stored_ms
            if stored_ms >= 0:
                broker.coordinator.stored_times.remember(place.log, place.offset, stored_ms)
    return times


def _look_up(places: list[Unread]) -> list[int]:
    return [_stored_ms(log, offset) for _, log, offset in places]


def _stored_ms(log: ReadableLog, offset: int) -> int:
    """The time of one message. Waits for the disk; opens the batch only when its header leaves a doubt."""
    try:
        return _time_in(log.read(offset, 1, end_offset=log.end_offset, read_bytes=from_disk), offset)
    except (GoQueueError, OSError, IndexError, StopIteration):
        # Retention has passed by, or the place cannot be read: a reader will be told, a look-up is not.
        return _UNKNOWN


def _time_in(chunk: Chunk, offset: int) -> int:
    header = read_header(chunk.batches[0])
    if header.base_offset == offset or header.first_timestamp_ms == header.max_timestamp_ms:
        return header.first_timestamp_ms
    messages = open_batch(chunk.batches[0], chunk.lanes[0])
    return next(message.timestamp_ms for message in messages if message.offset >= offset)
