"""What the broker is measured by, in states that a healthy one does not show."""

import asyncio
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.measures.family import Labels
from goqueue.broker.measures.table import FAMILIES, LEFT_OUT
from goqueue.broker.measures.view import View
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read_messages
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.histogram import Histogram
from goqueue.model.commands import FindOffset, Placed, Publish, ReadMessages
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig, TopicSettings
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, ORDERS, ORDERS_0, running, until

Told = dict[Labels, float | Histogram]


def told(view: View, name: str) -> Told:
    [family] = [family for family in FAMILIES if family.name == name]
    return dict(family.read(view))


async def put(broker: Broker, value: bytes = b"x", topic: TopicName = ORDERS) -> object:
    command = Publish(topic=topic, messages=[Message(value, partition=0)], acks=Acks.ALL)
    [result] = await publish(broker, command)
    return result


def test_no_two_families_share_a_name_and_each_has_one_of_the_house() -> None:
    names = [family.name for family in FAMILIES]

    assert len(set(names)) == len(names)
    assert all(name.startswith("goqueue_") for name in names)
    assert all(family.help.endswith(".") for family in FAMILIES)
    assert not set(names) & LEFT_OUT.keys()


def test_a_partition_that_the_disk_has_failed_is_offline_until_it_is_opened_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk(Random(3))

    async def walk() -> None:
        async with running(disk, BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=2))
            assert await put(broker) == Placed(0, 0)
            partition = broker.partition(ORDERS_0)
            stopped: list[Partition] = []
            open_anew = partition._on_failure
            monkeypatch.setattr(partition, "_on_failure", stopped.append)  # not before it was looked at
            disk.faults.fail_syncs(1, under="logs/orders")
            await put(broker)
            failed = await View(broker).look()
            open_anew(*stopped)
            await until(lambda: not partition.is_failed)
            healed = await View(broker).look()

        assert told(failed, "goqueue_cluster_offline_partitions") == {(): 1}
        assert told(failed, "goqueue_storage_fsync_errors_total")["orders",] == 1
        assert told(failed, "goqueue_broker_messages_failed_total") == {("orders", "storage_failed"): 1}
        assert told(healed, "goqueue_cluster_offline_partitions") == {(): 0}
        assert told(healed, "goqueue_storage_log_end_offset")["orders",] == 1
        assert told(healed, "goqueue_storage_segments_created_total")["orders",] == 1

    asyncio.run(walk())


def test_segments_that_are_begun_and_given_up_are_counted_across_a_reopening() -> None:
    disk = SimulatedDisk(Random(4))
    settings = TopicSettings(segment_bytes=4096, retention_bytes=4096)

    async def walk() -> None:
        async with running(
            disk, BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT, topic_defaults=settings)
        ) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            for _ in range(5):
                await put(broker, b"x" * 3000)
            partition = broker.partition(ORDERS_0)
            await until(lambda: partition.log.segments_removed > 0)
            before = await segments(broker)
            disk.faults.fail_syncs(1, under="logs/orders")
            await put(broker, b"x" * 3000)
            await until(lambda: not partition.is_failed)
            after = await segments(broker)

        assert (before[0], after[0]) == (5, 6)
        assert before[1] <= after[1] < 5

    async def segments(broker: Broker) -> tuple[int, int]:
        """Created and deleted."""
        view = await View(broker).look()
        names = ("goqueue_storage_segments_created_total", "goqueue_storage_segments_deleted_total")
        created, deleted = (told(view, name)["orders",] for name in names)
        assert isinstance(created, int)
        assert isinstance(deleted, int)
        return created, deleted

    asyncio.run(walk())


def test_look_ups_active_segments_and_recovery_points_are_counted() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(7))) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=2))
            for _ in range(3):
                await put(broker)
            await read_messages(broker, ReadMessages(source=ORDERS_0, offset=1, limit=1))
            await find_offset(broker, FindOffset(source=ORDERS_0, spot=broker.clock.wall_ms() - 60_000))
            view = await View(broker).look()
            count_before = recovery_points(view)
            await broker.partition(ORDERS_0).save_recovery_point()

        assert told(view, "goqueue_storage_segments_active")["orders",] == 2
        look_ups = told(view, "goqueue_storage_index_lookups_total")
        # What is not in memory is looked up once more by the thread that waits for the disk.
        assert (look_ups["orders", "offset"], look_ups["orders", "time"]) == (2, 2)
        assert recovery_points(view) > count_before, "counters are read when they are told"

    def recovery_points(view: View) -> float:
        [(labels, count)] = told(view, "goqueue_storage_snapshots_created_total").items()
        [(_, times)] = told(view, "goqueue_storage_snapshot_latency_seconds").items()
        assert labels == ("recovery_point",)
        assert isinstance(times, Histogram)
        assert times.count == count
        return times.count

    asyncio.run(walk())


def test_a_topic_that_goes_while_it_is_looked_at_is_no_problem() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(5))) as broker:
            for number in range(70):
                await create_topic(broker, CreateTopic(name=f"topic-{number}", partitions=3))
            gone = TopicName("topic-69")
            await put(broker, topic=gone)
            await commit_offsets(
                broker, CommitOffsets(Membership("readers", "", -1), [TopicCommit(gone, [(0, 0, -1, "")])])
            )
            view = View(broker)
            looking = asyncio.create_task(view.look())
            await asyncio.sleep(0)
            await delete_topic(broker, DeleteTopic(name=gone))
            await looking
            again = await View(broker).look()

        assert told(again, "goqueue_broker_topic_count") == {(): 69}
        assert told(again, "goqueue_consumer_lag_messages") == {}

    asyncio.run(walk())


def test_the_time_of_a_lag_is_told_of_a_bounded_number_of_partitions() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(6))) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker)
            for number in range(1_002):
                who = Membership(f"group-{number:04}", "", -1)
                await commit_offsets(broker, CommitOffsets(who, [TopicCommit(ORDERS, [(0, 0, -1, "")])]))
            view = await View(broker).look()

        lags = told(view, "goqueue_consumer_lag_messages")
        assert len(lags) == 1_001  # a thousand groups have places, the others share one
        assert lags["_other", "_other"] == 2
        assert len(told(view, "goqueue_consumer_lag_seconds")) in (999, 1_000)  # of two nobody has looked

    asyncio.run(walk())
