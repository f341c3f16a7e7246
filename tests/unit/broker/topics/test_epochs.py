"""Each partition has an epoch of its own: what raises it, what does not, and that it never falls."""

import asyncio
import shutil
import tarfile
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.health.repair import repair
from goqueue.broker.read.find_offset import end_of_epoch
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic, delete_topic, describe_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import FindEpochEnd, Publish, ReadMessages
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic, DeleteTopic, DescribeTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, ORDERS, ORDERS_0, running, until

EARLIER = Path(__file__).parent / "folders" / "one_epoch_for_all.tar.xz"
"""Left by a broker that was killed in its third life, when one number was the epoch of all partitions.

`orders` has the messages 1, 2 and 3 in the first of its three partitions; there are `acme.bills`, the tenant
`acme`, and 1,000 producer ids that were set aside."""
QUICK = BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT)


async def epochs(broker: Broker, topic: str = ORDERS) -> list[int]:
    return [
        partition.leader_epoch
        for partition in (await describe_topic(broker, DescribeTopic(name=topic))).partitions
    ]


async def put(broker: Broker, partition: int = 0) -> None:
    messages = [Message(b"x", partition=partition)]
    await publish(broker, Publish(topic=ORDERS, messages=messages, acks=Acks.LEADER))


async def fail(broker: Broker, disk: SimulatedDisk, partition: int = 0) -> None:
    """Let the disk fail a partition, and return when it is back."""
    failing = broker.partition(TopicPartition(ORDERS, partition))
    before = failing.leader_epoch
    await put(broker, partition)
    disk.faults.fail_syncs(1, under=f"logs/orders/{partition}")
    broker.flusher.request(failing)
    await until(lambda: failing.leader_epoch > before and not failing.is_failed)


def test_a_partition_that_is_opened_anew_raises_its_own_epoch_and_no_other() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with running(disk, QUICK) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=3))
            assert await epochs(broker) == [1, 1, 1]
            await fail(broker, disk, partition=1)
            await fail(broker, disk, partition=1)
            await fail(broker, disk, partition=2)
            assert await epochs(broker) == [1, 3, 2]

    asyncio.run(walk())


def test_every_epoch_rises_with_a_start_and_a_new_topic_begins_at_its_first() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with running(disk, QUICK) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            await fail(broker, disk, partition=1)
        async with running(disk, QUICK) as broker:
            assert await epochs(broker) == [2, 3]
            await create_topic(broker, CreateTopic(name="later", partitions=1))
            await fail(broker, disk, partition=0)
        async with running(disk, QUICK) as broker:
            assert (await epochs(broker), await epochs(broker, "later")) == ([4, 4], [2])

    asyncio.run(walk())


def test_epochs_survive_a_journal_that_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goqueue.broker.storage.state_journal.EVENTS_MAX", 0)
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with running(disk, QUICK) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            await fail(broker, disk, partition=1)
            assert broker.journal is not None
            await broker.journal.shorten()
        async with running(disk, QUICK) as broker:
            assert await epochs(broker) == [2, 3]

    asyncio.run(walk())


def test_a_topic_made_anew_begins_anew() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with running(disk, QUICK) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
            await put(broker)
            await fail(broker, disk)
            await delete_topic(broker, DeleteTopic(name=ORDERS))
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
            await put(broker)
            assert await epochs(broker) == [1]
            assert broker.partition(ORDERS_0).log.epochs == [(1, 0)]

    asyncio.run(walk())


def test_a_folder_with_one_epoch_for_all_keeps_it_for_each(tmp_path: Path) -> None:
    with tarfile.open(EARLIER) as folder:
        folder.extractall(tmp_path, filter="data")

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            assert (await epochs(broker), await epochs(broker, "acme.bills")) == ([4, 4, 4], [4])
            found = await read_messages(broker, ReadMessages(source=ORDERS_0))
            assert [message.value for message in found.messages] == [b"1", b"2", b"3"]
            asked = [FindEpochEnd(source=ORDERS_0, epoch=epoch) for epoch in (1, 2, 3)]
            assert [end_of_epoch(broker, one) for one in asked] == [(1, 1), (2, 2), (3, 3)]
            assert broker.tenants.get("acme").name == "acme"
            assert broker.metadata.producer_ids_end == 1_001
        async with running(FolderDisk(tmp_path)) as broker:
            assert await epochs(broker) == [5, 5, 5]

    asyncio.run(walk())


def test_a_log_that_outlived_its_metadata_goes_on_above_its_last_epoch(tmp_path: Path) -> None:
    async def live(*, is_new: bool) -> list[int]:
        async with running(FolderDisk(tmp_path)) as broker:
            if is_new:
                await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
            await put(broker)
            return await epochs(broker)

    assert [asyncio.run(live(is_new=at == 0)) for at in range(3)] == [[1], [2], [3]]
    shutil.rmtree(tmp_path / "logs/__metadata")
    repair(FolderDisk(tmp_path), SystemClock(), is_applied=True, kept_in=None)

    assert asyncio.run(live(is_new=True)) == [4]
    assert asyncio.run(live(is_new=False)) == [5]
