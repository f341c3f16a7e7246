"""append_entries: record batches for many partitions in one step, each with its address before it.

Everything is checked before the first batch is stored, so that a bad one leaves no trace of the rest.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.asking import Told
from goqueue.broker.schemas.check import Looked, look_now_or_later, quarantine_for
from goqueue.broker.schemas.quarantine import open_quarantine
from goqueue.broker.tenants.quotas import admit_amounts, check_message_sizes
from goqueue.broker.transactions.writes import admit_batches
from goqueue.broker.write.asking import take_in_at_last
from goqueue.broker.write.incoming import Incoming, admit_partition, in_lanes, read_incoming
from goqueue.broker.write.later import part_by_time
from goqueue.broker.write.preparing import prepare
from goqueue.broker.write.refusals import telling_refusals
from goqueue.broker.write.take_in import take_in
from goqueue.core.access.account import Account
from goqueue.core.delays.marks import Marks
from goqueue.model.commands import Appended, AppendEntries, EntryPlaced
from goqueue.model.errors import InvalidBatch, InvalidRecord, SchemaMismatch
from goqueue.model.ids import NO_PRODUCER, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.schemas import SchemaValidation
from goqueue.model.settings import MiB, TopicSettings
from goqueue.records.entries import read_entries
from goqueue.records.layout import TRANSACTIONAL, BatchHeader

YIELD_BYTES = 4 * MiB
"""So much is appended at a time before others get their turn on the loop."""


class CheckedEntry(NamedTuple):
    """A sound batch and the partition it is for."""

    target: TopicPartition
    incoming: Incoming
    looked: Looked | None
    """What the topic's schemas say of its messages; None: nothing."""

    @property
    def body(self) -> memoryview:
        return self.incoming.bodies[0]


async def check_entries(broker: Broker, buffer: memoryview, *, is_staged: bool) -> list[CheckedEntry]:
    """All batches of a bulk write, or the error that names what is wrong with one of them.

    What `is_staged` is numbered later, and has no place yet in a log of which it could be told that a message
    is missing: there what does not fit is refused, also in topics that keep such messages aside.
    """
    entries = read_entries(buffer)
    if not entries:
        raise InvalidBatch("a bulk write needs at least one entry")
    checked: list[CheckedEntry] = []
    amounts: dict[Account, tuple[int, int]] = {}
    for target, lane, body in entries:
        with telling_refusals(broker, [target.topic]):
            entry = await _checked(broker, target, lane, body, is_staged=is_staged)
        checked.append(entry)
        account = broker.partition(target).account
        if account is not None:
            count, size = amounts.get(account, (0, 0))
            amounts[account] = (count + entry.incoming.message_count, size + len(body))
    with telling_refusals(broker, [entry.target.topic for entry in checked]):
        admit_amounts(broker, amounts)
    return checked


async def _checked(
    broker: Broker, target: TopicPartition, lane: int, body: memoryview, *, is_staged: bool
) -> CheckedEntry:
    """One batch, if it may be stored."""
    if is_staged and broker.is_one_of_several:
        broker.admit(target.topic)  # who leads the partition is asked when the epoch is committed
        partition = broker.partition(target)
        settings = broker.metadata.topic(target.topic).settings
    else:
        partition = admit_partition(broker, target)
        settings = partition.log.settings
    incoming = read_incoming(body, settings, lane)
    if settings.asks_of_batches:
        incoming = await prepare(broker, incoming, settings)
    _check_header(incoming.headers, is_staged=is_staged)
    looked = None
    if settings.schema_validation is not SchemaValidation.NONE:
        looked = await look_now_or_later(broker, target.topic, settings, in_lanes(incoming))
        if looked.problems:
            await _make_room_aside(broker, target, settings, looked, is_staged=is_staged)
    if incoming.has_wishes:
        in_lanes(incoming)  # which refuses what nobody understands
        part_by_time(broker, partition, incoming, {}, Told(Marks(), broker.clock.wall_ms()))
    if partition.account is not None:
        check_message_sizes(partition.account, incoming.bodies)
    return CheckedEntry(target, incoming, looked)


async def _make_room_aside(
    broker: Broker, target: TopicPartition, settings: TopicSettings, looked: Looked, *, is_staged: bool
) -> None:
    """Refuse messages that do not fit, or see that there is somewhere to keep them."""
    aside = quarantine_for(broker, target.topic, settings)
    if aside is None or is_staged:
        raise SchemaMismatch(looked.problems)
    await open_quarantine(broker, target.topic, aside)


def _check_header(headers: Sequence[BatchHeader], *, is_staged: bool) -> None:
    """Refuse what a bulk write may not hold."""
    if len(headers) != 1:
        raise InvalidBatch(f"an entry holds one record batch, not {len(headers)}")
    if headers[0].attributes & TRANSACTIONAL:
        raise InvalidRecord("a batch of a bulk write belongs to no transaction")
    if is_staged and headers[0].producer_id != NO_PRODUCER:
        raise InvalidRecord("a batch that is staged belongs to no producer")


async def append_entries(broker: Broker, command: AppendEntries) -> list[EntryPlaced]:
    """Store all batches of a bulk write, one place each, in order. The buffer is patched in place.

    A numbered batch that was stored before is told by its first place.
    """
    placed: list[EntryPlaced] = []
    waits: list[Awaitable[None]] = []
    size = 0
    for target, incoming, looked in await check_entries(broker, command.entries, is_staged=False):
        if size >= YIELD_BYTES:
            await asyncio.sleep(0)
            broker.admit(target.topic)
            size = 0
        with telling_refusals(broker, [target.topic]):
            partition = broker.partition(target)
            admit_batches(broker, partition, incoming.headers, may_join=False)
            again = partial(_take_in, broker, target, incoming, command.acks)
            stored = await take_in_at_last(broker, looked, again)
        placed.append(
            EntryPlaced(target, stored.base_offset, incoming.message_count, stored.quarantined, stored.later)
        )
        if stored.committed is not None:
            waits.append(stored.committed)
        size += len(incoming.bodies[0])
    for committed in waits:
        await committed
    return placed


def _take_in(
    broker: Broker,
    target: TopicPartition,
    incoming: Incoming,
    acks: Acks,
    looked: Looked | None,
    told: Told | None,
) -> Appended:
    return take_in(broker, admit_partition(broker, target), incoming, acks, looked, told=told)
