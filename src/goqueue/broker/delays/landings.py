"""What has landed in the partitions: what each is known to have got from the keeper, and what is in doubt.

A partition's own log tells it, or its leader where there are several nodes. Whose log refuses, or does not
answer, is blocked: it gets nothing more until it has told, and the others go on.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from goqueue.broker.delays.reaching import learn
from goqueue.broker.delays.scan import find_deliveries
from goqueue.broker.delays.stock import Stock
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.targets import Target
from goqueue.model.errors import GoQueueError

if TYPE_CHECKING:  # the broker opens and keeps its delays through the keeper
    from goqueue.broker.broker import Broker
    from goqueue.broker.storage.partition import Partition

log = logging.getLogger(__name__)

_BLOCKED_NS = 1_000_000_000
"""For so long nobody looks again at a target that has refused."""


class Landings:
    """Of the targets of one store, for as long as this node keeps it."""

    def __init__(self, broker: "Broker", store: DelayStore, stock: Stock) -> None:
        self._broker = broker
        self._store = store
        self._stock = stock
        self._unblocking = asyncio.Lock()

    def partition_of(self, target: Target) -> "Partition | None":
        """Where a target's messages go; None when its topic is gone."""
        name = self._broker.metadata.names.get(target.topic_id)
        topic = self._broker.topics.get(name) if name is not None else None
        if topic is None or target.partition >= len(topic.partitions):
            return None
        return topic.partitions[target.partition]

    def block(self, target: Target) -> None:
        """Its log refuses or has failed: wait until it is well, then see what is in it."""
        target.is_blocked = True
        target.blocked_until_ns = self._broker.clock.monotonic_ns() + _BLOCKED_NS

    def forget(self, target: Target) -> None:
        """The topic was deleted, and with it what was to come."""
        if not target.is_gone:
            target.is_gone = True
            # What transactions hold counts as cancelled when they end.
            self._store.totals.dropped += target.pending - self._store.held.count(target.index)
            target.pending = 0
            self._store.is_changed = True

    async def unblock(self, target: Target) -> None:
        """Look up what a target has got. One at a time: each counts what is pending anew."""
        async with self._unblocking:
            if target.is_blocked:
                await self._look_up(target)

    async def unblock_all(self, blocked: Sequence[Target]) -> None:
        """The same for several whose leaders are other nodes: they are asked side by side."""
        async with self._unblocking:
            learnt = await asyncio.gather(*map(self.try_to_learn, blocked))
            counts = await self._broker.threads.run(self._store.count_pending, self._store.parts())
            for target, is_learnt in zip(blocked, learnt, strict=True):
                if is_learnt:
                    target.pending = 0 if target.is_gone else counts[target.index]
                    target.is_blocked = False
            if any(learnt):
                self._stock.reset()

    async def meet_new(self) -> None:
        """Targets that have never got anything: the journal says so before they do."""
        new = [each for each in self._store.targets.all if each.noted_offset is None and not each.is_gone]
        met = [
            target
            for target, is_met in zip(new, await asyncio.gather(*map(self.try_to_learn, new)), strict=True)
            if is_met and not target.is_gone
        ]
        await self._store.journal.submit(*map(self._store.note, met))
        if any(target.is_blocked for target in met):
            self._stock.reset()  # what fell due for them meanwhile was passed over
        for target in met:
            target.noted_offset = target.told_offset = target.scan_offset
            target.is_blocked = False

    async def _look_up(self, target: Target) -> None:
        partition = self.partition_of(target)
        if partition is None:
            self.forget(target)
            target.is_blocked = False
        elif not partition.is_failed and await self.try_to_learn(target):
            before = target.pending
            counts = await self._broker.threads.run(self._store.count_pending, self._store.parts())
            target.pending += counts[target.index] - before
            target.is_blocked = False
            self._stock.reset()

    async def try_to_learn(self, target: Target) -> bool:
        """Whether it could be told what has been delivered; if not, the target waits and the others go on."""
        try:
            await self._learn(target)
        except GoQueueError as error:
            log.warning(
                "deliveries_unknown topic=%s partition=%d reason=%s", target.topic_id, target.partition, error
            )
            self.block(target)
            return False
        return True

    async def _learn(self, target: Target) -> None:
        """Look into a partition's log for what has been delivered to it."""
        partition = self.partition_of(target)
        if partition is None:
            target.is_gone = True
            return
        if self._broker.is_one_of_several:
            await learn(self._broker, self._store, target)
            return
        # What is in its log but not safe yet must be one or the other before it is counted.
        committed = partition.committed(partition.log.end_offset)
        if committed is not None:
            await committed
        partition_log = partition.log
        target.scan_offset = min(target.scan_offset, partition_log.end_offset)
        if target.noted_offset is None:
            target.scan_offset = partition_log.end_offset
        steps, end_offset = await self._broker.threads.run(
            find_deliveries, partition_log, target.scan_offset, self._store.journal.end_offset
        )
        for step in steps:
            target.confirmed.add(step)
        target.scan_offset = end_offset
        target.delivered = target.confirmed.copy()
        self._store.is_changed = True
