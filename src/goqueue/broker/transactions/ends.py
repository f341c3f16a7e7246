"""How transactions end: decided in the journal, carried to all they have touched, complete when that is safe.

Once the journal has the decision on the disk nothing can call it back: a restart, or a disk that
recovers, goes through the same steps again. Everything here but the upkeep expects its caller to hold
the id's lock.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from goqueue.broker.appending import OwnWrites
from goqueue.broker.broker import Broker
from goqueue.broker.delays.held import cancel_hanging, decide_held
from goqueue.broker.queue.settle import pledge_again, settle
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.carrying import carry, seal
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.transactions.markers import append_marker, carry_decision, place_of, reach_of
from goqueue.core.transactions.journalled import EpochDecided
from goqueue.core.transactions.sinks import EpochCommitted
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.delivery import Action, Settle
from goqueue.model.errors import GoQueueError, NotCoordinator, PartitionDamaged, TransactionBusy
from goqueue.model.ids import ProducerId
from goqueue.model.names import is_own_transactional_id
from goqueue.model.transactions import Marker, ProducerEpoch, TransactionState

log = logging.getLogger(__name__)
_PAUSE_S = 0.02
_PAUSE_S_MAX = 2.0
"""Before a decision is carried once more to whoever could not be reached."""
_TURNS_OF_A_REPLY = 3
"""How often the loop goes round until what was decided has come to its door and left."""


Note = Callable[[TransactionJournal], EpochCommitted]
"""What is noted with a decision, told in the turn in which it is written. Raises where it is not to be."""


async def decide(
    broker: Broker, journal: TransactionJournal, prepared: Transaction, note: Note | None = None
) -> None:
    """Journal how a transaction ends and carry that to all it has touched, where readers see it at once.

    That this is on the disk too is left to `finish`: until then the id is not at rest.
    """
    await journal.submit(prepared if note is None else EpochDecided(prepared, note(journal)))
    if broker.is_one_of_several:
        return  # it takes calls to carry it, for which nobody waits here
    try:
        carry_decision(broker, prepared)
    except GoQueueError as error:
        log.warning("markers_delayed transaction=%s reason=%s", prepared.transactional_id, error)


def finish_behind(broker: Broker, transactional_id: str) -> None:
    """Have what is decided finished when the reply has left: a client waits for that, nobody yet for this."""
    if broker.is_one_of_several:
        finish_in_time(broker, transactional_id)
        return
    broker.begin(_finish_behind(broker, transactional_id), broker.transactions.lock(transactional_id))


def finish_in_time(broker: Broker, transactional_id: str) -> None:
    """With several nodes: have what is decided carried to all of them, as often and as long as it takes."""
    if transactional_id not in broker.transactions.finishing:
        broker.transactions.finishing.add(transactional_id)
        step = partial(finish, broker, transactional_id)
        task = asyncio.get_running_loop().create_task(_in_time(broker, transactional_id, step))
        task.add_done_callback(lambda _: broker.transactions.finishing.discard(transactional_id))
        broker.keep(task)


def undo_in_time(broker: Broker, transactional_id: str, producer: ProducerEpoch) -> None:
    """The same for a transaction of the broker's own that nobody goes on with: have it aborted."""

    async def undo() -> None:
        known = broker.transactions.get(transactional_id)
        if known is not None and known.producer == producer:
            await fence(broker, transactional_id)

    broker.keep(asyncio.get_running_loop().create_task(_in_time(broker, transactional_id, undo)))


async def _in_time(
    broker: Broker, transactional_id: str, step: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    pause_s = _PAUSE_S
    while broker.is_open:
        try:
            await broker.carry_out(step(), broker.transactions.lock(transactional_id))
            return
        except NotCoordinator:
            return  # whoever coordinates it now goes on with it
        except GoQueueError as error:
            if pause_s > _PAUSE_S:
                why = error.__cause__ or error
                log.warning("transaction_unfinished transaction=%s reason=%s", transactional_id, why)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)


async def _finish_behind(broker: Broker, transactional_id: str) -> None:
    for _ in range(_TURNS_OF_A_REPLY):
        await asyncio.sleep(0)
    await _try_to_finish(broker, transactional_id)


async def finish_later(broker: Broker, transactional_id: str) -> None:
    """Finish what is decided. What cannot be finished now is tried again with the next upkeep."""
    lock = broker.transactions.lock(transactional_id)
    await broker.carry_out(_try_to_finish(broker, transactional_id), lock)


async def _try_to_finish(broker: Broker, transactional_id: str) -> None:
    try:
        await finish(broker, transactional_id)
    except GoQueueError as error:
        log.warning("transaction_unfinished transaction=%s reason=%s", transactional_id, error)


