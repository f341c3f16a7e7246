"""Stores on a real etcd, each with keys of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from random import Random

from goqueue.node.etcd.store import EtcdStore

_roots = count()


@asynccontextmanager
async def opened(*endpoints: str, root: str = "") -> AsyncIterator[EtcdStore]:
    store = EtcdStore(endpoints, root=root or f"/goqueue/test-{next(_roots)}/", chance=Random(1))
    try:
        yield store
    finally:
        await store.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)
