"""Cutting a partition at work: a replica drops what its leader does not have, or all, and goes on from there.

Meanwhile it is paused: nobody reads or writes it, and whoever tries hears why. The order of the steps is what
makes a power cut harmless at each of them (`log/cutting.py`). If the disk fails at one, the partition
stops like any other whose disk fails, and is opened anew from what is there.
"""

from collections.abc import Coroutine

from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.model.errors import GoQueueError
from goqueue.model.ports import Threads


class Cutter:
    """Cuts partitions of one node."""

    def __init__(self, flusher: Flusher, threads: Threads) -> None:
        self._flusher = flusher
        self._threads = threads

    async def cut_to(self, partition: Partition, end_offset: int, *, why: GoQueueError) -> None:
        """Drop what lies behind an offset; a step that goes across it goes whole. Raises StorageFailed.

        `why`: what whoever waits or comes meanwhile is to hear.
        """
        partition.admit_write()
        log = partition.log
        end_offset = max(end_offset, log.first_offset)
        if end_offset < log.end_offset:
            await self._while_paused(partition, why, self._cut(partition, end_offset))

    async def begin_at(self, partition: Partition, offset: int, *, why: GoQueueError) -> None:
        """Drop everything, and begin at an offset, or where the log's files begin if that is further.

        What lies before that once counted, so whoever leads has had it too and can go on from there.
        """
        partition.admit_write()
        log = partition.log
        await self._while_paused(partition, why, self._begin(partition, max(offset, log.first_offset)))

    async def begin_empty(self, partition: Partition, *, why: GoQueueError) -> None:
        """Drop a damaged log and begin at 0, or rather where the leader will say. Others must have it all."""
        await self._while_paused(partition, why, self._begin_empty(partition))

    async def _begin_empty(self, partition: Partition) -> None:
        await self._flusher.void(partition)
        await self._threads.run(partition.begin_empty, 0)

    async def _begin(self, partition: Partition, offset: int) -> None:
        await self._cut(partition, offset)
        await self._threads.run(partition.begin, offset)

    async def _cut(self, partition: Partition, end_offset: int) -> None:
        await self._threads.run(partition.sync)
        await self._flusher.void(partition)
        await self._threads.run(partition.cut, end_offset)

    async def _while_paused(
        self, partition: Partition, why: GoQueueError, work: Coroutine[object, object, None]
    ) -> None:
        partition.pause(why)
        try:
            # A flush of it that is under way is waited for: what it does must not come behind the cut.
            await self._flusher.wait_under_way()
            await work
        except OSError as error:
            partition.end_pause(why, error)
        else:
            partition.end_pause(why)
        finally:
            work.close()
