"""Stores on a real etcd, each with keys of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random

from goqueue.model.cluster import Loaded
from goqueue.model.errors import StoreUnreachable
from goqueue.node.config_etcd import OPEN_ACCESS, EtcdAccess
from goqueue.node.etcd.store import EtcdStore

_roots = count()


@asynccontextmanager
async def opened(
    *endpoints: str, root: str = "", is_there: bool = True, access: EtcdAccess = OPEN_ACCESS
) -> AsyncIterator[EtcdStore]:
    """A store that has answered once, if it is there: on a busy machine the first call may come too late."""
    store = EtcdStore(
        endpoints, root=root or f"/goqueue/test-{next(_roots)}/", chance=Random(1), access=access
    )
    try:
        if is_there:
            await answered(store)
        yield store
    finally:
        await store.close()


async def answered(store: EtcdStore) -> Loaded:
    """What a store holds, once it answers."""
    async with asyncio.timeout(20):
        while True:
            with suppress(StoreUnreachable):
                return await store.load("")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)
