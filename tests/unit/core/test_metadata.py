"""The metadata machine: topics, epochs, producer ids; the same state again from its own events."""

from typing import get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.cluster.metadata import (
    EVENT_TYPES,
    PRODUCER_IDS_RESERVED,
    ClusterFormed,
    CommitMarkKept,
    EpochRaised,
    Event,
    JournalBegun,
    Metadata,
    PartitionEpochRaised,
    ProducerIdsReserved,
    StateReset,
    TopicRemoved,
)
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
    assert {kind.__name__: kind for kind in get_args(Event)} == EVENT_TYPES


@pytest.mark.parametrize("partitions", [-1, 0, 11])
def test_a_topic_has_at_least_one_partition_and_no_more_than_allowed(partitions: int) -> None:
    with pytest.raises(InvalidPartitionCount):
        create(Metadata(), ORDERS, partitions)


@pytest.mark.parametrize("partitions", [1, 10])
def test_the_limits_themselves_are_allowed(partitions: int) -> None:
    metadata = with_orders(1)
    create(metadata, TopicName("late"), partitions)
    metadata.apply(metadata.add_partitions("orders", 10, partitions_max=10))

    assert metadata.topic("late").partitions == partitions
    assert metadata.topic("orders").partitions == 10


def test_more_partitions_or_other_settings_leave_the_rest_of_a_topic_as_it_was() -> None:
    metadata = with_orders(3)
    before = metadata.topic("orders")

    metadata.apply(metadata.add_partitions("orders", 4, partitions_max=10))
    metadata.apply(metadata.change_settings("orders", TopicSettings(retention_bytes=9)))

    after = metadata.topic("orders")
    assert (after.partitions, after.settings) == (4, TopicSettings(retention_bytes=9))
    assert (after.topic_id, after.created_ms) == (before.topic_id, before.created_ms)


@pytest.mark.parametrize(
    "decide",
    [
        lambda metadata: metadata.add_partitions("ghost", 5, partitions_max=10),
        lambda metadata: metadata.change_settings("ghost", TopicSettings()),
        lambda metadata: metadata.delete_topic("ghost"),
        lambda metadata: metadata.raise_epoch(TopicPartition(TopicName("ghost"), 0), above=0),
    ],
)
def test_nothing_can_be_done_to_a_topic_that_is_not_there(decide: object) -> None:
    assert callable(decide)
    with pytest.raises(TopicNotFound):
        decide(with_orders())


def test_a_topic_that_is_deleted_is_known_by_no_id_and_its_name_is_barred() -> None:
    metadata = with_orders()
    topic_id = metadata.topic("orders").topic_id

    metadata.apply(metadata.delete_topic("orders"))

    assert topic_id not in metadata.names
    assert metadata.deleted == {ORDERS}
    metadata.apply(TopicRemoved(ORDERS))
    metadata.apply(TopicRemoved(ORDERS))
    assert metadata.deleted == set()


def test_producer_ids_begin_at_1_and_a_block_is_a_thousand() -> None:
    metadata = Metadata()
    assert metadata.producer_ids_end == 1

    assert metadata.reserve_producer_ids() == ProducerIdsReserved(1 + PRODUCER_IDS_RESERVED)
    assert metadata.producer_ids_end == 1, "deciding changes nothing"


