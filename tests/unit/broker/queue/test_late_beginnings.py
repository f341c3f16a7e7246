"""Share groups begin with what comes; where that was is kept, or what came since would be passed by."""

import asyncio
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.queue.share_groups import acquire, share_heartbeat
from goqueue.model.delivery import Acquire, Poll
from goqueue.model.group_commands import ShareHeartbeat
from goqueue.model.settings import BrokerConfig
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.queue.queue_steps import orders, put
from tests.unit.broker.running import DIRECT, ORDERS, ORDERS_0, running

GROUP = "shared"
CONFIG = BrokerConfig(commit_log=DIRECT)


def joining() -> ShareHeartbeat:
    return ShareHeartbeat(group=GROUP, member_id="ann", epoch=0, topics=[ORDERS])


def taking() -> Acquire:
    return Acquire(Poll(group=GROUP, member_id="ann", limit=100, sources=[ORDERS_0]))


async def taken(broker: Broker) -> list[int]:
    return [offset for part in await acquire(broker, taking()) for offset in part.offsets]


def test_what_comes_once_a_share_group_has_begun_is_its_own_also_after_a_power_failure() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            await put(broker, "before")
            await share_heartbeat(broker, joining())
            assert await taken(broker) == []
            await put(broker, "since")
            after = disk.crash()
        async with running(after, CONFIG) as broker:
            await share_heartbeat(broker, joining())
            assert await taken(broker) == [1]

    asyncio.run(walk())


def test_who_asks_while_another_begins_hears_nothing_that_a_power_failure_takes_back() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk, CONFIG) as broker:
            await orders(broker)
            await put(broker, "before")
            await share_heartbeat(broker, joining())
            gone = asyncio.ensure_future(acquire(broker, taking()))
            while not broker.queue.beginnings:
                await asyncio.sleep(0)
            gone.cancel()
            assert await taken(broker) == []
            await put(broker, "since")
            after = disk.crash()
        async with running(after, CONFIG) as broker:
            await share_heartbeat(broker, joining())
            assert await taken(broker) == [1]

    asyncio.run(walk())
