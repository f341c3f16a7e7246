"""append_entries: record batches for many partitions in one step, each with its address before it.

Everything is checked before the first batch is stored, so that a bad one leaves no trace of the rest.
"""

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.append import find_stored
from goqueue.broker.schemas.check import refuse_misfits
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import admit_amounts, check_message_sizes
from goqueue.broker.transactions.writes import admit_batches
from goqueue.broker.write.append import appended
from goqueue.broker.write.refusals import telling_refusals
from goqueue.core.access.account import Account
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import EntryPlaced
from goqueue.model.errors import InvalidBatch, InvalidRecord
from goqueue.model.ids import NO_PRODUCER, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.schemas import SchemaValidation
from goqueue.model.settings import MiB
from goqueue.records.entries import read_entries
from goqueue.records.layout import TRANSACTIONAL
from goqueue.records.record_check import check_incoming

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""


class AddressedBatch(NamedTuple):
    """A checked batch and the partition it is for."""

    target: TopicPartition
    batch: CheckedBatch


async def check_entries(
    broker: Broker, buffer: memoryview, *, may_be_numbered: bool = False
) -> list[AddressedBatch]:
    """All batches of a bulk write, or the error that names what is wrong with one of them.

    `may_be_numbered`: they may be of a producer that has each of its batches stored once.
    """
    entries = read_entries(buffer)
    if not entries:
        raise InvalidBatch("a bulk write needs at least one entry")
    checked = []
    amounts: dict[Account, tuple[int, int]] = {}
    for target, lane, body in entries:
        with telling_refusals(broker, [target.topic]):
            checked.append(
                AddressedBatch(
                    target, await _checked(broker, target, lane, body, may_be_numbered=may_be_numbered)
                )
            )
        account = broker.partition(target).account
        if account is not None:
            count, size = amounts.get(account, (0, 0))
            amounts[account] = (count + checked[-1].batch.header.record_count, size + len(body))
    with telling_refusals(broker, [target.topic for target, _ in checked]):
        admit_amounts(broker, amounts)
    return checked


async def _checked(
    broker: Broker, target: TopicPartition, lane: int, body: memoryview, *, may_be_numbered: bool
) -> CheckedBatch:
    """One batch, if it may be stored."""
    broker.admit(target.topic)
    partition = broker.partition(target)
    partition.admit_write()
    settings = partition.log.settings
    headers, _ = check_incoming(
        body,
        max_batch_bytes=settings.max_message_bytes,
        inspect_compressed=settings.inspect_compressed,
        is_thorough=settings.inspect_records,
    )
    if len(headers) != 1:
        raise InvalidBatch(f"an entry holds one record batch, not {len(headers)}")
    header = headers[0]
    if header.attributes & TRANSACTIONAL:
        raise InvalidRecord("a batch of a bulk write belongs to no transaction")
    if header.producer_id != NO_PRODUCER and not may_be_numbered:
        raise InvalidRecord("a batch that is staged belongs to no producer")
    if settings.schema_validation is not SchemaValidation.NONE:
        await refuse_misfits(broker, target.topic, settings, [body])
    if partition.account is not None:
        check_message_sizes(partition.account, [body])
    return CheckedBatch(header, body, lane)


async def append_entries(broker: Broker, buffer: memoryview, acks: Acks) -> list[EntryPlaced]:
    """Store all batches of a bulk write, one place each, in order. The buffer is patched in place.

    A numbered batch that was stored before is told by its first place.
    """
    placed: list[EntryPlaced] = []
    waits: list[Awaitable[None]] = []
    size = 0
    for target, batch in await check_entries(broker, buffer, may_be_numbered=True):
        if size >= YIELD_BYTES:
            await asyncio.sleep(0)
            broker.admit(target.topic)
            size = 0
        count = batch.header.record_count
        with telling_refusals(broker, [target.topic]):
            partition = broker.partition(target)
            stored = appended(partition, _store(broker, partition, batch), count, acks)
        placed.append(EntryPlaced(target, stored.base_offset, count))
        if stored.committed is not None:
            waits.append(stored.committed)
        size += len(batch.body)
    for committed in waits:
        await committed
    return placed


def _store(broker: Broker, partition: Partition, batch: CheckedBatch) -> int:
    """Append a batch, unless it is there; the offset of its first message."""
    admit_batches(broker, partition, [batch.header], may_join=False)
    stored_offset = find_stored(broker, partition, batch.header, batch.header.record_count)
    return partition.append([batch]) if stored_offset is None else stored_offset
