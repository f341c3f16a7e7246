"""A broker on a real folder or a simulated disk, opened and closed around a test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker, open_broker
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.ports import Disk, Sealer
from goqueue.model.settings import BrokerConfig, CommitLogConfig
from goqueue.node.clock import SystemClock
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.workshop import WorkshopAtHand

ORDERS = TopicName("orders")
ORDERS_0 = TopicPartition(ORDERS, 0)
DIRECT = CommitLogConfig(files_max=0)
"""Without a commit log: every partition syncs its own files."""


@asynccontextmanager
async def running(
    disk: Disk, config: BrokerConfig | None = None, *, sealer: Sealer | None = None
) -> AsyncIterator[Broker]:
    threads = WorkerThreads(count=2)
    broker = await open_broker(
        config=config or BrokerConfig(),
        disk=disk,
        clock=SystemClock(),
        threads=threads,
        workshop=WorkshopAtHand(),
        chance=Random(1),
        sealer=sealer,
    )
    try:
        yield broker
    finally:
        await close_broker(broker)
        threads.close()


async def until(condition: Callable[[], bool]) -> None:
    """Return when something has come true; the test fails if it never does."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)
