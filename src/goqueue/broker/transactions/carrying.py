"""How a decision reaches places that other nodes lead: first they are sealed, then marked, each by calls.

Sealing tells how far the decision will reach, and that nothing more comes without the coordinator being
asked; it is not asked in vain, since nothing is added while a transaction is being decided. A marker that
comes late or twice closes what begins before that reach and nothing else. So whatever is lost, answers, nodes
or both, the same calls are made again, for as long as the decided transaction is there.
"""

from collections.abc import Awaitable, Sequence

from goqueue.broker.appending import await_all
from goqueue.broker.broker import Broker
from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.delays.held import decide_held
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.broker.transactions.leaders import ask_all, by_leader, journal_record, record_of_group
from goqueue.broker.transactions.markers import append_marker, still_there
from goqueue.broker.transactions.receipts import settle_afar
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.cluster import NodeId
from goqueue.model.errors import NoLeader, NotCoordinator, NotLeader
from goqueue.model.ids import TopicPartition
from goqueue.model.places import Command
from goqueue.model.transaction_calls import DecideOffsets, MarkTransaction, SealTransaction, Touched
from goqueue.model.transactions import Epochs, Marker, Reach

GONE = -1
"""Where a partition ends whose topic was deleted."""


async def seal(broker: Broker, known: Transaction) -> Reach:
    """How far a decision reaches that is made now. Nothing may be added to the transaction meanwhile."""
    shares = await by_leader(broker, _touched(known))
    asked = [
        (node, SealTransaction(producer=known.producer, touched=share)) for node, share in shares.items()
    ]
    ends: dict[TopicPartition, int] = {}
    for share, answer in zip(shares.values(), await ask_all(broker, asked), strict=True):
        assert isinstance(answer, list)
        ends |= zip((one.target.source for one in share), answer, strict=True)
    return Reach(tuple(ends.get(place.source, GONE) for place in known.partitions), 0)


async def carry(broker: Broker, prepared: Transaction) -> None:
    """Tell all that a transaction has touched how it was decided; returns when all of them have it."""
    journal = await broker.transactions.ensure(prepared.transactional_id)
    await journal.submit()  # a decision that may yet be lost is none
    number, coordinator_epoch = journal.partition.source.partition, journal.partition.leader_epoch
    asked: list[tuple[NodeId, Command]] = []
    for node, share in (await by_leader(broker, _touched(prepared))).items():
        command = MarkTransaction(
            producer=prepared.producer,
            marker=prepared.marker,
            journal=number,
            coordinator_epoch=coordinator_epoch,
            touched=share,
        )
        asked.append((node, command))
    for group, epoch_min in zip(prepared.groups, _epochs(prepared).groups, strict=True):
        leader = record_of_group(broker, group).leader
        if leader is None:
            raise NoLeader(OFFSETS_TOPIC, journal_number(group))
        decided = DecideOffsets(
            group=group,
            producer=prepared.producer,
            transaction_id=prepared.transaction_id,
            marker=prepared.marker,
            journal=number,
            coordinator_epoch=coordinator_epoch,
            epoch_min=epoch_min,
        )
        asked.append((leader, decided))
    await ask_all(broker, asked)
    if prepared.receipts:
        await settle_afar(broker, prepared)


async def seal_transaction(broker: Broker, command: SealTransaction) -> list[int]:
    """At the leaders: take nothing more without asking; where each partition ends, once that is committed."""
    partitions = _led(broker, command.touched)
    for partition in partitions:
        broker.transactions.verified.forget(partition, command.producer.producer_id)
    ends = [partition.log.end_offset for partition in partitions]
    await await_all(*_committed(partitions, ends))
    return ends


async def mark_transaction(broker: Broker, command: MarkTransaction) -> None:
    """At the leaders: close what is open of a decided transaction; returns when that is committed.

    The journal of the delays is one of its partitions where it has delayed messages: these are let go then,
    or cancelled.
    """
    _refuse_replaced(broker, command.journal, command.coordinator_epoch)
    partitions = _led(broker, command.touched)
    for partition, one in zip(partitions, command.touched, strict=True):
        broker.transactions.verified.forget(partition, command.producer.producer_id)
        if partition.source.topic == DELAYED_TOPIC:
            continue
        append_marker(
            broker,
            partition,
            command.producer,
            command.marker,
            one.end_offset,
            coordinator_epoch=command.coordinator_epoch,
        )
    for partition, one in zip(partitions, command.touched, strict=True):
        if partition.source.topic == DELAYED_TOPIC:
            is_committed = command.marker is Marker.COMMIT
            producer_id = command.producer.producer_id
            await decide_held(broker, producer_id, is_committed=is_committed, end_number=one.end_offset)
    # Also where nothing is open: the marker may have been written a moment ago, and be lost yet.
    await await_all(*_committed(partitions, [partition.log.end_offset for partition in partitions]))


async def decide_offsets(broker: Broker, command: DecideOffsets) -> None:
    """At a group's coordinator: offsets of a decided transaction become the group's, or are dropped."""
    _refuse_replaced(broker, command.journal, command.coordinator_epoch)
    journal = await broker.coordinator.journals.ensure(command.group)
    if journal.partition.leader_epoch < command.epoch_min:
        raise NotCoordinator(f"another node coordinates group {command.group} by now")
    producer_id = command.producer.producer_id
    broker.transactions.verified.forget(journal.partition, (command.group, producer_id))
    events = journal.groups.decide_pending(
        command.group,
        producer_id,
        is_committed=command.marker is Marker.COMMIT,
        now_ms=broker.clock.wall_ms(),
        transaction_id=command.transaction_id,
    )
    await journal.submit(*events)


def _touched(known: Transaction) -> list[Touched]:
    """The partitions of a transaction, with the reach of its decision once there is one."""
    ends = (0,) * len(known.partitions) if known.reach is None else known.reach.end_offsets
    return [Touched(*one) for one in zip(known.partitions, _epochs(known).partitions, ends, strict=True)]


def _epochs(known: Transaction) -> Epochs:
    """Since when its places are led as they are; from the first, where one node alone has begun it."""
    return known.epochs or Epochs((0,) * len(known.partitions), (0,) * len(known.groups))


def _led(broker: Broker, touched: Sequence[Touched]) -> list[Partition]:
    """Partitions that this node leads. Raises NotLeader, before anything is done, where it does not.

    Whether a topic is gone is for the coordinator to say: this node's image may be behind.
    """
    partitions = []
    for one in touched:
        partition = still_there(broker, one.target)
        if partition is None or not partition.is_here or partition.leader_epoch < one.epoch_min:
            raise NotLeader(*one.target.source)
        partition.admit_read()
        partitions.append(partition)
    return partitions


def _committed(partitions: Sequence[Partition], ends: Sequence[int]) -> list[Awaitable[None] | None]:
    return [partition.committed(end) for partition, end in zip(partitions, ends, strict=True)]


def _refuse_replaced(broker: Broker, number: int, coordinator_epoch: int) -> None:
    """A coordinator that was replaced, and does not know it yet, decides nothing any more."""
    epochs = broker.transactions.coordinator_epochs
    known = max(
        epochs.get(number, 0), journal_record(broker, TopicPartition(TRANSACTIONS_TOPIC, number)).epoch
    )
    if coordinator_epoch < known:
        raise NotCoordinator(f"another node leads {TRANSACTIONS_TOPIC}/{number}, in epoch {known}")
    epochs[number] = coordinator_epoch
