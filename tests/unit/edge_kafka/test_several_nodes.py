"""What Kafka's clients are told of several nodes."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from goqueue.core.cluster.numbers import node_number
from goqueue.edge.kafka.handlers.cluster import node_at, partition_at
from goqueue.model.cluster import NodeId, NodeRecord, PartitionRecord
from goqueue.model.topics import PartitionView

ONE, TWO, THREE = (NodeId(f"node-{number}") for number in range(1, 4))
VIEW = PartitionView(7, 0, 10, 100, 4)


@pytest.mark.parametrize(("node", "number"), [("node-1", 1), ("b12", 12), ("12", 12), ("a-0007", 7)])
def test_a_node_is_known_by_the_digits_at_the_end_of_its_id(node: str, number: int) -> None:
    assert node_number(NodeId(node)) == number


def test_a_node_without_digits_has_a_number_that_is_always_the_same() -> None:
    assert node_number(NodeId("anton")) == node_number(NodeId("anton"))
    assert node_number(NodeId("anton")) != node_number(NodeId("berta"))
    assert 0 <= node_number(NodeId("anton")) < 2**31


def test_the_one_node_leads_everything() -> None:
    told = partition_at(5, {}, VIEW)

    assert (told.leader_id, told.leader_epoch, told.replica_nodes, told.isr_nodes) == (5, 4, (5,), (5,))
    assert told.offline_replicas == ()


def test_a_partition_is_told_with_its_leader_and_its_copies() -> None:
    record = PartitionRecord(leader=TWO, epoch=9, replicas=(ONE, TWO, THREE), isr=(TWO, THREE))

    told = partition_at(1, {TWO, THREE}, VIEW._replace(record=record))

    assert (told.partition_index, told.leader_id, told.leader_epoch) == (7, 2, 9)
    assert (told.replica_nodes, told.isr_nodes, told.offline_replicas) == ((1, 2, 3), (2, 3), (1,))
    assert told.error_code is ErrorCode.none


def test_a_partition_without_a_leader_says_so() -> None:
    record = PartitionRecord(leader=None, epoch=9, replicas=(ONE, TWO), isr=(ONE,))

    told = partition_at(1, {TWO}, VIEW._replace(record=record))

    assert told.leader_id == -1
    assert told.error_code is ErrorCode.leader_not_available


def test_a_node_is_where_it_says() -> None:
    node = node_at(TWO, NodeRecord(folder_id=str(UUID(int=1)), kafka="[::1]:9092", rack="r1"))

    assert (node.node_id, node.host, node.port, node.rack) == (2, "::1", 9092, "r1")
    assert node_at(TWO, NodeRecord(folder_id="f", kafka="h:1")).rack is None
