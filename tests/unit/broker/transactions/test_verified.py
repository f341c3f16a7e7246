"""What leaders were told of transactions: for how long it holds, and which answers do not count."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.storage.partition import Partition
from goqueue.broker.transactions.verified import Verified
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.queue import queue_steps as steps
from tests.unit.broker.running import ORDERS_0, running

PRODUCER, EPOCH = 7, 1


def with_a_partition(walk: Callable[[Partition], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(SimulatedDisk(Random(1))) as broker:
            await steps.orders(broker)
            await walk(partition_of(broker))

    asyncio.run(run())


def partition_of(broker: Broker) -> Partition:
    return broker.partition(ORDERS_0)


def test_an_answer_holds_for_its_epoch_of_the_producer_and_of_the_partition_until_it_is_forgotten() -> None:
    async def walk(partition: Partition) -> None:
        verified = Verified()
        verified.note(partition, PRODUCER, EPOCH, "t")
        assert verified.is_told(partition, PRODUCER, EPOCH)
        assert not verified.is_told(partition, PRODUCER, EPOCH + 1)
        partition.leader_epoch += 1
        assert not verified.is_told(partition, PRODUCER, EPOCH)
        partition.leader_epoch -= 1
        verified.forget(partition, PRODUCER)
        assert not verified.is_told(partition, PRODUCER, EPOCH)

    with_a_partition(walk)


def test_a_question_that_is_under_way_when_a_transaction_is_sealed_is_answered_in_vain() -> None:
    async def walk(partition: Partition) -> None:
        verified = Verified()
        with verified.asking(partition, PRODUCER) as before, verified.asking(partition, 8) as another:
            verified.forget(partition, PRODUCER)
            with verified.asking(partition, PRODUCER) as after:
                assert not before.counts
                assert another.counts
                assert after.counts

    with_a_partition(walk)


def test_a_question_asked_in_an_earlier_epoch_is_answered_in_vain() -> None:
    async def walk(partition: Partition) -> None:
        with Verified().asking(partition, PRODUCER) as question:
            partition.leader_epoch += 1
            assert not question.counts

    with_a_partition(walk)
