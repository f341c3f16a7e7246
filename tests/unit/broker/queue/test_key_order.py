"""Shared groups in order of keys, with many consumers at once: nobody overtakes, whatever comes back when."""

import asyncio
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.groups import Sharing
from goqueue.model.messages import Message
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    Consumer,
    Taken,
    ack,
    floor,
    join,
    nack,
    orders,
    put_keyed,
    take,
    values,
)
from tests.unit.broker.running import ORDERS

KEYS = 5
PARTITIONS = 2
MESSAGES = 100


class Shop:
    """Consumers of one group, and who has what out."""

    def __init__(self, broker: Broker, seed: int) -> None:
        self._broker = broker
        self._random = Random(seed)
        self._done: set[int] = set()
        self._out: dict[int, str] = {}
        self.last_ack_ms = 0
        self.overtaken: list[tuple[int, list[int]]] = []

    async def work(self, consumer: Consumer) -> None:
        """Take and settle until all is done; whoever fails at one of a key gives those behind it back too."""
        while len(self._done) < MESSAGES:
            taken = await take(self._broker, consumer, self._random.randint(1, 8), wait_ms=60_000)
            for message in taken:
                self._look(message, consumer.member_id)
            failed: set[str] = set()
            for message in taken:
                await asyncio.sleep(self._random.choice((0, 0.001, 0.003)))
                if message.key in failed or self._random.random() < 0.2:
                    failed.add(message.key)
                    del self._out[int(message.value)]
                    await nack(self._broker, [message], delay_ms=self._random.choice((0, 1, 5)))
                else:
                    self._done.add(int(message.value))
                    del self._out[int(message.value)]
                    await ack(self._broker, [message])
                    self.last_ack_ms = self._broker.clock.wall_ms()

    def _look(self, message: Taken, member_id: str) -> None:
        number = int(message.value)
        assert number not in self._done
        self._out[number] = member_id
        before = set(range(number % KEYS, number, KEYS)) - self._done
        if passed := [other for other in before if self._out.get(other) != member_id]:
            self.overtaken.append((number, sorted(passed)))


@pytest.mark.parametrize("seed", range(4))
def test_no_message_overtakes_another_of_its_key(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=PARTITIONS, retries_max="1000")
        await put_keyed(broker, *((f"k{number % KEYS}", f"{number}") for number in range(MESSAGES)))
        names = ("ann", "ben", "eve", "joe")
        members = [await join(broker, name, sharing=Sharing.SHARED, key_order=True) for name in names]
        shop = Shop(broker, seed)
        began_ms = broker.clock.wall_ms()

        await asyncio.gather(*map(shop.work, members))

        assert shop.overtaken == []
        assert sum(floor(broker, partition=number) for number in range(PARTITIONS)) == MESSAGES
        assert shop.last_ack_ms - began_ms < 5_000, "nobody waited for what was there"

    Lives(seed).live(story)


@pytest.mark.parametrize("seed", [0, 16, 32])
def test_a_key_that_is_freed_while_a_poll_reads_another_partition_is_not_missed(seed: int) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=2)
        for partition in (0, 1):
            for value in ("first", "second"):
                message = Message(value.encode(), b"%d" % partition, partition=partition)
                await publish(broker, Publish(topic=ORDERS, messages=[message]))
        ann = await join(broker, sharing=Sharing.SHARED, key_order=True)
        ben = await join(broker, "ben", sharing=Sharing.SHARED, key_order=True)
        taken = await take(broker, ann, 1) + await take(broker, ann, 1)
        began_ms = broker.clock.wall_ms()

        waiting = asyncio.ensure_future(take(broker, ben, wait_ms=20_000))
        await asyncio.sleep(0)
        await ack(broker, taken[:1])

        assert "second" in values(await waiting)
        assert broker.clock.wall_ms() - began_ms < 1_000

    Lives(seed).live(story)
