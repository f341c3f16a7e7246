"""A consumer that waits for messages is stopped by somebody else: another thread, another task, a signal."""

import asyncio
import signal
import threading
import time

import pytest

from goqueue.client import AsyncGoQueue, GoQueue, Invalid
from tests.doors.http.running_door import RunningDoor

SOON_S = 10.0
"""Far less than the 20 s for which an iteration's poll waits."""


def member_count(queue: GoQueue, group: str) -> int:
    """How many members a group has; one that is gone has none."""
    return sum(one.members for one in queue.groups.list() if one.id == group)


def wait_for_member(queue: GoQueue, group: str) -> None:
    """Until the consumer has joined, so that its next request is the poll that waits."""
    deadline = time.monotonic() + SOON_S
    while not member_count(queue, group):
        assert time.monotonic() < deadline, "nobody joined"


def test_another_thread_ends_an_iteration(door: RunningDoor, topic: str) -> None:
    with GoQueue(door.url) as queue:
        consumer = queue.consumer(topic, group=f"{topic}-thread")
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.extend(consumer))
        thread.start()
        wait_for_member(queue, f"{topic}-thread")
        consumer.close()
        thread.join(SOON_S)

        assert not thread.is_alive()
        assert seen == []
        assert member_count(queue, f"{topic}-thread") == 0
        with pytest.raises(Invalid, match="closed"):
            consumer.poll()


def test_a_signal_handler_ends_an_iteration_of_its_own_thread(door: RunningDoor, topic: str) -> None:
    def interrupt() -> None:
        wait_for_member(queue, f"{topic}-signal")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    thread = threading.Thread(target=interrupt)
    started = time.monotonic()
    with GoQueue(door.url) as queue, queue.consumer(topic, group=f"{topic}-signal") as consumer:
        before = signal.signal(signal.SIGUSR1, lambda *_: consumer.stop())
        try:
            thread.start()
            assert list(consumer) == []
            assert consumer.poll(wait=20) == []
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)

    assert time.monotonic() - started < SOON_S
    with GoQueue(door.url) as queue:
        assert member_count(queue, f"{topic}-signal") == 0


def test_another_task_ends_an_iteration(door: RunningDoor, topic: str) -> None:
    async def story() -> None:
        async with AsyncGoQueue(door.url) as queue:
            consumer = queue.consumer(topic, group=f"{topic}-task")

            async def iterate() -> list[object]:
                return [message async for message in consumer]

            iterating = asyncio.create_task(iterate())
            while not any(one.id == f"{topic}-task" and one.members for one in await queue.groups.list()):
                pass
            await consumer.close()

            assert await asyncio.wait_for(iterating, SOON_S) == []
            # A group that has polled is remembered, without members.
            assert not any(one.members for one in await queue.groups.list() if one.id == f"{topic}-task")

    asyncio.run(story())


def test_what_comes_to_a_poll_that_was_cancelled_is_for_the_next_one(door: RunningDoor, topic: str) -> None:
    async def story() -> None:
        async with AsyncGoQueue(door.url) as queue:
            async with queue.consumer(topic, group=f"{topic}-left") as consumer:
                await consumer.poll()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(consumer.poll(limit=5, wait=20), 0.05)
                assert await consumer.poll(wait=0) == []
                for text in ("a", "b"):
                    await queue.publish(topic, text, partition=0)
                [first] = await consumer.poll(limit=1, wait=SOON_S)
                assert (first.text, first.delivery_count) == ("a", 1)
                await first.ack()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(consumer.poll(limit=5, wait=20), 0)
            async with queue.consumer(topic, group=f"{topic}-left") as consumer:
                [second] = await consumer.poll(wait=SOON_S)
                assert second.text == "b"
                await second.ack()
            assert (await queue.groups.describe(f"{topic}-left")).members == []

    asyncio.run(story())


def test_a_task_that_is_cancelled_while_it_polls_ends(door: RunningDoor, topic: str) -> None:
    async def story() -> None:
        async with (
            AsyncGoQueue(door.url) as queue,
            queue.consumer(topic, group=f"{topic}-cancel") as consumer,
        ):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.poll(wait=20), 0.05)
            # And the consumer is as good as before.
            await queue.publish(topic, "a")
            [message] = await consumer.poll(wait=5)
            await message.ack(wait=True)

    asyncio.run(story())
