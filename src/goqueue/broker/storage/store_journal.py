"""The store of one node: what is agreed, as keys and values in the journal `__metadata`.

It keeps to the port `Store` as one of several nodes would: a change is made if its guards hold, is answered
when it is committed, and is told to those who follow then, in order. A change is checked against all that was
written before it, committed or not; if the disk takes that back, the broker ends with it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from goqueue.broker.storage.earlier_metadata import EARLIER_EVENT_TYPES, EarlierEvent, EarlierMetadata
from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.model.cluster import ABSENT, Change, Guard, Item, Loaded
from goqueue.model.errors import Compacted, GoQueueError, Outdated, Unknown
from goqueue.model.ids import TopicName

METADATA_TOPIC = TopicName("__metadata")
HISTORY_MAX = 1_000
"""So many changes are known to those who follow; whoever is further behind loads anew."""
_STATE_SHARE = 100
"""So many keys make one event where the state is written anew."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Keys that were changed together."""

    revision: int
    puts: dict[str, msgspec.Raw]
    drops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateReset:
    """Begin again from nothing: what follows is the whole state, written to keep the journal short."""


Event = Changed | StateReset | EarlierEvent
EVENTS: EventCodec[Event] = EventCodec({"Changed": Changed, "StateReset": StateReset, **EARLIER_EVENT_TYPES})


class Keys:
    """The machine of the journal: keys, their values, and the revisions of both."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.held: set[str] = set()
        """Keys of sessions, which do not outlive the process."""
        self.revision = 0
        self._earlier = EarlierMetadata()

    def apply(self, event: Event) -> None:
        match event:
            case Changed():
                self.change(event.revision, {key: bytes(raw) for key, raw in event.puts.items()}, event.drops)
            case StateReset():
                self.items.clear()
                self._earlier = EarlierMetadata()
            case _:
                self.change(self.revision + 1, *self._earlier.translate(event))

    def change(self, revision: int, puts: Mapping[str, bytes], drops: Iterable[str]) -> None:
        for key, value in puts.items():
            self.items[key] = Item(value, revision)
        for key in drops:
            self.items.pop(key, None)
        self.revision = revision

    def check(self, guards: Iterable[Guard]) -> None:
        """Refuse what rests on something that has changed."""
        for key, revision in guards:
            item = self.items.get(key)
            if revision != (ABSENT if item is None else item.revision):
                raise Outdated(key, self.revision)

    def loaded(self, prefix: str = "") -> Loaded:
        items = {key: item for key, item in self.items.items() if key.startswith(prefix)}
        return Loaded(items, self.revision)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset."""
        yield StateReset()
        lasting = ((key, item.value) for key, item in self.items.items() if key not in self.held)
        while share := dict(islice(lasting, _STATE_SHARE)):
            yield _changed(self.revision, share)


@dataclass(slots=True)
class _Pending:
    """A change that those who follow are to hear of when it is committed, and those before it."""

    change: Change
    is_committed: bool = False


class StoreJournal:
    """The port `Store` over a journal."""

    def __init__(self, partition: Partition) -> None:
        self._keys = Keys()
        self.journal: StateJournal[Event] = StateJournal(partition, self._keys, EVENTS)
        self._pending: deque[_Pending] = deque()
        self._history: deque[Change] = deque(maxlen=HISTORY_MAX)
        """The newest changes that were told, of revisions one behind the other."""
        self._news: asyncio.Future[None] | None = None
        self._sessions: list[HeldKeys] = []

    async def load(self, prefix: str) -> Loaded:
        loaded = self._keys.loaded(prefix)
        await self.journal.submit()
        return loaded

    async def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        while True:
            for change in self._told_behind(after):
                after = change.revision
                if (seen := _below(prefix, change)) is not None:
                    yield seen
            if after >= self._told_revision:
                if self._news is None:
                    self._news = asyncio.get_running_loop().create_future()
                await asyncio.shield(self._news)

    async def change(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        self._keys.check(guards)
        revision = self._keys.revision + 1
        submitted = self.journal.submit(_changed(revision, puts, drops))
        pending = _Pending(Change(revision, puts, tuple(drops)))
        self._pending.append(pending)
        committed = submitted.committed()
        if committed is None:
            self._tell(pending)
            return revision
        committed.add_done_callback(lambda done: self._tell_if_kept(pending, done))
        try:
            # Whoever asked may go away; those who follow hear of it all the same.
            await asyncio.shield(committed)
        except GoQueueError as error:
            raise Unknown(str(error)) from error
        return revision

    async def open_session(self, ttl_ms: int) -> "HeldKeys":
        session = HeldKeys(self)
        self._sessions.append(session)
        return session

    async def end_session(self, key: str, revision: int) -> None:
        self._keys.check([Guard(key, revision)])
        for session in [session for session in self._sessions if session.holds(key)]:
            await session.close()

    def forget_session(self, session: "HeldKeys") -> None:
        self._sessions.remove(session)

    def hold(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        """Change keys that do not outlive the process: a session's."""
        self._keys.check(guards)
        revision = self._keys.revision + 1
        self._keys.change(revision, puts, drops)
        self._keys.held |= puts.keys()
        self._keys.held.difference_update(drops)
        pending = _Pending(Change(revision, puts, tuple(drops)))
        self._pending.append(pending)
        self._tell(pending)
        return revision

    @property
    def _told_revision(self) -> int:
        """The revision of the newest change that those who follow may hear of."""
        return self._pending[0].change.revision - 1 if self._pending else self._keys.revision

    def _told_behind(self, after: int) -> list[Change]:
        """What was told behind a revision. Raises Compacted where not all of that is known any more."""
        missing = self._told_revision - after
        if missing > len(self._history):
            raise Compacted(after)
        return list(islice(self._history, len(self._history) - missing, None)) if missing > 0 else []

    def _tell_if_kept(self, pending: _Pending, committed: "asyncio.Future[None]") -> None:
        if not committed.cancelled() and committed.exception() is None:
            self._tell(pending)

    def _tell(self, pending: _Pending) -> None:
        pending.is_committed = True
        while self._pending and self._pending[0].is_committed:
            self._history.append(self._pending.popleft().change)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
        self._news = None


class HeldKeys:
    """The session of the one node there is: it lives as long as the process."""

    def __init__(self, store: StoreJournal) -> None:
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
        new_revision = self._store.hold([Guard(key, revision)], {key: value}, ())
        self._keys[key] = None
        return new_revision

    async def close(self) -> None:
        if not self.is_lost:
            self._ended.set()
            self._store.forget_session(self)
            self._store.hold((), {}, tuple(self._keys))


def _changed(revision: int, puts: Mapping[str, bytes], drops: Iterable[str] = ()) -> Changed:
    return Changed(revision, {key: msgspec.Raw(value) for key, value in puts.items()}, tuple(drops))


def _below(prefix: str, change: Change) -> Change | None:
    """What a change means for keys that begin so; None when it does not touch any."""
    if not prefix:
        return change
    puts = {key: value for key, value in change.puts.items() if key.startswith(prefix)}
    drops = tuple(key for key in change.drops if key.startswith(prefix))
    return Change(change.revision, puts, drops) if puts or drops else None
