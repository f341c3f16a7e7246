"""Whoever looks at all transactions, or at all partitions for them, lets others have their turn."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import init_transactional
from goqueue.broker.transactions.views import list_transactions, transaction_stats
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import (
    CountTransactions,
    InitProducer,
    ListTransactions,
)
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from tests.unit.broker.running import ORDERS, running

PARTITIONS = 30
IDS = 20


class HastyClock(SystemClock):
    """Whenever somebody looks at it, their slice is over."""

    def __init__(self) -> None:
        self._ticks = count(10**15, 10**9)

    def monotonic_ns(self) -> int:
        return next(self._ticks)


async def turns_of_others(work: Awaitable[object]) -> int:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(take_turns())
    await work
    other.cancel()
    return turns


@pytest.mark.parametrize(
    ("look", "things"),
    [
        (lambda broker: list_transactions(broker, ListTransactions()), IDS),
        (lambda broker: transaction_stats(broker, CountTransactions()), IDS + PARTITIONS),
    ],
)
def test_a_look_at_all_of_them_comes_in_slices(
    tmp_path: Path, look: Callable[[Broker], Awaitable[object]], things: int
) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=PARTITIONS))
            for number in range(IDS):
                command = InitProducer(transactional_id=f"id-{number:02d}", timeout_ms=1_000)
                await init_transactional(broker, command)
            clock, broker.clock = broker.clock, HastyClock()
            try:
                assert await turns_of_others(look(broker)) >= things
            finally:
                broker.clock = clock
            names = [view.transactional_id for view in await list_transactions(broker, ListTransactions())]
            assert names == [f"id-{number:02d}" for number in range(IDS)]

    asyncio.run(walk())
