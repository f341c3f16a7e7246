"""Group commit: one fsync of a partition covers all that waits for it, and the next begins when it is done.

A publish with acks=all asks for a flush and waits; one with acks=leader leaves its partition dirty,
and a timer sees to it that nothing stays so for longer than the flush interval. All flushes of a
partition go through here, one at a time: that is what makes `flushed_offset` true. Different partitions
do not wait for each other, a few lanes at a time: files that are synced together share the disk's work.
"""

import asyncio
import logging
from collections.abc import Sequence
from errno import EIO
from typing import NamedTuple

from goqueue.broker.storage.partition import Partition
from goqueue.core.telemetry.histogram import DISK_BOUNDS_S, Histogram
from goqueue.core.telemetry.recent_times import RecentTimes
from goqueue.log.flush import Flush
from goqueue.model.ports import Clock, Threads

log = logging.getLogger(__name__)
_LANES = 4
_SHARE_MAX = 200
"""So many partitions a lane takes at once: the loop prepares their flushes in about a millisecond."""


class Flushed(NamedTuple):
    """How one flush went: what was wrong with the data, and with the recovery point, and how long it took."""

    error: OSError | None
    snapshot_error: OSError | None
    took_ns: int


class Flusher:
    def __init__(self, threads: Threads, clock: Clock, *, interval_ms: int) -> None:
        self._threads = threads
        self._clock = clock
        self.times = RecentTimes()
        """How long flushes have taken of late."""
        self.seconds = Histogram(DISK_BOUNDS_S)
        """How long all of them have taken since the start."""
        self.recovery_points = Histogram(DISK_BOUNDS_S)
        """How long those flushes have taken that ended with a recovery point."""
        # A little earlier than promised: the fsync itself takes time too.
        self._delay_s = interval_ms / 1000 * 0.8
        self._wanted: dict[Partition, bool] = {}
        self._dirty: dict[Partition, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._starting: asyncio.Handle | None = None
        self._lanes: dict[asyncio.Task[None], int] = {}
        """Each with the time at which it began."""
        self._in_flight: set[Partition] = set()

    @property
    def under_way_ns(self) -> int:
        """For how long the oldest flush that has not ended has been under way; 0 without one."""
        return self._clock.monotonic_ns() - min(self._lanes.values()) if self._lanes else 0

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
        while self._lanes or self._wanted:
            self._fill_lanes()
            await self.settle()

    async def settle(self) -> None:
        """Return when the flushes that are under way now have ended."""
        if self._lanes:
            await asyncio.wait(self._lanes)

    def _flush_dirty(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._dirty:
            self._wanted.setdefault(partition, False)
        self._dirty.clear()
        self._start()

    def _start(self) -> None:
        # A turn later: what is asked for at the same time shares the lanes evenly.
        if self._starting is None and self._wanted:
            self._starting = asyncio.get_running_loop().call_soon(self._fill_lanes)

    def _fill_lanes(self) -> None:
        self._starting = None
        while len(self._lanes) < _LANES and (work := self._take()):
            lane = asyncio.get_running_loop().create_task(self._run_lane(work))
            self._lanes[lane] = self._clock.monotonic_ns()
            lane.add_done_callback(self._end_lane)

    def _end_lane(self, lane: "asyncio.Task[None]") -> None:
        del self._lanes[lane]
        self._start()

    def _take(self) -> list[tuple[Partition, Flush]]:
        """A lane's share of what is wanted and not being flushed already."""
        ready = [partition for partition in self._wanted if partition not in self._in_flight]
        work = []
        for partition in ready:
            flush = partition.begin_flush(with_snapshot=self._wanted.pop(partition))
            # None: it has stopped. And what was asked for during the last flush that may have covered.
            if flush is not None and flush.has_work:
                work.append((partition, flush))
                self._in_flight.add(partition)
                if len(work) * _LANES >= len(ready) or len(work) >= _SHARE_MAX:
                    break
        return work

    async def _run_lane(self, work: Sequence[tuple[Partition, Flush]]) -> None:
        try:
            outcomes = await self._threads.run(self._run_all, [flush for _, flush in work])
        finally:
            self._in_flight.difference_update(partition for partition, _ in work)
        now_ns = self._clock.monotonic_ns()
        # No pause here: a flush that is over and not told of may not be followed by the next.
        for (partition, flush), (error, snapshot_error, took_ns) in zip(work, outcomes, strict=True):
            self.times.note(took_ns, now_ns=now_ns)
            self.seconds.observe(took_ns / 1e9)
            partition.counters.fsyncs += 1
            if flush.snapshot is not None and error is None and snapshot_error is None:
                self.recovery_points.observe(took_ns / 1e9)
            partition.finish_flush(flush, error, snapshot_error)

    def _run_all(self, flushes: Sequence[Flush]) -> list[Flushed]:
        """In a thread: one after the other, each with its time."""
        outcomes = []
        for flush in flushes:
            begun_ns = self._clock.monotonic_ns()
            error, snapshot_error = _run_one(flush)
            outcomes.append(Flushed(error, snapshot_error, self._clock.monotonic_ns() - begun_ns))
        return outcomes


def _run_one(flush: Flush) -> tuple[OSError | None, OSError | None]:
    """What went wrong with the data, and with the recovery point."""
    try:
        return None, flush.run()
    except OSError as error:
        return error, None
    except Exception as error:
        # A bug of ours must not leave publishers waiting for ever: the partition stops and is opened anew.
        log.exception("flush_bug folder=%s", flush.folder)
        return OSError(EIO, repr(error)), None
