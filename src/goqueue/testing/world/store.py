"""A simulated store: what several nodes agree on, over a network that loses answers and is late with news.

It is linearizable, as the port demands: a change is made at one moment or not at all. What chance decides is
whether its answer comes, when those who follow hear of it, and how much of the past the store still knows.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from goqueue.broker.storage.store_journal import Keys
from goqueue.model.cluster import ABSENT, Change, Guard, Loaded
from goqueue.model.errors import Compacted, Outdated, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaults:
    """How often things go wrong, and how late they may be."""

    lost_questions: float = 0.0
    """Changes that never reach the store, of which nobody hears."""
    lost_answers: float = 0.0
    """Changes that are made, of which nobody hears."""
    late_ms: int = 0
    """A call, and a piece of news, may take so long."""


class SimulatedStore:
    def __init__(self, chance: Random, faults: StoreFaults | None = None) -> None:
        self._chance = chance
        self.faults = faults or StoreFaults()
        self._keys = Keys()
        self._history: list[Change] = []
        self._compacted = 0
        self._news = asyncio.Event()
        self._back = asyncio.Event()
        self._back.set()

    def go_away(self) -> None:
        """Answer nobody until `come_back`."""
        self._back.clear()

    def come_back(self) -> None:
        self._back.set()

    def compact(self) -> None:
        """Forget how the present state came about."""
        self._history.clear()
        self._compacted = self._keys.revision

    async def load(self, prefix: str) -> Loaded:
        await self._travel()
        loaded = self._keys.loaded(prefix)
        await self._travel()
        return loaded

    async def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        while True:
            await self._travel()
            if after < self._compacted:
                raise Compacted(after)
            for change in [change for change in self._history if change.revision > after]:
                after = change.revision
                puts = {key: value for key, value in change.puts.items() if key.startswith(prefix)}
                drops = tuple(key for key in change.drops if key.startswith(prefix))
                if puts or drops:
                    yield Change(change.revision, puts, drops)
            if after >= self._keys.revision:
                self._news.clear()
                await self._news.wait()

    async def change(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        await self._travel()
        if self._chance.random() < self.faults.lost_questions:
            raise Unknown("the question was lost")
        self._keys.check(guards)
        revision = self._make(puts, drops)
        await self._travel()
        if self._chance.random() < self.faults.lost_answers:
            raise Unknown("the answer was lost")
        return revision

    async def open_session(self, ttl_ms: int) -> "SimulatedSession":
        await self._travel()
        return SimulatedSession(self)

    def drop_held(self, keys: Sequence[str]) -> None:
        """A session's keys go with it."""
        self._make({}, keys)

    def _make(self, puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        revision = self._keys.revision + 1
        self._keys.change(revision, puts, drops)
        self._history.append(Change(revision, dict(puts), tuple(drops)))
        self._news.set()
        return revision

    async def _travel(self) -> None:
        await self._back.wait()
        late_ms = self._chance.uniform(0, self.faults.late_ms) if self.faults.late_ms else 0
        await asyncio.sleep(late_ms / 1000)


class SimulatedSession:
    """A session that lives until it is closed, or a test ends it."""

    def __init__(self, store: SimulatedStore) -> None:
        self._store = store
        self._keys: list[str] = []
        self.is_lost = False
        self.is_doubtful = False

    async def hold(self, key: str, value: bytes) -> int:
        self._keys.append(key)
        try:
            return await self._store.change([Guard(key, ABSENT)], {key: value}, ())
        except Outdated:
            self._keys.remove(key)
            raise

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """The store no longer believes that whoever opened it is alive."""
        if not self.is_lost:
            self.is_lost = True
            self._store.drop_held(self._keys)
