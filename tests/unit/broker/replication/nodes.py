"""Three nodes with replicas of one partition, and short ways to tell stories of them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random

from goqueue.core.cluster.values import decode_part, encode, part_key
from goqueue.model.cluster import NO_INCARNATION, Guard, NodeId, PartitionRecord
from goqueue.model.errors import NotLeader
from goqueue.model.settings import KiB, TopicSettings
from goqueue.testing.rooms.replica_nodes import TOPIC_ID, ReplicaNode, ReplicaVillage
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.store import SimulatedStore

KEY = part_key(TOPIC_ID, 0)
A, B, C = NodeId("a"), NodeId("b"), NodeId("c")


class Village(ReplicaVillage):
    def __init__(self, *, min_isr: int = 2, segment_bytes: int = 64 * KiB) -> None:
        super().__init__(1, min_isr=min_isr, settings=TopicSettings(segment_bytes=segment_bytes))

    def __getitem__(self, node: NodeId) -> ReplicaNode:
        return self.nodes[node]

    async def start_all(self, *nodes: NodeId) -> None:
        for node in nodes:
            await self.start(node)

    def part(self, *nodes: NodeId) -> None:
        """Cut the first of some nodes off from the others."""
        one, *others = nodes
        for other in others:
            self.network.reset(one, other)
            self.network.cut(one, other)
            self.network.cut(other, one)

    async def elect(
        self,
        leader: NodeId,
        *,
        isr: Sequence[NodeId],
        replicas: Sequence[NodeId] = (A, B, C),
        adding: Sequence[NodeId] = (),
        throttle_bytes_per_s: int = 0,
    ) -> None:
        """Write the record by hand, as the controller would."""
        item = (await self.store.load(KEY)).items.get(KEY)
        epoch = decode_part(item.value).epoch if item is not None else 0
        record = PartitionRecord(
            leader=leader,
            epoch=epoch + 1,
            replicas=tuple(replicas),
            isr=tuple(isr),
            adding=tuple(adding),
            throttle_bytes_per_s=throttle_bytes_per_s,
            incarnation=self[leader].peer.incarnation,
        )
        await self.store.change([Guard(KEY, item.revision if item else 0)], {KEY: encode(record)}, ())
        await until(lambda: self[leader].replica.is_leader)

    async def record(self) -> PartitionRecord:
        return decode_part((await self.store.load(KEY)).items[KEY].value)

    async def in_sync(self, *nodes: NodeId) -> None:
        """Return when the ISR is these."""
        while set((await self.record()).isr) != set(nodes):
            await asyncio.sleep(0.01)

    async def unled(self) -> None:
        """Return when nobody leads."""
        while (await self.record()).incarnation != NO_INCARNATION:
            await asyncio.sleep(0.01)

    async def alike(self, *nodes: NodeId) -> None:
        """Return when the logs of some nodes are the same, byte for byte."""
        await until(lambda: len({frames(self[node]) for node in nodes}) == 1)


def frames(node: ReplicaNode) -> bytes:
    """All of its log."""
    return node.frames(node.partition.log.first_offset)


def values(node: ReplicaNode) -> list[bytes]:
    """What readers see."""
    return list(node.shown().values())


async def until(condition: Callable[[], bool]) -> None:
    """Return when something has come true; the test fails if it never does."""
    async with asyncio.timeout(60):
        while True:
            with suppress(NotLeader):  # it is being cut
                if condition():
                    return
            await asyncio.sleep(0.005)


def live(story: Callable[[Village], Coroutine[object, object, None]], village: Village | None = None) -> None:
    """Let a story happen in a simulated world."""
    own = village or Village()
    loop = SimulatedLoop(own.clock)

    async def in_time() -> None:
        own.store = SimulatedStore(Random(1))
        async with asyncio.timeout(600):
            await story(own)

    try:
        loop.run(in_time())
        assert [problem for problem in loop.unhandled if not isinstance(problem, OSError)] == []
    finally:
        for node in own.nodes.values():
            node.disk.is_dead = True
        loop.abandon()
