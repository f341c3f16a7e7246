"""append: record batches that a client built go into the log as they are."""

from collections.abc import Awaitable, Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.delays.append import append_delayed, find_delays, find_stored
from goqueue.broker.schemas.check import Looked, look, look_long, screen
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import check_due, take_batches
from goqueue.broker.transactions.writes import admit_batches
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Append, Appended
from goqueue.model.errors import SchemaMismatch
from goqueue.model.messages import Acks, Lane
from goqueue.model.schemas import OnInvalid, SchemaValidation
from goqueue.model.settings import TopicSettings
from goqueue.records.batch import has_wishes, split_lanes
from goqueue.records.layout import BatchHeader, read_header
from goqueue.records.record_check import check_incoming


def append(broker: Broker, command: Append, looked: Looked | None = None) -> Appended:
    """Check, tell duplicates, split by lane, store. Offsets are fixed on return; `committed` may follow.

    Raises Unchecked, before anything is done, where the topic's schemas take time to be heard: then
    `append_when_checked` does the same.
    """
    broker.admit(command.target.topic)
    partition = broker.partition(command.target)
    partition.admit_write()
    settings = partition.log.settings
    headers, bodies, wishes = _read(command, settings)
    inspect_compressed = settings.inspect_compressed
    is_checked = settings.schema_validation is not SchemaValidation.NONE
    batches: Sequence[CheckedBatch] = ()
    if is_checked:
        batches = _batches(headers, bodies, inspect_compressed=inspect_compressed, wishes=wishes)
        looked = looked or look(broker, command.target.topic, settings, batches)
    else:
        looked = None
    joined = admit_batches(
        broker, partition, headers, may_join=command.may_join, transactional_id=command.transactional_id
    )
    count = sum(header.record_count for header in headers)
    if partition.account is not None:
        take_batches(broker, partition.account, headers, bodies)
    splits = []
    if wishes:
        splits = find_delays(broker, partition, bodies, headers, inspect_compressed=inspect_compressed)
    if splits:
        if looked is not None and looked.problems:
            raise SchemaMismatch(looked.problems)
        if partition.account is not None:
            due_ms = max(message.due_ms or 0 for split in splits for message in split.later)
            check_due(broker, command.target.topic, due_ms)
        outcome = append_delayed(broker, partition, splits, headers, command.acks)
        if command.acks is not Acks.ALL or joined is None:
            return outcome
        return outcome._replace(committed=_all(joined, outcome.committed))
    stored_offset = find_stored(broker, partition, headers[0], count)
    quarantine = None
    # What a crash has taken out of quarantine is put there again with a batch that is stored already.
    if stored_offset is None or (is_checked and settings.schema_on_invalid is OnInvalid.QUARANTINE):
        if looked is None:
            batches = _batches(headers, bodies, inspect_compressed=inspect_compressed, wishes=wishes)
        else:
            batches, quarantine = screen(broker, partition, batches, looked)
        if stored_offset is None:
            stored_offset = partition.append(batches)
    outcome = appended(partition, stored_offset, count, command.acks)
    if command.acks is not Acks.ALL or (joined is None and quarantine is None):
        return outcome
    set_aside = None if quarantine is None else quarantine.committed(quarantine.log.end_offset)
    return outcome._replace(committed=_all(joined, set_aside, outcome.committed))


def _read(command: Append, settings: TopicSettings) -> tuple[list[BatchHeader], list[memoryview], bool]:
    """The batches of a command, if they are sound; and whether a message in them may wish for something."""
    headers, are_plain = check_incoming(
        command.batches,
        max_batch_bytes=settings.max_message_bytes,
        inspect_compressed=settings.inspect_compressed,
        is_thorough=settings.inspect_records,
    )
    wishes = not are_plain and has_wishes(
        command.batches, headers, inspect_compressed=settings.inspect_compressed
    )
    return headers, _cut(command.batches, headers), wishes


async def append_when_checked(broker: Broker, command: Append) -> Appended:
    """The same where it takes time to check the messages; offsets are fixed on return."""
    while True:
        broker.admit(command.target.topic)
        partition = broker.partition(command.target)
        partition.admit_write()
        settings = partition.log.settings
        if settings.schema_validation is SchemaValidation.NONE:
            return append(broker, command)  # it has been changed a moment ago
        headers, bodies, wishes = _read(command, settings)
        batches = _batches(headers, bodies, inspect_compressed=settings.inspect_compressed, wishes=wishes)
        looked = await look_long(broker, command.target.topic, settings, batches)
        if broker.partition(command.target).log.settings is settings:
            return append(broker, command, looked)


async def _all(*waits: Awaitable[None] | None) -> None:
    for wait in waits:
        if wait is not None:
            await wait


def appended(partition: Partition, base_offset: int, count: int, acks: Acks) -> Appended:
    """The answer to whoever stored messages, with what is left to wait for."""
    committed = partition.committed(base_offset + count) if acks is Acks.ALL else None
    return Appended(base_offset, partition.log.start_offset, committed)


def _cut(buffer: memoryview, headers: list[BatchHeader]) -> list[memoryview]:
    bodies = []
    position = 0
    for header in headers:
        bodies.append(buffer[position : position + header.size_bytes])
        position += header.size_bytes
    return bodies


def _batches(
    headers: list[BatchHeader], bodies: list[memoryview], *, inspect_compressed: bool, wishes: bool
) -> list[CheckedBatch]:
    """What is to be stored: the batches as they came, or where messages wish for other lanes one for each."""
    batches = [CheckedBatch(header, body, Lane.NORMAL) for header, body in zip(headers, bodies, strict=True)]
    if not wishes:
        return batches
    return [
        CheckedBatch(header if part is body else read_header(part), part, lane)
        for header, body, _ in batches
        for part, lane in split_lanes(body, header, inspect_compressed=inspect_compressed)
    ]
