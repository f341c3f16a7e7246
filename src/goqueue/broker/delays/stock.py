"""What falls due soon, at hand: entries of the next minute, and the messages of the next second.

It is a copy of what the disk holds, made ahead of time so that nobody waits for a disk when a message is due.
It can be given up and made anew at any time.
"""

from heapq import heappop, heappush
from typing import NamedTuple

from goqueue.broker.delays.records import NEW, Waiting
from goqueue.broker.delays.store import DelayStore
from goqueue.core.delays.entries import rows
from goqueue.core.delays.near import BEGINNING, ENTRIES_MAX, Near

LOAD_AHEAD_MS = 60_000
FETCH_AHEAD_MS = 1_000
_FETCH_MAX = 10_000
_FETCH_BYTES = 32 * 1024 * 1024


class Ready(NamedTuple):
    """A message at hand, in the order of delivery."""

    due_ms: int
    offset: int
    target: int
    waiting: Waiting


class Stock:
    def __init__(self, store: DelayStore) -> None:
        self._store = store
        self._near = Near()
        self._ready: list[Ready] = []
        self._reach_ms = BEGINNING
        """Everything pending that is due by then is at hand, or being fetched."""
        self._fetched_ms = BEGINNING
        """The same, and fetched."""
        self._resets = 0

    def __len__(self) -> int:
        return len(self._near) + len(self._ready)

    @property
    def next_ready_ms(self) -> int | None:
        """When the next message at hand is due."""
        return self._ready[0].due_ms if self._ready else None

    @property
    def next_near_ms(self) -> int | None:
        """When the next one is due that is not at hand."""
        return self._near.next_due_ms

    def add(self, record: Waiting, offset: int, target: int) -> bool:
        """A new message; whether it is kept at hand because it is due so soon."""
        due_ms = record.due_ms
        if due_ms > self._reach_ms:
            self._near.offer((due_ms, offset, target))
            return False
        waiting = record._replace(number=offset) if record.number == NEW else record
        heappush(self._ready, Ready(due_ms, offset, target, waiting))
        return True

    def take(self, now_ms: int) -> Ready | None:
        """The next message that is due, if all before it are at hand too."""
        if self._ready and self._ready[0].due_ms <= min(now_ms, self._fetched_ms):
            return heappop(self._ready)
        return None

    def put_back(self, item: Ready) -> None:
        heappush(self._ready, item)

    def reset(self) -> None:
        """Forget everything and begin again from the disk."""
        self._resets += 1
        self._near.clear()
        self._ready.clear()
        self._reach_ms = self._fetched_ms = BEGINNING

    async def load(self, now_ms: int) -> None:
        """Bring the entries of what falls due within the next minute from the disk."""
        store, near = self._store, self._near
        while near.horizon_ms < now_ms + LOAD_AHEAD_MS // 2 and len(near) < ENTRIES_MAX:
            from_ms, fresh_end, resets = near.horizon_ms, store.fresh.end, self._resets
            found, horizon_ms = await store.threads.run(
                store.page, store.parts(), from_ms, now_ms + LOAD_AHEAD_MS, ENTRIES_MAX
            )
            if resets != self._resets or near.horizon_ms != from_ms or store.fresh.dropped > fresh_end:
                continue  # something has changed; or what came meanwhile went into a run that was not read
            # What came while the disk was read.
            fresh = rows(store.fresh.entries(fresh_end))
            found += (row for row in fresh if from_ms <= row[0] < horizon_ms)
            near.extend(found, horizon_ms=horizon_ms)

    async def fetch(self, now_ms: int) -> None:
        """Bring the messages that fall due within the next second from the log."""
        store, limit_ms = self._store, now_ms + FETCH_AHEAD_MS
        while self._reach_ms < min(limit_ms, self._near.horizon_ms - 1):
            taken, reach_ms = self._near.take(limit_ms, self._fetch_count())
            self._reach_ms = reach_ms
            resets = self._resets
            wanted = [row for row in taken if not store.is_dead(row[1])]
            if wanted:
                try:
                    found = await store.threads.run(store.read, sorted(row[1] for row in wanted))
                except BaseException:
                    self.reset()
                    raise
                if resets != self._resets:
                    continue
                for due_ms, offset, target in wanted:
                    if offset in found:
                        heappush(self._ready, Ready(due_ms, offset, target, found[offset]))
            self._fetched_ms = reach_ms

    def _fetch_count(self) -> int:
        """How many messages to fetch at a time, so that large ones do not fill the memory."""
        log = self._store.journal.partition.log
        average_bytes = log.size_bytes // max(log.end_offset - log.start_offset, 1) + 1
        return min(_FETCH_BYTES // average_bytes + 1, _FETCH_MAX)