async def finish(broker: Broker, transactional_id: str) -> None:
    """Bring a decided transaction to its end; nothing happens when none is decided."""
    known = broker.transactions.get(transactional_id)
    if known is None or not known.state.is_prepared:
        return
    is_committed = known.marker is Marker.COMMIT
    if broker.is_one_of_several:
        await _carry_to_all(broker, known)
    else:
        await _carry_here(broker, known)
    journal = await broker.transactions.ensure(transactional_id)
    if journal.transactions.get(transactional_id) is not known:
        # Another node has coordinated it meanwhile, and this one does so again.
        await finish(broker, transactional_id)
        return
    # Not before the markers are on the disk, for with this the decision is forgotten. Nobody waits for it:
    # a start that does not find it takes the same steps again, and stops at the decision's reach.
    now_ms = broker.clock.wall_ms()
    completed = journal.submit(journal.transactions.complete(transactional_id, now_ms=now_ms))
    broker.transactions.counts.note_end(
        is_committed=is_committed, duration_ms=max(known.changed_ms - known.started_ms, 0)
    )
    if not is_committed or known.reach is None:
        # What is aborted need not have been on the disk. A partition that has lost it meanwhile fills up to
        # the decision's reach with what the next transaction writes.
        await completed


async def _carry_here(broker: Broker, known: Transaction) -> None:
    written = carry_decision(broker, known)
    await _settle_receipts(broker, known)
    delayed_end = sys.maxsize if known.reach is None else known.reach.delayed_end
    is_committed = known.marker is Marker.COMMIT
    await decide_held(broker, known.producer_id, is_committed=is_committed, end_number=delayed_end)
    await written.durable()


async def _carry_to_all(broker: Broker, known: Transaction) -> None:
    try:
        await carry(broker, known)
    except GoQueueError as error:
        # Somebody does not answer now, or is being replaced. Whoever waits hears that it takes longer.
        broker.transactions.find(known.transactional_id)  # unless it is this node that was replaced
        finish_in_time(broker, known.transactional_id)
        raise TransactionBusy(known.transactional_id) from error


async def _settle_receipts(broker: Broker, known: Transaction) -> None:
    """Acknowledge what was consumed, or let others have it at once. What is settled already stays so."""
    if known.receipts:
        action = Action.ACK if known.marker is Marker.COMMIT else Action.NACK
        reason = "its transaction was aborted"
        command = Settle(action=action, receipts=known.receipts, reason=reason, is_own=True)
        outcome = await settle(broker, command)
        for place, error in outcome.refusals.items():
            log.warning("receipt_not_settled receipt=%s reason=%s", known.receipts[place], error)


async def fence(broker: Broker, transactional_id: str) -> None:
    """Abort what is open under an id, whoever holds it, to its end."""
    await finish(broker, transactional_id)
    journal = await broker.transactions.ensure(transactional_id)
    known = journal.transactions.get(transactional_id)
    if known is not None and known.state is TransactionState.ONGOING:
        reach = await seal(broker, known) if broker.is_one_of_several else reach_of(broker, known)
        now_ms = broker.clock.wall_ms()
        await journal.submit(journal.transactions.fence(transactional_id, reach=reach, now_ms=now_ms))
        await finish(broker, transactional_id)


async def recover_transactions(broker: Broker) -> None:
    """After a start: finish what was decided, and abort what no transaction answers for."""
    for known in broker.transactions.all():
        pledge_again(broker, known.receipts)
    for known in list(broker.transactions.all()):
        with _damage_told(known.transactional_id):
            await finish(broker, known.transactional_id)
    partitions = [p for topic in broker.topics.values() for p in topic.partitions]
    # A crash may have taken what the journal was about to say of a batch, but not the batch. Its producer may
    # have been told that it is stored, but not that it counts: the whole transaction is aborted, and the
    # producer hears of it by its next epoch.
    torn = [
        *await _abort_hanging(broker, partitions),
        *_drop_hanging_offsets(broker),
        *await cancel_hanging(broker),
    ]
    for owner in torn:
        if owner is not None:
            with _damage_told(owner.transactional_id):
                await _undo(broker, owner)


async def close_hanging_in(broker: Broker, partition: Partition) -> None:
    """The same for one partition that could not be written to until now."""
    if broker.is_one_of_several:
        return  # its leader asks about it: see `hanging`
    for owner in await _abort_hanging(broker, [partition]):
        if owner is not None:
            await _undo(broker, owner)
    for known in list(broker.transactions.all()):
        if known.state.is_prepared:
            await finish_later(broker, known.transactional_id)


