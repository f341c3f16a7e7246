"""What the log tells of a message: when it came and how, whether it is on the disk, where it comes from."""

from collections.abc import Mapping
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.scan import KEEPER_ID
from goqueue.broker.queue.dead_letters import REDRIVES_HEADER, STORY_PREFIX
from goqueue.broker.read.read import read
from goqueue.broker.schemas import quarantine
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tracing.places import TracePlace
from goqueue.core.telemetry.spans import SpanMaker
from goqueue.model.commands import PartitionRead, PartitionReadFailed, Read
from goqueue.model.delays import DELIVER_AT_HEADER
from goqueue.model.errors import InvalidRecord, MessageNotFound, OffsetOutOfRange
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.numbers import whole_number
from goqueue.model.settings import KiB
from goqueue.model.telemetry import Fact, Span, Stage, Witness
from goqueue.model.transactions import Isolation
from goqueue.records.batch import open_batch
from goqueue.records.layout import CONTROL, TRANSACTIONAL, BatchHeader, Codec, read_header

US_PER_MS = 1_000
UNTIMED: Mapping[str, Fact] = {"time_known": False}
"""Goes with a span of which it is only known that it happened: its time is the earliest that it can be."""


_NEAR_COUNT = 100
_NEAR_BYTES = 16 * KiB
"""When the next message that is looked for is so near, so much is read at once."""
_WHY_IN_QUARANTINE = {
    quarantine.STORY_PREFIX + "original-topic": "quarantined_from",
    quarantine.STORY_PREFIX + "reason": "quarantined_because",
}


class Record(NamedTuple):
    """A message as the log has it, and the header of its batch."""

    message: StoredMessage
    header: BatchHeader


async def look(broker: Broker, source: TopicPartition, offset: int) -> Record:
    """The message at an offset, also one that no reader of committed messages sees."""
    found = await look_at_many(broker, source, [offset])
    if offset in found:
        return found[offset]
    partition = broker.partition(source)
    log, mark = partition.log, partition.commit_mark
    if offset < log.start_offset:
        why = f"retention has deleted it, and the log begins at {log.start_offset}"
    elif offset >= mark:
        why = f"it is still to be written, and the log ends at {mark}"
    else:
        why = "what stands there is no message, but a transaction's end or one that was left out"
    raise MessageNotFound(*source, offset, why)


async def look_at_many(broker: Broker, source: TopicPartition, offsets: list[int]) -> dict[int, Record]:
    """The same for rising offsets; what is not there is left out. A batch is opened once."""
    found: dict[int, Record] = {}
    wanted = set(offsets)
    position = 0
    slices = Slices(broker.clock)
    for offset, next_offset in zip(offsets, [*offsets[1:], None], strict=True):
        if offset < position:
            continue
        await slices.pause()
        is_near = next_offset is not None and next_offset - offset < _NEAR_COUNT
        part = PartitionRead(source, offset, _NEAR_BYTES if is_near else 1)
        [outcome] = await read(broker, Read(partitions=[part], isolation=Isolation.UNCOMMITTED))
        if isinstance(outcome, PartitionReadFailed):
            if isinstance(outcome.error, OffsetOutOfRange):
                continue
            raise outcome.error
        for body, lane in zip(outcome.batches, outcome.lanes, strict=True):
            header = read_header(body)
            position = header.end_offset
            if header.attributes & CONTROL or wanted.isdisjoint(range(header.base_offset, position)):
                continue
            try:
                messages = open_batch(body, lane)
            except InvalidRecord:
                continue  # its producer built it wrongly, and nobody can read it
            found |= {m.offset: Record(m, header) for m in messages if m.offset in wanted}
    return found


def log_spans(broker: Broker, source: TopicPartition, record: Record, maker: SpanMaker) -> list[Span]:
    """The stages that a stored message has gone through for certain."""
    partition = broker.partition(source)
    message, header = record
    time_us = message.timestamp_ms * US_PER_MS
    spans = [
        maker.make(Stage.RECEIVED, time_us, Witness.LOG, facts=_facts_of(message)),
        maker.make(Stage.PARTITIONED, time_us, Witness.LOG, facts=_batch_facts(header)),
    ]
    if header.producer_id == KEEPER_ID:
        spans.append(maker.make(Stage.FIRED, time_us, Witness.LOG))
    if message.offset < partition.commit_mark:
        spans.append(maker.make(Stage.PERSISTED, time_us, Witness.LOG, facts=UNTIMED))
    if header.attributes & TRANSACTIONAL and (stage := _outcome(partition, record)) is not None:
        facts: dict[str, Fact] = {"producer_id": header.producer_id, **UNTIMED}
        spans.append(maker.make(stage, time_us, Witness.LOG, facts=facts))
    return spans


def origin_of(message: StoredMessage) -> TracePlace | None:
    """Where a dead letter comes from."""
    facts = story_of(message)
    topic, partition, offset = (
        facts.get(f"original-{name}", "") for name in ("topic", "partition", "offset")
    )
    number, at = whole_number(partition), whole_number(offset)
    if not topic or number is None or at is None:
        return None
    return TracePlace(TopicPartition(TopicName(topic), number), at)


def was_redriven(message: StoredMessage) -> bool:
    """Whether it was a dead letter and has been sent back."""
    return origin_of(message) is None and any(name == REDRIVES_HEADER for name, _ in message.headers)


def story_of(message: StoredMessage) -> dict[str, str]:
    """What a dead letter, or one that was sent back, carries with it."""
    return {
        name.removeprefix(STORY_PREFIX): (value or b"").decode(errors="replace")
        for name, value in message.headers
        if name.startswith(STORY_PREFIX)
    }


def _facts_of(message: StoredMessage) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        "priority": message.lane.label,
        "key_bytes": len(message.key or b""),
        "value_bytes": len(message.value or b""),
    }
    origin = origin_of(message)
    if origin is not None:
        story = story_of(message)
        facts["from"] = f"{origin.source}@{origin.offset}"
        facts |= {name: story[name] for name in ("reason", "attempts", "group", "error") if story.get(name)}
    for name, value in message.headers:
        if name in _WHY_IN_QUARANTINE:
            facts[_WHY_IN_QUARANTINE[name]] = (value or b"").decode(errors="replace")
        if name in (REDRIVES_HEADER, DELIVER_AT_HEADER) and (number := whole_number(value)) is not None:
            facts[name.removeprefix("goqueue-").replace("-", "_")] = number
    return facts


def _batch_facts(header: BatchHeader) -> dict[str, Fact]:
    facts: dict[str, Fact] = {
        "batch_messages": header.record_count,
        "batch_bytes": header.size_bytes,
        "leader_epoch": header.leader_epoch,
    }
    if header.codec != Codec.NONE:
        facts["compression"] = Codec(header.codec).name.lower()
    if header.producer_id >= 0:
        facts |= {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch}
    return facts


def _outcome(partition: Partition, record: Record) -> Stage | None:
    """How the transaction of a message ended; None while it is open."""
    offset, producer_id = record.message.offset, record.header.producer_id
    opened = {one.producer_id: one.first_offset for one in partition.transactions.all()}
    if opened.get(producer_id, offset + 1) <= offset:
        return None
    aborted = partition.log.aborted.between(offset, offset + 1) if partition.log.aborted else ()
    return Stage.ABORTED if any(who == producer_id for who, _ in aborted) else Stage.COMMITTED
