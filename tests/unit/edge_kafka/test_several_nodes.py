"""What Kafka's clients are told of several nodes."""

import asyncio
import importlib
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from goqueue.core.cluster.numbers import node_number
from goqueue.edge.kafka import fetch
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.handlers.cluster import node_at, partition_at
from goqueue.edge.kafka.leaders import CurrentLeader
from goqueue.edge.kafka.produce import PartitionOutcome, Produced, encode_produced
from goqueue.edge.kafka.topic_ids import TopicReference
from goqueue.model.cluster import NodeId, NodeRecord, PartitionRecord
from goqueue.model.commands import BatchesRead, PartitionRead, PartitionReadFailed
from goqueue.model.errors import NotLeader
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.topics import PartitionView
from goqueue.node.clock import SystemClock

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


LEADER = CurrentLeader(
    node_at(TWO, NodeRecord(folder_id="f", kafka="two.example:9093", rack="r2"), "plaintext"), 9
)


@pytest.mark.parametrize("version", [9, 10, 12])
def test_who_produces_to_a_node_that_does_not_lead_hears_who_does(version: int) -> None:
    refused, taken = PartitionOutcome(3), PartitionOutcome(4)
    refused.fail(NotLeader("orders", 3))
    refused.leader = LEADER
    topic = TopicReference(b"\x07orders", TopicName("orders"))
    body = encode_produced(Produced(version, [(topic, [refused, taken])], [], wants_reply=True))
    reply = decoded(f"kio.schema.produce.v{version}.response", "ProduceResponse", body)
    told, well = reply.responses[0].partition_responses
    assert told.error_code is ErrorCode.not_leader_or_follower
    if version >= 10:
        assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 9)
        assert well.current_leader.leader_id == -1
        [node] = reply.node_endpoints
        assert (node.node_id, node.host, node.port, node.rack) == (2, "two.example", 9093, "r2")


@pytest.mark.parametrize("version", [11, 12, 16])
def test_who_fetches_from_a_node_that_does_not_lead_hears_who_does(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "leader_now", lambda broker, source: LEADER)
    source = TopicPartition(TopicName("orders"), 3)
    given = UUID(int=5).bytes if version >= 13 else b"\x07orders" if version >= 12 else b"\x00\x06orders"
    wanted = fetch.TopicFetch(TopicReference(given, source.topic), [PartitionRead(source, 0)] * 2)
    replies: list[BatchesRead | PartitionReadFailed] = [
        PartitionReadFailed(NotLeader(*source), -1, -1),
        BatchesRead([], 0, 0, 0, 0, [], 0, []),
    ]
    request = fetch.FetchRequest(0, 0, 0, 0, 0, [wanted])
    context = cast(Context, SimpleNamespace(broker=SimpleNamespace(clock=SystemClock())))
    buffers = asyncio.run(fetch.encode_fetched(context, version, request, replies))
    reply = decoded(f"kio.schema.fetch.v{version}.response", "FetchResponse", b"".join(map(bytes, buffers)))
    told, well = reply.responses[0].partitions
    assert told.error_code is ErrorCode.not_leader_or_follower
    if version >= 12:
        assert (told.current_leader.leader_id, told.current_leader.leader_epoch) == (2, 9)
        assert well.current_leader.leader_id == -1
    if version >= 16:
        assert [node.port for node in reply.node_endpoints] == [9093]


def decoded(module: str, name: str, body: bytes) -> Any:
    read = entity_reader(getattr(importlib.import_module(module), name))
    reply, size = read(memoryview(body), 0)
    assert size == len(body)
    return reply


def test_a_node_is_where_it_says() -> None:
    node = node_at(TWO, NodeRecord(folder_id=str(UUID(int=1)), kafka="[::1]:9092", rack="r1"), "plaintext")

    assert (node.node_id, node.host, node.port, node.rack) == (2, "::1", 9092, "r1")
    assert node_at(TWO, NodeRecord(folder_id="f", kafka="h:1"), "plaintext").rack is None
