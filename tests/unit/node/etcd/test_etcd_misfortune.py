"""etcd that is killed, hangs, forgets, or gives a session up: what the store makes of it."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from goqueue.model.cluster import Guard
from goqueue.model.errors import Compacted, Outdated, StoreUnreachable, Unknown
from goqueue.node.etcd.calls import Stream
from goqueue.node.etcd.store import EtcdStore
from goqueue.proto.etcd import rpc_pb2 as rpc
from tests.etcd_member import EtcdMember, free_address, running_member
from tests.unit.broker.storage.store_conformance import held, next_of
from tests.unit.node.etcd.running import answered, opened, until

pytestmark = pytest.mark.slow


@pytest.fixture
def member(tmp_path: Path) -> Iterator[EtcdMember]:
    with running_member(tmp_path) as started:
        yield started


async def took_s(failing: Coroutine[None, None, object]) -> float:
    begun_s = asyncio.get_running_loop().time()
    with pytest.raises((StoreUnreachable, Unknown)):
        await failing
    return asyncio.get_running_loop().time() - begun_s


def test_where_nobody_listens_that_is_told_within_seconds() -> None:
    async def walk() -> None:
        endpoint = free_address()
        async with opened(endpoint, is_there=False) as store:
            with pytest.raises(StoreUnreachable, match=endpoint):
                await store.load("")
            assert await took_s(store.change([], {"a": b"1"}, [])) < 3
            assert await took_s(store.open_session(ttl_ms=2_000)) < 3

    asyncio.run(walk())


def test_members_that_are_not_there_are_passed_over(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(free_address(), member.endpoint, free_address()) as store:
            revision = await store.change([], {"a": b"1"}, [])
            assert (await store.load("")).items["a"] == (b"1", revision)

    asyncio.run(walk())


def test_a_member_that_hangs_is_left_for_one_that_answers(member: EtcdMember, tmp_path: Path) -> None:
    """Two members that know nothing of each other: what is read tells who answered."""
    (tmp_path / "other").mkdir()
    with running_member(tmp_path / "other") as other:

        async def walk() -> None:
            async with opened(member.endpoint, root="/t/") as store:
                await store.change([], {"who": b"member"}, [])
            async with opened(other.endpoint, root="/t/") as store:
                await store.change([], {"who": b"other"}, [])
            async with opened(member.endpoint, other.endpoint, root="/t/") as store:
                first = (await held(store))["who"]
                (member if first == b"member" else other).hang()
                assert (await held(store))["who"] != first

        try:
            asyncio.run(walk())
        finally:
            member.go_on()
            other.go_on()


def test_a_change_that_gets_no_answer_is_unknown_and_one_can_look_later(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store:
            first = await store.change([], {"a": b"1"}, [])
            member.hang()
            assert await took_s(store.change([Guard("a", first)], {"a": b"2"}, [])) < 3
            member.go_on()
            # It was on its way: whether it was made is told by looking, and by nothing else.
            found = (await store.load("")).items["a"]
            assert found.value in (b"1", b"2")
            await store.change([Guard("a", found.revision)], {"a": b"3"}, [])

    asyncio.run(walk())


@pytest.mark.parametrize("fault", ["kill", "hang"])
def test_whoever_follows_misses_nothing_and_hears_nothing_twice(member: EtcdMember, fault: str) -> None:
    async def change_until(store: EtcdStore, done: asyncio.Event) -> list[int]:
        revisions: list[int] = []
        while not done.is_set():
            try:
                revisions.append(await store.change([], {"a": b"%d" % len(revisions)}, []))
            except Unknown:
                item = (await answered(store)).items.get("a")
                if item is not None and item.revision not in revisions:
                    revisions.append(item.revision)
        return revisions

    async def walk() -> None:
        async with opened(member.endpoint) as store, opened(member.endpoint, root="/goqueue/f/") as writer:
            seen: list[int] = []

            async def follow() -> None:
                async with opened(member.endpoint, root="/goqueue/f/") as follower:
                    async for change in follower.follow("", 0):
                        seen.append(change.revision)  # noqa: PERF401 # others look at it meanwhile

            async def heard_more(than: int) -> None:
                await until(lambda: len(seen) > than + 20)

            done = asyncio.Event()
            following = asyncio.ensure_future(follow())
            changing = asyncio.ensure_future(change_until(writer, done))
            for _ in range(3):
                await heard_more(len(seen))
                if fault == "kill":
                    await asyncio.to_thread(member.kill)
                    await asyncio.to_thread(member.start)
                else:
                    member.hang()
                    await took_s(store.load(""))
                    member.go_on()
            done.set()
            revisions = await changing
            await until(lambda: bool(seen) and seen[-1] >= revisions[-1])
            following.cancel()
            assert seen == sorted(set(seen))
            assert set(revisions) <= set(seen)
            if fault == "kill":  # what hangs may be made later, when nobody looks any more
                assert set(seen) == set(revisions)

    asyncio.run(walk())


def test_a_watch_that_grpc_neither_begins_nor_ends_is_begun_anew(
    member: EtcdMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, hanging = Stream.write, [True]

    async def write_or_hang(stream: Stream[Any, Any], request: Any) -> None:
        if isinstance(request, rpc.WatchRequest) and hanging:
            hanging.pop()
            await asyncio.Event().wait()
        await write(stream, request)

    monkeypatch.setattr(Stream, "write", write_or_hang)

    async def walk() -> None:
        async with opened(member.endpoint) as store:
            revision = await store.change([], {"a": b"1"}, [])
            changes = store.follow("", 0)
            assert (await asyncio.wait_for(anext(changes), 10)).revision == revision
            await changes.aclose()  # type: ignore[attr-defined]  # it is a generator

    asyncio.run(walk())
    assert not hanging


def test_a_follower_whose_past_is_gone_is_told_so(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store:
            first = await store.change([], {"a": b"1"}, [])
            for at in range(5):
                last = await store.change([], {"a": b"%d" % at}, [])
            await asyncio.to_thread(member.compact, last)
            with pytest.raises(Compacted):
                await next_of(store.follow("", first))
            loaded = await store.load("")
            news = store.follow("", loaded.revision)
            revision = await store.change([], {"a": b"7"}, [])
            assert (await next_of(news)).revision == revision

    asyncio.run(walk())


def test_a_follower_that_was_cut_off_while_its_past_was_forgotten_is_told_so(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint, root="/c/") as store:
            first = await store.change([], {"a": b"1"}, [])
            news = store.follow("", first - 1)
            assert (await next_of(news)).revision == first
            waiting = asyncio.ensure_future(next_of(news))
            await asyncio.to_thread(member.kill)
            await asyncio.to_thread(member.start)
            # Before the watch is back, as far as chance allows: then it hears of the changes instead.
            async with opened(member.endpoint, root="/c/") as other:
                for at in range(3):
                    last = await other.change([], {"a": b"%d" % at}, [])
                await asyncio.to_thread(member.compact, last)
            try:
                assert (await waiting).revision > first
            except Compacted:
                assert (await store.load("")).items["a"].revision == last

    asyncio.run(walk())


def test_a_session_outlives_an_etcd_that_is_away_and_is_doubtful_meanwhile(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store:
            session = await store.open_session(ttl_ms=1_000)
            revision = await session.hold("nodes/1", b"1")
            assert not session.is_doubtful
            await asyncio.to_thread(member.kill)
            await until(lambda: session.is_doubtful)
            assert not session.is_lost
            await asyncio.to_thread(member.start)
            await until(lambda: not session.is_doubtful)
            assert not session.is_lost
            assert (await store.load("")).items["nodes/1"].revision == revision
            await session.close()

    asyncio.run(walk())


def test_a_session_that_nobody_keeps_alive_ends_and_the_others_hear_of_it(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint, root="/s/") as store:
            async with opened(member.endpoint, root="/s/") as dead:
                session = await dead.open_session(ttl_ms=1_000)
                revision = await session.hold("nodes/1", b"1")
            # The connection is gone, and with it every keep-alive: as if the node had lost its power.
            session._keeping.cancel()
            news = store.follow("nodes/", revision)
            assert (await next_of(news)).drops == ("nodes/1",)

    asyncio.run(walk())


def test_whoever_sleeps_through_his_session_learns_that_it_is_lost(member: EtcdMember) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store, opened(member.endpoint) as other:
            session = await store.open_session(ttl_ms=1_000)
            await session.hold("nodes/1", b"1")
            keeping, session._keeping = session._keeping, asyncio.ensure_future(asyncio.sleep(0))
            keeping.cancel()
            while await held(store):
                await other.load("")
            assert session.is_doubtful
            assert not session.is_lost, "nobody has told it yet"
            session._keeping = asyncio.ensure_future(session._keep_alive())
            async with asyncio.timeout(10):
                await session.ended()
            with pytest.raises((Outdated, Unknown)):
                await session.hold("nodes/1", b"1")
            assert await held(store) == {}

    asyncio.run(walk())


def test_an_etcd_that_may_lose_what_it_confirmed_is_warned_of(
    member: EtcdMember, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def walk() -> None:
        async with opened(member.endpoint) as store:
            for _ in range(2):
                await (await store.open_session(ttl_ms=1_000)).close()

    def lines() -> list[str]:
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            asyncio.run(walk())
        return [record.message for record in caplog.records]

    monkeypatch.setattr("goqueue.node.etcd.store._SAFE_VERSION", (3, 99, 0))
    assert lines() == ["etcd_version_unsafe"]
    monkeypatch.setattr("goqueue.node.etcd.store._SAFE_VERSION", (3, 5, 1))
    assert lines() == []
