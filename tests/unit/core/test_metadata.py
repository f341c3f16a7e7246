"""The image of what is agreed: what steps it decides on, and the same image from load and from follow."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.cluster.metadata import PRODUCER_IDS_RESERVED, Metadata
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import ABSENT, Change, Guard, Item, Loaded, NodeId, Step
from goqueue.model.errors import InvalidPartitionCount, TopicExists, TopicNotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings

ORDERS = TopicName("orders")
ME = NodeId("me")


class World:
    """An image and the keys it follows."""

    def __init__(self) -> None:
        self.image = Metadata(ME)
        self.items: dict[str, Item] = {}
        self.gone: list[TopicName] = []

    def make(self, step: Step[object]) -> None:
        for guard in step.guards:
            item = self.items.get(guard.key)
            assert guard.revision == (ABSENT if item is None else item.revision)
        revision = self.image.revision + 1
        self.items |= {key: Item(value, revision) for key, value in step.puts.items()}
        for key in step.drops:
            del self.items[key]
        self.gone += self.image.follow(Change(revision, step.puts, step.drops))

    def create(self, name: TopicName, partitions: int) -> Topic:
        topic = self.image.new_topic(
            name,
            topic_id=UUID(int=len(name)),
            partitions=partitions,
            settings=TopicSettings(retention_ms=5),
            partitions_max=10,
            now_ms=77,
        )
        self.make(self.image.create_topic(topic))
        return topic


def with_orders(partitions: int = 3) -> World:
    world = World()
    world.make(world.image.form_cluster("the-cluster"))
    world.make(world.image.note_start())
    world.create(ORDERS, partitions)
    return world


def test_a_topic_is_known_by_name_and_id() -> None:
    image = with_orders().image

    topic = image.topic("orders")
    assert (topic.partitions, topic.created_ms, topic.settings.retention_ms) == (3, 77, 5)
    assert image.names[topic.topic_id] == "orders"


def test_nothing_is_changed_by_a_decision_alone() -> None:
    world = with_orders()
    before = vars(world.image).copy()

    for step in (
        world.image.note_start(),
        world.image.delete_topic("orders"),
        world.image.reserve_producer_ids("x"),
    ):
        assert step.guards
    assert vars(world.image) == before


def test_a_name_is_free_again_when_the_folder_is_gone() -> None:
    world = with_orders()

    with pytest.raises(TopicExists):
        world.create(ORDERS, 1)
    world.make(world.image.raise_epoch(TopicPartition(ORDERS, 0), above=0))
    deleted = world.image.delete_topic("orders")
    world.make(deleted)
    assert (world.gone, world.image.names) == ([ORDERS], {})
    with pytest.raises(TopicNotFound):
        world.image.topic("orders")
    with pytest.raises(TopicExists):
        world.create(ORDERS, 1)
    world.make(world.image.remove_topic(deleted.value))
    assert sorted(world.items) == ["cluster", "starts"]
    assert world.image.epoch(world.create(ORDERS, 1), 0) == 1


@pytest.mark.parametrize("total", [-1, 0, 3, 11])
def test_partitions_only_become_more_within_the_limit(total: int) -> None:
    world = with_orders(3)

    with pytest.raises(InvalidPartitionCount):
        world.image.check_growth("orders", total, partitions_max=10)


def test_producer_ids_are_set_aside_in_blocks_that_do_not_overlap() -> None:
    world = World()
    first = world.image.reserve_producer_ids("a")
    world.make(first)
    second = world.image.reserve_producer_ids("b")

    assert first.value == range(1, 1 + PRODUCER_IDS_RESERVED)
    assert second.value.start == first.value.stop
    assert second.guards == (Guard("producer_ids", 1),)


def test_a_step_rests_on_what_it_was_decided_on() -> None:
    world = with_orders()
    topic = world.image.topic("orders")
    revision = world.image.revision

    settings = world.image.change_settings("orders", TopicSettings())
    raised = world.image.raise_epoch(TopicPartition(ORDERS, 1), above=0)
    assert settings.guards == (Guard(f"topics/{topic.topic_id}", revision),)
    assert raised.guards == (*settings.guards, Guard(f"parts/{topic.topic_id}/1", ABSENT))


def test_a_partition_without_a_record_is_led_by_the_one_node_since_its_topic_was_made() -> None:
    world = with_orders()
    topic = world.image.topic("orders")

    record = world.image.record(topic, 0)
    assert (record.leader, record.isr, record.replicas, record.elr) == (ME, (ME,), (ME,), ())
    world.make(world.image.raise_epoch(TopicPartition(ORDERS, 0), above=7))
    assert (world.image.record(topic, 0).epoch, world.image.record(topic, 0).leader) == (8, ME)
    world.make(world.image.note_start())
    assert [world.image.epoch(topic, number) for number in range(3)] == [9, 2, 2]


def test_load_leads_to_the_same_image_as_following_from_the_start() -> None:
    world = with_orders()
    image = world.image
    world.make(image.add_partitions("orders", 5))
    world.make(image.change_settings("orders", TopicSettings(retention_bytes=9)))
    world.make(image.raise_epoch(TopicPartition(ORDERS, 1), above=7))
    world.make(image.reserve_producer_ids("x"))
    world.make(image.begin_journal("__schemas/0"))
    world.make(image.keep_commit_mark())
    world.create(TopicName("gone"), 1)
    world.make(image.delete_topic("gone"))
    again = World().image

    again.load(Loaded(world.items, image.revision))

    assert {**vars(again), "_gone": []} == {**vars(image), "_gone": []}
    assert again.is_commit_mark_kept


@pytest.mark.parametrize("partitions", [-1, 0, 11])
def test_a_topic_has_at_least_one_partition_and_no_more_than_allowed(partitions: int) -> None:
    with pytest.raises(InvalidPartitionCount):
        World().create(ORDERS, partitions)


@pytest.mark.parametrize("partitions", [1, 10])
def test_the_limits_themselves_are_allowed(partitions: int) -> None:
    world = with_orders(1)
    world.create(TopicName("late"), partitions)
    world.image.check_growth("orders", 10, partitions_max=10)

    assert world.image.topic("late").partitions == partitions


def test_more_partitions_or_other_settings_leave_the_rest_of_a_topic_as_it_was() -> None:
    world = with_orders(3)
    before = world.image.topic("orders")

    world.make(world.image.add_partitions("orders", 4))
    world.make(world.image.change_settings("orders", TopicSettings(retention_bytes=9)))

    after = world.image.topic("orders")
    assert (after.partitions, after.settings) == (4, TopicSettings(retention_bytes=9))
    assert (after.topic_id, after.created_ms) == (before.topic_id, before.created_ms)


@pytest.mark.parametrize(
    "decide",
    [
        lambda image: image.check_growth("ghost", 5, partitions_max=10),
        lambda image: image.add_partitions("ghost", 5),
        lambda image: image.change_settings("ghost", TopicSettings()),
        lambda image: image.delete_topic("ghost"),
        lambda image: image.raise_epoch(TopicPartition(TopicName("ghost"), 0), above=0),
    ],
)
def test_nothing_can_be_done_to_a_topic_that_is_not_there(decide: object) -> None:
    assert callable(decide)
    with pytest.raises(TopicNotFound):
        decide(with_orders().image)


class TestEpochs:
    """Every partition has an epoch: 1 when its topic is made, one more with each start or opening anew."""

    def started(self, times: int) -> World:
        world = World()
        for _ in range(times):
            world.make(world.image.note_start())
        return world

    def epochs(self, world: World, name: str = "orders") -> list[int]:
        topic = world.image.topic(name)
        return [world.image.epoch(topic, partition) for partition in range(topic.partitions)]

    @pytest.mark.parametrize("starts", [1, 2, 7])
    def test_partitions_of_a_new_topic_are_in_epoch_1_however_old_the_node_is(self, starts: int) -> None:
        world = self.started(starts)

        world.create(ORDERS, 2)

        assert self.epochs(world) == [1, 1]

    def test_a_start_raises_the_epochs_of_all_partitions(self) -> None:
        world = self.started(1)
        world.create(ORDERS, 2)
        world.make(world.image.note_start())
        world.create(TopicName("late"), 1)
        world.make(world.image.note_start())

        assert self.epochs(world) == [3, 3]
        assert self.epochs(world, "late") == [2]

    def test_a_partition_that_is_opened_anew_is_alone_in_its_next_epoch(self) -> None:
        world = self.started(1)
        world.create(ORDERS, 3)

        raised = world.image.raise_epoch(TopicPartition(ORDERS, 1), above=0)
        world.make(raised)

        assert raised.value == 2
        assert self.epochs(world) == [1, 2, 1]
        world.make(world.image.note_start())
        assert self.epochs(world) == [2, 3, 2]

    @pytest.mark.parametrize(("above", "epoch"), [(0, 2), (1, 2), (2, 3), (41, 42)])
    def test_the_next_epoch_is_above_the_partitions_own_and_above_another(
        self, above: int, epoch: int
    ) -> None:
        world = self.started(1)
        world.create(ORDERS, 1)

        world.make(world.image.raise_epoch(TopicPartition(ORDERS, 0), above=above))

        assert self.epochs(world) == [epoch]

    def test_raising_twice_adds_up(self) -> None:
        world = self.started(3)
        world.create(ORDERS, 2)
        for above in (5, 0, 3):
            world.make(world.image.raise_epoch(TopicPartition(ORDERS, 0), above=above))

        assert self.epochs(world) == [8, 1]

    def test_a_partition_that_was_raised_keeps_that_when_its_topic_grows(self) -> None:
        world = self.started(1)
        world.create(ORDERS, 1)
        world.make(world.image.raise_epoch(TopicPartition(ORDERS, 0), above=4))

        world.make(world.image.add_partitions("orders", 2))

        assert self.epochs(world) == [5, 1]


NAMES = st.sampled_from([TopicName("a"), TopicName("bb"), TopicName("ccc")])
STEP = st.one_of(
    st.tuples(st.just("create"), NAMES, st.integers(1, 4)),
    st.tuples(st.just("grow"), NAMES, st.integers(2, 8)),
    st.tuples(st.just("raise"), NAMES, st.integers(0, 9)),
    st.tuples(
        st.sampled_from(["delete", "remove", "start", "reserve", "journal", "mark"]), NAMES, st.just(0)
    ),
)


def decided(image: Metadata, step: str, name: TopicName, number: int) -> Step[object]:
    match step:
        case "create":
            topic = image.new_topic(
                name,
                topic_id=UUID(int=len(name)),
                partitions=number,
                settings=TopicSettings(retention_ms=number),
                partitions_max=10,
                now_ms=number,
            )
            return image.create_topic(topic)
        case "grow":
            image.check_growth(name, number, partitions_max=10)
            return image.add_partitions(name, number)
        case "raise":
            return image.raise_epoch(TopicPartition(name, number % 2), above=number)
        case "delete":
            return image.delete_topic(name)
        case "remove" if name in image.deleted:
            return image.remove_topic(image.deleted[name])
        case "reserve":
            return image.reserve_producer_ids(name)
        case "journal":
            return image.begin_journal(name)
        case "mark":
            return image.keep_commit_mark()
    return image.note_start()


@given(st.lists(STEP, max_size=25))
def test_following_step_by_step_and_loading_at_the_end_lead_to_the_same_and_epochs_never_fall(
    steps: list[tuple[str, TopicName, int]],
) -> None:
    world, anew = World(), World().image
    epochs: dict[tuple[UUID, int], int] = {}
    for step in steps:
        try:
            made = decided(world.image, *step)
        except (TopicExists, TopicNotFound, InvalidPartitionCount):
            continue
        world.make(made)
        for topic in world.image.topics.values():
            for partition in range(topic.partitions):
                epoch = world.image.epoch(topic, partition)
                assert epoch >= epochs.get((topic.topic_id, partition), 1), "epochs never fall"
                epochs[topic.topic_id, partition] = epoch
        epochs = {known: epoch for known, epoch in epochs.items() if known[0] in world.image.names}

    anew.load(Loaded(world.items, world.image.revision))
    assert {**vars(anew), "_gone": []} == {**vars(world.image), "_gone": []}
