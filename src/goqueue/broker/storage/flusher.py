"""Group commit: one sync covers all that waits for it, and the next begins when it is done.

A publish with acks=all asks for a flush and waits; one with acks=leader leaves its partition dirty,
and a timer sees to it that nothing stays so for longer than the flush interval.

What is little goes through the commit log, very many partitions in one round with one sync. What is much, a
recovery point, and what the commit log is to forget goes to the partition's own files, a few at a time
beside the rounds. A partition is in one of them at a time: that is what makes `flushed_offset` true.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import IntEnum
from errno import EIO
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from goqueue.broker.storage.partition import Partition
from goqueue.core.telemetry.histogram import DISK_BOUNDS_S, Histogram
from goqueue.core.telemetry.recent_times import RecentTimes
from goqueue.log.commit_log import CommitLog, NoRoomForRound
from goqueue.log.commit_rounds import Piece, round_bytes
from goqueue.log.flush import Flush
from goqueue.model.ports import Clock, P, T, Threads
from goqueue.model.settings import KiB, MiB

log = logging.getLogger(__name__)
_WORKERS = 4
_ON_LOOP_BYTES = 64 * KiB
"""A round up to this size is written on the loop, as messages are: that costs less than to wake a thread."""
_SHARE_MAX = 200
"""So many partitions a worker takes at once: the loop prepares their flushes in about a millisecond."""
_ROUND_MAX = 300
"""So many partitions a round takes: the loop prepares it, and tells of its end, in 2 ms each."""
_CHECKPOINT_SHARE = 8
"""So many files are synced at once that nobody waits for: the disk serves the rounds in between."""
_LONE_BYTES = 32 * KiB
"""One partition with more than this syncs its own file: to write it twice costs more than it saves."""
_SHARE_BYTES = 64 * KiB
"""So much more may a round hold for each further partition, whose own sync it spares (figures in ADR 32)."""
_unlogged_bytes = attrgetter("unlogged_bytes")
_UNLOGGED_BYTES_MAX = 16 * MiB
"""When partitions hold more than this for the commit log, it gets it at once."""


class Aim(IntEnum):
    """How far a partition is to come; a higher aim includes the lower ones."""

    COMMITTED = 0
    SYNCED = 1
    """In its own files: the commit log has no room, or would cost more."""
    RECOVERY_POINT = 2


class Flushed(NamedTuple):
    """How one flush went: what was wrong with the data, and with the recovery point, and how long it took."""

    error: OSError | None
    snapshot_error: OSError | None
    took_ns: int
    file_number: int = 0
    """Which file of the commit log has it."""


Work = Sequence[tuple[Partition, Flush]]


class Flusher:
    def __init__(self, threads: Threads, clock: Clock, commit_log: CommitLog, *, interval_ms: int) -> None:
        self._threads = threads
        self._clock = clock
        self._commit_log = commit_log
        self.times = RecentTimes()
        """How long flushes have taken of late."""
        self.seconds = Histogram(DISK_BOUNDS_S)
        """How long all of them have taken since the start."""
        self.recovery_points = Histogram(DISK_BOUNDS_S)
        """How long those flushes have taken that ended with a recovery point."""
        # A little earlier than promised: the fsync itself takes time too.
        self._delay_s = interval_ms / 1000 * 0.8
        self._for_log: dict[Partition, None] = {}
        """Those that a round of the commit log is to take, whoever has waited longest first."""
        self._for_files: dict[Partition, Aim] = {}
        """Those that are to reach their own files."""
        self._again: dict[Partition, Aim] = {}
        """Those that somebody waits for though a flush of them is under way: they come next."""
        self._to_sync: dict[Partition, None] = {}
        """What nobody waits for, but the commit log: it wants to use a file again."""
        self._checkpoint: asyncio.Future[list[Flushed]] | None = None
        self._dirty: dict[Partition, None] = {}
        """Those that have something which no flush has taken yet, and nobody may have asked for."""
        self._dirty_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._starting: asyncio.Handle | None = None
        self._under_way: dict[asyncio.Future[Any], int] = {}
        """Syncs of partitions' own files and the commit log's round, each with the time at which it began."""
        self._round: asyncio.Future[Flushed] | asyncio.Future[None] | None = None
        self._in_flight: set[Partition] = set()
        self._held: dict[int, dict[Partition, int]] = {}
        """Which partitions need which file of the commit log, and up to which offset they lie in it."""
        self._may_cut = False
        """Not before all partitions are open, and not while one is damaged that may still need it."""
        self._is_cutting = False
        self._upkeep: asyncio.Future[None] | None = None
        """The commit log is being cut or sealed: no round meanwhile."""

    @property
    def under_way_ns(self) -> int:
        """For how long the oldest flush that has not ended has been under way; 0 without one."""
        return self._clock.monotonic_ns() - min(self._under_way.values()) if self._under_way else 0

    def request(self, partition: Partition) -> None:
        """Flush soon: somebody waits."""
        self._want(partition, Aim.COMMITTED)

    def request_snapshot(self, partition: Partition) -> None:
        """Flush soon, and note a recovery point behind it."""
        self._want(partition, Aim.RECOVERY_POINT)

    def note_dirty(self, partition: Partition, size: int) -> None:
        """Flush within the interval: so many bytes have come."""
        self._dirty[partition] = None
        self._dirty_bytes += size
        if self._dirty_bytes > _UNLOGGED_BYTES_MAX:
            self._flush_dirty()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._flush_dirty)

    async def void(self, partition: Partition) -> None:
        """Return when the commit log never puts back what it has of a partition, which is about to be cut.

        Its own files have all of it, and no flush of it is under way. Raises OSError.
        """
        await self._keep_up(partial(self._commit_log.void, partition.folder, partition.topic_id))
        self.forget(partition)

    async def void_folder(self, folder: str, topic_id: UUID) -> None:
        """The same for a folder that nobody has open. Raises OSError."""
        await self._keep_up(partial(self._commit_log.void, folder, topic_id))

    def forget(self, partition: Partition) -> None:
        """It is gone for good, or all in its own files: the commit log need not keep anything of it."""
        self._to_sync.pop(partition, None)
        for partitions in self._held.values():
            partitions.pop(partition, None)
        self._cut_commit_log()

    def end_start(self, damaged: Sequence[Partition]) -> None:
        """All partitions are open: what the commit log held is in their own files, unless damaged."""
        self._may_cut = not any(self._commit_log.holds(partition.folder) for partition in damaged)
        self._commit_log.end_start()
        self._cut_commit_log()

    async def drain(self) -> None:
        """Flush all that is dirty and wait for it."""
        self._flush_dirty()
        while self._under_way or self._is_wanted or self._upkeep is not None:
            self._begin_all()
            if self._upkeep is not None:
                await asyncio.wait([self._upkeep])
                await asyncio.sleep(0)  # it is let go of in the next turn
            await self.wait_under_way()

    async def close(self) -> None:
        """Nothing is written any more. With all in the partitions' own files the commit log is emptied."""
        await self.wait_under_way()
        if self._may_cut and not any(self._held.values()):
            try:
                await self._keep_up(self._commit_log.clear)
            except OSError as error:
                log.warning("commit_log_not_cut reason=%s", error)  # the next start will do it

    async def seal(self) -> None:
        """Return when no failed round can be found any more. Raises OSError when that cannot be had now."""
        await self._keep_up(self._commit_log.seal)

    async def _keep_up(self, work: Callable[[], None]) -> None:
        """Do something to the commit log's files, when nobody else does."""
        while (busy := self._round or self._upkeep) is not None:
            await asyncio.wait([busy])
            await asyncio.sleep(0)  # one that is done is let go of in the next turn
        self._upkeep = self._begun(work)
        self._upkeep.add_done_callback(self._end_upkeep)
        await asyncio.shield(self._upkeep)  # whoever asked may go away: a thread is at work all the same

    def _end_upkeep(self, upkeep: "asyncio.Future[None]") -> None:
        self._upkeep = None
        self._start()

    async def wait_under_way(self) -> None:
        """Return when the flushes that are under way now have ended."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    @property
    def _is_wanted(self) -> bool:
        return bool(self._for_log or self._for_files)

    def _want(self, partition: Partition, aim: Aim) -> None:
        self._line_up(partition, aim)
        self._start()

    def _line_up(self, partition: Partition, aim: Aim) -> None:
        """Let a partition wait where it is served; a higher aim that it had stays."""
        if partition in self._in_flight:
            self._again[partition] = max(self._again.get(partition, aim), aim)
        elif partition in self._for_files:
            self._for_files[partition] = max(self._for_files[partition], aim)
        elif aim is Aim.COMMITTED:
            self._for_log[partition] = None
        else:
            self._for_log.pop(partition, None)
            self._for_files[partition] = aim

    def _flush_dirty(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._dirty:
            self._line_up(partition, Aim.COMMITTED)
        self._dirty.clear()
        self._dirty_bytes = 0
        self._start()

    def _start(self) -> None:
        # A turn later: what is asked for at the same time shares a round.
        if self._starting is None and (self._for_log or self._for_files or self._to_sync):
            self._starting = asyncio.get_running_loop().call_soon(self._begin_all)

    def _begin_all(self) -> None:
        self._starting = None
        if not self._commit_log.is_on:
            self._for_files.update(dict.fromkeys(self._for_log, Aim.SYNCED))
            self._for_log.clear()
        is_log_free = self._round is None and self._upkeep is None
        if is_log_free and self._for_log and (work := self._take_small()):
            self._begin_round(work)
        while self._for_files and self._free_workers() and (work := self._take_direct()):
            self._begin_sync(work)
        may_check = self._to_sync and self._checkpoint is None and self._free_workers()
        if may_check and (work := self._take_unwaited()):
            self._checkpoint = self._begin_sync(work)

    def _begin_round(self, work: Work) -> None:
        pieces = _pieces(work)
        needed = round_bytes(pieces)
        file = self._commit_log.write(pieces, needed) if needed <= _ON_LOOP_BYTES else None
        if file is None:
            self._round = self._begin(work, self._begun(self._commit, pieces), self._end_round)
        else:
            synced = asyncio.ensure_future(self._threads.sync(file))
            self._round = self._begin(work, synced, self._end_written)

    def _begun(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        """Have something done in a thread, without waiting for it here."""
        return asyncio.ensure_future(self._threads.run(work, *args, **kwargs))

    def _free_workers(self) -> int:
        return _WORKERS - len(self._under_way) + (self._round is not None)

    def _begin_sync(self, work: Work) -> "asyncio.Future[list[Flushed]]":
        return self._begin(work, self._begun(self._sync, [flush for _, flush in work]), self._end_syncs)

    def _begin(
        self, work: Work, under_way: "asyncio.Future[T]", end: "Callable[[Work, asyncio.Future[T]], None]"
    ) -> "asyncio.Future[T]":
        self._in_flight.update(partition for partition, _ in work)
        self._under_way[under_way] = self._clock.monotonic_ns()
        under_way.add_done_callback(partial(end, work))
        return under_way

    def _take_small(self) -> list[tuple[Partition, Flush]]:
        """What the commit log is to take in one round."""
        work: list[tuple[Partition, Flush]] = []
        room_bytes = self._commit_log.round_bytes_max
        small = self._ready_for_log()
        for partition in self._worth_logging(small):
            del self._for_log[partition]
            flush = partition.begin_logged()
            if flush.has_work:  # else the last flush has covered it
                self._dirty.pop(partition, None)
                work.append((partition, flush))
                room_bytes -= sum([len(piece.data) for piece in flush.pieces])
                if room_bytes < 0:
                    break
        if small and not work:
            self._start()  # no round will end and have those looked at who were left out
        return work

    def _ready_for_log(self) -> list[Partition]:
        """Those that have waited longest, as many as a round takes."""
        ready = list(islice(self._for_log, _ROUND_MAX))
        small = [partition for partition in ready if partition.is_small]
        if len(small) < len(ready):
            for partition in ready:
                if not partition.is_small:  # it has grown while it waited
                    self._line_up(partition, Aim.SYNCED)
        return small

    def _worth_logging(self, small: list[Partition]) -> list[Partition]:
        """Those for which a share of a round costs less than a sync of their own; the others get that."""
        bound = _LONE_BYTES + _SHARE_BYTES * (len(small) - 1)
        total = sum([partition.unlogged_bytes for partition in small])
        if total <= bound:
            return small
        small.sort(key=_unlogged_bytes)
        while small and total > bound:
            largest = small.pop()
            self._line_up(largest, Aim.SYNCED)
            total -= largest.unlogged_bytes
            bound -= _SHARE_BYTES
        return small

    def _take_direct(self) -> list[tuple[Partition, Flush]]:
        """A worker's share of what is to reach the partitions' own files."""
        work: list[tuple[Partition, Flush]] = []
        share = min(-(-len(self._for_files) // _WORKERS), _SHARE_MAX)
        for partition in list(islice(self._for_files, share)):
            flush = partition.begin_flush(with_snapshot=self._for_files.pop(partition) is Aim.RECOVERY_POINT)
            # None: it has stopped. And what was asked for during the last flush that may have covered.
            if flush is not None and flush.has_work:
                self._dirty.pop(partition, None)
                work.append((partition, flush))
        if not work:
            self._start()  # no sync will end and have those looked at who were left out
        return work

    def _take_unwaited(self) -> list[tuple[Partition, Flush]]:
        """A few of those that the commit log wants to forget."""
        work: list[tuple[Partition, Flush]] = []
        idle = (p for p in self._to_sync if p not in self._in_flight and p not in self._for_files)
        for partition in list(islice(idle, _CHECKPOINT_SHARE)):
            del self._to_sync[partition]
            self._for_log.pop(partition, None)  # whoever waits for a round has what this makes safe
            flush = partition.begin_flush(with_snapshot=False)
            if flush is not None and flush.has_work:
                work.append((partition, flush))
            elif flush is not None:
                self._let_go(partition, flush.end_offset)  # it was opened anew, and synced by that
        return work

    # A flush is over. No pause in these: one that is not told of may not be followed by the next.

    def _end_syncs(self, work: Work, under_way: "asyncio.Future[list[Flushed]]") -> None:
        """Partitions' own files were synced."""
        if under_way is self._checkpoint:
            self._checkpoint = None
        self._leave(work, under_way)
        now_ns = self._clock.monotonic_ns()
        for (partition, flush), outcome in zip(work, under_way.result(), strict=True):
            self._note_time(outcome.took_ns, now_ns)
            self._end_sync(partition, flush, outcome)
        self._cut_commit_log()
        self._start()

    def _end_round(self, work: Work, under_way: "asyncio.Future[Flushed]") -> None:
        """A thread has written a round of the commit log, or could not."""
        self._leave(work, under_way)
        self._round = None
        outcome = under_way.result()
        if outcome.error is None:
            self._end_logged(work, outcome.file_number, outcome.took_ns)
        else:
            for partition, _ in work:
                self._want(partition, Aim.SYNCED)
        self._start()

    def _end_written(self, work: Work, synced: "asyncio.Future[None]") -> None:
        """The disk has a round that was written on the loop, or refuses it."""
        begun_ns = self._leave(work, synced)
        error = synced.exception()
        if error is None:
            self._round = None
            self._end_logged(work, self._commit_log.confirm(), self._clock.monotonic_ns() - begun_ns)
            self._start()
        else:
            # A thread begins another file, which takes the same round.
            self._commit_log.give_up(error)
            self._round = self._begin(work, self._begun(self._commit, _pieces(work)), self._end_round)

    def _leave(self, work: Work, under_way: "asyncio.Future[Any]") -> int:
        """It is under way no more; when it began."""
        self._in_flight.difference_update([partition for partition, _ in work])
        if self._again:
            for partition, _ in work:
                if (aim := self._again.pop(partition, None)) is not None:
                    self._line_up(partition, aim)
        return self._under_way.pop(under_way)

    def _end_logged(self, work: Work, file_number: int, took_ns: int) -> None:
        """The commit log has it."""
        self._note_time(took_ns, self._clock.monotonic_ns())
        held = self._held.get(file_number)
        if held is None:
            held = self._held[file_number] = {}
            self._sync_older()
        for partition, flush in work:
            held[partition] = flush.end_offset
            partition.finish_flush(flush, None)

    def _end_sync(self, partition: Partition, flush: Flush, outcome: Flushed) -> None:
        partition.counters.fsyncs += 1
        if outcome.error is None:
            if flush.snapshot is not None and outcome.snapshot_error is None:
                self.recovery_points.observe(outcome.took_ns / 1e9)
            self._let_go(partition, flush.end_offset)
        partition.finish_flush(flush, outcome.error, outcome.snapshot_error)

    def _let_go(self, partition: Partition, synced_offset: int) -> None:
        """A partition needs nothing of the commit log that lies before an offset: its own files have it."""
        for partitions in self._held.values():
            if partitions.get(partition, synced_offset + 1) <= synced_offset:
                del partitions[partition]

    def _note_time(self, took_ns: int, now_ns: int) -> None:
        self.times.note(took_ns, now_ns=now_ns)
        self.seconds.observe(took_ns / 1e9)

    def _sync_older(self) -> None:
        """The commit log has begun a file: what lies in older ones is to reach the partitions' own files."""
        for partitions in self._held.values():
            for partition in partitions:
                self._to_sync[partition] = None

    def _cut_commit_log(self) -> None:
        """Let the commit log use those of its files again that nobody needs any more, oldest first."""
        if self._is_cutting or not self._may_cut:
            return
        for number in sorted(self._held)[:-1]:
            if self._held[number]:
                break
            del self._held[number]
        first_needed = min(self._held, default=self._commit_log.next_number)
        if self._commit_log.has_before(first_needed):
            self._is_cutting = True
            asyncio.ensure_future(self._cut(first_needed)).add_done_callback(self._end_cut)

    async def _cut(self, first_needed: int) -> None:
        await self._keep_up(partial(self._commit_log.cut, first_needed))

    def _end_cut(self, cut: "asyncio.Future[None]") -> None:
        self._is_cutting = False
        if not cut.cancelled() and (error := cut.exception()) is not None:
            log.warning("commit_log_not_cut reason=%s", error)

    def _commit(self, pieces: Sequence[Piece]) -> Flushed:
        """In a thread: a round of the commit log."""
        begun_ns = self._clock.monotonic_ns()
        error: OSError | None = None
        number = 0
        try:
            number = self._commit_log.commit(pieces)
        except NoRoomForRound as refusal:
            error = refusal
        except Exception as bug:
            # A bug of ours must not leave publishers waiting for ever.
            log.exception("commit_bug")
            error = OSError(EIO, repr(bug))
        return Flushed(error, None, self._clock.monotonic_ns() - begun_ns, number)

    def _sync(self, flushes: Sequence[Flush]) -> list[Flushed]:
        """In a thread: one after the other, each with its time."""
        outcomes = []
        for flush in flushes:
            begun_ns = self._clock.monotonic_ns()
            error, snapshot_error = _run_one(flush)
            outcomes.append(Flushed(error, snapshot_error, self._clock.monotonic_ns() - begun_ns))
        return outcomes


def _pieces(work: Work) -> list[Piece]:
    return [piece for _, flush in work for piece in flush.pieces]


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
