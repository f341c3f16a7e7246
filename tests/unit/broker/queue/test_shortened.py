"""A group's journal is written anew in slices, while its consumers go on."""

import asyncio
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.slices import Slices
from goqueue.broker.storage import state_journal as journal_module
from goqueue.broker.storage.partition import Partition
from goqueue.core.groups.events import GroupSeen
from goqueue.node.disk import FolderDisk
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import Consumer, ack, join, orders, put, take
from tests.unit.broker.running import running

PARTITIONS = 20


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every journal is long, and each event of its state is followed by a pause."""
    monkeypatch.setattr(journal_module, "EVENTS_MAX", 0)
    monkeypatch.setattr(journal_module, "_STATE_SHARE", 1)
    monkeypatch.setattr(Partition, "slices", lambda self: Slices(self._clock, slice_ms=0))


def journal_of(broker: Broker, consumer: Consumer) -> GroupJournal:
    found = broker.coordinator.journals.find(consumer.group)
    assert found is not None
    return found


@pytest.mark.parametrize("ack_turn", range(0, 30, 3))
def test_what_is_acknowledged_while_the_state_is_made_ready_does_not_come_back(ack_turn: int) -> None:
    lives = Lives(4)

    async def before(broker: Broker) -> Consumer:
        await orders(broker, partitions=PARTITIONS)
        await put(broker, *map(str, range(200)))
        ann = await join(broker)
        taken = await take(broker, ann, 200)
        journal = journal_of(broker, ann)
        start_offset = journal.partition.log.start_offset
        shortening = asyncio.create_task(journal.shorten())
        for _ in range(ack_turn):
            await asyncio.sleep(0)
        assert (await ack(broker, taken)).refusals == {}
        await shortening
        assert journal.partition.log.start_offset > start_offset
        return ann

    ann = lives.live(before, is_killed=True)

    async def after(broker: Broker) -> None:
        assert await take(broker, ann, 200, wait_ms=120_000) == []

    lives.live(after)


def test_a_journal_that_is_written_all_the_time_is_shortened_all_the_same(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await orders(broker, partitions=PARTITIONS)
        await put(broker, *map(str, range(200)))
        ann = await join(broker)
        await take(broker, ann, 200)
        journal = journal_of(broker, ann)
        start_offset = journal.partition.log.start_offset
        shortening = asyncio.create_task(journal.shorten())
        seen_ms = 0
        while not shortening.done():
            seen_ms += 1
            journal.submit(GroupSeen(ann.group, seen_ms))
            await asyncio.sleep(0)
        await shortening

        assert journal.partition.log.start_offset > start_offset

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await work(broker)

    asyncio.run(walk())
