"""Who answers for a place is told by the image alone."""

from uuid import UUID

import pytest

from goqueue.broker.delays.deliveries import DELAYED_TOPIC
from goqueue.broker.forwarding.route import route
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.schemas.state import SCHEMAS_TOPIC
from goqueue.broker.storage.journal_set import JOURNAL_COUNT, journal_number
from goqueue.broker.transactions.journal import TRANSACTIONS_TOPIC
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId, NodeRecord, PartitionRecord
from goqueue.model.delivery import Receipt
from goqueue.model.errors import NoLeader, NotController
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import transactional_id_of_sink
from goqueue.model.places import (
    DelayKeeper,
    GroupCoordinator,
    LeaseCoordinators,
    Partitions,
    Place,
    Seat,
    SinkCoordinator,
    TopicLeaders,
    TransactionCoordinator,
)
from goqueue.model.settings import TopicSettings

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")
ORDERS = TopicName("orders")


def image(*, controller: NodeId | None = B) -> Metadata:
    """Partition n of every topic is led by the nodes in turn; the last one of orders by nobody."""
    made = Metadata("a")
    internal = ((OFFSETS_TOPIC, 50), (TRANSACTIONS_TOPIC, 50), (SCHEMAS_TOPIC, 1), (DELAYED_TOPIC, 1))
    for at, (name, count) in enumerate(((ORDERS, 4), *internal)):
        topic = made.topics[name] = Topic(name, UUID(int=at), count, TopicSettings(), 0)
        for number in range(count):
            leader = (A, B, C, None)[number % 4] if name == ORDERS else (B, C)[number % 2]
            made.records[topic.topic_id, number] = PartitionRecord(
                leader=leader, epoch=1, replicas=(A, B, C), isr=(A, B, C)
            )
    made.controller = controller
    made.nodes = {node: NodeRecord(folder_id="f") for node in (A, B, C)}
    return made


def at(number: int) -> TopicPartition:
    return TopicPartition(ORDERS, number)


def test_a_partition_is_at_home_at_its_leader() -> None:
    assert [route(at(number), image(), A) for number in range(3)] == [{A: at(0)}, {B: at(1)}, {C: at(2)}]
    with pytest.raises(NoLeader, match="orders/3"):
        route(at(3), image(), A)


@pytest.mark.parametrize(
    "place", [at(4), at(-1), TopicPartition(TopicName("nothing"), 0), TopicLeaders(["nothing"])]
)
def test_what_is_not_there_is_told_of_by_who_is_asked(place: Place) -> None:
    assert route(place, image(), C) == {C: place}


def test_places_of_several_homes_are_shared_out_and_what_nobody_leads_is_refused_here() -> None:
    shares = {A: Partitions([at(0)]), B: Partitions([at(1)]), C: Partitions([at(2), at(3)])}
    assert route(Partitions([at(number) for number in range(4)]), image(), C) == shares
    assert route(TopicLeaders([ORDERS]), image(), C) == shares


def test_groups_and_transactions_are_at_home_where_their_journal_is_led() -> None:
    for name in ("one", "two", "three", "four"):
        keeper = (B, C)[journal_number(name) % 2]
        assert route(GroupCoordinator(name), image(), A) == {keeper: GroupCoordinator(name)}
        assert route(TransactionCoordinator(name), image(), A) == {keeper: TransactionCoordinator(name)}
        sink = SinkCoordinator(name)
        keeper = (B, C)[journal_number(transactional_id_of_sink(name)) % 2]
        assert route(sink, image(), A) == {keeper: sink}
    assert [*route(DelayKeeper(at(2)), image(), A)] == [B]


def test_receipts_go_to_whoever_gave_their_leases() -> None:
    receipts = [str(Receipt("orders", 0, 5, 1, journal << 56 | 99)) for journal in (0, 1, JOURNAL_COUNT - 1)]
    shares = route(LeaseCoordinators([*receipts, "nonsense"]), image(), A)
    assert shares == {
        B: LeaseCoordinators(receipts[:1]),
        C: LeaseCoordinators(receipts[1:]),
        A: LeaseCoordinators(["nonsense"]),
    }


def test_seats() -> None:
    assert route(Seat.CONTROLLER, image(), A) == {B: Seat.CONTROLLER}
    assert route(Seat.SCHEMA_REGISTRY, image(), A) == {B: Seat.SCHEMA_REGISTRY}
    assert [*route(Seat.ANY_NODE, image(), C), *route(Seat.THIS_NODE, image(), C)] == [C, C]
    assert {*route(Seat.EVERY_NODE, image(), A)} == {A, B, C}
    with pytest.raises(NotController):
        route(Seat.CONTROLLER, image(controller=None), A)


def test_one_node_alone_is_the_home_of_everything() -> None:
    alone = Metadata("a")
    alone.topics[ORDERS] = Topic(ORDERS, UUID(int=1), 2, TopicSettings(), 0)
    places: list[Place] = [at(1), TopicLeaders([ORDERS]), GroupCoordinator("g"), Seat.EVERY_NODE]
    assert [[*route(place, alone, A)] for place in places] == [[A]] * 4
