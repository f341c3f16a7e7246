"""The metadata machine: topics, epochs, producer ids; the same state again from its own events."""

from uuid import UUID

import pytest

from goqueue.core.cluster.metadata import EVENT_TYPES, ClusterFormed, Metadata, TopicRemoved
from goqueue.model.errors import InvalidPartitionCount, TopicExists, TopicNotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings

ORDERS = TopicName("orders")


def with_orders(partitions: int = 3) -> Metadata:
    metadata = Metadata()
    metadata.apply(ClusterFormed("the-cluster"))
    create(metadata, ORDERS, partitions)
    return metadata


def create(metadata: Metadata, name: TopicName, partitions: int) -> None:
    metadata.apply(
        metadata.create_topic(
            name,
            topic_id=UUID(int=len(name)),
            partitions=partitions,
            settings=TopicSettings(retention_ms=5),
            partitions_max=10,
            now_ms=77,
        )
    )


def test_a_topic_is_known_by_name_and_id() -> None:
    metadata = with_orders()

    topic = metadata.topic("orders")

    assert (topic.partitions, topic.created_ms, topic.settings.retention_ms) == (3, 77, 5)
    assert metadata.names[topic.topic_id] == "orders"


def test_a_name_can_be_taken_once_and_not_while_its_folder_is_being_removed() -> None:
    metadata = with_orders()

    with pytest.raises(TopicExists):
        create(metadata, ORDERS, 1)
    metadata.apply(metadata.delete_topic("orders"))
    with pytest.raises(TopicNotFound):
        metadata.topic("orders")
    with pytest.raises(TopicExists):
        create(metadata, ORDERS, 1)
    metadata.apply(TopicRemoved(ORDERS))
    create(metadata, ORDERS, 1)


@pytest.mark.parametrize("total", [-1, 0, 3, 11])
def test_partitions_only_become_more_within_the_limit(total: int) -> None:
    metadata = with_orders(3)

    with pytest.raises(InvalidPartitionCount):
        metadata.add_partitions("orders", total, partitions_max=10)
    assert metadata.topic("orders").partitions == 3


def test_producer_ids_are_set_aside_in_blocks_that_do_not_overlap() -> None:
    metadata = Metadata()
    first = metadata.reserve_producer_ids()
    metadata.apply(first)
    second = metadata.reserve_producer_ids()

    assert second.end > first.end > 1


def test_the_whole_state_can_be_written_anew() -> None:
    metadata = with_orders()
    metadata.apply(metadata.add_partitions("orders", 5, partitions_max=10))
    metadata.apply(metadata.change_settings("orders", TopicSettings(retention_bytes=9)))
    metadata.apply(metadata.note_start())
    metadata.apply(metadata.raise_epoch(TopicPartition(ORDERS, 1), above=7))
    metadata.apply(metadata.reserve_producer_ids())
    create(metadata, TopicName("gone"), 1)
    metadata.apply(metadata.delete_topic("gone"))
    again = Metadata()
    create(again, TopicName("stale"), 1)

    for event in metadata.whole_state():
        again.apply(event)

    assert vars(again) == vars(metadata)


def test_every_event_has_a_name_for_the_journal() -> None:
    assert {type(event).__name__ for event in with_orders().whole_state()} <= set(EVENT_TYPES)
