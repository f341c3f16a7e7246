"""A commit under power cuts at every change of the disk, and again during the restarts: each row once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random
from typing import TypeVar

import pytest

from goqueue.broker.broker import Broker, open_broker
from goqueue.broker.sinks import describe_sink, take_generation
from goqueue.broker.topics import create_topic
from goqueue.model.commands import CreateTopic
from goqueue.model.settings import BrokerConfig
from goqueue.testing.clock import SimulatedClock
from goqueue.testing.disk import SimulatedDisk
from goqueue.testing.faults import PowerCut
from goqueue.testing.loop import SimulatedLoop
from goqueue.testing.threads import SimulatedThreads
from tests.unit.broker.running import ORDERS
from tests.unit.broker.sink_steps import SINK, commit, put_stage, values

T = TypeVar("T")
Work = Callable[[Broker], Awaitable[T]]
ROWS = [(number % 2, f"row {number}") for number in range(16)]
NEVER = 10_000
EPOCH = 5


class PowerLost(Exception):
    """The work did not come to its end."""


class Lives:
    """One disk, and brokers that live on it one after the other, each until its power is cut."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._disk = SimulatedDisk(self._random)
        self._clock = SimulatedClock()

    def live(self, work: Work[T], *, cut_after: int = NEVER, is_killed: bool = False) -> T:
        """Open a broker and do some work. PowerLost when the cut, so many changes on, came first."""
        loop = SimulatedLoop(self._clock)
        try:
            return loop.run(self._live(work, cut_after))
        finally:
            self._disk = self._disk.kill() if is_killed else self._disk.crash()
            loop.abandon()

    async def _live(self, work: Work[T], cut_after: int) -> T:
        power_lost = asyncio.get_running_loop().create_future()
        # Opening changes little: the cut may well come before it is done.
        self._disk.faults.cut_power(after_changes=cut_after, on_power_cut=lambda: power_lost.set_result(None))

        async def open_and_work() -> T:
            broker = await open_broker(
                config=BrokerConfig(),
                disk=self._disk,
                clock=self._clock,
                threads=SimulatedThreads(self._random),
                chance=self._random,
            )
            return await work(broker)

        working = asyncio.ensure_future(open_and_work())
        await asyncio.wait({working, power_lost}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done() or isinstance(working.exception(), PowerCut):
            raise PowerLost
        return working.result()


async def prepare(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
    await take_generation(broker, SINK)
    await put_stage(broker, EPOCH, "a", ROWS[:9])
    await put_stage(broker, EPOCH, "b", ROWS[9:])


async def commit_all(broker: Broker) -> bool:
    return (await commit(broker, EPOCH, "a", "b")).is_duplicate


async def look(broker: Broker) -> tuple[int, list[str]]:
    rows = await values(broker, 0) + await values(broker, 1)
    return describe_sink(broker, SINK).last_epoch, rows


async def rest(broker: Broker) -> None:
    """Only open: that alone finishes a prepared epoch."""


def cuts() -> Iterator[int]:
    """More and more changes until a commit comes through."""
    for cut_after in range(NEVER):
        lives = Lives(cut_after)
        lives.live(prepare)
        yield cut_after
        try:
            lives.live(commit_all, cut_after=cut_after)
            return
        except PowerLost:
            continue


ALL_ROWS = [value for partition in (0, 1) for at, value in ROWS if at == partition]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("is_killed", [False, True])
def test_each_row_is_there_once_wherever_the_power_fails(seed: int, is_killed: bool) -> None:
    states = set()
    for cut_after in cuts():
        lives = Lives(seed * 1_000 + cut_after)
        lives.live(prepare)
        is_acknowledged = True
        try:
            lives.live(commit_all, cut_after=cut_after, is_killed=is_killed)
        except PowerLost:
            is_acknowledged = False
        # The restart may be cut short as well, in the midst of finishing what it found.
        for restart_cut in (cut_after % 7, cut_after % 23):
            with suppress(PowerLost):
                lives.live(rest, cut_after=restart_cut, is_killed=is_killed)

        last_epoch, rows = lives.live(look)

        assert (last_epoch, rows) in ((-1, []), (EPOCH, ALL_ROWS))
        assert rows or not is_acknowledged
        assert lives.live(commit_all) is bool(rows)
        assert lives.live(look) == (EPOCH, ALL_ROWS)
        states.add(last_epoch)
    assert states == {-1, EPOCH}
