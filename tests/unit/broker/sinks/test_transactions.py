"""An epoch is a transaction of the broker's own: seen at once everywhere, hidden from people, not aborted."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.read.read import read
from goqueue.broker.sinks import epochs as sinks_epochs
from goqueue.broker.sinks.verbs import describe_sink, forget_sink, take_generation
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import (
    abort_open_in,
    abort_transaction,
    end_transaction,
    hear_producer,
    init_transactional,
)
from goqueue.broker.transactions.views import (
    describe_transaction,
    list_transactions,
    transaction_stats,
)
from goqueue.broker.write.append import append
from goqueue.core.transactions.sinks import EpochPrepared, SequenceRun
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.commands import Append, BatchesRead, PartitionRead, Read
from goqueue.model.errors import (
    Corrupt,
    InvalidName,
    ProducerNotFound,
    StorageFailed,
    TransactionNotFound,
)
from goqueue.model.group_commands import CommitOffsets, DescribeLag
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.ports import Disk
from goqueue.model.settings import BrokerConfig
from goqueue.model.sinks import DescribeSink, ForgetSink, TakeGeneration
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import (
    AbortOpenIn,
    AbortTransaction,
    CountTransactions,
    DescribeTransaction,
    EndTransaction,
    HearProducer,
    InitProducer,
    ListTransactions,
)
from goqueue.model.transactions import Isolation, Marker, TransactionState
from goqueue.node.disk import FolderDisk
from goqueue.records.layout import stamp_producer
from goqueue.testing.rooms.older_epochs import leave_as_before
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import DIRECT, ORDERS, running, until
from tests.unit.broker.sinks.sink_steps import SINK, batch_of, commit, put_stage, values

OWN_ID = f"__sink/{SINK}"
BOTH = [(0, "a"), (1, "b")]
Walk = Callable[[Broker], Awaitable[None]]


def walk_with_sink(disk: Disk, walk: Walk) -> None:
    async def go() -> None:
        # No upkeep: an epoch that is held up stays so.
        async with running(disk, BrokerConfig(upkeep_interval_ms=60_000, commit_log=DIRECT)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            await take_generation(broker, TakeGeneration(sink=SINK))
            await walk(broker)

    asyncio.run(go())


async def held_up(disk: SimulatedDisk, broker: Broker) -> Transaction:
    """The transaction of an epoch that a failing disk holds up while it is copied."""
    await put_stage(broker, 0, "a", BOTH)
    disk.faults.fail_syncs(1, under=f"logs/{ORDERS}/0")
    with pytest.raises(StorageFailed):
        await commit(broker, 0, "a")
    failed = broker.partition(TopicPartition(ORDERS, 0))
    await until(lambda: not failed.is_failed)
    known = broker.transactions.get(OWN_ID)
    assert known is not None and known.state is TransactionState.ONGOING
    return known


async def uncommitted_bytes(broker: Broker, partition: int) -> int:
    place = PartitionRead(TopicPartition(ORDERS, partition), 0, 1_000_000)
    [found] = await read(broker, Read(partitions=[place], isolation=Isolation.UNCOMMITTED))
    assert isinstance(found, BatchesRead)
    return found.size


async def all_values(broker: Broker) -> tuple[list[str], list[str]]:
    return await values(broker, 0), await values(broker, 1)


def test_no_row_is_seen_before_all_are_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_read = sinks_epochs._read_stage
    looks = []

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", BOTH)
        await put_stage(broker, 0, "b", [(1, "c")])

        async def look_first(*args: Any) -> Any:
            looks.append((await uncommitted_bytes(broker, 0) > 0, await all_values(broker)))
            return await really_read(*args)

        monkeypatch.setattr(sinks_epochs, "_read_stage", look_first)
        await commit(broker, 0, "a", "b")
        assert await all_values(broker) == (["a"], ["b", "c"])

    walk_with_sink(FolderDisk(tmp_path), walk)
    assert looks == [(False, ([], [])), (True, ([], []))]


def test_nothing_holds_readers_back_when_an_epoch_is_done(tmp_path: Path) -> None:
    async def walk(broker: Broker) -> None:
        for epoch in range(3):
            await put_stage(broker, epoch, "a", BOTH)
            await commit(broker, epoch, "a")
            for number in (0, 1):
                partition = broker.partition(TopicPartition(ORDERS, number))
                assert partition.last_stable_offset == partition.log.end_offset == 2 * (epoch + 1)
            assert broker.transactions.get(OWN_ID) is None

    walk_with_sink(FolderDisk(tmp_path), walk)


def test_the_transaction_of_an_epoch_is_hidden_and_has_no_time_out() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk(broker: Broker) -> None:
        await held_up(disk, broker)

        assert await list_transactions(broker, ListTransactions()) == []
        stats = await transaction_stats(broker, CountTransactions())
        assert (list(stats.longest_open), stats.committed) == ([], 0)
        with pytest.raises(TransactionNotFound):
            describe_transaction(broker, DescribeTransaction(transactional_id=OWN_ID))
        assert broker.transactions.of_sinks.transactions.deadline_ms(OWN_ID) is None
        await commit(broker, 0, "a")
        assert (await transaction_stats(broker, CountTransactions())).committed == 0

    walk_with_sink(disk, walk)


def test_no_client_speaks_for_the_transaction_of_an_epoch() -> None:
    disk = SimulatedDisk(Random(2))

    async def walk(broker: Broker) -> None:
        with pytest.raises(InvalidName):
            await init_transactional(broker, InitProducer(transactional_id=OWN_ID, timeout_ms=1_000))
        known = await held_up(disk, broker)
        target = TopicPartition(ORDERS, 0)

        with pytest.raises(InvalidName):
            await init_transactional(broker, InitProducer(transactional_id=OWN_ID, timeout_ms=1_000))
        with pytest.raises(InvalidName):
            await end_transaction(
                broker,
                EndTransaction(transactional_id=OWN_ID, producer=known.producer, marker=Marker.ABORT),
            )
        with pytest.raises(InvalidName):
            await abort_transaction(broker, AbortTransaction(name=OWN_ID))
        with pytest.raises(InvalidName):
            await abort_open_in(broker, AbortOpenIn(target=target, producer=known.producer))
        with pytest.raises(InvalidName):
            hear_producer(broker, HearProducer(transactional_id=OWN_ID, producer=known.producer))
        with pytest.raises(ProducerNotFound):
            hear_producer(broker, HearProducer(producer=known.producer, is_heartbeat=True))
        batch = batch_of("forged")
        stamp_producer(
            batch,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
            base_sequence=1,
            is_transactional=True,
        )
        with pytest.raises(ProducerNotFound):
            append(broker, Append(target, batch, Acks.ALL, True))
        assert (await commit(broker, 0, "a")).is_duplicate
        assert await all_values(broker) == (["a"], ["b"])

    walk_with_sink(disk, walk)


def test_what_holds_a_group_back_is_told_by_the_sinks_name() -> None:
    disk = SimulatedDisk(Random(3))

    async def walk(broker: Broker) -> None:
        await held_up(disk, broker)
        who = Membership("readers", "", NO_GENERATION)
        await commit_offsets(broker, CommitOffsets(who, [TopicCommit(ORDERS, [(1, 0, -1, "")])]))

        [lag] = (await group_lag(broker, DescribeLag(group="readers"))).partitions

        assert lag.held_back_by is not None
        assert lag.held_back_by.transactional_id == OWN_ID
        assert lag.held_back_by.transaction_id == f"{OWN_ID}/0"

    walk_with_sink(disk, walk)


def test_forgetting_a_sink_whose_epoch_is_lost_takes_back_what_was_copied() -> None:
    disk = SimulatedDisk(Random(4))

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "b", [(1, "c")])
        await put_stage(broker, 0, "a", BOTH)
        disk.faults.fail_syncs(1, under=f"logs/{ORDERS}/0")
        with pytest.raises(StorageFailed):
            await commit(broker, 0, "b", "a")
        failed = broker.partition(TopicPartition(ORDERS, 0))
        await until(lambda: not failed.is_failed)
        disk.flip_bit(f"stages/{SINK}/0-a.stage", 90)
        with pytest.raises(Corrupt):
            await commit(broker, 0, "b", "a")

        await forget_sink(broker, ForgetSink(sink=SINK))

        assert await all_values(broker) == ([], [])
        for number in (0, 1):
            partition = broker.partition(TopicPartition(ORDERS, number))
            assert partition.last_stable_offset == partition.log.end_offset
        assert broker.transactions.get(OWN_ID) is None

    walk_with_sink(disk, walk)


@pytest.mark.parametrize("copied", range(4))
def test_an_epoch_that_an_older_version_left_prepared_is_finished_once(tmp_path: Path, copied: int) -> None:
    rows = [(0, "a"), (1, "b"), (0, "c")]

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "before")])
        await commit(broker, 0, "a")
        await put_stage(broker, 1, "a", rows)
        await leave_as_before(broker, SINK, 1, ["a"], batches=copied)

    walk_with_sink(FolderDisk(tmp_path), walk)

    async def go_on() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            assert describe_sink(broker, DescribeSink(sink=SINK)).last_epoch == 1
            assert await all_values(broker) == (["before", "a", "c"], ["b"])
            assert (await commit(broker, 1, "a")).is_duplicate
            await put_stage(broker, 2, "a", BOTH)
            await commit(broker, 2, "a")
            assert await all_values(broker) == (["before", "a", "c", "a"], ["b", "b"])

    asyncio.run(go_on())


def test_what_no_epoch_answers_for_is_aborted_by_the_next_start(tmp_path: Path) -> None:
    """As a journal leaves it that was repaired, and has lost what was prepared."""

    async def walk(broker: Broker) -> None:
        await put_stage(broker, 0, "a", [(0, "lost")])
        sink = broker.sinks.machine.sink(SINK)
        run = SequenceRun(ORDERS, broker.metadata.topic(ORDERS).topic_id, 0, 0, 1)
        unknown = EpochPrepared(SINK, 0, ("a",), (run,))
        await broker.transactions.of_sinks.submit(sinks_epochs.opened(broker, sink.producer_id, unknown))
        await sinks_epochs._copy(broker, sink, unknown)

    walk_with_sink(FolderDisk(tmp_path), walk)

    async def go_on() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            assert broker.transactions.get(OWN_ID) is None
            assert await all_values(broker) == ([], [])
            partition = broker.partition(TopicPartition(ORDERS, 0))
            assert partition.last_stable_offset == partition.log.end_offset == 2

            # Its numbers are used up: rows under the same ones would be taken for those that are gone.
            with pytest.raises(Corrupt):
                await commit(broker, 0, "a")
            await forget_sink(broker, ForgetSink(sink=SINK))
            generation = (await take_generation(broker, TakeGeneration(sink=SINK))).generation
            await put_stage(broker, 0, "a", BOTH, generation=generation)
            await commit(broker, 0, "a", generation=generation)
            assert await all_values(broker) == (["a"], ["b"])

    asyncio.run(go_on())
