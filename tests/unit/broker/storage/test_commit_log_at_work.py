"""The commit log at work: who goes through it, who does not, and when its files are used again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.storage import flusher
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.log.flush import Flush
from goqueue.model.commands import Placed, Publish, ReadMessages
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig, CommitLogConfig, KiB
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.disk import DiskPlacedFile, FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until

SMALL = BrokerConfig(commit_log=CommitLogConfig(file_bytes=64 * KiB, files_max=3))


async def put(broker: Broker, value: bytes = b"x", partition: int | None = None) -> None:
    [outcome] = await publish(broker, Publish(topic=ORDERS, messages=[Message(value, partition=partition)]))
    assert isinstance(outcome, Placed)


def walk(
    disk: FolderDisk | SimulatedDisk, work: Callable[[Broker], Awaitable[None]], config: BrokerConfig = SMALL
) -> None:
    async def open_and_work() -> None:
        async with running(disk, config) as broker:
            await work(broker)

    asyncio.run(open_and_work())


def watch_begin(partition: Partition, began: list[int]) -> None:
    """Note the number of the partition whenever a round asks for what it has."""
    begin_logged = partition.begin_logged

    def begin_and_note() -> Flush:
        began.append(partition.source.partition)
        return begin_logged()

    partition.begin_logged = begin_and_note  # type: ignore[method-assign]  # its own, for this test


def fsyncs(broker: Broker) -> int:
    return broker.counters.topic(ORDERS).fsyncs


def test_partitions_that_are_written_together_share_rounds_and_sync_no_file_of_their_own(
    tmp_path: Path,
) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=50))
        rounds, synced = broker.commit_log.round_count, fsyncs(broker)

        await asyncio.gather(*(put(broker, partition=number) for number in range(50)))

        assert broker.commit_log.round_count - rounds <= 3
        assert fsyncs(broker) == synced

    walk(FolderDisk(tmp_path), work)


def test_a_round_takes_so_many_partitions_and_the_next_ones_take_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "_ROUND_MAX", 10)

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=50))
        rounds, synced = broker.commit_log.round_count, fsyncs(broker)

        await asyncio.gather(*(put(broker, partition=number) for number in range(50)))

        assert broker.commit_log.round_count - rounds >= 5
        assert fsyncs(broker) == synced

    walk(FolderDisk(tmp_path), work)


def test_those_who_have_nothing_to_write_keep_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher, "_ROUND_MAX", 1)

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=50))
        for number in range(49):
            partition = broker.partition(TopicPartition(ORDERS, number))
            partition.flusher.request(partition)

        await asyncio.wait_for(put(broker, partition=49), timeout=20)

    walk(FolderDisk(tmp_path), work, BrokerConfig(flush_interval_ms=3_600_000, upkeep_interval_ms=3_600_000))


def test_what_a_round_has_taken_is_not_looked_at_again_when_the_interval_is_over(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        await put(broker, partition=0)
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=1)], acks=Acks.LEADER))
        began: list[int] = []
        for partition in broker.topics[ORDERS].partitions:
            watch_begin(partition, began)

        await until(lambda: not broker.partition(TopicPartition(ORDERS, 1)).has_hidden)

        assert began == [1]

    walk(FolderDisk(tmp_path), work, BrokerConfig(flush_interval_ms=200))


def test_what_is_large_is_synced_in_its_own_file_and_not_written_twice(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        written, synced = broker.commit_log.written_bytes, fsyncs(broker)

        await put(broker, bytes(200_000))

        assert fsyncs(broker) == synced + 1
        assert broker.commit_log.written_bytes == written

    walk(FolderDisk(tmp_path), work)


def test_a_lone_partition_is_synced_directly_where_a_share_of_a_round_would_cost_less(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=10))
        written, synced = broker.commit_log.written_bytes, fsyncs(broker)
        await put(broker, bytes(40_000), partition=0)
        assert (broker.commit_log.written_bytes, fsyncs(broker)) == (written, synced + 1)

        await asyncio.gather(*(put(broker, bytes(40_000), partition=number) for number in range(10)))

        assert broker.commit_log.written_bytes - written >= 9 * 40_000
        assert fsyncs(broker) <= synced + 2

    walk(FolderDisk(tmp_path), work, BrokerConfig())


def test_files_are_used_again_when_the_partitions_own_files_have_been_synced(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        for number in range(100):
            await put(broker, bytes(3_000), partition=number % 2)

        assert broker.commit_log.written_bytes > 3 * 64 * KiB, "most went through it"
        await until(lambda: len(broker.commit_log.paths) <= 2)

    walk(FolderDisk(tmp_path), work)


def test_a_commit_log_whose_files_cannot_be_written_leaves_the_work_to_the_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(file: DiskPlacedFile, *_: object) -> None:
        raise OSError(5, "the disk has failed")

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        with monkeypatch.context() as patched:
            patched.setattr(DiskPlacedFile, "write", broken)
            await put(broker, b"a")
        await put(broker, b"b")
        assert not broker.partition(ORDERS_0).is_failed

    walk(FolderDisk(tmp_path), work)


def test_a_round_whose_sync_fails_is_taken_by_another_file() -> None:
    disk = SimulatedDisk(Random(4))
    left: list[SimulatedDisk] = []

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        await put(broker, b"a")
        [first] = broker.commit_log.paths
        synced = fsyncs(broker)
        disk.faults.fail_syncs(under="commit")
        await put(broker, b"b")
        assert broker.commit_log.paths[0] == first
        assert len(broker.commit_log.paths) == 2
        assert fsyncs(broker) == synced
        left.append(disk.crash())

    async def look(broker: Broker) -> None:
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=100))
        assert [message.value for message in found.messages] == [b"a", b"b"]

    walk(disk, work)
    walk(left[0], look)


def test_after_a_power_cut_what_only_the_commit_log_had_is_there() -> None:
    disk = SimulatedDisk(Random(4))
    left: list[SimulatedDisk] = []

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=3))
        for number in range(30):
            await put(broker, b"%d" % number, partition=number % 3)
        left.append(disk.crash())

    async def look(broker: Broker) -> None:
        for number in range(3):
            source = TopicPartition(ORDERS, number)
            found = await read_messages(broker, ReadMessages(source=source, offset=0, limit=100))
            assert [message.value for message in found.messages] == [b"%d" % n for n in range(number, 30, 3)]

    walk(disk, work)
    walk(left[0], look)


def test_a_topic_that_is_made_anew_under_its_name_gets_nothing_of_the_one_before() -> None:
    disk = SimulatedDisk(Random(4))
    left: list[SimulatedDisk] = []

    async def work(broker: Broker) -> None:
        for value in (b"old", b"new"):
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
            for _ in range(3 if value == b"old" else 1):
                await put(broker, value)
            if value == b"old":
                await delete_topic(broker, DeleteTopic(name=ORDERS))
        left.append(disk.crash())

    async def look(broker: Broker) -> None:
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=100))
        assert [message.value for message in found.messages] == [b"new"]

    walk(disk, work)
    walk(left[0], look)


def test_a_folder_with_a_commit_log_opens_without_one_and_the_other_way_round() -> None:
    disk = SimulatedDisk(Random(4))
    without = BrokerConfig(commit_log=CommitLogConfig(files_max=0))
    other = TopicName("others")

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        await put(broker, b"a")
        left.append(disk.kill())

    async def look(broker: Broker) -> None:
        await put(broker, b"b")
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=100))
        assert [message.value for message in found.messages] in ([b"a", b"b"], [b"a", b"b", b"b"])
        await create_topic(broker, CreateTopic(name=f"{other}{len(found.messages)}", partitions=1))

    left: list[SimulatedDisk] = []
    walk(disk, work)
    walk(left[0], look, without)
    walk(left[0], look)


def test_a_partition_that_was_opened_anew_keeps_no_file_of_the_commit_log() -> None:
    disk = SimulatedDisk(Random(4))

    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        await put(broker, b"a", partition=0)
        partition = broker.partition(ORDERS_0)
        disk.faults.fail_syncs(under="logs/orders/0")
        # Stopped and opened anew may both lie between two looks: the epoch tells that it has been.
        before = partition.leader_epoch
        broker.flusher.request_snapshot(partition)
        await until(lambda: partition.leader_epoch > before and not partition.is_failed)
        for _ in range(100):
            await put(broker, bytes(3_000), partition=1)

        await until(lambda: len(broker.commit_log.paths) <= 2)
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=100))
        assert [message.value for message in found.messages] == [b"a"]

    walk(disk, work)
