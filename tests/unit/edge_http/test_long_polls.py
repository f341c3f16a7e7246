"""A read that waits: what ends it, and what it gives then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from litestar.types import Scope

from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.transport.caller import CALLER, Caller
from goqueue.edge.http.transport.flow import Flow, LazyEvent, Pipeline


class Read:
    """A read that waits without end, and says how it was asked."""

    def __init__(self) -> None:
        self.asked_ms: list[int] = []
        self.waits = asyncio.Event()

    async def __call__(self, wait_ms: int) -> str:
        self.asked_ms.append(wait_ms)
        if wait_ms:
            self.waits.set()
            await asyncio.Event().wait()
        return "nothing"


def new_caller() -> Caller:
    return Caller(Flow(asyncio.Transport()))


class Waiting:
    """A request in which a read waits."""

    def __init__(self) -> None:
        self.polls = LongPolls()
        self.caller = new_caller()
        self.read = Read()
        scope = cast(Scope, {CALLER: self.caller})
        self.request = asyncio.ensure_future(self.polls.hold(self.read, 1_000, scope))


def told(act: Callable[[Waiting], Awaitable[None]]) -> None:
    async def main() -> None:
        waiting = Waiting()
        await waiting.read.waits.wait()
        await act(waiting)

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_read_whose_client_hangs_up_is_asked_again_without_waiting() -> None:
    async def act(waiting: Waiting) -> None:
        waiting.caller.hang_up()
        waiting.polls.end()

        assert await waiting.request == "nothing"
        assert waiting.read.asked_ms == [1_000, 0]
        assert waiting.request.cancelling() == 0

    told(act)


def test_a_closing_door_ends_every_wait_and_lets_none_begin() -> None:
    async def act(waiting: Waiting) -> None:
        waiting.polls.end()

        assert await waiting.request == "nothing"
        assert await waiting.polls.hold(waiting.read, 1_000, cast(Scope, {})) == "nothing"
        assert waiting.read.asked_ms == [1_000, 0, 0]

    told(act)


def test_a_request_that_is_given_up_as_a_whole_stays_given_up() -> None:
    async def act(waiting: Waiting) -> None:
        waiting.polls.end()
        waiting.request.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting.request
        assert waiting.read.asked_ms == [1_000]

    told(act)


def test_nothing_waits_for_a_client_that_has_gone_already() -> None:
    async def main() -> None:
        caller, read = new_caller(), Read()
        caller.hang_up()

        assert await LongPolls().hold(read, 1_000, cast(Scope, {CALLER: caller})) == "nothing"
        assert read.asked_ms == [0]

    asyncio.run(main())


def test_an_event_made_late_wakes_all_who_wait_for_it() -> None:
    async def main() -> None:
        event = LazyEvent()
        waiting = [asyncio.ensure_future(event.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        event.set()
        await asyncio.gather(*waiting)
        await event.wait()
        event.clear()
        again = asyncio.ensure_future(event.wait())
        await asyncio.sleep(0)
        assert not again.done()
        event.set()
        await again

    asyncio.run(asyncio.wait_for(main(), 10))


def test_requests_leave_the_pipeline_in_the_order_they_came() -> None:
    pipeline = Pipeline()
    pipeline.appendleft("first")
    pipeline.appendleft("second")

    assert (pipeline.pop(), pipeline.pop(), bool(pipeline)) == ("first", "second", False)
