"""Batches of an epoch on their way into partitions: numbered as those of the sink's producer, taken in once.

They were checked when they were staged, and are stored whole now: what a topic asks of messages since then
does not concern them.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from functools import partial

from goqueue.broker.appending import LONG_AGO, appended, await_all
from goqueue.broker.broker import Broker
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.joining import verify
from goqueue.broker.transactions.writes import Unverified, admit_batches
from goqueue.broker.write.incoming import Incoming, admit_partition
from goqueue.broker.write.preparing import recoded_promised
from goqueue.broker.write.take_in import take_in
from goqueue.model.commands import Appended
from goqueue.model.errors import DuplicateSequence, InvalidRecord
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.settings import CompressionType, MiB, TopicSettings
from goqueue.model.sinks import AppendStaged
from goqueue.model.transactions import ProducerEpoch
from goqueue.records.batch import has_wishes
from goqueue.records.entries import Entry, read_entries
from goqueue.records.layout import SEQUENCE_MASK, read_header, stamp_producer

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""


def stamp(
    entries: Iterable[Entry],
    producer: ProducerEpoch,
    next_sequences: dict[TopicPartition, int],
    *,
    is_transactional: bool = False,
) -> None:
    """Make batches those of the sink's producer, numbered on from `next_sequences`."""
    for target, _, body in entries:
        sequence = next_sequences.get(target, 0)
        stamp_producer(
            body,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        next_sequences[target] = (sequence + read_header(body).record_count) & SEQUENCE_MASK


def promised(entry: Entry, settings: TopicSettings | None) -> Incoming:
    """A batch that was stamped, as its topic has it; None: there is none any more. For threads."""
    header = read_header(entry.body)
    inspect_compressed = settings is not None and settings.inspect_compressed
    wishes = has_wishes(entry.body, [header], inspect_compressed=inspect_compressed)
    incoming = Incoming([header], [entry.body], entry.lane, wishes, inspect_compressed, is_promised=True)
    return incoming if settings is None else recoded_promised(incoming, settings)


def take_in_promised(broker: Broker, partition: Partition, incoming: Incoming, acks: Acks) -> Appended:
    """Store a batch unless it is there, and tell what is left to wait for. Raises OutOfSequence."""
    try:
        return take_in(broker, partition, incoming, acks)
    except InvalidRecord:
        # A wish in a compressed batch, which the topic did not open when this was staged.
        return take_in(broker, partition, incoming._replace(has_wishes=False), acks)
    except DuplicateSequence:
        # It is there, so long ago that nobody knows where: whoever waits, waits for all.
        end_offset = partition.log.end_offset
        return appended(partition, end_offset, 0, acks)._replace(base_offset=LONG_AGO, is_duplicate=True)


async def append_staged(broker: Broker, command: AppendStaged) -> list[int]:
    """At the leaders: where batches of an epoch lie, part of its transaction, when they are committed.

    The partitions are part of the transaction already: what comes when it has ended is refused.
    """
    waits: list[Awaitable[None] | None] = []
    placed = []
    size = 0
    for entry in read_entries(command.entries):
        if size >= YIELD_BYTES:
            await asyncio.sleep(0)
            size = 0
        settings = admit_partition(broker, entry.target).log.settings
        if settings.compression_type is CompressionType.PRODUCER:
            incoming = promised(entry, settings)
        else:
            incoming = await broker.threads.run(partial(promised, entry, settings))
        partition = await _admitted(broker, entry.target, incoming, command.transactional_id)
        stored = take_in_promised(broker, partition, incoming, Acks.ALL)
        placed.append(stored.base_offset)
        waits.append(stored.committed)
        size += len(entry.body)
    await await_all(*waits)
    return placed


async def _admitted(
    broker: Broker, target: TopicPartition, incoming: Incoming, transactional_id: str
) -> Partition:
    """The partition, when this node leads it and the batch may be written. Nothing is awaited behind that."""
    while True:
        partition = admit_partition(broker, target)
        try:
            admit_batches(
                broker, partition, incoming.headers, may_join=False, transactional_id=transactional_id
            )
        except Unverified as unverified:
            await verify(broker, unverified)
            continue
        return partition
