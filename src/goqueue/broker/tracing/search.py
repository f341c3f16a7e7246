"""Looking for messages whose place is not known: by a producer's trace id, or among the dead letters.

Batches are searched as bytes and opened only when they hold what is looked for, in a thread, and no further
than a bound.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.records import Cancelled, Waiting, decode_record
from goqueue.broker.queue.delivery import dead_letters_of
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.tracing.log import US_PER_MS, origin_of, story_of
from goqueue.broker.tracing.places import TracePlace, context_in
from goqueue.core.telemetry.spans import SpanMaker
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.commands import FindOffset
from goqueue.model.errors import GoQueueError, InvalidRecord
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.numbers import whole_number
from goqueue.model.settings import MiB
from goqueue.model.telemetry import Fact, Span, Stage, TraceContext, Witness
from goqueue.records.batch import open_batch
from goqueue.records.compression import decompress
from goqueue.records.layout import CONTROL, HEADER_BYTES, Codec, read_header

_FOUND_MAX = 100
_OPENED_BYTES_MAX = 64 * MiB
_FIRST_LOOK_BYTES = 16 * MiB
"""What is asked for has mostly just been published."""
_PIECE_BYTES = MiB
_FOLLOWING_BYTES = 8 * MiB
"""Behind the time of a message so much is searched for what became of it."""


class DeadLetterFound(NamedTuple):
    place: TracePlace
    message: StoredMessage

    def span(self, maker: SpanMaker) -> Span:
        """How the message got there, as it tells itself."""
        story = story_of(self.message)
        time_ms = whole_number(story.get("time"))
        facts: dict[str, Fact] = {"to": f"{self.place.source}@{self.place.offset}"}
        facts |= {name: story[name] for name in ("reason", "attempts") if name in story}
        return maker.make(
            Stage.DEAD_LETTERED,
            (self.message.timestamp_ms if time_ms is None else time_ms) * US_PER_MS,
            Witness.LOG,
            group=story.get("group", ""),
            consumer=story.get("consumer", ""),
            error=story.get("error", ""),
            facts=facts,
        )


async def find_dead_letter(
    broker: Broker, source: TopicPartition, message: StoredMessage
) -> DeadLetterFound | None:
    """The dead letter that a message has become, if one is found soon behind the message's time."""
    target = dead_letters_of(broker, source)
    if target is None or target.topic not in broker.topics:
        return None
    partition = broker.partition(target)
    if not partition.is_leader:
        return None  # whoever leads it tells of it
    begin = (await find_offset(broker, FindOffset(source=target, spot=message.timestamp_ms))).offset
    if begin < 0:
        return None
    words = b"original-offset" + _header_value(b"%d" % message.offset)
    place = TracePlace(source, message.offset)
    found = await broker.threads.run(
        _search,
        partition.log,
        begin,
        partition.commit_mark,
        words,
        lambda dead: origin_of(dead) == place,
        _FOLLOWING_BYTES,
    )
    return DeadLetterFound(TracePlace(target, found[0].offset), found[0]) if found else None


async def find_redriven(
    broker: Broker, source: TopicPartition, message: StoredMessage, context: TraceContext
) -> TracePlace | None:
    """The dead letter that a message was before it was sent back: the last alike, as its trace tells."""
    target = dead_letters_of(broker, source)
    if target is None or target.topic not in broker.topics:
        return None
    partition = broker.partition(target)
    if not partition.is_leader:
        return None
    is_part = _is_part_of(context.trace_id)

    def is_alike(dead: StoredMessage) -> bool:
        return (dead.key, dead.value) == (message.key, message.value) and is_part(dead)

    found = await broker.threads.run(_search_end, partition.log, partition.commit_mark, context, is_alike)
    return TracePlace(target, found[-1].offset) if found else None


async def find_delivered(
    broker: Broker, target: TopicPartition, due_ms: int, context: TraceContext
) -> TracePlace | None:
    """Where a message lies that has fallen due: its time is when it was, and it carries its trace."""
    partition = broker.partition(target)
    begin = (await find_offset(broker, FindOffset(source=target, spot=due_ms))).offset
    if begin < 0:
        return None
    words = context.trace_id.encode()
    found = await broker.threads.run(
        _search,
        partition.log,
        begin,
        partition.commit_mark,
        words,
        _is_part_of(context.trace_id),
        _FOLLOWING_BYTES,
    )
    return next((TracePlace(target, one.offset) for one in found if one.timestamp_ms == due_ms), None)


async def find_scheduled(broker: Broker, message: StoredMessage, context: TraceContext) -> TracePlace | None:
    """The number that a message had while it waited, by the trace and the due time that it has kept."""
    if not broker.delays.is_here:
        return None  # another node keeps what is delayed
    delayed = broker.delays.store.journal.partition
    is_part = _is_part_of(context.trace_id)
    found = await broker.threads.run(_search_end, delayed.log, delayed.commit_mark, context, is_part)
    for record in map(decode_record, found):
        if isinstance(record, Waiting) and record.due_ms == message.timestamp_ms:
            return TracePlace(DELAYED, record.number)
    return None


