"""Those who run a simulated cluster: they move partitions, call moves back, elect leaders, retire a node.

They ask any node, and may not hear what came of it. Nothing of it loses a message, and all of it comes to an
end once everything is mended.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.moving.decommissioning import cancel_decommission, decommission
from goqueue.broker.moving.electing import elect_leaders
from goqueue.broker.moving.reassigning import cancel_move, cancel_reassignment, reassign
from goqueue.broker.storage.journal_set import journal_number
from goqueue.core.cluster.metadata import Metadata
from goqueue.core.cluster.values import MEMBERS, ORDERS, decode_member, decode_order
from goqueue.model.cluster import NodeId, OrderKind
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import (
    TIMEOUT_DEFAULT_MS,
    UNTHROTTLED,
    CancelDecommission,
    CancelMove,
    CancelReassignment,
    Decommission,
    ElectLeaders,
    Reassign,
    WantedMove,
    WantedSpread,
)
from goqueue.model.settings import KiB
from goqueue.testing.whole.cluster_groups import QUEUE
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.world.store import SimulatedStore

C = TypeVar("C")
ANSWER_S = 30
COPIES_MIN = 2
"""With one copy, whoever loses its disk loses all."""
_THROTTLES = (UNTHROTTLED, UNTHROTTLED, 20 * KiB)
_TIMEOUTS_MS = (TIMEOUT_DEFAULT_MS, TIMEOUT_DEFAULT_MS, 3_000)


class ClusterOperators:
    def __init__(
        self,
        topic: TopicName,
        partitions: int,
        nodes: Sequence[NodeId],
        copies: int,
        chance: Random,
        ready: Callable[[], list[ClusterNode]],
        counts: Counter[str],
    ) -> None:
        """`ready`: the nodes that can be asked."""
        self._topic = topic
        self._partitions = partitions
        self._nodes = nodes
        self._copies = copies
        self._chance = chance
        self._ready = ready
        self._counts = counts
        self._tasks: set[asyncio.Task[None]] = set()

    def act(self) -> None:
        """Begin something."""
        steps = {self._move: 6, self._spread: 1, self._call_back: 3, self._elect: 3, self._retire: 0.3}
        (step,) = self._chance.choices(list(steps), list(steps.values()))
        ready = self._ready()
        if ready:
            self._tasks.add(asyncio.get_running_loop().create_task(step(self._chance.choice(ready))))

    def check(self) -> None:
        """Raise what was found out since."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def rest(self) -> None:
        """Return when nobody waits for an answer."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
            self.check()

    async def _move(self, node: ClusterNode) -> None:
        source = self._any_partition()
        count = min(len(self._nodes), max(COPIES_MIN, self._copies + self._chance.choice((-1, 0, 0, 0, 1))))
        replicas = tuple(self._chance.sample(self._nodes, count))
        command = Reassign(
            moves=[WantedMove(source, replicas)],
            throttle_bytes_per_s=self._chance.choice(_THROTTLES),
            timeout_ms=self._chance.choice(_TIMEOUTS_MS),
            replaces=self._chance.random() < 0.5,
        )
        await self._order(node, "moves", reassign, command)

    async def _spread(self, node: ClusterNode) -> None:
        await self._order(node, "moves", reassign, Reassign(spreads=[WantedSpread(self._topic)]))

    async def _call_back(self, node: ClusterNode) -> None:
        orders = node.broker.metadata.orders
        moving = [order_id for order_id, order in orders.items() if order.kind is OrderKind.REASSIGN]
        leaving = [order.node for order in orders.values() if order.kind is OrderKind.DECOMMISSION]
        if leaving and self._chance.random() < 0.3:
            command = CancelDecommission(node=str(leaving[0]))
            await self._order(node, "called back", cancel_decommission, command)
        elif moving and self._chance.random() < 0.5:
            chosen = CancelReassignment(reassignment_id=self._chance.choice(sorted(moving)))
            await self._order(node, "called back", cancel_reassignment, chosen)
        else:
            await self._order(node, "called back", cancel_move, CancelMove(source=self._any_partition()))

    async def _elect(self, node: ClusterNode) -> None:
        sources = self._chance.choice((None, [self._any_partition()]))
        await self._order(node, "elections", elect_leaders, ElectLeaders(sources=sources, wait_ms=2_000))

    async def _retire(self, node: ClusterNode) -> None:
        """Only where enough are left for all copies, should another die besides."""
        if len(self._nodes) - len(retired_in(node.broker.metadata)) > self._copies + 1:
            command = Decommission(node=self._chance.choice(self._nodes))
            await self._order(node, "decommissions", decommission, command)

    def _any_partition(self) -> TopicPartition:
        if self._chance.random() < 0.2:
            return TopicPartition(OFFSETS_TOPIC, journal_number(QUEUE))
        return TopicPartition(self._topic, self._chance.randrange(self._partitions))

    async def _order(
        self, node: ClusterNode, what: str, verb: Callable[[Broker, C], Awaitable[object]], command: C
    ) -> None:
        async def run() -> object:
            return await verb(node.broker, command)

        asked = node.life.begin(run())
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done or asked.cancelled():
            self._counts["orders unanswered"] += 1
        elif (error := asked.exception()) is not None:
            demand(isinstance(error, GoQueueError), f"{type(command).__name__} failed with {error!r}")
            self._counts["orders refused"] += 1
        else:
            self._counts[what] += 1


def retired_in(image: Metadata) -> set[NodeId]:
    return {node for node, member in image.members.items() if member.is_retired}


def retired_by(store: SimulatedStore) -> set[NodeId]:
    """Nodes that were emptied, and never come back."""
    return {
        NodeId(key.removeprefix(MEMBERS))
        for key, item in store.peek(MEMBERS).items()
        if decode_member(item.value).is_retired
    }


def open_orders(store: SimulatedStore) -> list[str]:
    """What is ordered and not done yet."""
    orders = {key: decode_order(item.value) for key, item in store.peek(ORDERS).items()}
    return [key for key, order in orders.items() if not order.ended_ms]
