"""Producer ids: none is given twice, and one of several nodes has the next block before it needs it."""

import asyncio
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.producers import init_producer
from goqueue.core.cluster.metadata import PRODUCER_IDS_RESERVED
from goqueue.model.errors import StoreUnreachable
from goqueue.model.transaction_commands import TakeProducerId
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import running, until


async def take(broker: Broker, count: int) -> list[int]:
    return [await init_producer(broker, TakeProducerId()) for _ in range(count)]


async def unreachable(*_: object) -> range:
    raise StoreUnreachable("store", "nobody is there")


@pytest.mark.parametrize("has_others", [False, True])
def test_no_id_is_given_twice(has_others: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            with monkeypatch.context() as patch:
                patch.setattr(Broker, "is_one_of_several", property(lambda _: has_others))
                taken = await take(broker, 2 * PRODUCER_IDS_RESERVED + 3)
            assert len(set(taken)) == len(taken)

    asyncio.run(walk())


def test_one_of_several_nodes_gives_ids_for_a_while_though_the_store_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            with monkeypatch.context() as patch:
                patch.setattr(Broker, "is_one_of_several", property(lambda _: True))
                await take(broker, PRODUCER_IDS_RESERVED // 2)
                await until(lambda: bool(broker.spare_producer_ids))
                patch.setattr(type(broker.agreement), "make", unreachable)

                taken = await take(broker, PRODUCER_IDS_RESERVED)

                assert len(set(taken)) == PRODUCER_IDS_RESERVED

    asyncio.run(walk())
