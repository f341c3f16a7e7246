"""With several nodes: who leads what a transaction has touched, and the way there."""

import asyncio
from collections.abc import Mapping, Sequence

from goqueue.broker.broker import Broker, Forwarding
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.storage.journal_set import journal_number
from goqueue.core.cluster.values import topic_key
from goqueue.model.cluster import NodeId, PartitionRecord
from goqueue.model.errors import GoQueueError, NoLeader, NotSupported
from goqueue.model.ids import TopicPartition
from goqueue.model.places import Command
from goqueue.model.transaction_calls import Touched
from goqueue.model.transactions import Epochs, TransactionalPartition


def calls(broker: Broker) -> Forwarding:
    """The way to other nodes. Raises NotSupported where it is not open yet."""
    if broker.forwarding is None:
        raise NotSupported("this node has not entered its cluster yet")
    return broker.forwarding


def record_of(broker: Broker, target: TransactionalPartition) -> PartitionRecord | None:
    """Who leads a partition by this node's image; None where that does not know it."""
    topic = broker.metadata.topics.get(target.topic)
    if topic is None or topic.topic_id != target.topic_id:
        return None
    return broker.metadata.record(topic, target.partition)


def record_of_group(broker: Broker, group: str) -> PartitionRecord:
    """The same for the journal that keeps a group. Raises NoLeader where there is none yet."""
    return journal_record(broker, TopicPartition(OFFSETS_TOPIC, journal_number(group)))


def journal_record(broker: Broker, journal: TopicPartition) -> PartitionRecord:
    topic = broker.metadata.topics.get(journal.topic)
    if topic is None:
        raise NoLeader(*journal)
    return broker.metadata.record(topic, journal.partition)


def epochs_of(
    broker: Broker, places: Sequence[TransactionalPartition] = (), groups: Sequence[str] = ()
) -> Epochs | None:
    """In which epochs places are led, as far as this node knows; None: there is no other node."""
    if not broker.is_one_of_several:
        return None
    records = [record_of(broker, place) for place in places]
    return Epochs(
        tuple([0 if record is None else record.epoch for record in records]),
        tuple([record_of_group(broker, group).epoch for group in groups]),
    )


async def by_leader(broker: Broker, touched: Sequence[Touched]) -> Mapping[NodeId, list[Touched]]:
    """What each node leads of what was touched, without topics that are gone. Raises NoLeader."""
    shares: dict[NodeId, list[Touched]] = {}
    for one in touched:
        record = record_of(broker, one.target)
        if record is None and await _is_gone(broker, one.target):
            continue
        if record is None or record.leader is None:
            raise NoLeader(*one.target.source)
        shares.setdefault(record.leader, []).append(one)
    return shares


async def ask_all(broker: Broker, asked: Sequence[tuple[NodeId, Command]]) -> list[object]:
    """What nodes answer, side by side. Raises the first error when all have answered."""
    run_at = calls(broker).run_at
    answers = await asyncio.gather(
        *(run_at(node, command) for node, command in asked), return_exceptions=True
    )
    for answer in answers:
        if isinstance(answer, BaseException):
            assert isinstance(answer, GoQueueError | asyncio.CancelledError), repr(answer)
            raise answer
    return list(answers)


async def _is_gone(broker: Broker, target: TransactionalPartition) -> bool:
    """Whether a topic was deleted. An image that is behind does not know those that have just been made."""
    if target.topic in broker.metadata.deleted:
        return True
    loaded = await broker.store.load(topic_key(target.topic_id))
    return not loaded.items
