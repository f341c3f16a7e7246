"""What is handed to a thread comes back to whoever waits, also when it fails or nobody waits any more."""

import asyncio
import threading
import weakref
from collections.abc import Iterator

import pytest

from goqueue.node.threads import WorkerThreads


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    threads = WorkerThreads(count=2)
    yield threads
    threads.close()


class Gate:
    """Work that goes on until it is let through."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.thread: threading.Thread | None = None
        self._open = threading.Event()

    def pass_through(self, value: str) -> str:
        self.thread = threading.current_thread()
        self.has_begun.set()
        assert self._open.wait(10)
        return value

    def open(self) -> None:
        self._open.set()

    async def begun(self) -> None:
        while not self.has_begun.is_set():
            await asyncio.sleep(0)


def test_work_is_done_in_another_thread_and_its_result_comes_back(threads: WorkerThreads) -> None:
    async def main() -> tuple[int, str]:
        return await threads.run(threading.get_ident), await threads.run("{}-{b}".format, "a", b="b")

    ident, text = asyncio.run(main())

    assert ident != threading.get_ident()
    assert text == "a-b"


def test_a_failure_comes_back_to_whoever_waits_and_the_thread_goes_on(threads: WorkerThreads) -> None:
    async def main() -> int:
        with pytest.raises(ValueError, match="invalid literal"):
            await threads.run(int, "x")
        return await threads.run(int, "7")

    assert asyncio.run(main()) == 7


def test_a_thread_is_started_only_when_all_others_are_busy(threads: WorkerThreads) -> None:
    gate = Gate()

    async def main() -> tuple[set[int], int, str]:
        alone = {await threads.run(threading.get_ident) for _ in range(5)}
        held = asyncio.ensure_future(threads.run(gate.pass_through, "held"))
        await gate.begun()
        beside = await threads.run(threading.get_ident)
        gate.open()
        return alone, beside, await held

    alone, beside, held = asyncio.run(main())

    assert len(alone) == 1
    assert beside not in alone
    assert held == "held"


def test_work_goes_to_the_thread_that_was_busy_last(threads: WorkerThreads) -> None:
    gate = Gate()

    async def main() -> tuple[int, set[int]]:
        held = asyncio.ensure_future(threads.run(gate.pass_through, "held"))
        await gate.begun()
        last = await threads.run(threading.get_ident)
        gate.open()
        await held
        assert gate.thread is not None
        assert gate.thread.ident != last
        return gate.thread.ident or 0, {await threads.run(threading.get_ident) for _ in range(5)}

    busy_last, idents = asyncio.run(main())

    assert idents == {busy_last}


def test_what_finds_all_threads_busy_is_done_in_its_turn_also_while_they_close() -> None:
    threads = WorkerThreads(count=1)
    gate = Gate()
    done: list[int] = []

    async def main() -> None:
        held = threads.run(gate.pass_through, "held")
        waiting = [threads.run(done.append, number) for number in range(3)]
        await gate.begun()
        gate.open()
        threads.close()
        await asyncio.gather(held, *waiting)

    asyncio.run(main())

    assert done == [0, 1, 2]


def test_what_is_given_up_before_a_thread_is_free_is_not_done() -> None:
    threads = WorkerThreads(count=1)
    gate = Gate()
    done: list[str] = []

    async def main() -> str:
        held = asyncio.ensure_future(threads.run(gate.pass_through, "held"))
        await gate.begun()
        given_up = asyncio.ensure_future(threads.run(done.append, "given up"))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        gate.open()
        await threads.run(done.append, "after")
        return await held

    assert asyncio.run(main()) == "held"
    assert done == ["after"]
    threads.close()


def test_closing_waits_for_what_was_begun_and_takes_nothing_more() -> None:
    threads = WorkerThreads(count=1)
    gate = Gate()

    async def begin_and_leave() -> None:
        asyncio.ensure_future(threads.run(gate.pass_through, "unheard"))  # noqa: RUF006  # given up on purpose
        await gate.begun()

    asyncio.run(begin_and_leave())
    # The loop is closed by now; the thread finds nobody to tell, and ends as it should.
    gate.open()
    threads.close()

    assert gate.thread is not None
    assert not gate.thread.is_alive()
    with pytest.raises(RuntimeError):
        asyncio.run(work_done(threads))


async def work_done(threads: WorkerThreads) -> None:
    await threads.run(int)


def test_an_idle_thread_holds_on_to_nothing(threads: WorkerThreads) -> None:
    class Large:
        pass

    async def main() -> "weakref.ref[Large]":
        return weakref.ref(await threads.run(Large))

    seen = asyncio.run(main())
    # Work behind it shows that the thread has let go of what came before.
    asyncio.run(work_done(threads))

    assert seen() is None
