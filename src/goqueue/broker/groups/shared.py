"""Groups of several nodes: whoever leads a journal of theirs serves them, and nobody else.

The journals are partitions of an internal topic that is replicated like any other. Becoming the leader of one
reads it back; until that is done, and on all other nodes, its groups are refused with the reason.
"""

import asyncio
import logging

from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import OFFSETS_TOPIC, GroupJournal
from goqueue.broker.storage.partition import Partition
from goqueue.model.errors import GoQueueError

log = logging.getLogger(__name__)
_PAUSE_S = 0.5
"""Before a journal that could not be read back is read once more."""


class SharedGroups:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        broker.coordinator.journals.is_shared = True

    def leads(self, partition: Partition, *, is_leader: bool) -> None:
        """This node leads a partition from now on, or does so no more."""
        if partition.source.topic != OFFSETS_TOPIC:
            return
        if is_leader:
            task = asyncio.get_running_loop().create_task(self._take_over(partition))
            self._broker.keep(task)
        else:
            self._broker.coordinator.let_go(partition.source.partition)

    async def _take_over(self, partition: Partition) -> None:
        epoch = partition.leader_epoch
        begun_ns = self._broker.clock.monotonic_ns()
        while partition.is_leader and partition.leader_epoch == epoch:
            try:
                await self._broker.coordinator.take_over(partition, self._read_back)
            except (GoQueueError, OSError) as error:
                log.warning("journal_not_taken_over partition=%s reason=%s", partition.source, error)
                await asyncio.sleep(_PAUSE_S)
            else:
                took_ms = (self._broker.clock.monotonic_ns() - begun_ns) // 1_000_000
                log.info("journal_taken_over partition=%s took_ms=%d", partition.source, took_ms)
                return

    async def _read_back(self, journal: GroupJournal) -> None:
        await self._broker.threads.run(journal.replay)
