"""Topics: created, described, changed, deleted, and all of it there again after a restart."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.topics.verbs import (
    add_partitions,
    alter_settings,
    create_topic,
    delete_records,
    delete_topic,
    describe_settings,
    describe_topic,
    ensure_topic,
    list_topics,
    topic_by_id,
)
from goqueue.broker.upkeep import keep_up_partition, keep_up_partitions
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.errors import (
    InvalidPartitionCount,
    InvalidReplication,
    InvalidSetting,
    InvalidTopicName,
    OffsetOutOfRange,
    TopicExists,
    TopicNotFound,
)
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import (
    AddPartitions,
    AlterSettings,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    DescribeSettings,
    DescribeTopic,
    EnsureTopic,
    FindTopic,
    ListTopics,
    SettingChange,
)
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running


def test_a_topic_its_settings_and_its_birth_survive_a_restart(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            created = await create_topic(
                broker, CreateTopic(name="orders", partitions=2, settings={"retention.ms": "5000"})
            )
            await alter_settings(
                broker, AlterSettings(name="orders", changes=[SettingChange("segment.bytes", "8192")])
            )
            await add_partitions(broker, AddPartitions(name="orders", total=4))
            cluster_id = broker.cluster_id
        async with running(FolderDisk(tmp_path)) as broker:
            found = await describe_topic(broker, DescribeTopic(name="orders"))
            assert (found.topic_id, found.created_ms) == (created.topic_id, created.created_ms)
            assert (found.settings.retention_ms, found.settings.segment_bytes) == (5000, 8192)
            assert [view.partition for view in found.partitions] == [0, 1, 2, 3]
            assert await topic_by_id(broker, FindTopic(topic_id=created.topic_id)) == found
            assert broker.cluster_id == cluster_id
            assert len(cluster_id) == 22

    asyncio.run(walk())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 250, "a\0b", "../up"])
def test_names_that_could_not_be_folders_are_refused(tmp_path: Path, name: str) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            with pytest.raises(InvalidTopicName):
                await create_topic(broker, CreateTopic(name=name))
            assert await list_topics(broker, ListTopics()) == []

    asyncio.run(walk())


def test_what_cannot_be_made_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    bad = [
        (CreateTopic(name="t", partitions=0), InvalidPartitionCount),
        (CreateTopic(name="t", partitions=1_000_000), InvalidPartitionCount),
        (CreateTopic(name="t", replication=3), InvalidReplication),
        (CreateTopic(name="t", settings={"retention.msec": "1"}), InvalidSetting),
        (CreateTopic(name="t", settings={"retention.ms": "soon"}), InvalidSetting),
        (CreateTopic(name="t", settings={"segment.bytes": "7"}), InvalidSetting),
        (CreateTopic(name="t", settings={"cleanup.policy": "compress"}), InvalidSetting),
        (CreateTopic(name="t", settings={"cleanup.policy": "compact,compress"}), InvalidSetting),
        (CreateTopic(name="t", settings={"cleanup.policy": ""}), InvalidSetting),
        (CreateTopic(name="t", settings={"min.cleanable.dirty.ratio": "2"}), InvalidSetting),
        (CreateTopic(name="t.dlq", settings={"cleanup.policy": "compact"}), InvalidSetting),
        (CreateTopic(name="t.quarantine", settings={"cleanup.policy": "compact,delete"}), InvalidSetting),
    ]

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            for command, error in bad:
                with pytest.raises(error):
                    await create_topic(broker, command)
            await create_topic(broker, CreateTopic(name="t", validate_only=True))
            assert await list_topics(broker, ListTopics()) == []

    asyncio.run(walk())


def test_an_unknown_setting_is_answered_with_the_nearest_known(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            with pytest.raises(InvalidSetting, match=r"did you mean retention\.ms"):
                await create_topic(broker, CreateTopic(name="t", settings={"retention.mss": "1"}))

    asyncio.run(walk())


def test_a_deleted_topic_is_gone_from_memory_and_disk_and_its_name_is_free(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            first = await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")]))
            with pytest.raises(TopicExists):
                await create_topic(broker, CreateTopic(name="orders"))
            await delete_topic(broker, DeleteTopic(name="orders"))
            assert not (tmp_path / "logs/orders").exists()
            with pytest.raises(TopicNotFound):
                await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")]))
            with pytest.raises(TopicNotFound):
                await topic_by_id(broker, FindTopic(topic_id=first.topic_id))
            again = await create_topic(broker, CreateTopic(name="orders", partitions=1))
            assert again.topic_id != first.topic_id
            assert again.partitions[0].end_offset == 0
        async with running(FolderDisk(tmp_path)) as broker:
            assert [view.name for view in await list_topics(broker, ListTopics())] == ["orders"]

    asyncio.run(walk())


def test_topics_come_into_being_on_use_only_if_the_settings_allow(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(default_partitions=5)) as broker:
            views = await asyncio.gather(
                *(ensure_topic(broker, EnsureTopic(name="orders")) for _ in range(1))
            )
            assert len(views[0].partitions) == 5
        async with running(FolderDisk(tmp_path), BrokerConfig(auto_create_topics=False)) as broker:
            assert (await ensure_topic(broker, EnsureTopic(name="orders"))).name == "orders"
            with pytest.raises(TopicNotFound):
                await ensure_topic(broker, EnsureTopic(name="unknown"))

    asyncio.run(walk())


def test_records_are_deleted_up_to_an_offset_for_good(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x")] * 10))
            assert await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=4)) == 4
            assert await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=2)) == 4
            with pytest.raises(OffsetOutOfRange):
                await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=11))
        async with running(FolderDisk(tmp_path)) as broker:
            assert (await describe_topic(broker, DescribeTopic(name="orders"))).partitions[
                0
            ].start_offset == 4
            assert await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=-1)) == 10

    asyncio.run(walk())


def test_settings_are_shown_with_their_defaults_and_go_back_to_them(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", settings={"retention.bytes": "99"}))
            views = {view.name: view for view in describe_settings(broker, DescribeSettings(name="orders"))}
            assert (views["retention.bytes"].value, views["retention.bytes"].is_default) == ("99", False)
            assert (views["cleanup.policy"].value, views["cleanup.policy"].is_default) == ("delete", True)
            changed = await alter_settings(
                broker, AlterSettings(name="orders", changes=[SettingChange("retention.bytes", None)])
            )
            assert changed.settings.retention_bytes == -1
            await alter_settings(
                broker,
                AlterSettings(
                    name="orders", changes=[SettingChange("retention.bytes", "7")], validate_only=True
                ),
            )
            assert (await describe_topic(broker, DescribeTopic(name="orders"))).settings.retention_bytes == -1

    asyncio.run(walk())


def test_upkeep_applies_a_changed_retention(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(
                broker, CreateTopic(name="orders", partitions=1, settings={"segment.bytes": "4096"})
            )
            for _ in range(20):
                await publish(
                    broker, Publish(topic=ORDERS, messages=[Message(b"x" * 1000)], acks=Acks.LEADER)
                )
            await commit_written([broker.partition(ORDERS_0)])
            await alter_settings(
                broker, AlterSettings(name="orders", changes=[SettingChange("retention.bytes", "4096")])
            )
            await keep_up_partition(broker, broker.partition(ORDERS_0))
            view = (await describe_topic(broker, DescribeTopic(name="orders"))).partitions[0]
            assert view.size_bytes < 3 * 4096
            assert len(list((tmp_path / "logs/orders/0").glob("*.log"))) <= 3

    asyncio.run(walk())


def test_a_topic_that_is_deleted_during_upkeep_is_no_news(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=8))
            messages = [Message(b"x", partition=number) for number in range(8)]
            await publish(broker, Publish(topic=ORDERS, messages=messages))
            await asyncio.gather(keep_up_partitions(broker), delete_topic(broker, DeleteTopic(name="orders")))

    asyncio.run(walk())

    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == []


def test_nobody_waits_for_a_recovery_point_of_a_partition_that_was_closed(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            partition = broker.partition(ORDERS_0)
            await delete_topic(broker, DeleteTopic(name="orders"))
            with pytest.raises(TopicNotFound):
                await asyncio.wait_for(partition.save_recovery_point(), timeout=5)

    asyncio.run(walk())
