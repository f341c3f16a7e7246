"""Nodes without brokers on one simulated store: what they agree on, and who of them decides."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

from goqueue.broker.cluster.controlling import Controlling
from goqueue.broker.cluster.identity import Identity
from goqueue.broker.cluster.joining import become_member, identify
from goqueue.broker.cluster.membership import Membership
from goqueue.broker.cluster.node_store import NodeStore
from goqueue.broker.metadata_state import Agreement
from goqueue.core.access.tenants import Tenants
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import NodeId, NodeRecord, NodeState
from goqueue.model.errors import ShuttingDown
from goqueue.model.ports import Disk, Store
from goqueue.node.clock import SystemClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.threads import SimulatedThreads

SESSION_MS = 20


def new_disk() -> SimulatedDisk:
    return SimulatedDisk(Random(1))


class Villager:
    """A node's life: it joins, follows what is agreed, and decides when it is its turn."""

    def __init__(self, store: Store, node: str, disk: Disk, ids: Callable[[], str]) -> None:
        self.node = NodeId(node)
        self.disk = disk
        self._store = store
        self._ids = ids
        self.image = Metadata(node)
        self.agreement = Agreement(store, self.image, Tenants())
        self.membership: Membership
        self.controlling: Controlling
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, *, rack: str = "", secret_mark: str = "") -> Identity:
        threads = SimulatedThreads(Random(3))
        me = await identify(self._store, self.disk, threads, self.node, draw_id=self._ids)
        local = NodeStore(self._store, self.node)
        await become_member(
            self._store,
            me,
            rack=rack,
            patience_ms=SESSION_MS,
            forget_folder=local.forget_folder,
            secret_mark=secret_mark,
        )
        record = NodeRecord(
            folder_id=me.folder_id, rack=rack, peer=f"{self.node}:7000", secret_mark=secret_mark
        )
        self.membership = Membership(self._store, me, record, session_ms=SESSION_MS)
        await self.membership.register()
        return me

    async def work(self) -> None:
        await self.agreement.load()
        self.agreement.begin_following(lambda reason: None)
        self.controlling = Controlling(
            self._store, self.image, self.agreement, self.membership, SystemClock()
        )
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.membership.keep()), loop.create_task(self.controlling.run())]
        await self.membership.tell(NodeState.READY)

    async def die(self) -> None:
        """Stop at once; what it holds stays until somebody ends its session."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.agreement.stop(ShuttingDown())

    async def lives(self) -> None:
        await self.join()
        await self.work()


@asynccontextmanager
async def village(store: Store, *nodes: str) -> AsyncIterator[list[Villager]]:
    chance = Random(2)
    villagers = [
        Villager(store, node, new_disk(), lambda: f"{chance.getrandbits(64):016x}") for node in nodes
    ]
    for villager in villagers:
        await villager.lives()
    try:
        yield villagers
    finally:
        for villager in villagers:
            await villager.die()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)
