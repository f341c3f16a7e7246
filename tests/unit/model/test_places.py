"""Where commands are at home: told from their fields, as what lives where says."""

import pytest

from goqueue.model.commands import FindOffset, PartitionRead, Publish, Read, ShowWritten, Spot, WatchOffsets
from goqueue.model.delays import CountDelayed, GetDelayed, ListSchedules
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX, Action, BrowseDeadLetters, Redrive, Settle
from goqueue.model.group_commands import DeleteGroup, DescribeRebalances, Heartbeat
from goqueue.model.groups import Membership
from goqueue.model.ids import ProducerId, TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.places import (
    Command,
    DelayKeeper,
    DelayKeepers,
    GroupCoordinator,
    LeaseCoordinators,
    Partitions,
    Place,
    Seat,
    SinkCoordinator,
    TopicLeaders,
    TransactionCoordinator,
)
from goqueue.model.schema_commands import DeleteSubject, DescribeProtobuf
from goqueue.model.sinks import ForgetSink
from goqueue.model.topics import DeleteTopic, DescribeSettings
from goqueue.model.transaction_commands import AbortOpenIn, HearProducer, PendOffsets, PublishOnce
from goqueue.model.transactions import ProducerEpoch

ORDERS = TopicName("orders")
ORDERS_1 = TopicPartition(ORDERS, 1)
PRODUCER = ProducerEpoch(ProducerId(7), 0)
MEMBER = Membership("workers", "m", 3)


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (FindOffset(source=ORDERS_1, spot=Spot.LATEST), ORDERS_1),
        (AbortOpenIn(target=ORDERS_1, producer=PRODUCER), ORDERS_1),
        (Read(partitions=[PartitionRead(ORDERS_1, 0)]), Partitions([ORDERS_1])),
        (ShowWritten(sources=[ORDERS_1]), Partitions([ORDERS_1])),
        (ShowWritten(sources=None), Seat.EVERY_NODE),
        (Publish(topic=ORDERS, messages=[]), TopicLeaders((ORDERS,))),
        (BrowseDeadLetters(topic=ORDERS), GroupCoordinator(REDRIVE_GROUP_PREFIX + ORDERS)),
        (WatchOffsets(topics=["orders"]), TopicLeaders(["orders"])),
        (WatchOffsets(pattern="o.*"), Seat.EVERY_NODE),
        (Heartbeat(MEMBER), GroupCoordinator("workers")),
        (DeleteGroup(group="workers"), GroupCoordinator("workers")),
        (Redrive(topic=ORDERS), GroupCoordinator(REDRIVE_GROUP_PREFIX + ORDERS)),
        (DescribeRebalances(group="workers"), GroupCoordinator("workers")),
        (DescribeRebalances(), Seat.EVERY_NODE),
        (Settle(action=Action.ACK, receipts=["r"]), LeaseCoordinators(["r"])),
        (HearProducer(producer=PRODUCER, transactional_id="id"), TransactionCoordinator("id")),
        (HearProducer(producer=PRODUCER), Seat.ANY_NODE),
        (ForgetSink(sink="lake"), SinkCoordinator("lake")),
        (GetDelayed(topic=ORDERS, number=9, partition=1), DelayKeeper(ORDERS_1)),
        (GetDelayed(topic=ORDERS, number=9), DelayKeepers(ORDERS)),
        (CountDelayed(), DelayKeepers(None)),
        (ListSchedules(topic=ORDERS), DelayKeeper(TopicPartition(ORDERS, 0))),
        (DeleteSubject(subject="s"), Seat.SCHEMA_REGISTRY),
        (DescribeProtobuf(schema_id=1), Seat.ANY_NODE),
        (DeleteTopic(name=ORDERS), Seat.CONTROLLER),
        (DescribeSettings(name=ORDERS), Seat.ANY_NODE),
    ],
)
def test_a_command_is_at_home_with_whoever_keeps_what_it_is_about(command: Command, place: Place) -> None:
    assert (type(command.place), command.place) == (type(place), place)


def test_a_message_for_a_partition_goes_to_its_leader_and_any_other_where_routing_says() -> None:
    def sent(partition: int | None) -> PublishOnce:
        return PublishOnce(topic=ORDERS, message=Message(b"x", partition=partition), producer=PRODUCER)

    assert sent(1).place == ORDERS_1
    assert sent(None).place == TopicLeaders((ORDERS,))


def test_offsets_of_a_transaction_are_pended_where_the_group_is_kept() -> None:
    command = PendOffsets(transactional_id="id", producer=PRODUCER, who=MEMBER, commits=[])

    assert command.place == GroupCoordinator("workers")
