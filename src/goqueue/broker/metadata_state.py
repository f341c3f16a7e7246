"""The broker's image of what is agreed, and the one way to change that.

The image is loaded from the store once, and then follows it. A change is decided on the image, made by the
store if nothing it rests on has changed, and seen here when the store tells of it: whoever made it returns
behind that. So one node works as one of several does.
"""

import asyncio
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from goqueue.core.access.events import Event
from goqueue.core.access.tenants import Tenants
from goqueue.core.access.values import tenant_dropped, tenant_put, usage_put
from goqueue.core.cluster.metadata import Metadata
from goqueue.model.cluster import Change, Loaded, Step
from goqueue.model.errors import (
    Compacted,
    GoQueueError,
    Outdated,
    StorageFailed,
    StoreUnreachable,
    Unknown,
)
from goqueue.model.ids import TopicName
from goqueue.model.ports import Store

T = TypeVar("T")
TRIES_MAX = 10
"""So often a step is decided on anew when others were quicker."""
_PAUSE_S = 0.5

_TOGETHER_S = 0.02
"""Most changes are of records, and none of the business of who holds partitions or reads them from afar."""
_TOGETHER_S_EACH = 10e-6
"""For each partition, where they are very many: about five times as long as a look takes."""


class Image(Protocol):
    """What somebody makes of a part of the store. Keys of others come by, too."""

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""

    def put(self, key: str, value: bytes) -> None: ...

    def drop(self, key: str) -> None: ...


class Agreement:
    def __init__(
        self, store: Store, metadata: Metadata, tenants: Tenants, images: Sequence[Image] = ()
    ) -> None:
        """`images`: what else follows the store."""
        self._store = store
        self._metadata = metadata
        self._tenants = tenants
        self._images = images
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """Who waits for which revision, in that order; the number keeps futures from being compared."""
        self._waited = 0
        self._following: asyncio.Task[None] | None = None
        self._stopped: GoQueueError | None = None
        self.on_topics_gone: Callable[[list[TopicName]], None] = lambda _: None
        """Called in the turn in which the image loses topics, so that nobody sees one without the other."""
        self.on_tenants_changed: Callable[[], None] = lambda: None
        self.listeners: list[Callable[[], None]] = []
        """Called whenever the image has changed."""

    @property
    def together_s(self) -> float:
        """What changes within this is looked at together, by those who then look at all partitions."""
        return max(_TOGETHER_S, _TOGETHER_S_EACH * len(self._metadata.records))

    async def load(self) -> None:
        """Begin with what the store holds."""
        self._take_whole(await self._store.load(""))

    def begin_following(self, on_failure: Callable[[str], None]) -> None:
        """Keep the image true from now on; `on_failure` hears why that could not go on."""

        def tell(task: "asyncio.Task[None]") -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.stop(StorageFailed(f"what is agreed cannot be followed any more: {error!r}"))
                on_failure(repr(error))

        self._following = asyncio.get_running_loop().create_task(self._follow())
        self._following.add_done_callback(tell)

    def stop(self, error: GoQueueError) -> None:
        """Follow no longer: `error` is what those hear who wait for the image, or will."""
        if self._following is not None:
            self._following.cancel()
        self._stopped = error
        for _, _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(error)
        self._waiting.clear()

    async def _follow(self) -> None:
        while True:
            try:
                async for change in self._store.follow("", self._metadata.revision):
                    self._take(change)
            except Compacted:
                await self._load_anew()

    async def _load_anew(self) -> None:
        while True:
            try:
                return await self.load()
            except StoreUnreachable:
                await asyncio.sleep(_PAUSE_S)  # a store that is away comes back

    async def make(self, decide: Callable[[], Step[T]]) -> T:
        """Make a change, decided on anew when what it rests on has changed meanwhile.

        `decide` looks at the image, and raises what the caller is to hear. Raises Outdated when others were
        quicker all the time, and Unknown when nobody can be asked whether it was made.
        """
        failed: Outdated | Unknown
        for _ in range(TRIES_MAX):
            step = decide()
            try:
                revision = await self._store.change(step.guards, step.puts, step.drops)
            except Outdated as outdated:
                failed = outdated
                await self.reached(outdated.revision)
            except Unknown as unknown:
                failed = unknown
                try:
                    loaded = await self._store.load("")
                except StoreUnreachable:
                    raise unknown from None  # it may have been made: who hears otherwise does it again
                await self.reached(loaded.revision)
                if _is_made(step, loaded):
                    return step.value
            else:
                await self.reached(revision)
                return step.value
        raise failed

    async def reached(self, revision: int) -> None:
        """Return when the image is not older than a revision."""
        if revision > self._metadata.revision:
            if self._stopped is not None:
                raise self._stopped
            waiter = asyncio.get_running_loop().create_future()
            self._waited += 1
            insort(self._waiting, (revision, self._waited, waiter))
            await waiter

    def _take(self, change: Change) -> None:
        gone = self._metadata.follow(change)
        events: list[Event | None] = [tenant_put(key, value) for key, value in change.puts.items()]
        events += [tenant_dropped(key) for key in change.drops]
        for event in events:
            if event is not None:
                self._tenants.apply(event)
        for image in self._images:
            for key, value in change.puts.items():
                image.put(key, value)
            for key in change.drops:
                image.drop(key)
        if gone:
            self.on_topics_gone(gone)
        if any(events):
            self.on_tenants_changed()
        self._wake()

    def _take_whole(self, loaded: Loaded) -> None:
        there = set(self._metadata.topics)
        self._metadata.load(loaded)
        self._tenants.load(
            [put for key, item in loaded.items.items() if (put := tenant_put(key, item.value)) is not None],
            [use for key, item in loaded.items.items() if (use := usage_put(key, item.value)) is not None],
        )
        for image in self._images:
            image.load({key: item.value for key, item in loaded.items.items()})
        if gone := sorted(there.difference(self._metadata.topics)):
            self.on_topics_gone(gone)
        self.on_tenants_changed()
        self._wake()

    def _wake(self) -> None:
        for listener in self.listeners:
            listener()
        while self._waiting and self._waiting[0][0] <= self._metadata.revision:
            _, _, waiter = self._waiting.pop(0)
            if not waiter.done():
                waiter.set_result(None)


def _is_made(step: Step[T], loaded: Loaded) -> bool:
    """Whether a change of which no answer came was made: then all that it put stands there as it put it."""
    items = loaded.items
    return all(key in items and items[key].value == value for key, value in step.puts.items()) and not any(
        key in items for key in step.drops
    )
