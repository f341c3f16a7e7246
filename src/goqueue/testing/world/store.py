"""A simulated store: what several nodes agree on, over a network that loses answers and is late with news.

It is linearizable, as the port demands: a change is made at one moment or not at all. What chance decides is
whether its answer comes, when those who follow hear of it, and how much of the past the store still knows.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from goqueue.broker.storage.store_journal import Keys
from goqueue.model.cluster import ABSENT, Change, Guard, Item, Loaded
from goqueue.model.errors import Compacted, Outdated, StoreUnreachable, Unknown

PATIENCE_S = 1.0
"""So long a question waits for a store that is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFaults:
    """How often things go wrong, and how late they may be."""

    lost_questions: float = 0.0
    """Questions that never reach the store: of changes nobody hears whether they were made."""
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
        self._sessions: list[SimulatedSession] = []
        self._news = asyncio.Event()
        self._back = asyncio.Event()
        self._back.set()

    def go_away(self) -> None:
        """Answer nobody until `come_back`."""
        self._back.clear()

    def come_back(self) -> None:
        self._back.set()

    def peek(self, prefix: str) -> Mapping[str, Item]:
        """What is there now, for whoever drives a simulation."""
        return self._keys.loaded(prefix).items

    def compact(self) -> None:
        """Forget how the present state came about."""
        self._history.clear()
        self._compacted = self._keys.revision

    async def load(self, prefix: str) -> Loaded:
        await self._travel()
        if self._chance.random() < self.faults.lost_questions:
            raise StoreUnreachable((), "the question was lost")
        loaded = self._keys.loaded(prefix)
        await self._travel()
        return loaded

    async def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        while True:
            await self._back.wait()
            await self._take_its_time()
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

    async def change(
        self,
        guards: Sequence[Guard],
        puts: Mapping[str, bytes],
        drops: Sequence[str],
        session: "SimulatedSession | None" = None,
    ) -> int:
        try:
            await self._travel()
        except StoreUnreachable as error:
            raise Unknown(str(error)) from error
        if self._chance.random() < self.faults.lost_questions:
            raise Unknown("the question was lost")
        if session is not None and session.is_lost:
            raise Unknown("the session is over")
        self._keys.check(guards)
        revision = self._make(puts, drops)
        await self._answer()
        return revision

    async def open_session(self, ttl_ms: int) -> "SimulatedSession":
        await self._travel()
        session = SimulatedSession(self)
        self._sessions.append(session)
        return session

    async def end_session(self, key: str, revision: int) -> None:
        await self._travel()
        if self._chance.random() < self.faults.lost_questions:
            raise Unknown("the question was lost")
        self._keys.check([Guard(key, revision)])
        for session in [session for session in self._sessions if session.holds(key)]:
            session.end()
        await self._answer()

    def forget_session(self, session: "SimulatedSession", keys: Sequence[str]) -> None:
        """A session's keys go with it."""
        self._sessions.remove(session)
        self._make({}, keys)

    def _make(self, puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        revision = self._keys.revision + 1
        self._keys.change(revision, puts, drops)
        self._history.append(Change(revision, dict(puts), tuple(drops)))
        self._news.set()
        return revision

    async def _answer(self) -> None:
        """Of a change that is made."""
        try:
            await self._travel()
        except StoreUnreachable as error:
            raise Unknown("it went away behind the change") from error
        if self._chance.random() < self.faults.lost_answers:
            raise Unknown("the answer was lost")

    async def _travel(self) -> None:
        """Be carried to the store or back. Whoever finds it away does not wait for long, as with etcd."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._back.wait()
        except TimeoutError:
            raise StoreUnreachable((), "it is away") from None
        await self._take_its_time()

    async def _take_its_time(self) -> None:
        late_ms = self._chance.uniform(0, self.faults.late_ms) if self.faults.late_ms else 0
        await asyncio.sleep(late_ms / 1000)


class SimulatedSession:
    """A session that lives until it is closed, or a test ends it."""

    def __init__(self, store: SimulatedStore) -> None:
        self._store = store
        self._keys: dict[str, None] = {}
        self._ended = asyncio.Event()
        self.is_doubtful = False

    @property
    def is_lost(self) -> bool:
        return self._ended.is_set()

    def holds(self, key: str) -> bool:
        return key in self._keys

    async def ended(self) -> None:
        await self._ended.wait()

    async def hold(self, key: str, value: bytes, revision: int = ABSENT) -> int:
        was_held = key in self._keys
        self._keys[key] = None
        try:
            return await self._store.change([Guard(key, revision)], {key: value}, (), self)
        except Outdated:
            if not was_held:
                del self._keys[key]
            raise

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """The store no longer believes that whoever opened it is alive."""
        if not self.is_lost:
            self._ended.set()
            self._store.forget_session(self, tuple(self._keys))