@contextmanager
def _damage_told(transactional_id: str) -> Iterator[None]:
    """A partition that is damaged takes no marker; what is decided reaches it when its loss is accepted."""
    try:
        yield
    except PartitionDamaged as error:
        log.warning("transaction_unfinished transaction=%s reason=%s", transactional_id, error)


async def _undo(broker: Broker, torn: Transaction) -> None:
    """Abort a transaction of which a part is lost, also if the journal has lost that it was open at all."""
    await fence(broker, torn.transactional_id)
    journal = await broker.transactions.ensure(torn.transactional_id)
    known = journal.transactions.get(torn.transactional_id)
    if known is not None and known.producer == torn.producer:
        # In the same epoch its producer could send the batch again, hear that it is stored, and commit.
        now_ms = broker.clock.wall_ms()
        await journal.submit(journal.transactions.abort_nothing(torn.transactional_id, now_ms=now_ms))


async def _abort_hanging(broker: Broker, partitions: Sequence[Partition]) -> list[Transaction | None]:
    """Abort what is open in partitions without being part of a transaction; whose it was, if anybody's.

    Returns when the disk has it. A marker that a failing disk takes back would leave a batch open for which
    nobody answers any more, and the next commit of the same producer would take it along.
    """
    owners: list[Transaction | None] = []
    marked: list[Partition] = []
    for partition in partitions:
        if partition.damage is not None:
            continue
        place = place_of(broker, partition.source)
        for opened in partition.transactions.all():
            owner = broker.transactions.of_producer(opened.producer_id)
            if owner is not None and owner.epoch == opened.epoch and owner.is_open_in(place):
                continue
            if owner is not None and owner.has_decided(place, opened.first_offset):
                continue  # another partition takes no marker yet, and this one will have its own
            log.warning("hanging_transaction_aborted partition=%s producer=%d", place.source, opened[0])
            producer = ProducerEpoch(ProducerId(opened.producer_id), opened.epoch)
            append_marker(broker, partition, producer, Marker.ABORT)
            owners.append(owner)
            marked.append(partition)
    await OwnWrites(marked).durable()
    return owners


def _drop_hanging_offsets(broker: Broker) -> Iterator[Transaction | None]:
    """The same for offsets that wait in groups."""
    now_ms = broker.clock.wall_ms()
    for journal in broker.coordinator.journals:
        for record in tuple(journal.groups):
            group = record.membership.name
            for producer_id, _ in record.pending:
                owner = broker.transactions.of_producer(producer_id)
                if owner is None or not owner.is_open_for(group):
                    events = journal.groups.decide_pending(
                        group, producer_id, is_committed=False, now_ms=now_ms
                    )
                    journal.submit(*events)
                    yield owner


def watch_transactions(broker: Broker) -> None:
    """Have transactions aborted that take too long, each when its time is over."""

    async def abort(transactional_id: str) -> None:
        lock = broker.transactions.lock(transactional_id)
        await broker.carry_out(_fence_overdue(broker, transactional_id), lock)

    broker.transactions.watch.start(abort, broker.keep)
    broker.transactions.on_taken_over = partial(_go_on, broker)


def _go_on(broker: Broker, journal: TransactionJournal) -> None:
    """Whatever another node has decided, this one carries to its end. What it was about to do is undone."""
    for known in journal.transactions:
        if known.state.is_prepared:
            finish_in_time(broker, known.transactional_id)
        elif known.state is TransactionState.ONGOING and is_own_transactional_id(known.transactional_id):
            undo_in_time(broker, known.transactional_id, known.producer)


async def keep_up_transactions(broker: Broker) -> None:
    """Finish what a failing disk held up, forget unused ids."""
    now_ms = broker.clock.wall_ms()
    for journal in broker.transactions:
        transactions = journal.transactions
        for known in transactions:
            if known.state.is_prepared and broker.is_one_of_several:
                finish_in_time(broker, known.transactional_id)
            elif known.state.is_prepared:
                await finish_later(broker, known.transactional_id)
        for transactional_id in transactions.unused_since(now_ms - broker.config.transactions.id_expiry_ms):
            log.info("transactional_id_expired transaction=%s", transactional_id)
            journal.submit(transactions.forget(transactional_id))
        await journal.shorten()


async def _fence_overdue(broker: Broker, transactional_id: str) -> None:
    journal = await broker.transactions.ensure(transactional_id)
    deadline_ms = journal.transactions.deadline_ms(transactional_id)
    late_ms = -1 if deadline_ms is None else broker.running.now_ms() - deadline_ms
    if late_ms < 0 or not broker.is_open:
        return  # it has ended while the lock was waited for, or all is being ended
    log.warning("transaction_timed_out transaction=%s late_ms=%d", transactional_id, late_ms)
    await fence(broker, transactional_id)
