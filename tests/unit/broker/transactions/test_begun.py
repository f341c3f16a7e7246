"""Steps of a transaction that are answered before the disk has them, and what waits for them instead."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.errors import ProducerFenced
from goqueue.model.topics import CreateTopic
from goqueue.model.transactions import Marker
from goqueue.node.disk import FolderDisk
from tests.unit.broker.lives import Lives
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until
from tests.unit.broker.transactions.transaction_steps import (
    IdleFlusher,
    Writer,
    journal_of,
    new_writer,
    values,
)


def unsafe_count(journal: TransactionJournal) -> int:
    """How many events at the end of a journal a power failure could take."""
    return journal.partition.log.end_offset - journal.partition.log.flushed_offset


def test_added_partitions_are_answered_before_the_disk_has_them(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            writer = await new_writer(broker)
            journal = await journal_of(writer)

            await writer.add(0, 1)

            assert unsafe_count(journal) == 1

    asyncio.run(walk())


def test_a_transaction_of_which_only_batches_reached_the_disk_is_aborted_with_them() -> None:
    """The producer was told that they are stored, and hears by its epoch that they do not count."""
    lives = Lives(11)

    async def write(broker: Broker) -> Writer:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        writer = await new_writer(broker)
        (await journal_of(writer)).partition.flusher = IdleFlusher()
        await writer.add(0, 1)
        await writer.put(0, "a")
        return writer

    async def go_on(broker: Broker) -> list[str]:
        writer.broker = broker
        with pytest.raises(ProducerFenced):
            await writer.commit()
        assert broker.partition(ORDERS_0).last_stable_offset == broker.partition(ORDERS_0).commit_mark
        return await values(broker, 0)

    writer = lives.live(write)

    assert lives.live(go_on) == []


@pytest.mark.parametrize("may_join", [False, True], ids=["added", "joined"])
def test_a_decision_whose_completion_was_lost_does_not_reach_the_next_transaction(may_join: bool) -> None:
    lives = Lives(12)

    async def write(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        writer = await new_writer(broker)
        await writer.add(0, 1)
        await writer.put(0, "first")
        await writer.put(1, "first")
        await writer.commit()
        (await journal_of(writer)).partition.flusher = IdleFlusher()
        await until(lambda: broker.partition(ORDERS_0).last_stable_offset == 2)
        if not may_join:
            await writer.add(0)
        await writer.put(0, "next", may_join=may_join)

    async def look(broker: Broker) -> tuple[list[str], list[str]]:
        await new_writer(broker)
        return await values(broker, 0), await values(broker, 1)

    lives.live(write)

    assert lives.live(look) == (["first"], ["first"])


def test_a_decision_of_an_earlier_version_reaches_all_that_is_open() -> None:
    lives = Lives(14)

    async def write(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        writer = await new_writer(broker)
        await writer.add(0, 1)
        await writer.put(0, "a")
        await writer.put(1, "b")
        journal = await journal_of(writer)
        decided = journal.transactions.prepare(writer.name, writer.producer, Marker.COMMIT, now_ms=1)
        written = msgspec.json.decode(msgspec.json.encode(decided))
        del written["reach"]
        await journal.submit(msgspec.convert(written, Transaction))

    async def look(broker: Broker) -> tuple[list[str], list[str]]:
        return await values(broker, 0), await values(broker, 1)

    lives.live(write)

    assert lives.live(look) == (["a"], ["b"])


def test_the_next_transaction_begins_when_the_disk_has_the_markers_of_the_last_one(tmp_path: Path) -> None:
    """Its first step takes the decision's place in the journal, and nobody would write the markers again."""

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            writer = await new_writer(broker)
            partition = broker.partition(ORDERS_0)
            await writer.add(0)
            await writer.put(0, "a")
            partition.flusher = IdleFlusher()
            await writer.commit()

            begun = asyncio.ensure_future(writer.add(0))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not begun.done()

            partition.flusher = broker.flusher
            broker.flusher.request(partition)
            await begun
            assert partition.log.is_safe

    asyncio.run(walk())
