"""What every store must do, whatever it stands on: a suite that each of them runs.

A test module makes a subclass of `StoreConformance` with its own `opened`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import pytest

from goqueue.model.cluster import ABSENT, Change, Guard
from goqueue.model.errors import Outdated
from goqueue.model.ports import Store

T = TypeVar("T")


async def held(store: Store, prefix: str = "") -> dict[str, bytes]:
    return {key: item.value for key, item in (await store.load(prefix)).items.items()}


async def next_of(news: AsyncIterator[Change]) -> Change:
    async with asyncio.timeout(10):
        return await anext(news)


class StoreConformance:
    def opened(self) -> AbstractAsyncContextManager[Store]:
        """A store without anything in it."""
        raise NotImplementedError

    def walk(self, work: Callable[[Store], Awaitable[T]]) -> T:
        async def open_and_work() -> T:
            async with self.opened() as store:
                return await work(store)

        return asyncio.run(open_and_work())

    def test_what_was_put_is_loaded_and_what_was_dropped_is_not(self) -> None:
        async def work(store: Store) -> None:
            await store.change([], {"a/1": b"1", "a/2": b"2", "b/1": b"3"}, [])
            await store.change([], {"a/2": b"20"}, ["a/1"])
            assert await held(store) == {"a/2": b"20", "b/1": b"3"}
            assert await held(store, "a/") == {"a/2": b"20"}
            assert await held(store, "c") == {}

        self.walk(work)

    def test_revisions_grow_and_a_key_has_that_of_its_last_change(self) -> None:
        async def work(store: Store) -> None:
            first = await store.change([], {"a": b"1", "b": b"1"}, [])
            second = await store.change([], {"b": b"2"}, [])
            loaded = await store.load("")
            assert 0 < first < second == loaded.revision
            assert {key: item.revision for key, item in loaded.items.items()} == {"a": first, "b": second}

        self.walk(work)

    def test_a_change_is_made_only_where_its_guards_hold(self) -> None:
        async def work(store: Store) -> None:
            first = await store.change([Guard("a", ABSENT)], {"a": b"1"}, [])
            second = await store.change([Guard("a", first)], {"a": b"2", "b": b"1"}, [])
            for guards in ([Guard("a", first)], [Guard("a", ABSENT)], [Guard("c", second)]):
                with pytest.raises(Outdated) as refused:
                    await store.change([Guard("b", second), *guards], {"a": b"3", "d": b"1"}, ["b"])
                assert refused.value.revision == second
            assert await held(store) == {"a": b"2", "b": b"1"}

        self.walk(work)

    def test_a_key_that_was_dropped_is_absent_and_comes_back_with_another_revision(self) -> None:
        async def work(store: Store) -> None:
            first = await store.change([], {"a": b"1"}, [])
            await store.change([Guard("a", first)], {}, ["a"])
            again = await store.change([Guard("a", ABSENT)], {"a": b"1"}, [])
            with pytest.raises(Outdated):
                await store.change([Guard("a", first)], {"a": b"2"}, [])
            await store.change([Guard("a", again)], {"a": b"2"}, [])

        self.walk(work)

    def test_of_several_who_want_the_same_one_gets_it(self) -> None:
        async def work(store: Store) -> None:
            async def take(at: int) -> bool:
                try:
                    await store.change([Guard("a", ABSENT)], {"a": b"%d" % at}, [])
                except Outdated:
                    return False
                return True

            taken = await asyncio.gather(*(take(at) for at in range(20)))
            assert taken.count(True) == 1
            assert await held(store) == {"a": b"%d" % taken.index(True)}

        self.walk(work)

    def test_whoever_follows_hears_of_all_that_comes_behind_a_revision_in_order(self) -> None:
        async def work(store: Store) -> None:
            await store.change([], {"a": b"0"}, [])
            after = (await store.load("")).revision
            revisions = [await store.change([], {"a": b"%d" % at}, ["b"]) for at in range(1, 5)]
            news = store.follow("", after)
            found = [await next_of(news) for _ in range(4)]
            late = asyncio.ensure_future(next_of(news))
            last = await store.change([], {"c": b"1"}, [])
            found.append(await late)
            assert [change.revision for change in found] == [*revisions, last]
            assert [dict(change.puts) for change in found[:4]] == [{"a": b"%d" % at} for at in range(1, 5)]
            assert dict(found[4].puts) == {"c": b"1"}

        self.walk(work)

    def test_whoever_follows_a_prefix_hears_of_nothing_else(self) -> None:
        async def work(store: Store) -> None:
            after = (await store.load("")).revision
            news = store.follow("a/", after)
            await store.change([], {"b/1": b"1"}, [])
            await store.change([], {"a/1": b"1", "b/1": b"2"}, [])
            await store.change([], {"b/2": b"1"}, ["a/1"])
            first, second = await next_of(news), await next_of(news)
            assert (dict(first.puts), first.drops) == ({"a/1": b"1"}, ())
            assert (dict(second.puts), second.drops) == ({}, ("a/1",))

        self.walk(work)

    def test_several_follow_without_taking_from_each_other(self) -> None:
        async def work(store: Store) -> None:
            after = (await store.load("")).revision
            followers = [store.follow("", after) for _ in range(3)]
            waiting = [asyncio.ensure_future(next_of(news)) for news in followers]
            await asyncio.sleep(0)
            revision = await store.change([], {"a": b"1"}, [])
            assert [(await found).revision for found in waiting] == [revision] * 3

        self.walk(work)

    def test_load_and_follow_make_the_same_picture_as_load_alone(self) -> None:
        async def work(store: Store) -> None:
            for at in range(5):
                await store.change([], {f"k{at}": b"%d" % at}, [])
            loaded = await store.load("")
            picture = {key: item.value for key, item in loaded.items.items()}
            for at in range(3, 8):
                await store.change([], {f"k{at}": b"%d0" % at}, [f"k{at - 3}"])
            news = store.follow("", loaded.revision)
            for _ in range(5):
                change = await next_of(news)
                picture |= change.puts
                for key in change.drops:
                    picture.pop(key, None)
            assert picture == await held(store)

        self.walk(work)

    def test_what_a_session_holds_goes_with_it(self) -> None:
        async def work(store: Store) -> None:
            session = await store.open_session(ttl_ms=2_000)
            revision = await session.hold("nodes/1", b'{"rack":1}')
            assert (await store.load("nodes/")).items["nodes/1"] == (b'{"rack":1}', revision)
            other = await store.open_session(ttl_ms=2_000)
            with pytest.raises(Outdated):
                await other.hold("nodes/1", b"2")
            await other.close()
            assert not session.is_lost
            news = store.follow("nodes/", revision)
            await session.close()
            assert (await next_of(news)).drops == ("nodes/1",)
            assert session.is_lost
            assert await held(store) == {}

        self.walk(work)

    def test_a_held_key_is_changed_by_its_session_and_goes_with_it_all_the_same(self) -> None:
        async def work(store: Store) -> None:
            session = await store.open_session(ttl_ms=2_000)
            first = await session.hold("states/1", b'"starting"')
            second = await session.hold("states/1", b'"ready"', first)
            assert second > first
            with pytest.raises(Outdated):
                await session.hold("states/1", b'"draining"', first)
            assert await held(store) == {"states/1": b'"ready"'}
            await session.close()
            assert await held(store) == {}

        self.walk(work)

    def test_a_session_is_ended_by_another_who_knows_what_it_holds(self) -> None:
        async def work(store: Store) -> None:
            session, other = await store.open_session(ttl_ms=2_000), await store.open_session(ttl_ms=2_000)
            first = await session.hold("nodes/1", b"1")
            second = await session.hold("nodes/1", b"2", first)
            kept = await other.hold("nodes/2", b"2")
            with pytest.raises(Outdated):
                await store.end_session("nodes/1", first)
            assert not session.is_lost
            await store.end_session("nodes/1", second)
            assert await held(store) == {"nodes/2": b"2"}
            async with asyncio.timeout(10):
                await session.ended()
            assert (session.is_lost, other.is_lost) == (True, False)
            with pytest.raises(Outdated):
                await store.end_session("nodes/1", second)
            assert (await store.load("nodes/")).items["nodes/2"].revision == kept

        self.walk(work)
