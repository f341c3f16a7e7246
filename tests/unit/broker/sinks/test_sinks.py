"""Exactly-once sinks on one broker: what is staged is unseen, what is committed is there once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks import epochs as sinks_epochs
from goqueue.broker.sinks.epochs import keep_up_sinks
from goqueue.broker.sinks.verbs import (
    abort_stages,
    describe_sink,
    forget_sink,
    list_sinks,
    stage,
    take_generation,
)
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.errors import (
    Corrupt,
    Invalid,
    SinkFenced,
    SinkNotFound,
    StageNotFound,
    StorageFailed,
    StorageFull,
    TopicNotFound,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.ports import Disk
from goqueue.model.settings import BrokerConfig
from goqueue.model.sinks import (
    AbortStages,
    DescribeSink,
    EpochEnded,
    ForgetSink,
    ListSinks,
    StageBatches,
    TakeGeneration,
)
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.disk import FolderDisk
from goqueue.records.entries import encode_entry
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, ORDERS, running, until
from tests.unit.broker.sinks.sink_steps import SINK, batch_of, commit, ending, entries, put_stage, values

Walk = Callable[[Broker], Awaitable[None]]


def walk_with_sink(disk: Disk, walk: Walk, config: BrokerConfig | None = None) -> None:
    async def go() -> None:
        async with running(disk, config) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            await take_generation(broker, TakeGeneration(sink=SINK))
            await walk(broker)

    asyncio.run(go())


def test_an_epoch_is_seen_whole_when_it_commits_and_not_before(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "a0"), (1, "a1"), (0, "a2")])
        await put_stage(broker, 0, "b", [(1, "b1")])
        assert await values(broker, 0) + await values(broker, 1) == []

        assert await commit(broker, 0, "a", "b") == EpochEnded(is_duplicate=False, messages=4)

        assert await values(broker, 0) == ["a0", "a2"]
        assert await values(broker, 1) == ["a1", "b1"]
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).last_epoch == 0
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).stages == []

    walk_with_sink(FolderDisk(tmp_path), walk)
    assert not list((tmp_path / "stages" / SINK).iterdir())


def test_the_messages_of_a_commit_are_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x"), (1, "y")])
        await commit(broker, 0, "a")
        for partition in (0, 1):
            assert broker.partition(TopicPartition(ORDERS, partition)).log.flushed_offset == 1

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_an_epoch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 4, "first", [(0, "x")])
        await commit(broker, 4, "first")
        for epoch in (4, 3):
            await put_stage(broker, epoch, "again", [(0, "other")])
            assert (await commit(broker, epoch, "again")).is_duplicate
        assert await values(broker, 0) == ["x"]
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).stages == []

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_epochs_need_not_follow_each_other_and_may_be_empty(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 7, "a", [(0, "x")])
        await commit(broker, 7, "a")
        assert await commit(broker, 9) == EpochEnded(is_duplicate=False, messages=0)
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).last_epoch == 9

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_commit_with_an_unknown_stage_does_nothing(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        with pytest.raises(StageNotFound):
            await commit(broker, 0, "a", "missing")
        assert await values(broker, 0) == []
        assert not (await commit(broker, 0, "a", "a")).is_duplicate
        assert await values(broker, 0) == ["x"]

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_stage_of_the_same_id_takes_the_place_of_the_first(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "first"), (1, "first")])
        await put_stage(broker, 0, "a", [(0, "second")])
        await commit(broker, 0, "a")
        assert (await values(broker, 0), await values(broker, 1)) == (["second"], [])

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_an_older_generation_can_do_nothing(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        assert (await take_generation(broker, TakeGeneration(sink=SINK))).generation == 2
        with pytest.raises(SinkFenced):
            await put_stage(broker, 0, "b", [(0, "y")])
        with pytest.raises(SinkFenced):
            await commit(broker, 0, "a")
        with pytest.raises(SinkFenced):
            await abort_stages(broker, ending(AbortStages, 0, "a"))
        await commit(broker, 0, "a", generation=2)
        assert await values(broker, 0) == ["x"]

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_an_abort_drops_stages_and_never_undoes_a_commit(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        await put_stage(broker, 0, "b", [(0, "y")])
        assert await abort_stages(broker, ending(AbortStages, 0, "b", "missing")) == 1
        await commit(broker, 0, "a")
        assert await abort_stages(broker, ending(AbortStages, 0, "a")) == 0
        assert await values(broker, 0) == ["x"]

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_sink_can_be_forgotten_with_its_stages(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        await forget_sink(broker, ForgetSink(sink=SINK))
        assert list_sinks(broker, ListSinks()) == []
        with pytest.raises(SinkNotFound):
            await commit(broker, 0, "a")

    walk_with_sink(FolderDisk(tmp_path), walk)
    assert not (tmp_path / "stages" / SINK).exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 201, "a\n", "ü"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    async def walk(broker: Broker) -> None:
        with pytest.raises(Invalid):
            await take_generation(broker, TakeGeneration(sink=name))
        with pytest.raises(Invalid):
            await put_stage(broker, 0, name, [(0, "x")])

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_stage_for_a_topic_that_is_gone_is_not_committed(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        with pytest.raises(TopicNotFound):
            await commit(broker, 0, "a")
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        await commit(broker, 0, "a")
        assert await values(broker, 0) == ["x"]

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_topic_made_anew_takes_the_epochs_that_follow(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x"), (0, "y")])
        await commit(broker, 0, "a")
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1))
        await put_stage(broker, 1, "a", [(0, "z")])
        await commit(broker, 1, "a")
        assert await values(broker, 0) == ["z"]

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_damaged_stage_is_never_committed() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        disk.flip_bit(f"stages/{SINK}/0-a.stage", 90)
        with pytest.raises(Corrupt):
            await commit(broker, 0, "a")
        assert await values(broker, 0) == []
        await put_stage(broker, 0, "a", [(0, "x")])
        await commit(broker, 0, "a")
        assert await values(broker, 0) == ["x"]

    walk_with_sink(disk, walk)


def test_a_full_disk_refuses_a_stage_and_leaves_nothing_of_it() -> None:
    disk = SimulatedDisk(Random(2))

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        disk.fill_up(after_bytes=100)
        with pytest.raises(StorageFull):
            await put_stage(broker, 0, "b", [(0, "y" * 500)])
        disk.faults.heal()
        assert disk.list(f"stages/{SINK}") == ["0-a.stage"]
        await commit(broker, 0, "a")
        assert await values(broker, 0) == ["x"]

    walk_with_sink(disk, walk)


def test_an_epoch_that_a_failing_disk_held_up_is_finished_once_when_it_recovers() -> None:
    disk = SimulatedDisk(Random(3))

    async def walk(broker: Broker) -> None:
        rows = [(number % 2, str(number)) for number in range(40)]
        await put_stage(broker, 0, "a", rows)
        disk.faults.fail_syncs(1, under="logs/orders/0")
        with pytest.raises(StorageFailed):
            await commit(broker, 0, "a")
        failed = broker.partition(TopicPartition(ORDERS, 0))
        await until(lambda: not failed.is_failed)
        assert (await commit(broker, 0, "a")).is_duplicate
        assert await values(broker, 0) == [value for partition, value in rows if partition == 0]
        assert await values(broker, 1) == [value for partition, value in rows if partition == 1]

    walk_with_sink(disk, walk, BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT))


def test_an_epoch_is_not_called_committed_when_a_partition_lost_part_of_it_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk(Random(6))
    really_read = sinks_epochs._read_stage

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "a")])
        await put_stage(broker, 0, "b", [(1, "b")])
        partition = broker.partition(TopicPartition(ORDERS, 0))

        async def fail_in_between(*args: Any) -> Any:
            batches = await really_read(*args)
            if partition.log.end_offset == 1:
                # Between the two stages the disk fails another writer, and the partition comes back
                # without what was not safe yet.
                disk.faults.fail_syncs(1, under="logs/orders/0")
                lost = Publish(topic=ORDERS, messages=[Message(b"lost", partition=0)])
                assert isinstance((await publish(broker, lost))[0], StorageFailed)
                await until(lambda: not partition.is_failed)
            return batches

        monkeypatch.setattr(sinks_epochs, "_read_stage", fail_in_between)
        with pytest.raises(StorageFailed):
            await commit(broker, 0, "a", "b")
        monkeypatch.undo()
        assert (await commit(broker, 0, "a", "b")).is_duplicate
        assert (await values(broker, 0), await values(broker, 1)) == (["a"], ["b"])

    walk_with_sink(disk, walk, BrokerConfig(upkeep_interval_ms=60_000, commit_log=DIRECT))


def test_upkeep_finishes_an_epoch_whose_writer_does_not_come_back() -> None:
    disk = SimulatedDisk(Random(4))

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        disk.faults.fail_syncs(1, under="logs/orders/0")
        with pytest.raises(StorageFailed):
            await commit(broker, 0, "a")
        await until(lambda: broker.transactions.of_sinks.sinks.sink(SINK).last_epoch == 0)
        assert await values(broker, 0) == ["x"]

    walk_with_sink(disk, walk, BrokerConfig(upkeep_interval_ms=20, commit_log=DIRECT))


def test_an_epoch_under_way_to_a_topic_that_is_deleted_goes_on_without_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = SimulatedDisk(Random(5))

    async def walk(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name="kept", partitions=1))
        kept = TopicPartition(TopicName("kept"), 0)
        both = bytes(entries([(0, "lost")])) + encode_entry(kept, Lane.NORMAL, batch_of("kept"))
        staging = StageBatches(
            sink=SINK, generation=1, epoch=0, stage_id="a", entries=memoryview(bytearray(both))
        )
        await stage(broker, staging)
        disk.faults.fail_syncs(1, under="logs/orders/0")
        with pytest.raises(StorageFailed):
            await commit(broker, 0, "a")
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        assert (await commit(broker, 0, "a")).is_duplicate
        found = await read_messages(broker, ReadMessages(source=kept))
        assert [message.value for message in found.messages] == [b"kept"]

    walk_with_sink(disk, walk, BrokerConfig(upkeep_interval_ms=60_000, commit_log=DIRECT))
    assert "epoch_skips_deleted_topic sink=lake epoch=0 partition=orders/0" in caplog.text


def test_stages_that_nobody_commits_expire(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "old", [(0, "x")])
        broker.config = replace(broker.config, stage_expiry_ms=1)
        await until(
            lambda: broker.clock.wall_ms() > min(s.created_ms for s in broker.sinks.stages.of_sink(SINK)) + 1
        )
        await keep_up_sinks(broker)
        assert (await describe_sink(broker, DescribeSink(sink=SINK))).stages == []
        with pytest.raises(StageNotFound):
            await commit(broker, 0, "old")

    walk_with_sink(FolderDisk(tmp_path), walk)
    assert not list((tmp_path / "stages" / SINK).iterdir())


def test_sinks_that_nobody_uses_expire(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        broker.config = replace(broker.config, sink_expiry_ms=1)
        await until(
            lambda: broker.clock.wall_ms() > broker.transactions.of_sinks.sinks.sink(SINK).used_ms + 1
        )
        await keep_up_sinks(broker)
        assert list_sinks(broker, ListSinks()) == []

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_a_restart_keeps_generations_epochs_and_stages(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "x")])
        await commit(broker, 0, "a")
        await put_stage(broker, 1, "b", [(0, "y"), (1, "z")])

    walk_with_sink(FolderDisk(tmp_path), walk)

    async def go_on() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            view = await describe_sink(broker, DescribeSink(sink=SINK))
            assert (view.generation, view.last_epoch) == (1, 0)
            assert [(stage.epoch, stage.stage_id, stage.messages) for stage in view.stages] == [(1, "b", 2)]
            await commit(broker, 1, "b")
            assert (await values(broker, 0), await values(broker, 1)) == (["x", "y"], ["z"])

    asyncio.run(go_on())


def test_a_journal_of_many_epochs_is_written_anew_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.broker.storage.state_journal.EVENTS_MAX", 10)

    async def walk(broker: Broker) -> None:
        for epoch in range(20):
            await put_stage(broker, epoch, "a", [(0, str(epoch))])
            await commit(broker, epoch, "a")
            if epoch % 7 == 6:
                await keep_up_sinks(broker)
        assert broker.transactions.of_sinks.partition.log.start_offset > 0

    walk_with_sink(FolderDisk(tmp_path), walk)

    async def go_on() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            assert (await describe_sink(broker, DescribeSink(sink=SINK))).last_epoch == 19
            await put_stage(broker, 20, "a", [(0, "20")])
            await commit(broker, 20, "a")
            assert await values(broker, 0) == [str(number) for number in range(21)]

    asyncio.run(go_on())
