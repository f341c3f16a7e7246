"""The upkeep of the delays: fresh entries go into runs, runs into one, and what is done with is cleared away.

One step at a time: all are called from the keeper's own task. Each leaves the old files in place until a
checkpoint speaks of the new ones.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from goqueue.broker.delays.runs import InMemory, Run, SortedEntries, kept, unsorted, walk
from goqueue.broker.delays.store import DelayStore
from goqueue.core.delays.entries import Entries
from goqueue.core.delays.near import BEGINNING
from goqueue.log.partition_log import storage_error
from goqueue.model.ports import P, T


class DelayUpkeep:
    def __init__(self, store: DelayStore) -> None:
        self._store = store

    @property
    def is_full(self) -> bool:
        """Whether the fresh entries should go into a run."""
        return len(self._store.fresh) >= self._store.config.fresh_max

    async def write_run(self) -> None:
        """Put the fresh entries into a run."""
        count, end_offset = len(self._store.fresh), self._store.journal.end_offset
        if count:
            part = InMemory(self._store.fresh.entries())
            run = await self._in_thread(self._store.run_files.write, walk([part], from_due_ms=BEGINNING))
            self._store.runs.append(run)
            self._store.fresh.drop(count)
        self._store.entries_offset = end_offset
        await self._store.checkpoint()

    async def merge_runs(self) -> None:
        """Keep the runs few: put the small ones among the newest into one."""
        if len(self._store.runs) <= self._store.config.runs_max:
            return
        first = len(self._store.runs) - 1
        total = self._store.runs[first].entry_count
        while first > 0 and self._store.runs[first - 1].entry_count < 2 * total:
            first -= 1
            total += self._store.runs[first].entry_count
        await self._merge(self._store.runs[min(first, len(self._store.runs) - 2) :])

    def is_wasteful(self) -> bool:
        """Whether much of what is stored is done with."""
        stored = len(self._store.fresh) + sum(run.entry_count for run in self._store.runs)
        pending = self._store.targets.pending
        wasted = stored - pending
        wasted_bytes = self._store.journal.partition.log.size_bytes * wasted // max(stored, 1)
        return (
            wasted > max(pending, self._store.config.wasted_entries_max)
            or wasted_bytes > self._store.config.wasted_bytes_max
        )

    def is_sparse(self) -> bool:
        """Whether a few far-off messages hold a log of many others that are done with."""
        partition_log = self._store.journal.partition.log
        pending = self._store.targets.pending
        is_large = partition_log.size_bytes > self._store.config.wasted_bytes_max
        return is_large and 4 * pending < partition_log.end_offset - partition_log.start_offset

    def lowest(self, parts: Sequence[SortedEntries], count: int) -> list[int]:
        """The first offsets in the older half of the log at which something pending lies. Waits for the disk.

        What is written anew lies in the other half, so that it is not written again before much else is.
        """
        partition_log = self._store.journal.partition.log
        middle_offset = (partition_log.start_offset + partition_log.end_offset) // 2
        lowest = np.empty(0, dtype=np.int64)
        for piece in kept(unsorted(parts), self._store.is_live):
            older = piece["offset"][piece["offset"] < middle_offset]
            lowest = np.sort(np.concatenate([lowest, older]))[:count]
        return list(lowest.tolist())

    async def reclaim(self) -> None:
        """Drop the entries of what is done, and the part of the log that none of the others needs."""
        # The journal keeps all that is needed to do without the checkpoint, should that be lost. What it
        # tells of deliveries speaks of messages before it, and may go where they are gone; but where there
        # is no checkpoint at all, a target that it does not speak of is one that has got nothing.
        self._store.journal.submit(*self._store.schedules.whole_state())
        if self._store.is_shared:
            noted = map(self._store.note, self._store.noted_targets())
            self._store.journal.submit(*noted, *self._store.noted_marks())
        await self.write_run()
        live_offset = (
            await self._merge(list(self._store.runs)) if self._store.runs else self._store.entries_offset
        )
        start_offset = min(live_offset, self._store.entries_offset)
        partition_log = self._store.journal.partition.log
        if start_offset > partition_log.start_offset:
            await self._store.journal.drop_before(start_offset)
            self._store.dead.remove_range(0, start_offset)
            self._store.moved = {
                number: offset for number, offset in self._store.moved.items() if offset >= start_offset
            }

    async def _merge(self, runs: list[Run]) -> int:
        """One run for several, without what is done; returns the lowest offset in it."""
        lowest = self._store.entries_offset

        def pieces() -> Iterator[Entries]:
            nonlocal lowest
            live = kept(
                walk(runs, from_due_ms=BEGINNING), lambda piece: self._store.is_live(piece, confirmed=True)
            )
            for piece in live:
                lowest = min(lowest, int(piece["offset"].min()))
                yield piece

        merged = await self._in_thread(self._store.run_files.write, pieces())
        at = self._store.runs.index(runs[0])
        self._store.runs[at : at + len(runs)] = [merged] if merged.entry_count else []
        await self._store.checkpoint()
        await self._in_thread(self._store.run_files.remove, runs if merged.entry_count else [*runs, merged])
        return lowest

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._store.threads.run(work, *args, **kwargs)
        except OSError as error:
            raise storage_error(error, "runs of delayed messages") from error
