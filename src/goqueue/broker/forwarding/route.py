"""Who answers for a place: told from the place and the image alone, the same on every node that has the same
image.
"""

from collections.abc import Iterable, Mapping

from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.queue.delivery import journal_of_nonce
from goqueue.broker.schemas.state import JOURNAL, SCHEMAS_TOPIC
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId
from goqueue.model.delivery import parse_receipt
from goqueue.model.errors import (
    AnswerLost,
    CoordinatorLoading,
    InvalidReceipt,
    LeadershipLost,
    NodeUnreachable,
    NoLeader,
    NotController,
    NotCoordinator,
    NotLeader,
    OffsetNotAvailable,
)
from goqueue.model.ids import TopicName, TopicPartition, places_of
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.places import (
    DelayKeeper,
    DelayKeepers,
    GroupCoordinator,
    GroupCoordinators,
    LeaseCoordinators,
    Partitions,
    Place,
    Seat,
    SinkCoordinator,
    TopicLeaders,
    TransactionCoordinator,
)

Homes = Mapping[NodeId, Place]
"""The nodes that answer, and each for which part of a place."""
NOT_RUN = (
    NoLeader,
    NotLeader,
    NotCoordinator,
    CoordinatorLoading,
    NotController,
    NodeUnreachable,
    OffsetNotAvailable,
)
"""After these nothing has happened, and another node may answer, or the same one later."""
MAYBE_RUN = (AnswerLost, LeadershipLost)
"""After these nobody knows: what changes nothing when it is done twice may be asked again."""


def route(place: Place, image: Metadata, me: NodeId) -> Homes:
    """Who answers for a place.

    What is not there at all is this node's to tell of. Raises NoLeader and NotController when the one who
    should answer is not known now. Of several partitions those without a leader are this node's to refuse.
    """
    match place:
        case TopicPartition():
            return {leader_of(place, image, me): place}
        case Partitions(partitions):
            return _among(partitions, image, me)
        case TopicLeaders(topics):
            return _among(_partitions_of(topics, image), image, me) or {me: place}
        case GroupCoordinator(group):
            return {keeper_of_group(group, image, me): place}
        case GroupCoordinators(groups):
            return _keepers_of(groups, image, me) or {me: place}
        case LeaseCoordinators(receipts):
            return _givers_of(receipts, image, me) or {me: place}
        case TransactionCoordinator(transactional_id):
            return {_keeper_of(TRANSACTIONS_TOPIC, journal_number(transactional_id), image, me): place}
        case SinkCoordinator(sink):
            transactional_id = transactional_id_of_sink(sink)
            return {_keeper_of(TRANSACTIONS_TOPIC, journal_number(transactional_id), image, me): place}
        case DelayKeeper() | DelayKeepers():
            return {_keeper_of(DELAYED_TOPIC, 0, image, me): place}
        case Seat.SCHEMA_REGISTRY:
            return {_keeper_of(SCHEMAS_TOPIC, JOURNAL, image, me): place}
        case Seat.CONTROLLER:
            if image.controller is None:
                raise NotController("nobody decides for the cluster now")
            return {image.controller: place}
        case Seat.EVERY_NODE:
            return dict.fromkeys(image.nodes, place) or {me: place}
        case _:
            return {me: place}


def leader_of(source: TopicPartition, image: Metadata, me: NodeId) -> NodeId:
    """Who leads a partition; this node, when there is no such partition."""
    topic = image.topics.get(source.topic)
    if topic is None or not 0 <= source.partition < topic.partitions:
        return me
    leader = image.record(topic, source.partition).leader
    if leader is None:
        raise NoLeader(*source)
    return leader


def keeper_of_group(group: str, image: Metadata, me: NodeId) -> NodeId:
    """Who coordinates a group."""
    return _keeper_of(OFFSETS_TOPIC, journal_number(group), image, me)


def keeper_of_receipt(receipt: str, image: Metadata, me: NodeId) -> NodeId:
    """Who gave out a lease; this node, when there is no such thing: it says so."""
    try:
        nonce = parse_receipt(receipt).nonce
    except InvalidReceipt:
        return me
    return _keeper_of(OFFSETS_TOPIC, journal_of_nonce(nonce), image, me)


def _keeper_of(journal: TopicName, number: int, image: Metadata, me: NodeId) -> NodeId:
    return leader_of(TopicPartition(journal, number), image, me)


def _among(sources: Iterable[TopicPartition], image: Metadata, me: NodeId) -> Homes:
    shares: dict[NodeId, list[TopicPartition]] = {}
    for source in sources:
        try:
            leader = leader_of(source, image, me)
        except NoLeader:
            leader = me
        shares.setdefault(leader, []).append(source)
    return {node: Partitions(share) for node, share in shares.items()}


def _partitions_of(topics: Iterable[str], image: Metadata) -> Iterable[TopicPartition]:
    for name in topics:
        if (topic := image.topics.get(TopicName(name))) is not None:
            yield from places_of(topic.name, range(topic.partitions))


def _keepers_of(groups: Iterable[str], image: Metadata, me: NodeId) -> Homes:
    shares: dict[NodeId, list[str]] = {}
    for group in groups:
        shares.setdefault(keeper_of_group(group, image, me), []).append(group)
    return {node: GroupCoordinators(share) for node, share in shares.items()}


def _givers_of(receipts: Iterable[str], image: Metadata, me: NodeId) -> Homes:
    shares: dict[NodeId, list[str]] = {}
    for receipt in receipts:
        try:
            keeper = keeper_of_receipt(receipt, image, me)
        except NoLeader:
            keeper = me
        shares.setdefault(keeper, []).append(receipt)
    return {node: LeaseCoordinators(share) for node, share in shares.items()}
