"""The store as one node sees it: all that is agreed, and of what is local its own alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from goqueue.broker.cluster.node_store import NodeStore
from goqueue.model.cluster import NodeId
from goqueue.model.ports import Store
from goqueue.testing.world.store import SimulatedStore
from tests.unit.broker.storage.store_conformance import StoreConformance, held, next_of


class TestNodeStore(StoreConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        yield NodeStore(SimulatedStore(Random(1)), NodeId("a"))


def test_each_node_has_its_own_of_what_is_about_its_folder() -> None:
    async def walk() -> None:
        shared = SimulatedStore(Random(1))
        a, b = NodeStore(shared, NodeId("a")), NodeStore(shared, NodeId("b"))
        news = b.follow("", 0)
        await a.change([], {"starts": b"1", "folder/journals/x": b"1", "usage/t": b"1", "topics/1": b"1"}, [])
        await b.change([], {"starts": b"2", "names/y": b"2"}, [])
        common = {"topics/1": b"1", "names/y": b"2"}
        assert await held(a) == {
            "starts": b"1", "folder/journals/x": b"1", "usage/t": b"1", **common,
        }  # fmt: skip
        assert await held(b) == {"starts": b"2", **common}
        assert await held(b, "folder/") == {}
        assert await held(a, "folder/") == {"folder/journals/x": b"1"}
        assert dict((await next_of(news)).puts) == {"topics/1": b"1"}
        assert dict((await next_of(news)).puts) == {"starts": b"2", "names/y": b"2"}
        last = await a.change([], {}, ["folder/journals/x"])
        assert (await next_of(news)) == (last, {}, ()), "it is told how far the store is"
        await a.forget_folder()
        assert await held(a) == common
        assert await held(b) == {"starts": b"2", **common}

    asyncio.run(walk())
