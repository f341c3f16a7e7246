"""How a decision reaches what a transaction has touched: markers in partitions, offsets of groups.

All of it is idempotent. A partition in which nothing of the producer is open needs no marker (any more),
a group that holds nothing of it has heard already: so whatever crashes, it can simply be done again. What
lies behind a decision's reach is of the next transaction, whose first step a crash may have taken.
"""

import sys
from itertools import repeat

from goqueue.broker.appending import OwnWrites, append_once, checked
from goqueue.broker.broker import Broker
from goqueue.broker.storage.journal import Submitted
from goqueue.broker.storage.partition import Partition
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import GoQueueError, StorageFailed
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.transactions import Marker, ProducerEpoch, Reach, TransactionalPartition
from goqueue.records.batch import LaneBatch
from goqueue.records.control import encode_marker


def reach_of(broker: Broker, known: Transaction) -> Reach:
    """How far a decision reaches that is made now."""
    partitions = [still_there(broker, target) for target in known.partitions]
    return Reach(
        tuple(0 if partition is None else partition.log.end_offset for partition in partitions),
        broker.delays.store.journal.end_offset if broker.delays.is_here else 0,
    )


def carry_decision(broker: Broker, prepared: Transaction) -> OwnWrites:
    """Mark everything at once, without waiting; what must be on the disk before it counts.

    One that takes no marker now holds the decision back in no other: its error comes when all have heard.
    """
    touched: list[Partition] = []
    decided: list[Submitted] = []
    failed: GoQueueError | None = None
    ends = repeat(sys.maxsize) if prepared.reach is None else prepared.reach.end_offsets
    for target, end_offset in zip(prepared.partitions, ends, strict=False):
        partition = still_there(broker, target)
        if partition is not None:
            try:
                append_marker(broker, partition, prepared.producer, prepared.marker, end_offset)
            except GoQueueError as error:
                failed = failed or error
            touched.append(partition)
    for group in prepared.groups:
        journal = broker.coordinator.journals.find(group)
        if journal is not None:
            events = journal.groups.decide_pending(
                group,
                prepared.producer_id,
                is_committed=prepared.marker is Marker.COMMIT,
                now_ms=broker.clock.wall_ms(),
            )
            # Without events they were decided before, perhaps a moment ago.
            decided.append(journal.submit(*events))
    if failed is not None:
        raise failed
    return OwnWrites(touched, decided)


def append_marker(
    broker: Broker,
    partition: Partition,
    producer: ProducerEpoch,
    marker: Marker,
    end_offset: int = sys.maxsize,
    *,
    coordinator_epoch: int | None = None,
) -> None:
    """Close what a producer has open in a partition, if it has and that begins before an offset."""
    if partition.is_failed:
        # What is open there is being read back from the disk: nobody can tell now.
        raise StorageFailed(f"{partition.source} is being opened anew")
    if not partition.transactions.is_open_before(producer.producer_id, end_offset):
        return
    body = encode_marker(
        marker,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        coordinator_epoch=broker.coordinator_epoch if coordinator_epoch is None else coordinator_epoch,
        # Never newer than the messages it decides on, so that nobody takes it for the newest of them.
        timestamp_ms=partition.transactions.newest_ms(producer.producer_id),
    )
    append_once(partition, checked([LaneBatch(body, Lane.NORMAL)]))


def place_of(broker: Broker, source: TopicPartition) -> TransactionalPartition:
    """A partition by its topic's id too."""
    return TransactionalPartition(
        source.topic, broker.metadata.topic(source.topic).topic_id, source.partition
    )


def still_there(broker: Broker, target: TransactionalPartition) -> Partition | None:
    """The partition, unless its topic was deleted, and perhaps made anew."""
    known = broker.metadata.topics.get(target.topic)
    if known is None or known.topic_id != target.topic_id or target.topic not in broker.topics:
        return None
    return broker.partition(target.source)