def find_rewritten(log: PartitionLog, number: int, begin: int) -> StoredMessage | None:
    """A delayed message as it was written anew behind an offset; None if it was cancelled in the end.

    Waits for the disk.
    """

    def is_about_it(stored: StoredMessage) -> bool:
        record = decode_record(stored)
        return isinstance(record, Waiting | Cancelled) and record.number == number

    words = number.to_bytes(8, "big")
    found = _search(log, begin, log.end_offset, words, is_about_it, _FOLLOWING_BYTES)
    return found[-1] if found and isinstance(decode_record(found[-1]), Waiting) else None


async def find_by_trace_id(broker: Broker, trace_id: str) -> list[TracePlace]:
    """Messages that a producer made part of a trace, among those that were stored last."""
    await commit_written(broker.all_partitions())
    for max_bytes in (_FIRST_LOOK_BYTES, broker.config.tracing.search_bytes):
        logs = [
            (partition.source, partition.log, partition.commit_mark)
            for topic in broker.topics.values()
            for partition in topic.partitions
            if partition.is_here and not partition.is_failed
        ]
        if broker.delays.is_here:
            delayed = broker.delays.store.journal.partition
            logs.append((DELAYED, delayed.log, delayed.commit_mark))
        found = await broker.threads.run(
            _search_ends, logs, trace_id, min(max_bytes, broker.config.tracing.search_bytes)
        )
        if found:
            return found
    return []


def _search_ends(
    logs: Sequence[tuple[TopicPartition, PartitionLog, int]], trace_id: str, max_bytes: int
) -> list[TracePlace]:
    """The same in the ends of logs, so many bytes in all. What small logs do not need the large ones get."""
    found: list[TracePlace] = []
    smallest_first = sorted(logs, key=lambda pair: pair[1].size_bytes)
    for left, (source, log, end) in zip(range(len(logs), 0, -1), smallest_first, strict=True):
        share = max_bytes // left
        with suppress(GoQueueError, OSError):  # retention was quicker, or the topic is going
            begin = _end_part(log, share)
            messages = _search(log, begin, end, trace_id.encode(), _is_part_of(trace_id))
            found += [_place(source, message) for message in messages]
        max_bytes -= min(share, log.size_bytes)
    return sorted(set(found))[:_FOUND_MAX]


def _search_end(
    log: PartitionLog, end: int, context: TraceContext, matches: Callable[[StoredMessage], bool]
) -> list[StoredMessage]:
    """Messages of a trace that match, among the last of a log. Waits for the disk."""
    begin = _end_part(log, _FIRST_LOOK_BYTES)
    return _search(log, begin, end, context.trace_id.encode(), matches)


def _place(source: TopicPartition, message: StoredMessage) -> TracePlace:
    record = decode_record(message) if source == DELAYED else None
    return TracePlace(source, record.number if isinstance(record, Waiting) else message.offset)


def _is_part_of(trace_id: str) -> Callable[[StoredMessage], bool]:
    def matches(message: StoredMessage) -> bool:
        context = context_in(message.headers)
        return context is not None and context.trace_id == trace_id

    return matches


def _end_part(log: PartitionLog, size: int) -> int:
    """Where about so many bytes before its end a log has a batch begin."""
    if log.size_bytes <= size:
        return log.start_offset
    cuts = log.split(log.start_offset, log.end_offset, piece_bytes=max(log.size_bytes - size, 1))
    return cuts[0] if cuts else log.end_offset


def _search(
    log: PartitionLog,
    first: int,
    end: int,
    words: bytes,
    matches: Callable[[StoredMessage], bool],
    max_bytes: int | None = None,
) -> list[StoredMessage]:
    """The messages that match, in batches that hold some bytes. Waits for the disk."""
    found: list[StoredMessage] = []
    for body, lane in _batches(log, first, end, max_bytes):
        with suppress(InvalidRecord):  # nobody can read what its producer built
            if _holds(body, words):
                found += filter(matches, open_batch(body, lane))
    return found


def _holds(body: memoryview, words: bytes) -> bool:
    header = read_header(body)
    if header.attributes & CONTROL:
        return False
    if header.codec != Codec.NONE:
        body = decompress(body[HEADER_BYTES:], header.codec, bytes_max=_OPENED_BYTES_MAX)
    return words in bytes(body)


def _batches(
    log: PartitionLog, first: int, end: int, max_bytes: int | None
) -> Iterator[tuple[memoryview, int]]:
    offset, size = max(first, log.start_offset), 0
    while offset < end and (max_bytes is None or size < max_bytes):
        chunk = log.read(offset, _PIECE_BYTES, end_offset=end, read_bytes=from_disk)
        yield from zip(chunk.batches, chunk.lanes, strict=True)
        size += chunk.size
        offset = chunk.end_offset


def _header_value(value: bytes) -> bytes:
    """A header's value as it stands in a record: its length in zigzag, which is one byte here, and itself."""
    return bytes([2 * len(value)]) + value
