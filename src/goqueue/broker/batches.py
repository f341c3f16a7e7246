"""append_entries: record batches for many partitions in one step, each with its address before it.

Everything is checked before the first batch is stored, so that a bad one leaves no trace of the rest.
"""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from goqueue.broker.append import appended
from goqueue.broker.broker import Broker
from goqueue.broker.schema_check import refuse_misfits
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import EntryPlaced
from goqueue.model.errors import InvalidBatch, InvalidRecord
from goqueue.model.ids import NO_PRODUCER, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.schemas import SchemaValidation
from goqueue.model.settings import MiB
from goqueue.records.entries import read_entries
from goqueue.records.layout import TRANSACTIONAL, check_batches

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""


class AddressedBatch(NamedTuple):
    """A checked batch and the partition it is for."""

    target: TopicPartition
    batch: CheckedBatch


def check_entries(broker: Broker, buffer: memoryview) -> list[AddressedBatch]:
    """All batches of a bulk write, or the error that names what is wrong with one of them."""
    entries = read_entries(buffer)
    if not entries:
        raise InvalidBatch("a bulk write needs at least one entry")
    checked = []
    for target, lane, body in entries:
        broker.admit(target.topic)
        settings = broker.partition(target).log.settings
        headers = check_batches(body, max_batch_bytes=settings.max_message_bytes)
        if len(headers) != 1:
            raise InvalidBatch(f"an entry holds one record batch, not {len(headers)}")
        header = headers[0]
        if header.producer_id != NO_PRODUCER or header.attributes & TRANSACTIONAL:
            raise InvalidRecord("a batch of a bulk write belongs to no producer and no transaction")
        if settings.schema_validation is not SchemaValidation.NONE:
            refuse_misfits(broker, target.topic, settings, [body])
        checked.append(AddressedBatch(target, CheckedBatch(header, body, lane)))
    return checked


async def append_entries(broker: Broker, buffer: memoryview, acks: Acks) -> list[EntryPlaced]:
    """Store all batches of a bulk write, one place each, in order. The buffer is patched in place."""
    placed: list[EntryPlaced] = []
    waits: list[Awaitable[None]] = []
    size = 0
    for target, batch in check_entries(broker, buffer):
        if size >= YIELD_BYTES:
            await asyncio.sleep(0)
            broker.admit(target.topic)
            size = 0
        partition = broker.partition(target)
        count = batch.header.record_count
        stored = appended(partition, partition.append([batch]), count, acks)
        placed.append(EntryPlaced(target, stored.base_offset, count))
        if stored.committed is not None:
            waits.append(stored.committed)
        size += len(batch.body)
    for committed in waits:
        await committed
    return placed
