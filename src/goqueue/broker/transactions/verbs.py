"""The verbs of transactional producers: init, begin, add, pend offsets, end; and for operators, abort."""

from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import Refusals, accepted_offsets
from goqueue.broker.producers import init_producer
from goqueue.broker.queue.settle import all_leased, pledge
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.broker.tenants.quotas import admit_group_owner, admit_new_group
from goqueue.broker.transactions.carrying import seal
from goqueue.broker.transactions.ends import Note, decide, fence, finish, finish_behind, finish_in_time
from goqueue.broker.transactions.hanging import who_answers
from goqueue.broker.transactions.joining import owner_of
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.transactions.leaders import calls, epochs_of
from goqueue.broker.transactions.markers import append_marker, place_of, reach_of, still_there
from goqueue.broker.transactions.pending import pend_afar
from goqueue.broker.transactions.receipts import pledge_afar
from goqueue.broker.transactions.resting import at_rest, keep_step
from goqueue.broker.transactions.views import describe_transaction
from goqueue.broker.transactions.writes import new_transaction_id
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import (
    Busy,
    InvalidTransactionState,
    InvalidTransactionTimeout,
    ProducerNotFound,
    ShuttingDown,
    TransactionNotFound,
    Unavailable,
)
from goqueue.model.ids import NO_PRODUCER
from goqueue.model.names import refuse_own_transactional_id
from goqueue.model.transaction_commands import (
    AbortOpenIn,
    AbortTransaction,
    AddGroupToTransaction,
    AddPartitionsToTransaction,
    AddReceiptsToTransaction,
    BeginTransaction,
    DescribeTransaction,
    EndAndBump,
    EndTransaction,
    HearProducer,
    InitProducer,
    PendOffsets,
    TakeProducerId,
    VerifyPartition,
)
from goqueue.model.transactions import Marker, ProducerEpoch, TransactionState, TransactionView


async def hear_producer(broker: Broker, command: HearProducer) -> str:
    """The transactional id that a producer speaks for, if it may: one that is fenced is refused."""
    _admit(broker)
    transactional_id, producer = command.transactional_id, command.producer
    if not transactional_id:
        found = await owner_of(broker, producer)
        if found is None:
            raise ProducerNotFound(producer.producer_id)
        if broker.is_one_of_several:
            return await calls(broker).run(hear_producer, replace(command, transactional_id=found))
        transactional_id = found
    journal = broker.transactions.find(transactional_id)
    if journal is None:
        raise TransactionNotFound(transactional_id)
    transactions = journal.transactions
    transactions.held_by(transactional_id, producer)
    if command.is_heartbeat or transactions.has_session(transactional_id):
        until_ms = broker.running.now_ms() + broker.config.transactions.session_ms
        transactions.keep_session(transactional_id, until_ms)
        broker.transactions.watch.expect(until_ms)
    return transactional_id


async def init_transactional(broker: Broker, command: InitProducer) -> ProducerEpoch:
    """A producer takes over a transactional id: whoever had it is fenced, what was open is aborted."""
    _admit(broker)
    refuse_own_transactional_id(command.transactional_id)
    longest_ms = broker.config.transactions.timeout_ms_max
    if not 0 < command.timeout_ms <= longest_ms:
        raise InvalidTransactionTimeout(
            f"a transaction may stay open for 1 to {longest_ms} ms, not {command.timeout_ms}"
        )
    return await take_over_id(broker, command)


async def take_over_id(broker: Broker, command: InitProducer) -> ProducerEpoch:
    """The same, also for ids of the broker's own."""
    await broker.transactions.ensure(command.transactional_id)
    return await broker.carry_out(_init(broker, command), broker.transactions.lock(command.transactional_id))


