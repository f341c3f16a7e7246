"""A broker on a simulated machine, so that hours of delay pass in no time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delays import Postponed
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message, StoredMessage
from goqueue.model.settings import BrokerConfig, DelayConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

T = TypeVar("T")
ORDERS = TopicName("orders")
SMALL = BrokerConfig(delays=DelayConfig(fresh_max=5, runs_max=2, wasted_entries_max=3, round_max=2))


class World:
    """A disk and a clock that outlive the broker."""

    def __init__(self, config: BrokerConfig | None = None) -> None:
        self.clock = SimulatedClock()
        self.disk = SimulatedDisk(Random(1))
        self._config = config or BrokerConfig()

    def run(self, life: Callable[[Broker], Coroutine[object, object, T]]) -> T:
        """Open the broker, live, close it."""
        return self._run(life, is_killed=False)

    def run_until_killed(self, life: Callable[[Broker], Coroutine[object, object, T]]) -> T:
        """The same with a power cut in the place of an orderly end."""
        return self._run(life, is_killed=True)

    def _run(self, life: Callable[[Broker], Coroutine[object, object, T]], *, is_killed: bool) -> T:
        loop = SimulatedLoop(self.clock)

        async def main() -> T:
            async with self._opened(is_killed=is_killed) as broker:
                return await life(broker)

        try:
            result = loop.run(main())
            assert not loop.unhandled, loop.unhandled
        finally:
            self.disk = self.disk.crash() if is_killed else self.disk.kill()
            loop.abandon()
        return result

    @asynccontextmanager
    async def _opened(self, *, is_killed: bool) -> AsyncIterator[Broker]:
        broker = await open_broker(
            config=self._config,
            disk=self.disk,
            clock=self.clock,
            threads=SimulatedThreads(Random(2)),
            workshop=WorkshopAtHand(),
            chance=Random(3),
        )
        if ORDERS not in broker.topics:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
        yield broker
        if not is_killed:
            await close_broker(broker)


async def publish_later(
    broker: Broker, *delays_ms: int, partition: int = 0, acks: Acks = Acks.ALL
) -> list[Postponed]:
    """Messages that are due in so much time, each with that as its value."""
    now_ms = broker.clock.wall_ms()
    messages = [Message(b"%d" % delay, partition=partition, due_ms=now_ms + delay) for delay in delays_ms]
    replies = await publish(broker, Publish(topic=ORDERS, messages=messages, acks=acks))
    assert all(isinstance(reply, Postponed) for reply in replies), replies
    return [reply for reply in replies if isinstance(reply, Postponed)]


async def shown(broker: Broker, partition: int = 0) -> list[StoredMessage]:
    """All messages of a partition."""
    source = TopicPartition(ORDERS, partition)
    return (await read_messages(broker, ReadMessages(source=source, limit=100_000))).messages


async def values(broker: Broker, partition: int = 0) -> list[bytes | None]:
    return [message.value for message in await shown(broker, partition)]


async def sleep_ms(duration_ms: int) -> None:
    """Let simulated time pass."""
    await asyncio.sleep(duration_ms / 1000)
