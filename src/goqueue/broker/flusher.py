"""Group commit: one round of fsyncs covers all that waits, and the next begins when it is done.

A publish with acks=all asks for a flush and waits; one with acks=leader leaves its partition dirty,
and a timer sees to it that nothing stays so for longer than the flush interval. All flushes of a
partition go through here, one at a time: that is what makes `flushed_offset` true.
"""

import asyncio
import logging
from collections.abc import Sequence
from errno import EIO

from goqueue.broker.partition import Partition
from goqueue.log.flush import Flush
from goqueue.model.ports import Threads

log = logging.getLogger(__name__)
_SIDE_BY_SIDE = 4


class Flusher:
    def __init__(self, threads: Threads, *, interval_ms: int) -> None:
        self._threads = threads
        # A little earlier than promised: the fsync itself takes time too.
        self._delay_s = interval_ms / 1000 * 0.8
        self._wanted: dict[Partition, bool] = {}
        self._dirty: dict[Partition, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rounds: asyncio.Task[None] | None = None
        self._round_end: asyncio.Future[None] | None = None

    def request(self, partition: Partition) -> None:
        """Flush soon: somebody waits."""
        self._wanted.setdefault(partition, False)
        self._start()

    def request_snapshot(self, partition: Partition) -> None:
        """Flush soon, and note a recovery point behind it."""
        self._wanted[partition] = True
        self._start()

    def note_dirty(self, partition: Partition) -> None:
        """Flush within the interval."""
        self._dirty[partition] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._flush_dirty)

    async def drain(self) -> None:
        """Flush all that is dirty and wait for it."""
        self._flush_dirty()
        while self._rounds is not None:
            await self._rounds

    async def settle(self) -> None:
        """Return when the flushes that are under way now have ended."""
        if self._round_end is not None:
            await asyncio.shield(self._round_end)

    def _flush_dirty(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._dirty:
            self._wanted.setdefault(partition, False)
        self._dirty.clear()
        self._start()

    def _start(self) -> None:
        if self._rounds is None and self._wanted:
            self._rounds = asyncio.get_running_loop().create_task(self._run_rounds())

    async def _run_rounds(self) -> None:
        try:
            while self._wanted:
                wanted, self._wanted = self._wanted, {}
                work = [(p, p.begin_flush(with_snapshot=snapshot)) for p, snapshot in wanted.items()]
                self._round_end = asyncio.get_running_loop().create_future()
                outcomes = await self._run_side_by_side([flush for _, flush in work])
                self._round_end.set_result(None)
                for (partition, flush), (error, snapshot_error) in zip(work, outcomes, strict=True):
                    partition.finish_flush(flush, error, snapshot_error)
        finally:
            self._rounds = None

    async def _run_side_by_side(
        self, flushes: Sequence[Flush | None]
    ) -> list[tuple[OSError | None, OSError | None]]:
        """Files that are synced at the same time share the disk's own work for it: a few at a time."""
        if len(flushes) == 1:  # as a rule; and a task less
            return await self._threads.run(_run_all, flushes)
        lanes = [flushes[number::_SIDE_BY_SIDE] for number in range(min(_SIDE_BY_SIDE, len(flushes)))]
        done = await asyncio.gather(*(self._threads.run(_run_all, lane) for lane in lanes))
        return [done[at % len(lanes)][at // len(lanes)] for at in range(len(flushes))]


def _run_all(flushes: Sequence[Flush | None]) -> list[tuple[OSError | None, OSError | None]]:
    return [_run_one(flush) for flush in flushes]


def _run_one(flush: Flush | None) -> tuple[OSError | None, OSError | None]:
    """What went wrong with the data, and with the recovery point."""
    if flush is None:
        return None, None
    try:
        return None, flush.run()
    except OSError as error:
        return error, None
    except Exception as error:
        # A bug of ours must not leave publishers waiting for ever: the partition stops and is opened anew.
        log.exception("flush_bug folder=%s", flush.folder)
        return OSError(EIO, repr(error)), None