class TestEpochs:
    """Every partition has an epoch: 1 when its topic is made, one more with each start or opening anew."""

    def started(self, times: int) -> Metadata:
        metadata = Metadata()
        for _ in range(times):
            metadata.apply(metadata.note_start())
        return metadata

    def epochs(self, metadata: Metadata, name: str = "orders") -> list[int]:
        topic = metadata.topic(name)
        return [metadata.epoch(topic, partition) for partition in range(topic.partitions)]

    @pytest.mark.parametrize("starts", [1, 2, 7])
    def test_partitions_of_a_new_topic_are_in_epoch_1_however_old_the_node_is(self, starts: int) -> None:
        metadata = self.started(starts)

        create(metadata, ORDERS, 2)

        assert self.epochs(metadata) == [1, 1]

    def test_a_start_raises_the_epochs_of_all_partitions(self) -> None:
        metadata = self.started(1)
        create(metadata, ORDERS, 2)
        metadata.apply(metadata.note_start())
        create(metadata, TopicName("late"), 1)
        metadata.apply(metadata.note_start())

        assert self.epochs(metadata) == [3, 3]
        assert self.epochs(metadata, "late") == [2]

    def test_a_partition_that_is_opened_anew_is_alone_in_its_next_epoch(self) -> None:
        metadata = self.started(1)
        create(metadata, ORDERS, 3)

        raised = metadata.raise_epoch(TopicPartition(ORDERS, 1), above=0)
        metadata.apply(raised)

        assert raised == PartitionEpochRaised(ORDERS, 1, 2)
        assert self.epochs(metadata) == [1, 2, 1]
        metadata.apply(metadata.note_start())
        assert self.epochs(metadata) == [2, 3, 2]

    @pytest.mark.parametrize(("above", "epoch"), [(0, 2), (1, 2), (2, 3), (41, 42)])
    def test_the_next_epoch_is_above_the_partitions_own_and_above_another(
        self, above: int, epoch: int
    ) -> None:
        metadata = self.started(1)
        create(metadata, ORDERS, 1)

        metadata.apply(metadata.raise_epoch(TopicPartition(ORDERS, 0), above=above))

        assert self.epochs(metadata) == [epoch]

    def test_raising_twice_adds_up(self) -> None:
        metadata = self.started(3)
        create(metadata, ORDERS, 2)
        for above in (5, 0, 3):
            metadata.apply(metadata.raise_epoch(TopicPartition(ORDERS, 0), above=above))

        assert self.epochs(metadata) == [8, 1]

    def test_a_partition_that_was_raised_keeps_that_when_its_topic_grows(self) -> None:
        metadata = self.started(1)
        create(metadata, ORDERS, 1)
        metadata.apply(metadata.raise_epoch(TopicPartition(ORDERS, 0), above=4))

        metadata.apply(metadata.add_partitions("orders", 2, partitions_max=10))

        assert self.epochs(metadata) == [5, 1]

    def test_a_topic_that_is_made_anew_begins_again_in_epoch_1(self) -> None:
        metadata = self.started(2)
        create(metadata, ORDERS, 1)
        metadata.apply(metadata.raise_epoch(TopicPartition(ORDERS, 0), above=9))
        metadata.apply(metadata.delete_topic("orders"))
        metadata.apply(TopicRemoved(ORDERS))

        create(metadata, ORDERS, 1)

        assert self.epochs(metadata) == [1]

    def test_a_journal_written_before_topics_knew_of_starts_counts_them_all(self) -> None:
        metadata = Metadata()
        create(metadata, ORDERS, 1)
        metadata.apply(EpochRaised(4))

        assert self.epochs(metadata) == [5]


def test_a_reset_leaves_nothing_of_what_was_before() -> None:
    metadata = with_orders()
    for event in (JournalBegun("groups-0"), CommitMarkKept(), EpochRaised(4), ProducerIdsReserved(99)):
        metadata.apply(event)

    metadata.apply(StateReset())

    assert vars(metadata) == vars(Metadata())


NAMES = st.sampled_from([TopicName("a"), TopicName("bb"), TopicName("ccc")])
STEP = st.one_of(
    st.tuples(st.just("create"), NAMES, st.integers(1, 4)),
    st.tuples(st.just("grow"), NAMES, st.integers(2, 8)),
    st.tuples(st.just("raise"), NAMES, st.integers(0, 9)),
    st.tuples(
        st.sampled_from(["delete", "remove", "start", "reserve", "journal", "mark"]), NAMES, st.just(0)
    ),
)


def decided(metadata: Metadata, step: str, name: TopicName, number: int) -> Event:
    match step:
        case "create":
            return metadata.create_topic(
                name,
                topic_id=UUID(int=len(name)),
                partitions=number,
                settings=TopicSettings(retention_ms=number),
                partitions_max=10,
                now_ms=number,
            )
        case "grow":
            return metadata.add_partitions(name, number, partitions_max=10)
        case "raise":
            return metadata.raise_epoch(TopicPartition(name, number % 2), above=number)
        case "delete":
            return metadata.delete_topic(name)
        case "remove":
            return TopicRemoved(name)
        case "start":
            return metadata.note_start()
        case "reserve":
            return metadata.reserve_producer_ids()
        case "journal":
            return JournalBegun(name)
    return CommitMarkKept()


@given(st.lists(STEP, max_size=25))
def test_the_same_events_lead_to_the_same_state_and_so_does_the_state_written_anew(
    steps: list[tuple[str, TopicName, int]],
) -> None:
    metadata, again, anew = Metadata(), Metadata(), Metadata()
    epochs: dict[tuple[UUID, int], int] = {}
    for step in steps:
        try:
            event = decided(metadata, *step)
        except (TopicExists, TopicNotFound, InvalidPartitionCount):
            continue
        metadata.apply(event)
        again.apply(event)
        for topic in metadata.topics.values():
            for partition in range(topic.partitions):
                epoch = metadata.epoch(topic, partition)
                assert epoch >= epochs.get((topic.topic_id, partition), 1), "epochs never fall"
                epochs[topic.topic_id, partition] = epoch
        epochs = {known: epoch for known, epoch in epochs.items() if known[0] in metadata.names}
    for event in metadata.whole_state():
        anew.apply(event)

    assert vars(again) == vars(metadata)
    assert vars(anew) == vars(metadata)
