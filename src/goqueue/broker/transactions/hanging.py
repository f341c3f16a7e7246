"""With several nodes: what is open here and nobody answers for is aborted, so that readers go on.

It takes a fault to leave such a thing: a place becomes part of a transaction before anything is written
there, and is told how it ends before that is forgotten. So leaders ask when they become such, and each
minute, about what they have not been told of themselves. Only where all coordinators have answered is
anything concluded, and only if it is still open then.
"""

import asyncio
import logging
from collections.abc import Awaitable

from goqueue.broker.broker import Broker
from goqueue.broker.delays.held import decide_held
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.joining import owners_of
from goqueue.broker.transactions.leaders import calls
from goqueue.broker.transactions.markers import append_marker, place_of
from goqueue.core.delays.held import HeldMessage
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import ProducerId
from goqueue.model.transaction_calls import AnswersFor
from goqueue.model.transactions import Marker, OpenInPartition, ProducerEpoch

log = logging.getLogger(__name__)
LOOK_INTERVAL_S = 60.0
FIRST_LOOK_S = 5.0
"""So long after a partition has got a leader it asks: whoever led it may have led journals, too."""


async def look_for_hanging(broker: Broker) -> None:
    """Ask about all that is open in what is led here, each minute."""
    while True:
        await asyncio.sleep(LOOK_INTERVAL_S)
        for topic in tuple(broker.topics.values()):
            for partition in tuple(topic.partitions):
                if partition.is_here and partition.is_leader and partition.transactions:
                    await _try(close_hanging(broker, partition))
        for journal in broker.coordinator.journals:
            await _try(drop_hanging_offsets(broker, journal))
        if broker.delays.is_here:
            await _try(cancel_held(broker))


def look_soon(broker: Broker, partition: Partition) -> None:
    """A partition is led here from now on: ask about what is open in it."""

    async def look() -> None:
        await asyncio.sleep(FIRST_LOOK_S)
        if partition.is_leader:
            await _try(close_hanging(broker, partition))

    if partition.transactions:
        broker.keep(asyncio.get_running_loop().create_task(look()))


async def close_hanging(broker: Broker, partition: Partition) -> None:
    """Abort what is open in a partition that is led here, and that no coordinator answers for."""
    verified, epoch = broker.transactions.verified, partition.leader_epoch
    opened = [
        one
        for one in partition.transactions.all()
        if not verified.is_told(partition, one.producer_id, one.epoch)
    ]
    if not opened:
        return
    owners = await owners_of(broker, [one.producer_id for one in opened])
    for one in opened:
        producer = ProducerEpoch(ProducerId(one.producer_id), one.epoch)
        if await _is_answered_for(broker, partition, one, owners.get(one.producer_id)):
            continue
        is_same = any(now[:3] == one[:3] for now in partition.transactions.all())
        if is_same and partition.is_leader and partition.leader_epoch == epoch:
            source = partition.source
            log.warning("hanging_transaction_aborted partition=%s producer=%d", source, one.producer_id)
            append_marker(broker, partition, producer, Marker.ABORT, coordinator_epoch=0)


async def who_answers(broker: Broker, partition: Partition, producer: ProducerEpoch) -> str | None:
    """The transactional id, kept by whichever node, that answers for what a producer has open here."""
    owners = await owners_of(broker, [producer.producer_id])
    for opened in partition.transactions.all():
        if opened.producer_id == producer.producer_id:
            owner = owners.get(producer.producer_id)
            return owner if await _is_answered_for(broker, partition, opened, owner) else None
    return None


async def drop_hanging_offsets(broker: Broker, journal: GroupJournal) -> None:
    """The same for offsets that wait in groups."""
    waiting = [
        (record.membership.name, producer_id, record.pending.transaction_of(producer_id))
        for record in journal.groups
        for producer_id, _ in record.pending
    ]
    if not waiting:
        return
    owners = await owners_of(broker, [producer_id for _, producer_id, _ in waiting])
    for group, producer_id, transaction_id in waiting:
        owner = owners.get(producer_id)
        producer = ProducerEpoch(ProducerId(producer_id), -1)
        command = AnswersFor(transactional_id=owner or "", producer=producer, group=group)
        if owner is not None and await calls(broker).run(answers_for, command):
            continue
        log.warning("hanging_offsets_dropped group=%s producer=%d", group, producer_id)
        now_ms = broker.clock.wall_ms()
        events = journal.groups.decide_pending(
            group, producer_id, is_committed=False, now_ms=now_ms, transaction_id=transaction_id
        )
        journal.submit(*events)


async def cancel_held(broker: Broker) -> None:
    """The same for messages that transactions have delayed."""
    store = broker.delays.store
    partition = store.journal.partition
    first: dict[int, HeldMessage] = {}
    for message in store.held:
        first.setdefault(message.producer_id, message)
    verified = broker.transactions.verified
    asked = [one for one in first.values() if not verified.is_told(partition, *one[1:3])]
    if not asked:
        return
    owners = await owners_of(broker, [one.producer_id for one in asked])
    for one in asked:
        opened = OpenInPartition(one.producer_id, one.producer_epoch, one.number, 0)
        if await _is_answered_for(broker, partition, opened, owners.get(one.producer_id)):
            continue
        if broker.delays.is_here and broker.delays.store is store:
            log.warning("hanging_delays_cancelled producer=%d", one.producer_id)
            await decide_held(broker, one.producer_id, is_committed=False, end_number=one.number + 1)


async def answers_for(broker: Broker, command: AnswersFor) -> bool:
    """At the coordinator: whether what is open or waits elsewhere is part of a transaction that it knows."""
    journal = await broker.transactions.ensure(command.transactional_id)
    await journal.submit()
    known = journal.transactions.get(command.transactional_id)
    if known is None or known.producer_id != command.producer.producer_id:
        return False
    if command.group is not None:
        return known.is_open_for(command.group) or (known.state.is_prepared and command.group in known.groups)
    assert command.target is not None, "it is either a partition or a group"
    if known.has_decided(command.target, command.first_offset):
        return True
    return known.epoch == command.producer.epoch and known.is_open_in(command.target)


async def _is_answered_for(
    broker: Broker, partition: Partition, opened: OpenInPartition, owner: str | None
) -> bool:
    if owner is None:
        return False
    command = AnswersFor(
        transactional_id=owner,
        producer=ProducerEpoch(ProducerId(opened.producer_id), opened.epoch),
        target=place_of(broker, partition.source),
        first_offset=opened.first_offset,
    )
    return await calls(broker).run(answers_for, command)


async def _try(look: Awaitable[None]) -> None:
    try:
        await look
    except GoQueueError as error:
        log.info("hanging_not_looked_for reason=%s", error)  # a minute later somebody answers
