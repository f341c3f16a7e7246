"""Helper processes: jobs done, stopped at their limits, lost with their process; and none left behind."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from goqueue.model.errors import JobLost, JobOverran, ShuttingDown, WorkshopBusy
from goqueue.model.settings import WorkshopConfig
from goqueue.node import workshop_bench
from goqueue.node.threads import WorkerThreads
from goqueue.node.workshop import WorkshopProcesses
from tests.unit.broker.running import until
from tests.unit.node import workshop_jobs as jobs

pytestmark = pytest.mark.slow
QUICK = WorkshopConfig(process_count=1, job_limit_ms=200)


@pytest.fixture(autouse=True)
def _jobs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper process knows nothing of how tests are run."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@asynccontextmanager
async def workshop(config: WorkshopConfig = QUICK) -> AsyncIterator[WorkshopProcesses]:
    threads = WorkerThreads(count=2)
    made = WorkshopProcesses(config, threads)
    try:
        yield made
    finally:
        await made.close()
        threads.close()
        assert helpers() == []


def helpers() -> list[int]:
    """Helper processes of this one that are there, dead ones that nobody has looked at included."""
    return [child.pid for child in psutil.Process().children() if "workshop_bench" in " ".join(_words(child))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline() or ["workshop_bench (dead)"]
    except psutil.Error:
        return []


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_process_serves_the_next_job_too_when_the_broker_is_large() -> None:
    async def test() -> None:
        ballast = b"x" * (QUICK.memory_bytes * 3 // 4)
        async with workshop() as made:
            first = await made.run(jobs.process_id, b"", whose="a")

            assert await made.run(jobs.process_id, b"", whose="a") == first
        assert ballast

    run(test())


def test_a_process_is_started_for_the_first_job_and_serves_the_next() -> None:
    async def test() -> None:
        async with workshop() as made:
            assert made.process_count == 0

            first = await made.run(jobs.process_id, b"", whose="a")
            large = b"x" * 3_000_000

            assert await made.run(jobs.process_id, b"", whose="a") == first
            assert await made.run(jobs.echo, large, whose="a") == large
            assert [int(first)] == helpers()

    run(test())


def test_a_process_without_work_is_let_go() -> None:
    async def test() -> None:
        async with workshop(WorkshopConfig(idle_ms=1)) as made:
            await made.run(jobs.echo, b"", whose="a")

            await until(lambda: made.process_count == 0 and not helpers())

    run(test())


@pytest.mark.parametrize("job", [jobs.spin, jobs.spin_in_c, jobs.wait_for_ever])
def test_a_job_that_does_not_end_is_ended_and_the_next_is_done(job: Any) -> None:
    async def test() -> None:
        async with workshop() as made:
            with pytest.raises(JobOverran):
                await made.run(job, b"", whose="a")

            assert await made.run(jobs.echo, b"yes", whose="a") == b"yes"
            assert (made.counts.overran, made.counts.done) == (1, 1)

    run(test())


@pytest.mark.parametrize("job", [jobs.eat_memory, jobs.crash])
def test_a_job_that_asks_for_too_much_or_brings_its_process_down_is_refused(job: Any) -> None:
    async def test() -> None:
        async with workshop() as made:
            with pytest.raises(JobOverran):
                await made.run(job, b"", whose="a")

            assert await made.run(jobs.echo, b"yes", whose="a") == b"yes"

    run(test())


def test_a_job_that_raises_does_not_hurt_the_process() -> None:
    async def test() -> None:
        async with workshop() as made:
            process = await made.run(jobs.process_id, b"", whose="a")

            with pytest.raises(JobLost, match="ValueError: not so"):
                await made.run(jobs.fail, b"", whose="a")

            assert await made.run(jobs.process_id, b"", whose="a") == process

    run(test())


@pytest.mark.parametrize("is_at_work", [True, False])
def test_a_process_that_somebody_kills_is_replaced(is_at_work: bool) -> None:
    async def test() -> None:
        async with workshop(WorkshopConfig(process_count=1)) as made:
            process = int(await made.run(jobs.process_id, b"", whose="a"))
            if is_at_work:
                job = asyncio.ensure_future(made.run(jobs.wait_for_ever, b"", whose="a"))
                await asyncio.sleep(0)
                os.kill(process, signal.SIGKILL)
                with pytest.raises(JobLost, match="ended with code -9"):
                    await job
            else:
                os.kill(process, signal.SIGKILL)
                await until(lambda: not psutil.pid_exists(process) or _is_dead(process))
                await asyncio.sleep(0.01)  # the loop hears of the socket's end

            assert await made.run(jobs.echo, b"yes", whose="a") == b"yes"

    run(test())


def _is_dead(process: int) -> bool:
    return psutil.Process(process).status() == psutil.STATUS_ZOMBIE


def test_no_more_wait_than_may_and_who_hangs_up_gives_its_place_back() -> None:
    async def test() -> None:
        async with workshop(WorkshopConfig(process_count=1, waiting_max=1, job_limit_ms=300)) as made:
            busy = asyncio.ensure_future(made.run(jobs.spin, b"", whose="a"))
            waiting = asyncio.ensure_future(made.run(jobs.echo, b"", whose="a"))
            await until(lambda: made.waiting_count == 1)

            with pytest.raises(WorkshopBusy):
                await made.run(jobs.echo, b"", whose="b")
            waiting.cancel()
            await until(lambda: made.waiting_count == 0)
            third = asyncio.ensure_future(made.run(jobs.echo, b"third", whose="b"))

            with pytest.raises(JobOverran):
                await busy
            assert await third == b"third"

    run(test())


def test_a_job_does_not_wait_for_ever_for_its_turn() -> None:
    async def test() -> None:
        async with workshop(WorkshopConfig(process_count=1, wait_ms=50)) as made:
            await made.run(jobs.echo, b"", whose="a")
            busy = asyncio.ensure_future(made.run(jobs.spin, b"", whose="a"))
            await asyncio.sleep(0)

            with pytest.raises(WorkshopBusy):
                await made.run(jobs.echo, b"", whose="b")

            assert made.waiting_count == 0
            busy.cancel()

    run(test())


def test_who_asks_for_much_does_not_keep_others_waiting_for_all_of_it() -> None:
    async def test() -> None:
        done: list[str] = []

        async def ask(made: WorkshopProcesses, whose: str) -> None:
            await made.run(jobs.echo, b"", whose=whose)
            done.append(whose)

        async with workshop() as made:
            await asyncio.gather(*(ask(made, whose) for whose in ["much"] * 5 + ["little"]))

        assert done.index("little") <= 2

    run(test())


def test_closing_ends_a_job_at_once_and_those_that_wait_hear_of_it() -> None:
    async def test() -> None:
        async with workshop(WorkshopConfig(process_count=1, job_limit_ms=60_000)) as made:
            await made.run(jobs.echo, b"", whose="a")
            under_way = [asyncio.ensure_future(made.run(jobs.spin, b"", whose="a")) for _ in range(3)]
            await until(lambda: made.waiting_count == 2)

            await made.close()

            assert [type(each) for each in await asyncio.gather(*under_way, return_exceptions=True)] == [
                ShuttingDown
            ] * 3
            with pytest.raises(ShuttingDown):
                await made.run(jobs.echo, b"", whose="a")

    run(test())


def test_whoever_asks_and_goes_away_does_not_cost_the_process() -> None:
    async def test() -> None:
        async with workshop() as made:
            process = await made.run(jobs.process_id, b"", whose="a")
            gone = asyncio.ensure_future(made.run(jobs.echo, b"", whose="a"))
            await asyncio.sleep(0)
            gone.cancel()

            assert await made.run(jobs.process_id, b"", whose="a") == process

    run(test())


def test_a_process_whose_broker_was_killed_ends_without_a_word() -> None:
    ours, theirs = socket.socketpair()
    numbers = [theirs.fileno(), 2**31, os.getpid()]
    words = [sys.executable, "-m", workshop_bench.__name__, *map(str, numbers)]
    with subprocess.Popen(words, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE) as process:
        theirs.close()
        select.select([ours], [], [], 30)
        # What it has said is unread, so that it hears of a reset and not of an end.
        ours.close()
        _, complaints = process.communicate(timeout=30)

    assert (process.returncode, complaints) == (0, b"")
