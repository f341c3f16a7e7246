"""Transactions at the broker: time-outs, restarts, old segments, lost indexes, receipts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read, visible, visible_frames
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.broker.transactions.ends import keep_up_transactions
from goqueue.broker.transactions.verbs import end_transaction, init_transactional
from goqueue.broker.transactions.views import describe_transaction
from goqueue.broker.write.append import append
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Append, BatchesRead, FindOffset, PartitionRead, Publish, Read, Spot
from goqueue.model.errors import (
    InvalidTransactionState,
    InvalidTransactionTimeout,
    ProducerFenced,
    ProducerNotFound,
)
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig, TopicSettings, TransactionConfig
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.model.transaction_commands import DescribeTransaction, EndTransaction, InitProducer
from goqueue.model.transactions import Isolation, Marker, ProducerEpoch, TransactionState
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.frame import frame_borders
from goqueue.records.layout import stamp_producer
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until
from tests.unit.broker.transactions.transaction_steps import (
    WRITER,
    committed_offset,
    new_writer,
    transactional_batch,
    values,
)

SMALL_SEGMENTS = BrokerConfig(topic_defaults=TopicSettings(segment_bytes=4096))


def walk(
    folder: Path, steps: Callable[[Broker], Awaitable[None]], config: BrokerConfig | None = None
) -> None:
    """One life of a broker on a folder."""

    async def live() -> None:
        async with running(FolderDisk(folder), config) as broker:
            if ORDERS not in broker.topics:
                await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            await steps(broker)

    asyncio.run(live())


def test_a_transaction_goes_on_after_a_restart(tmp_path: Path) -> None:
    producers: list[ProducerEpoch] = []

    async def begin(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0)
        await writer.put(0, "before")
        await writer.read_up_to(4)
        producers.append(writer.producer)

    async def go_on(broker: Broker) -> None:
        assert (await values(broker, 0), await committed_offset(broker)) == ([], -1)
        partition = broker.partition(ORDERS_0)
        assert (partition.last_stable_offset, partition.commit_mark) == (0, 1)
        append(broker, Append(ORDERS_0, transactional_batch(producers[0], "after", 1), Acks.ALL))
        await end_transaction(
            broker, EndTransaction(transactional_id=WRITER, producer=producers[0], marker=Marker.COMMIT)
        )
        assert (await values(broker, 0), await committed_offset(broker)) == (["before", "after"], 4)

    walk(tmp_path, begin)
    walk(tmp_path, go_on)


def test_aborted_messages_of_old_segments_stay_unseen_after_a_restart(tmp_path: Path) -> None:
    async def fill(broker: Broker) -> None:
        writer = await new_writer(broker)
        for number in range(60):
            await writer.add(0)
            await writer.put(0, f"{number} " + "x" * 200)
            await (writer.commit() if number % 3 else writer.abort())
        await check(broker)

    async def check(broker: Broker) -> None:
        seen = [value.split()[0] for value in await values(broker, 0)]
        assert seen == [str(number) for number in range(60) if number % 3]

    walk(tmp_path, fill, SMALL_SEGMENTS)
    folder = tmp_path / "logs" / ORDERS / "0"
    assert len(list(folder.glob("*.txnindex"))) > 2
    walk(tmp_path, check, SMALL_SEGMENTS)
    # What has got lost or gone bad is told by the batches once more.
    lost, bad, *_ = sorted(folder.glob("*.txnindex"))
    lost.unlink()
    bad.write_bytes(b"nonsense")
    walk(tmp_path, check, SMALL_SEGMENTS)
    walk(tmp_path, check, SMALL_SEGMENTS)


def test_indexes_of_aborted_transactions_go_with_their_segments(tmp_path: Path) -> None:
    async def fill(broker: Broker) -> None:
        writer = await new_writer(broker)
        for number in range(60):
            await writer.add(0)
            await writer.put(0, f"{number} " + "x" * 200)
            await writer.abort()
        partition = broker.partition(ORDERS_0)
        partition.log.move_start(partition.log.end_offset)
        await partition.save_recovery_point()
        assert len(partition.log.aborted) == 0

    walk(tmp_path, fill, SMALL_SEGMENTS)

    assert len(list((tmp_path / "logs" / ORDERS / "0").glob("*.txnindex"))) <= 1


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker, timeout_ms=300)
        await writer.add(0)
        await writer.put(0, "hanging")

        await until(
            lambda: (
                describe_transaction(broker, DescribeTransaction(transactional_id=WRITER)).state
                is TransactionState.COMPLETE_ABORT
            )
        )

        partition = broker.partition(ORDERS_0)
        assert (partition.last_stable_offset, partition.commit_mark) == (2, 2)
        with pytest.raises(ProducerFenced):
            await writer.commit()
        with pytest.raises(ProducerFenced):
            await writer.put(0, "late")

    walk(tmp_path, steps)


def test_an_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    config = BrokerConfig(transactions=TransactionConfig(id_expiry_ms=1))

    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker)
        began_ms = broker.clock.wall_ms()
        await until(lambda: broker.clock.wall_ms() > began_ms + 2)
        await keep_up_transactions(broker)
        with pytest.raises(ProducerNotFound):
            await writer.add(0)
        assert (await new_writer(broker)).producer.producer_id != writer.producer.producer_id

    walk(tmp_path, steps, config)


def test_markers_are_not_taken_for_messages_of_a_time(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"old", partition=0, timestamp_ms=5)]))
        writer = await new_writer(broker)
        await writer.add(0)
        await writer.put(0, "of time 1")
        await writer.commit()

        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.MAX_TIMESTAMP)))[:2] == (0, 5)
        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=6))).offset == -1
        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=1))).offset == 0

    walk(tmp_path, steps)


def test_where_a_partition_ends_depends_on_who_asks(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0)
        await writer.put(0, "open")

        ends = [
            (
                await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.LATEST, isolation=isolation))
            ).offset
            for isolation in (Isolation.COMMITTED, Isolation.UNCOMMITTED)
        ]
        by_time = [
            (await find_offset(broker, FindOffset(source=ORDERS_0, spot=0, isolation=isolation))).offset
            for isolation in (Isolation.COMMITTED, Isolation.UNCOMMITTED)
        ]

        assert (ends, by_time) == ([0, 1], [-1, 0])

    walk(tmp_path, steps)


def test_a_reader_that_waits_is_woken_by_the_commit(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0)
        part = PartitionRead(ORDERS_0, 0)
        waiting = asyncio.ensure_future(
            read(broker, Read(partitions=[part], min_bytes=1_000, wait_ms=20_000))
        )
        await until(lambda: bool(broker.waiting_reads))
        await writer.put(0, "x" * 2_000)
        await until(lambda: bool(broker.waiting_reads))
        assert not waiting.done()
        await writer.commit()

        [found] = await asyncio.wait_for(waiting, 10)

        assert isinstance(found, BatchesRead)
        assert (len(found.batches), len(visible(found).batches)) == (2, 1)

    walk(tmp_path, steps)


def test_only_what_is_committed_is_left_of_a_read(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        first, second = await new_writer(broker, "first"), await new_writer(broker, "second")
        for writer in (first, second):
            await writer.add(0)
        await first.put(0, "aborted")
        await second.put(0, "committed")
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"plain", partition=0)]))
        await first.abort()
        await first.add(0)
        await first.put(0, "committed later")
        await second.commit()
        await first.commit()
        await commit_written([broker.partition(ORDERS_0)])
        part = PartitionRead(ORDERS_0, 0)
        [found] = await read(broker, Read(partitions=[part]))
        [framed] = await read(broker, Read(partitions=[part], framed=True))
        assert isinstance(found, BatchesRead) and isinstance(framed, BatchesRead)

        left, framed_left = visible(found), await visible_frames(broker, framed)

        assert found.aborted == [(first.producer.producer_id, 0)]
        assert (len(left.batches), len(left.lanes), left.end_offset) == (3, 3, 7)
        assert left.size == sum(map(len, left.batches))
        assert len([border for piece in framed_left.batches for border in frame_borders(piece)]) == 3
        assert await values(broker, 0) == ["committed", "plain", "committed later"]

    walk(tmp_path, steps)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_topic_deleted_meanwhile_does_not_hold_up_the_rest(tmp_path: Path, partitions: int) -> None:
    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0, 1)
        await writer.put(0, "gone")
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=partitions))
        await writer.commit()
        await until(
            lambda: (
                describe_transaction(broker, DescribeTransaction(transactional_id=WRITER)).state
                is TransactionState.COMPLETE_COMMIT
            )
        )
        assert await values(broker, 0) == []

    walk(tmp_path, steps)


def test_a_batch_outside_of_the_transaction_is_refused_while_one_is_open(tmp_path: Path) -> None:
    async def steps(broker: Broker) -> None:
        writer = await new_writer(broker)
        await writer.add(0)
        await writer.put(0, "inside")
        [(body, _)] = encode([Message(b"outside")], now_ms=1)
        stamp_producer(body, producer_id=writer.producer.producer_id, producer_epoch=0, base_sequence=1)
        with pytest.raises(InvalidTransactionState):
            append(broker, Append(ORDERS_0, body, Acks.ALL))

    walk(tmp_path, steps)


@pytest.mark.parametrize("timeout_ms", [0, 900_001])
def test_a_time_out_out_of_bounds_is_refused(tmp_path: Path, timeout_ms: int) -> None:
    async def steps(broker: Broker) -> None:
        with pytest.raises(InvalidTransactionTimeout):
            await init_transactional(broker, InitProducer(transactional_id=WRITER, timeout_ms=timeout_ms))

    walk(tmp_path, steps)
