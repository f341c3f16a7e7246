"""The work queue through lives that end anywhere: nothing is lost, doubled, or settled and seen again."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.model.groups import Sharing
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.queue_steps import (
    DEAD_ORDERS,
    Consumer,
    Taken,
    ack,
    floor,
    join,
    nack,
    orders,
    put_keyed,
    reject,
    stored,
    take,
)
from tests.unit.broker.running import ORDERS

VISIBILITY_MS = 4_000
DELIVERIES_MAX = 4


@dataclass
class Witness:
    """What the broker has promised so far, and what it was seen to do."""

    random: Random
    is_killed: bool
    """Lives end by a kill, which loses nothing written; else by a power cut."""
    next_value: int = 0
    published: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    unanswered: set[str] = field(default_factory=set)
    """An ack may hold although the broker did not live to say so."""
    out_until_ms: dict[str, int] = field(default_factory=dict)
    consumers: list[Consumer] = field(default_factory=list)
    unsettled: list[Taken] = field(default_factory=list)

    async def live(self, broker: Broker) -> None:
        if not self.consumers:
            await orders(broker, partitions=2, visibility_ms=str(VISIBILITY_MS), retry_backoff_ms="100")
            for name in ("ann", "ben"):
                consumer = await join(broker, name, sharing=Sharing.SHARED, key_order=True)
                self.consumers.append(consumer)
        for _ in range(self.random.randrange(5, 25)):
            await self.random.choice(
                (self.publish, self.publish, self.poll, self.poll, self.settle, self.settle, self.wait)
            )(broker)

    async def publish(self, broker: Broker) -> None:
        values = [f"{self.next_value + index}" for index in range(self.random.randrange(1, 5))]
        self.next_value += len(values)
        await put_keyed(broker, *((f"key {int(value) % 3}", value) for value in values))
        self.published |= set(values)

    async def poll(self, broker: Broker) -> None:
        now_ms = broker.clock.wall_ms()
        taken = await take(broker, self.random.choice(self.consumers), self.random.randrange(1, 6))
        self.look(taken, now_ms)
        for one in taken:
            self.out_until_ms[one.value] = now_ms + VISIBILITY_MS
        self.unsettled += taken

    def look(self, taken: list[Taken], now_ms: int) -> None:
        """Nothing may be handed out that was settled, is out, or was handed out too often."""
        for one in taken:
            assert one.value not in self.acked | self.rejected, "settled, and seen again"
            assert one.delivery_count <= DELIVERIES_MAX
            if self.is_killed:
                assert self.out_until_ms.get(one.value, 0) <= now_ms, "handed out while it was out"
        for key in {one.key for one in taken}:
            own = [int(one.value) for one in taken if one.key == key]
            assert own == sorted(own), "messages of one key are in order"

    async def settle(self, broker: Broker) -> None:
        if not self.unsettled:
            return
        one = self.unsettled.pop(self.random.randrange(len(self.unsettled)))
        step = self.random.choice((ack, ack, ack, nack, reject))
        held_until_ms = self.out_until_ms.pop(one.value, 0)
        is_in_time = broker.clock.wall_ms() < held_until_ms
        self.unanswered.add(one.value)
        outcome = await step(broker, [one])
        self.unanswered.discard(one.value)
        if outcome.refusals:
            self.out_until_ms[one.value] = held_until_ms
        elif step is ack and is_in_time:  # a late one may find it settled as a dead letter
            self.acked.add(one.value)
        elif step is reject:
            self.rejected.add(one.value)

    async def wait(self, broker: Broker) -> None:
        await asyncio.sleep(self.random.choice((0.05, 0.5, 2, 6)))

    async def finish(self, broker: Broker) -> None:
        """In the end everything published was acknowledged or is a dead letter, each once."""
        drained: set[str] = set()
        for _ in range(200):
            taken = []
            for consumer in self.consumers:
                taken += await take(broker, consumer, wait_ms=2_000)
            self.look(taken, broker.clock.wall_ms() + VISIBILITY_MS)
            await ack(broker, taken)
            drained |= {one.value for one in taken}
            ends = [len(await stored(broker, ORDERS, partition)) for partition in (0, 1)]
            if [floor(broker, partition=partition) for partition in (0, 1)] == ends:
                break
        dead = [
            (message.value or b"").decode()
            for partition in (0, 1)
            for message in await stored(broker, DEAD_ORDERS, partition)
        ]
        assert len(dead) == len(set(dead)), "a dead letter is there once"
        assert not set(dead) & (drained | self.acked)
        assert self.rejected <= set(dead)
        known = self.acked | drained | set(dead) | self.unanswered
        assert self.published <= known, "a message is lost, or stuck"


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "power cut"])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_seen_again_whenever_lives_end(seed: int, is_killed: bool) -> None:
    witness = Witness(Random(seed), is_killed)
    lives = Lives(seed)
    lives.live(witness.live, is_killed=is_killed)
    for _ in range(4):
        cut_after = witness.random.choice((NEVER, witness.random.randrange(5, 120)))
        with suppress(PowerLost):
            lives.live(witness.live, cut_after=cut_after, is_killed=is_killed)
    lives.live(witness.finish)
