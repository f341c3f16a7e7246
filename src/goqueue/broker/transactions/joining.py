"""How a place becomes part of a transaction whose coordinator is another node: asked there, once for each.

The leader of a partition takes a transactional batch when the coordinator has said that its transaction is
open and includes the partition, and that is committed in the journal: so whoever coordinates it next knows
where its markers have to go. What was asked in one epoch says nothing in the next.
"""

from goqueue.broker.access.needs import id_need
from goqueue.broker.access.warden import ASKING
from goqueue.broker.broker import Broker
from goqueue.broker.storage.journal_set import JOURNAL_COUNT
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.broker.transactions.leaders import ask_all, calls, journal_record
from goqueue.broker.transactions.markers import place_of
from goqueue.broker.transactions.resting import at_rest, keep_step
from goqueue.broker.transactions.writes import Unverified, new_transaction_id
from goqueue.model.access import Operation
from goqueue.model.cluster import NodeId
from goqueue.model.errors import (
    Busy,
    CoordinatorLoading,
    InvalidTransactionState,
    NoLeader,
    NotVerified,
    ProducerNotFound,
    Unavailable,
)
from goqueue.model.ids import TopicPartition, places_of
from goqueue.model.transaction_calls import FindProducers, JoinTransaction
from goqueue.model.transaction_commands import DemandProducer
from goqueue.model.transactions import Epochs, ProducerEpoch, TransactionState

OWNERS_MAX = 10_000
"""So many producers are remembered by whose they are; that never changes."""


async def verify(broker: Broker, asked: Unverified) -> None:
    """Ask whether a producer may write to a partition within its transaction; raises why not.

    Whoever hears NotVerified tries again.
    """
    transactional_id = asked.transactional_id
    try:
        if transactional_id is None:
            transactional_id = await owner_of(broker, asked.producer)
        if transactional_id is None:
            raise ProducerNotFound(asked.producer.producer_id)
        await join_open(broker, asked.partition, asked.producer, transactional_id, may_join=asked.may_join)
    except (Busy, Unavailable) as error:
        raise NotVerified(*asked.partition.source, str(error)) from error


async def join_open(
    broker: Broker,
    partition: Partition,
    producer: ProducerEpoch,
    transactional_id: str,
    *,
    may_join: bool,
    may_be_closed: bool = False,
) -> bool:
    """Have a partition that is led here be part of a transaction; False: none is open, which may be."""
    partition.admit_read()
    verified = broker.transactions.verified
    with verified.asking(partition, producer.producer_id) as question:
        command = JoinTransaction(
            transactional_id=transactional_id,
            producer=producer,
            target=place_of(broker, partition.source),
            epoch=partition.leader_epoch,
            may_join=may_join,
            may_be_closed=may_be_closed,
        )
        name = await calls(broker).run(join_transaction, command)
        if not question.counts:
            raise NotVerified(*partition.source, "the transaction has ended, or another node leads by now")
    if name:
        verified.note(partition, producer.producer_id, producer.epoch, name)
    return bool(name)


async def join_transaction(broker: Broker, command: JoinTransaction) -> str:
    """At the coordinator: the name of the open transaction, when it is safe that the place is part of it."""
    journal = await at_rest(broker, command.transactional_id)
    transactions = journal.transactions
    known = transactions.held_by(command.transactional_id, command.producer)
    if command.may_be_closed and known.state is not TransactionState.ONGOING:
        await journal.submit()
        return ""
    partitions = [] if command.target is None else [command.target]
    groups = [] if command.group is None else [command.group]
    is_part = all(map(known.is_open_in, partitions)) and all(map(known.is_open_for, groups))
    if not is_part and not command.may_join:
        what = command.target.source if command.target is not None else f"group {command.group}"
        raise InvalidTransactionState(
            f"{what} is not part of an open transaction of {command.transactional_id}"
        )
    added = transactions.add(
        command.transactional_id,
        command.producer,
        partitions=partitions,
        groups=groups,
        epochs=Epochs((command.epoch,) * len(partitions), (command.epoch,) * len(groups)),
        transaction_id=new_transaction_id(broker),
        now_ms=broker.clock.wall_ms(),
    )
    await keep_step(journal, added)
    return added.transaction_id


async def owner_of(broker: Broker, producer: ProducerEpoch) -> str | None:
    """The transactional id of a producer, whichever node keeps it; None: it is none's."""
    producer_id = producer.producer_id
    if not broker.is_one_of_several:
        known = broker.transactions.of_producer(producer_id)
        return None if known is None else known.transactional_id
    owners = broker.transactions.owners
    if producer_id not in owners:
        found = await owners_of(broker, [producer_id])
        if len(owners) >= OWNERS_MAX:
            owners.pop(next(iter(owners)))
        owners[producer_id] = found.get(producer_id)
    return owners[producer_id]


async def demand_producer(broker: Broker, command: DemandProducer) -> None:
    """Raises ProducerNotFound where a producer has transactions in which whoever asks has no part.

    Ids of producers can be guessed, and what is written under one joins its transaction. It is told as if
    there were no such producer: the name of its transactions is not for everybody.
    """
    if ASKING.get() is not None:
        owner = await owner_of(broker, command.producer)
        if owner is not None and not broker.warden.lets(id_need(Operation.WRITE, owner)):
            raise ProducerNotFound(command.producer.producer_id)


async def owners_of(broker: Broker, producer_ids: list[int]) -> dict[int, str]:
    """The transactional ids of producers. Those that are missing are nobody's: all journals have said so."""
    shares: dict[NodeId, list[TopicPartition]] = {}
    for journal in places_of(TRANSACTIONS_TOPIC, range(JOURNAL_COUNT)):
        leader = journal_record(broker, journal).leader
        if leader is None:
            raise NoLeader(*journal)
        shares.setdefault(leader, []).append(journal)
    asked = [
        (node, FindProducers(producer_ids=producer_ids, journals=journals))
        for node, journals in shares.items()
    ]
    found: dict[int, str] = {}
    for answer in await ask_all(broker, asked):
        assert isinstance(answer, dict)
        found |= answer
    return found


async def find_producers(broker: Broker, command: FindProducers) -> dict[int, str]:
    """Which of some producers belong to transactional ids of journals that are served here."""
    found: dict[int, str] = {}
    for place in command.journals:
        journal = broker.transactions.numbered(place.partition)
        if journal is None:
            raise CoordinatorLoading(f"{place} is not served here")
        await journal.submit()
        for producer_id in command.producer_ids:
            known = journal.transactions.of_producer(producer_id)
            if known is not None:
                found[producer_id] = known.transactional_id
    return found
