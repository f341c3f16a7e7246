"""Rounds: whoever answers from its state alone asks first whether it still leads.

A leader that was replaced may not have heard of it, and its state is old then. Whoever leads next is one of
those in sync, and knows of its own epoch: when all of them say, after the question came, that they know of no
newer one, what this node knew at the question is the newest there is. One round serves all that wait for it.
"""

import asyncio
from typing import cast

from goqueue.broker.broker import Broker
from goqueue.broker.remote.remotes import Carrier
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.waiters import answer
from goqueue.model.cluster import NodeId
from goqueue.model.errors import CoordinatorLoading, GoQueueError, NotCoordinator
from goqueue.model.marks import ConfirmEpoch

ROUND_MS = 2_000
"""So long a node in sync may take to answer."""


class Rounds:
    def __init__(self, broker: Broker, carrier: Carrier) -> None:
        self._broker = broker
        self._carrier = carrier
        self._waiting: dict[Partition, list[asyncio.Future[None]]] = {}
        """Who waits for the next round of a partition."""
        self._asking: dict[Partition, asyncio.Task[None]] = {}

    async def confirm(self, partition: Partition) -> None:
        """Return when this node has led the partition at least until now.

        Raises NotCoordinator when it does not, CoordinatorLoading when that cannot be told.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(partition, []).append(waiter)
        if partition not in self._asking:
            self._asking[partition] = asyncio.get_running_loop().create_task(self._ask(partition))
        await waiter

    def close(self) -> None:
        for task in tuple(self._asking.values()):
            task.cancel()

    async def _ask(self, partition: Partition) -> None:
        """One round behind the other, as long as somebody waits."""
        try:
            while waiters := self._waiting.pop(partition, []):
                error: GoQueueError | None = CoordinatorLoading("this node stops")
                try:
                    error = await self._round(partition)
                finally:
                    for waiter in waiters:
                        answer(waiter, error)
        finally:
            del self._asking[partition]

    async def _round(self, partition: Partition) -> GoQueueError | None:
        epoch, source = partition.leader_epoch, partition.source
        asked = ConfirmEpoch(source=source, topic_id=partition.topic_id, leader_epoch=epoch)
        told = await asyncio.gather(
            *(self._carrier.run_at(node, asked, answer_ms=ROUND_MS) for node in self._others(partition)),
            return_exceptions=True,
        )
        if False in told or not partition.is_leader or partition.leader_epoch != epoch:
            return NotCoordinator(f"another node leads {source} now")
        for one in told:
            if isinstance(one, BaseException):
                return CoordinatorLoading(f"not all that are in sync with {source} answer: {one}")
        return None

    def _others(self, partition: Partition) -> set[NodeId]:
        """Who may lead next: those in sync, and those that are about to be."""
        topic = self._broker.metadata.topics.get(partition.source.topic)
        in_sync = (
            set() if topic is None else {*self._broker.metadata.record(topic, partition.source.partition).isr}
        )
        followers = () if partition.copies is None else partition.copies.progress()[0]
        return cast(set[NodeId], {*in_sync, *followers} - {self._carrier.me})
