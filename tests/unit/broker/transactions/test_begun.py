"""Steps of a transaction that are answered before the disk has them, and what waits for them instead."""

import asyncio
from pathlib import Path

from goqueue.broker.storage.partition import FlushRequests, Partition
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.journal import TransactionJournal
from goqueue.broker.write.append import append
from goqueue.model.commands import Append, CreateTopic
from goqueue.model.messages import Acks
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until
from tests.unit.broker.transactions.transaction_steps import WRITER, Writer, new_writer, transactional_batch


class IdleFlusher(FlushRequests):
    """A disk that takes its time."""

    def request(self, partition: Partition) -> None:
        pass

    def request_snapshot(self, partition: Partition) -> None:
        pass

    def note_dirty(self, partition: Partition, size: int) -> None:
        pass


def unsafe_count(journal: TransactionJournal) -> int:
    """How many events at the end of a journal a power failure could take."""
    return journal.partition.log.end_offset - journal.partition.log.flushed_offset


async def journal_of(writer: Writer) -> TransactionJournal:
    return await writer.broker.transactions.ensure(WRITER)


def test_added_partitions_are_answered_before_the_disk_has_them(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            writer = await new_writer(broker)
            journal = await journal_of(writer)

            await writer.add(0, 1)

            assert unsafe_count(journal) == 1

    asyncio.run(walk())


def test_a_batch_is_told_as_stored_when_the_disk_knows_that_its_partition_was_added(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            writer = await new_writer(broker)
            journal = await journal_of(writer)
            journal.partition.flusher = IdleFlusher()
            await writer.add(0)
            partition = broker.partition(ORDERS_0)

            body = transactional_batch(writer.producer, "a", 0)
            appended = append(broker, Append(ORDERS_0, body, Acks.ALL))
            assert appended.committed is not None
            told = asyncio.ensure_future(appended.committed)
            await until(lambda: partition.log.is_safe)
            assert unsafe_count(journal) == 1
            assert not told.done()

            journal.partition.flusher = broker.flusher
            broker.flusher.request(journal.partition)
            await told

            assert unsafe_count(journal) == 0
            assert journal.safe(WRITER) is None

    asyncio.run(walk())


def test_a_transaction_begins_when_the_disk_knows_how_the_last_one_ended(tmp_path: Path) -> None:
    """Else a start could find the last one decided, and commit what the next one has written."""

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            writer = await new_writer(broker)
            journal = await journal_of(writer)
            for number in range(5):
                await writer.add(0, 1)
                assert unsafe_count(journal) == 1  # itself alone, not the end of the one before
                await writer.put(0, f"{number}")
                await writer.commit()

    asyncio.run(walk())
