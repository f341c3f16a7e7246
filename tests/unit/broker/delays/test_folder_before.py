"""A data folder that was written before delays had the same journal as everything else: it opens as it is.

`delayed_before.zip` was left by a broker that was killed, with small limits: there are two runs, a checkpoint
and a message behind it, one that was moved, one cancelled, one held by an open transaction, a numbered one, a
schedule, and three that have been delivered.
"""

import zipfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from random import Random
from shutil import rmtree

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import schedule_names
from goqueue.broker.delays.verbs import delay_stats, list_delayed
from goqueue.broker.opening import close_broker, open_broker
from goqueue.model.delays import CountDelayed, ListDelayed, ListSchedules
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand
from tests.unit.broker.delays.delayed_world import ORDERS, SMALL, sleep_ms, values
from tests.unit.broker.delays.test_producers import batch_of, send
from tests.unit.broker.running import DIRECT

FOLDER = Path(__file__).parent / "delayed_before.zip"
LEFT_MS = 1_750_000_017_190
PENDING = [
    (1, 13, 1_750_000_020_000),
    (0, 2, 1_750_000_150_116),
    (0, 16, 1_750_000_261_133),
    (0, 4, 1_750_000_300_116),
    (0, 5, 1_750_000_400_116),
    (0, 6, 1_750_000_500_116),
    (1, 7, 1_750_000_603_117),
    (1, 8, 1_750_000_703_117),
    (1, 10, 1_750_000_803_117),
    (0, 19, 1_750_000_917_176),
]
"""Partition, number and due time of each, as the broker told that has left the folder."""


def live(folder: Path, life: Callable[[Broker], Coroutine[object, object, None]]) -> None:
    clock = SimulatedClock(wall_ms=LEFT_MS)
    loop = SimulatedLoop(clock)

    async def main() -> None:
        broker = await open_broker(
            config=replace(SMALL, commit_log=DIRECT),
            disk=FolderDisk(folder),
            clock=clock,
            threads=SimulatedThreads(Random(2)),
            workshop=WorkshopAtHand(),
            chance=Random(3),
        )
        await life(broker)
        await close_broker(broker)

    loop.run(main())
    assert not loop.unhandled, loop.unhandled


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(FOLDER) as archive:
        archive.extractall(tmp_path)
    return tmp_path


async def waiting(broker: Broker) -> list[tuple[int, int, int]]:
    return [
        (one.partition, one.number, one.due_ms)
        for one in await list_delayed(broker, ListDelayed(topic=ORDERS, limit=100))
    ]


def test_all_that_waits_is_there_and_what_was_counted_still_counts(folder: Path) -> None:
    async def life(broker: Broker) -> None:
        assert await waiting(broker) == PENDING
        stats = delay_stats(broker, CountDelayed())
        assert (stats.scheduled, stats.delivered, stats.cancelled, stats.held) == (15, 3, 1, 1)
        assert stats.delay_ms_sum == 4_851_068
        assert schedule_names(broker, ListSchedules(topic=ORDERS)) == ["each"]

    live(folder, life)
    live(folder, life)  # and so it is when the folder was left in order


def test_whoever_takes_over_the_journals_alone_has_all_that_waits(folder: Path) -> None:
    """Runs and checkpoint follow from the journal: another node that has copies of the logs has neither."""
    rmtree(folder / "delays")

    async def life(broker: Broker) -> None:
        assert await waiting(broker) == PENDING
        assert delay_stats(broker, CountDelayed()).held == 1
        assert schedule_names(broker, ListSchedules(topic=ORDERS)) == ["each"]

    live(folder, life)


@pytest.mark.parametrize("is_taken_over", [False, True])
def test_what_waited_comes_once_and_what_had_come_does_not_come_again(
    folder: Path, is_taken_over: bool
) -> None:
    if is_taken_over:
        rmtree(folder / "delays")

    async def life(broker: Broker) -> None:
        # The producer asks again whether its batch is there: it is, the later part too.
        await send(
            broker, batch_of([(b"numbered", ("goqueue-delay-ms", b"250000")), (b"now", None)], sequence=0)
        )
        assert len(await waiting(broker)) == len(PENDING)
        await sleep_ms(901_000)
        assert await values(broker, 0) == [
            *(b"500", b"700", b"now"),
            *(b"100000", b"numbered", b"300000", b"400000", b"500000", b"900000"),
        ]
        later = [value for value in await values(broker, 1) if value != b"tick"]
        assert later == [b"1000", b"600000", b"700000", b"800000"]
        ticks = (await values(broker, 1)).count(b"tick")
        assert ticks == (LEFT_MS + 901_000) // 60_000 - LEFT_MS // 60_000
        # The transaction was open for longer than it may.
        assert delay_stats(broker, CountDelayed()).held == 0

    live(folder, life)
