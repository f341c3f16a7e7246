"""The store as one node of several sees it: what is agreed by all, and what is about its own folder alone.

A broker keeps some things under keys of the store that only its own folder is about: which journals have
begun, how often it has started, what it has counted for tenants. With several nodes each has these below
`local/{node}/`, and sees its own under their short names and nobody else's.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from goqueue.core.access.usage_hours import USAGE_HOURS
from goqueue.core.access.values import USAGE
from goqueue.core.cluster.values import FOLDER, STARTS
from goqueue.model.cluster import Change, Guard, Loaded, NodeId
from goqueue.model.ports import Session, Store

LOCAL = "local/"


class NodeStore:
    """The port `Store` over that of the cluster."""

    def __init__(self, store: Store, node: NodeId) -> None:
        self._store = store
        self._own = f"{LOCAL}{node}/"

    async def load(self, prefix: str) -> Loaded:
        loaded = await self._store.load("" if self._is_split(prefix) else self._outer(prefix))
        items = {name: item for key, item in loaded.items.items() if (name := self._inner(key)) is not None}
        return Loaded(
            {name: item for name, item in items.items() if name.startswith(prefix)}, loaded.revision
        )

    async def follow(self, prefix: str, after: int) -> AsyncIterator[Change]:
        """Changes of others alone are told as changes of nothing to who follows everything: time goes on."""
        async for change in self._store.follow("" if self._is_split(prefix) else self._outer(prefix), after):
            puts = {
                name: value
                for key, value in change.puts.items()
                if (name := self._seen(key, prefix)) is not None
            }
            drops = tuple(name for key in change.drops if (name := self._seen(key, prefix)) is not None)
            if puts or drops or not prefix:
                yield Change(change.revision, puts, drops)

    async def change(self, guards: Sequence[Guard], puts: Mapping[str, bytes], drops: Sequence[str]) -> int:
        return await self._store.change(
            [Guard(self._outer(key), revision) for key, revision in guards],
            {self._outer(key): value for key, value in puts.items()},
            [self._outer(key) for key in drops],
        )

    async def open_session(self, ttl_ms: int) -> Session:
        return await self._store.open_session(ttl_ms)

    async def end_session(self, key: str, revision: int) -> None:
        await self._store.end_session(key, revision)

    async def forget_folder(self) -> None:
        """The folder is a new one: nothing of what is known of the one before holds."""
        loaded = await self._store.load(self._own)
        for keys in _shares(sorted(loaded.items)):
            guards = [Guard(key, loaded.items[key].revision) for key in keys]
            await self._store.change(guards, {}, keys)

    def _seen(self, key: str, prefix: str) -> str | None:
        name = self._inner(key)
        return name if name is not None and name.startswith(prefix) else None

    def _inner(self, key: str) -> str | None:
        """What a key is called here; None: it is another node's own."""
        if not key.startswith(LOCAL):
            return None if _is_local(key) else key
        return key.removeprefix(self._own) if key.startswith(self._own) else None

    def _outer(self, name: str) -> str:
        return self._own + name if _is_local(name) else name

    def _is_split(self, prefix: str) -> bool:
        """Whether keys of both kinds begin so."""
        return any(
            local.startswith(prefix) and local != prefix for local in (FOLDER, STARTS, USAGE, USAGE_HOURS)
        )


def _is_local(name: str) -> bool:
    return name == STARTS or name.startswith((FOLDER, USAGE, USAGE_HOURS))


def _shares(keys: Sequence[str], size: int = 100) -> Iterable[Sequence[str]]:
    return (keys[at : at + size] for at in range(0, len(keys), size))