async def _init(broker: Broker, command: InitProducer) -> ProducerEpoch:
    journal = await broker.transactions.ensure(command.transactional_id)
    transactions = journal.transactions
    await finish(broker, command.transactional_id)
    known = transactions.get(command.transactional_id)
    if transactions.admit_init(command) and known is not None:
        return known.producer
    was_open = known is not None and known.state is TransactionState.ONGOING
    if was_open:
        await fence(broker, command.transactional_id)
    fresh_id = NO_PRODUCER
    if transactions.wants_producer_id(command.transactional_id):
        fresh_id = await init_producer(broker, TakeProducerId())
    taken = transactions.init(command, fresh_id=fresh_id, was_fenced=was_open, now_ms=broker.clock.wall_ms())
    await journal.submit(taken)
    return taken.producer


async def begin_transaction(broker: Broker, command: BeginTransaction) -> str:
    """Open a transaction before it touches anything; returns its name."""
    journal = await at_rest(broker, command.transactional_id)
    begun = journal.transactions.begin(
        command.transactional_id,
        command.producer,
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    await journal.submit(begun)
    return begun.transaction_id


async def add_partitions(broker: Broker, command: AddPartitionsToTransaction) -> None:
    """Partitions that the transaction will write to. All of them must exist.

    Returns before the disk has it, and nobody waits for that: the decision names all of them again. Where a
    power failure takes this step and leaves a batch, the transaction is aborted when the broker opens.
    """
    slices = Slices(broker.clock)
    for target in command.targets:
        broker.admit(target.topic)
        broker.partition(target)
        await slices.pause()
    places = []
    for target in command.targets:
        places.append(place_of(broker, target))
        await slices.pause()
    journal = await at_rest(broker, command.transactional_id)
    added = journal.transactions.add(
        command.transactional_id,
        command.producer,
        partitions=places,
        epochs=epochs_of(broker, places),
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    if added is not journal.transactions.get(command.transactional_id):
        journal.submit(added)


async def verify_partition(broker: Broker, command: VerifyPartition) -> None:
    """Refuse a partition that is not part of the open transaction."""
    broker.partition(command.target)
    journal = await at_rest(broker, command.transactional_id)
    known = journal.transactions.held_by(command.transactional_id, command.producer)
    if not known.is_open_in(place_of(broker, command.target)):
        raise InvalidTransactionState(
            f"{command.target} is not part of an open transaction of {command.transactional_id}"
        )


async def add_group(broker: Broker, command: AddGroupToTransaction) -> None:
    """A consumer group whose offsets the transaction will commit."""
    if broker.tenants.accounts:
        admit_group_owner(broker, command.group)
    if not broker.is_one_of_several:
        if broker.tenants.accounts:
            admit_new_group(broker, command.group)
        await broker.coordinator.journals.ensure(command.group)
    journal = await at_rest(broker, command.transactional_id)
    added = journal.transactions.add(
        command.transactional_id,
        command.producer,
        groups=[command.group],
        epochs=epochs_of(broker, groups=[command.group]),
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    await keep_step(journal, added)


async def add_receipts(broker: Broker, command: AddReceiptsToTransaction) -> None:
    """Messages of queue groups that are acknowledged when the transaction commits. All must be leased.

    Nobody else gets them while it is open, and only its own journal says so: were there two that must agree,
    a crash between them would hide the messages for nobody.
    """
    journal = await at_rest(broker, command.transactional_id)
    if broker.is_one_of_several:
        await _add_receipts_afar(broker, journal, command)
        return
    for group_journal in {one.journal for one in all_leased(broker, command.receipts)}:
        await group_journal.submit()  # a lease that a power failure takes cannot be kept
    leased = all_leased(broker, command.receipts)
    added = journal.transactions.add(
        command.transactional_id,
        command.producer,
        receipts=command.receipts,
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    keeping = keep_step(journal, added)
    pledge(leased)
    await keeping


async def _add_receipts_afar(
    broker: Broker, journal: TransactionJournal, command: AddReceiptsToTransaction
) -> None:
    """The same where others have given them out. One that is refused is asked for again by the commit."""
    added = journal.transactions.add(
        command.transactional_id,
        command.producer,
        receipts=command.receipts,
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    await keep_step(journal, added)
    await pledge_afar(broker, command.receipts)


async def pend_offsets(broker: Broker, command: PendOffsets) -> Refusals:
    """Offsets that become the group's when the transaction commits; returns when the disk has them."""
    _admit(broker)
    if broker.is_one_of_several:
        return await pend_afar(broker, command)
    if command.may_join:
        await add_group(
            broker,
            AddGroupToTransaction(
                transactional_id=command.transactional_id, producer=command.producer, group=command.who.group
            ),
        )
    group_journal = await broker.coordinator.journals.ensure(command.who.group)
    journal = await broker.transactions.ensure(command.transactional_id)
    # Of offsets alone nobody could tell after a crash whether they are of this transaction or the last one.
    await journal.submit()
    known = journal.transactions.held_by(command.transactional_id, command.producer)
    if not known.is_open_for(command.who.group):
        raise InvalidTransactionState(f"group {command.who.group} is not part of an open transaction")
    refusals: Refusals = {}
    topics = accepted_offsets(broker, command.commits, refusals)
    pended = group_journal.groups.pend_offsets(
        command.who, command.producer.producer_id, topics, now_ns=broker.coordinator.now_ns()
    )
    if topics:
        await group_journal.submit(pended)
    return refusals


async def end_transaction(broker: Broker, command: EndTransaction) -> None:
    """Commit or abort all that was done since the transaction began. The same again is no error."""
    _admit(broker)
    await broker.transactions.ensure(command.transactional_id)
    lock = broker.transactions.lock(command.transactional_id)
    change = _end_and_finish(
        broker,
        command.transactional_id,
        command.producer,
        command.marker,
        until_complete=command.until_complete,
    )
    await broker.carry_out(change, lock)


async def _end_and_finish(
    broker: Broker, transactional_id: str, producer: ProducerEpoch, marker: Marker, *, until_complete: bool
) -> None:
    await _end(broker, transactional_id, producer, marker)
    if until_complete:
        await finish(broker, transactional_id)
    else:
        finish_behind(broker, transactional_id)


async def end_and_bump(broker: Broker, command: EndAndBump) -> ProducerEpoch:
    """The same for a producer whose transactions have an epoch each; returns the next one, safe on the disk.

    What comes late from the last transaction is told by its epoch from then on. An abort is no error where
    nothing was open: the producer may not know whether its first batch has arrived.
    """
    _admit(broker)
    await broker.transactions.ensure(command.transactional_id)
    lock = broker.transactions.lock(command.transactional_id)
    return await broker.carry_out(
        _end_and_bump(broker, command.transactional_id, command.producer, command.marker), lock
    )


async def _end_and_bump(
    broker: Broker, transactional_id: str, producer: ProducerEpoch, marker: Marker
) -> ProducerEpoch:
    journal = await broker.transactions.ensure(transactional_id)
    transactions = journal.transactions
    await finish(broker, transactional_id)
    if not transactions.has_ended(transactional_id, producer, marker):
        known = transactions.held_by(transactional_id, producer)
        if known.state is TransactionState.ONGOING or marker is Marker.COMMIT:
            await _end(broker, transactional_id, producer, marker, is_bumped=True)
            await finish(broker, transactional_id)
        else:
            now_ms = broker.clock.wall_ms()
            await journal.submit(transactions.abort_nothing(transactional_id, now_ms=now_ms))
    if transactions.has_used_up_epochs(transactional_id):
        fresh_id = await init_producer(broker, TakeProducerId())
        now_ms = broker.clock.wall_ms()
        await journal.submit(transactions.renew(transactional_id, fresh_id=fresh_id, now_ms=now_ms))
    journal.admit()
    ended = transactions.get(transactional_id)
    assert ended is not None, f"{transactional_id} was forgotten while its transaction ended"
    return ended.producer


async def commit_with(broker: Broker, transactional_id: str, producer: ProducerEpoch, note: Note) -> None:
    """Commit a transaction of the broker's own, and write what is noted with the decision in one event.

    Returns when all it has touched knows of it, or will by and by: nothing calls it back any more.
    """
    lock = broker.transactions.lock(transactional_id)
    await broker.carry_out(_end(broker, transactional_id, producer, Marker.COMMIT, note=note), lock)
    try:
        await broker.carry_out(finish(broker, transactional_id), lock)
    except (Busy, Unavailable):
        finish_in_time(broker, transactional_id)


async def _end(
    broker: Broker,
    transactional_id: str,
    producer: ProducerEpoch,
    marker: Marker,
    *,
    is_bumped: bool = False,
    note: Note | None = None,
) -> None:
    journal = await broker.transactions.ensure(transactional_id)
    transactions = journal.transactions
    transactions.held_by(transactional_id, producer)
    await finish(broker, transactional_id)
    known = transactions.held_by(transactional_id, producer)
    if broker.is_one_of_several:
        if marker is Marker.COMMIT and known.receipts:
            await pledge_afar(broker, known.receipts)
        reach = await seal(broker, known)
    else:
        if marker is Marker.COMMIT:
            await _messages_safe(broker, known)
            if known.receipts:
                all_leased(broker, known.receipts)
        reach = reach_of(broker, transactions.held_by(transactional_id, producer))
    decided = transactions.prepare(
        transactional_id, producer, marker, is_bumped=is_bumped, reach=reach, now_ms=broker.clock.wall_ms()
    )
    if decided.state.is_prepared:
        await decide(broker, journal, decided, note)


async def abort_transaction(broker: Broker, command: AbortTransaction) -> TransactionView:
    """For operators: abort an open transaction, by its name or transactional id, and fence its producer."""
    _admit(broker)
    known = next(
        (t for t in broker.transactions.all() if command.name in (t.transaction_id, t.transactional_id)), None
    )
    if known is None:
        raise TransactionNotFound(command.name)
    transactional_id = known.transactional_id
    await broker.carry_out(_abort_open(broker, transactional_id), broker.transactions.lock(transactional_id))
    return describe_transaction(broker, DescribeTransaction(transactional_id=transactional_id))


async def _abort_open(broker: Broker, transactional_id: str) -> None:
    await finish(broker, transactional_id)
    known = broker.transactions.get(transactional_id)
    if known is None or known.state is not TransactionState.ONGOING:
        raise InvalidTransactionState(f"{transactional_id} has no open transaction")
    await fence(broker, transactional_id)


async def abort_open_in(broker: Broker, command: AbortOpenIn) -> None:
    """For operators: end what a producer has open in a partition, with all of its transaction."""
    partition = broker.partition(command.target)
    if broker.is_one_of_several and (name := await who_answers(broker, partition, command.producer)):
        await calls(broker).run(abort_transaction, AbortTransaction(name=name))
        return
    owner = broker.transactions.of_producer(command.producer.producer_id)
    if owner is not None and place_of(broker, command.target) in owner.partitions:
        # Also when it is decided already: its markers are on their way, and must all say the same.
        await abort_transaction(broker, AbortTransaction(name=owner.transactional_id))
    else:
        _admit(broker)
        append_marker(broker, partition, command.producer, Marker.ABORT)
        await _safe(partition)


async def _messages_safe(broker: Broker, known: Transaction) -> None:
    """Whatever its producer waited for: what is committed is on the disk."""
    for place in known.partitions:
        partition = still_there(broker, place)
        if partition is not None:
            await _safe(partition)
    delays = broker.delays.store
    if delays.held.of_producer(known.producer_id):
        await delays.journal.submit()


async def _safe(partition: Partition) -> None:
    """Return when the disk has all of a partition."""
    committed = partition.committed(partition.log.end_offset)
    if committed is not None:
        await committed


def _admit(broker: Broker) -> None:
    if not broker.is_open:
        raise ShuttingDown
