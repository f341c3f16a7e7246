"""Work outlives whoever asked for it, and its failure then disturbs nobody."""

import asyncio
import gc
import logging
from random import Random
from typing import Any

import pytest

from goqueue.broker.to_the_end import to_the_end
from goqueue.model.errors import GoQueueError, TopicNotFound
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.running import running


def test_the_failure_of_a_change_that_nobody_waits_for_any_more_is_no_complaint() -> None:
    complaints: list[dict[str, Any]] = []

    async def life() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        go_on = asyncio.Event()

        async def change() -> None:
            await go_on.wait()
            raise TopicNotFound("gone")

        async with running(SimulatedDisk(Random(1))) as broker:
            asking = asyncio.create_task(broker.carry_out(change()))
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            go_on.set()
            while broker.changes:
                await asyncio.sleep(0)
            gc.collect()

    asyncio.run(life())

    assert complaints == []


@pytest.mark.parametrize(
    ("error", "is_told"), [(TopicNotFound("gone"), False), (RuntimeError("a bug"), True)]
)
def test_only_a_bug_is_told_to_the_log(
    error: Exception, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def life() -> None:
        work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(to_the_end(work))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not work.done()
        work.set_exception(error)
        await asyncio.sleep(0)

    asyncio.run(life())

    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert bool(told) is is_told


def test_whoever_still_waits_hears_how_it_ended() -> None:
    async def life() -> None:
        work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(to_the_end(work))
        await asyncio.sleep(0)
        work.set_exception(TopicNotFound("gone"))
        with pytest.raises(GoQueueError):
            await waiting

    asyncio.run(life())
