"""Producers when replies are lost, late or wrong: each message is stored once, and its future knows it."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from goqueue.client import AsyncGoQueue, Busy, GoQueue, Invalid, Refused, Unavailable
from goqueue.client.errors import NobodyAnswers, UnreadableReply
from tests.doors.http.running_door import RunningDoor
from tests.unit.client.conftest import RunAt
from tests.unit.client.scripted_node import (
    BUSY,
    HANG_UP,
    PATIENCE_S,
    Answer,
    Asked,
    ScriptedNode,
    before,
    cut,
    held,
    nobody,
    refused,
    said,
    scripted,
)

pytestmark = pytest.mark.usefixtures("at_once")

Meddle = Callable[[Asked, Answer], Answer]


def losing(*which: int, by: Callable[[Answer], Answer] = lambda answer: HANG_UP) -> Meddle:
    """The replies to these requests that bring batches are lost: 1 is the first."""
    seen: list[Asked] = []

    def meddle(asked: Asked, answer: Answer) -> Answer:
        if asked.path != "/batches":
            return answer
        seen.append(asked)
        return by(answer) if len(seen) in which else answer

    return meddle


@pytest.mark.parametrize(
    "by",
    [
        lambda answer: HANG_UP,
        lambda answer: cut(answer, after_bytes=30),
        lambda answer: cut(answer, after_bytes=60),
        lambda answer: BUSY,
        lambda answer: refused(429, "busy", retry_after_ms=1),
    ],
    ids=["no reply", "in its head", "in its body", "503", "429"],
)
def test_a_batch_whose_reply_is_lost_is_stored_once(
    run_at: RunAt, door: RunningDoor, topic: str, by: Callable[[Answer], Answer]
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(batch_count=2, linger_ms=60_000) as producer:
            futures = [await producer.send(topic, f"{number}", partition=0) for number in range(6)]
        assert [(await future).offset for future in futures] == list(range(6))
        assert [one.text async for one in queue.read(topic, 0)] == [f"{number}" for number in range(6)]

    with scripted(before(door.url, losing(1, 2, 4, by=by))) as node:
        run_at([node.address], body)

        bodies = [asked.body for asked in node.of("/batches")]
        assert len(bodies) == 6
        # The same bytes with the same numbers, until there is an answer.
        assert bodies[0] == bodies[1] == bodies[2] != bodies[3] == bodies[4] != bodies[5]


def test_batches_of_several_partitions_are_stored_once_when_their_reply_is_lost(
    run_at: RunAt, door: RunningDoor, topic: str
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=60_000) as producer:
            futures = [await producer.send(topic, f"{number}", partition=number % 3) for number in range(9)]
        assert [(await future).offset for future in futures] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert (await queue.topics.describe(topic)).total_messages == 9

    with scripted(before(door.url, losing(1))) as node:
        run_at([node.address], body)


def test_who_gives_up_does_not_know_and_what_follows_is_of_another_producer(
    run_at: RunAt, door: RunningDoor, topic: str
) -> None:
    is_well = threading.Event()

    def meddle(asked: Asked, answer: Answer) -> Answer:
        return answer if asked.path != "/batches" or is_well.is_set() else HANG_UP

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0) as producer:
            lost = await producer.send(topic, "perhaps", partition=0)
            with pytest.raises(NobodyAnswers):
                await lost
            is_well.set()
            placed = await (await producer.send(topic, "surely", partition=0))
        # The first is stored, for only its reply was lost; nobody was told so.
        assert placed.offset == 1
        assert [one.text async for one in queue.read(topic, 0)] == ["perhaps", "surely"]

    with scripted(before(door.url, meddle)) as node:
        run_at([node.address], body, retry_for_s=0)

        assert len(node.of("/producers/init")) == 2


def test_a_node_that_is_replaced_by_an_empty_one_is_told_by_the_future(run_at: RunAt, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0) as producer:
            future = await producer.send(topic, "a")
            with pytest.raises(Refused, match="does not exist"):
                await future

    gone = refused(404, "topic_not_found", f"topic {topic} does not exist")
    with scripted(lambda asked: gone) as node:
        run_at([node.address], body)


@pytest.mark.parametrize(
    ("path", "told"),
    [("/batches", b"<html>"), ("/batches", b'{"messages": 1, "placed": []}'), ("/init", b"[]")],
)
def test_an_answer_of_no_broker_is_told_by_the_futures_and_the_producer_goes_on(
    run_at: RunAt, door: RunningDoor, topic: str, path: str, told: bytes
) -> None:
    wrong = iter([said(told)])

    def meddle(asked: Asked, answer: Answer) -> Answer:
        return next(wrong, answer) if asked.path.endswith(path) else answer

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0) as producer:
            first = await producer.send(topic, "a", partition=0)
            with pytest.raises(UnreadableReply):
                await first
            assert (await (await producer.send(topic, "b", partition=0))).partition == 0

    with scripted(before(door.url, meddle)) as node:
        run_at([node.address], body)


def slow_batches(door: RunningDoor, until: threading.Event) -> Any:
    return before(door.url, lambda asked, answer: held(until, answer) if asked.path == "/batches" else answer)


def test_messages_wait_for_company_while_a_batch_is_under_way(
    run_at: RunAt, door: RunningDoor, topic: str
) -> None:
    until = threading.Event()

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0, batch_count=3) as producer:
            futures = [await producer.send(topic, "0", partition=0)]
            await asyncio.to_thread(node.wait_for, "/batches")
            futures += [await producer.send(topic, f"{number}", partition=0) for number in range(1, 8)]
            until.set()
        assert [(await future).offset for future in futures] == list(range(8))

    with scripted(slow_batches(door, until)) as node:
        run_at([node.address], body)

        assert len(node.of("/batches")) == 4  # 1, 3, 3, 1


def test_a_full_buffer_holds_back_who_sends_until_there_is_an_answer(
    run_at: RunAt, door: RunningDoor, topic: str
) -> None:
    until = threading.Event()

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0, buffer_count=2) as producer:
            first = await producer.send(topic, "a", partition=0)
            await asyncio.to_thread(node.wait_for, "/batches")
            second = await producer.send(topic, "b", partition=0)
            for timeout_s in (0, 0.01):
                with pytest.raises(Busy, match=f"full for {timeout_s} s"):
                    await producer.send(topic, "c", timeout_s=timeout_s)
            until.set()
            third = await producer.send(topic, "d", partition=0, timeout_s=PATIENCE_S)
        assert [(await one).offset for one in (first, second, third)] == [0, 1, 2]

    with scripted(slow_batches(door, until)) as node:
        run_at([node.address], body)


def test_what_is_wrong_with_a_message_is_told_before_it_is_taken(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer() as producer:
            with pytest.raises(Invalid, match="not float"):
                await producer.send("t", 1.5)  # type: ignore[arg-type]  # that is the point
            with pytest.raises(Invalid, match="priority is one of"):
                await producer.send("t", "a", priority="urgent")  # type: ignore[arg-type]  # so is this

    run_at([nobody()], body)


def test_a_bug_of_ours_leaves_nobody_waiting(
    run_at: RunAt, door: RunningDoor, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> bytes:
        raise RuntimeError("a bug")

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0) as producer:
            with monkeypatch.context() as patched:
                patched.setattr("goqueue.client.courier.encode", broken)
                future = await producer.send(topic, "a")
                with pytest.raises(RuntimeError, match="a bug"):
                    await future
            assert (await (await producer.send(topic, "b"))).offset >= 0

    run_at(door.url, body)


def test_a_producer_that_nobody_uses_is_closed_at_once_and_twice(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        producer = queue.producer()
        await producer.flush()
        await producer.close()
        await producer.close()
        with pytest.raises(Invalid, match="closed"):
            await producer.send("t", "a")

    run_at([nobody()], body)


def test_what_waits_when_nobody_answers_fails_with_it_and_what_comes_later_is_tried(run_at: RunAt) -> None:
    """A hundred messages, each a batch, at a second each, would take the caller minutes to hear of."""
    is_there = threading.Event()

    def script(asked: Asked) -> Answer:
        return refused(404, "topic_not_found") if is_there.is_set() else HANG_UP

    async def body(queue: AsyncGoQueue) -> None:
        began_s = time.monotonic()
        async with queue.producer(batch_count=1) as producer:
            futures = [await producer.send("t", "a") for _ in range(100)]
            await producer.flush()
            for future in futures:
                with pytest.raises(NobodyAnswers):
                    await future
            is_there.set()
            with pytest.raises(Refused):
                await (await producer.send("t", "a"))
        assert time.monotonic() - began_s < 15

    with scripted(script) as node:
        run_at([node.address], body, retry_for_s=0.2)


def test_a_producer_uses_the_key_and_the_acks_that_were_chosen(
    run_at: RunAt, door: RunningDoor, topic: str
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(acks="leader") as producer:
            await producer.send(topic, "a")

    with scripted(before(door.url, lambda asked, answer: answer)) as node:
        run_at([node.address], body, api_key="gq_secret")

        assert {asked.headers["x-api-key"] for asked in node.asked} == {"gq_secret"}
        assert node.of("/batches")[0].query == {"acks": "leader"}
        assert node.paths == [f"GET /topics/{topic}", "POST /producers/init", "POST /batches"]


# What follows is about one form alone: threads, or tasks that are cancelled.


def test_a_future_cannot_be_called_back_when_its_message_was_handed_over(
    door: RunningDoor, topic: str
) -> None:
    with GoQueue(door.url) as queue, queue.producer(linger_ms=60_000) as producer:
        future = producer.send(topic, "a")
        assert not future.cancel()
        producer.flush()
        assert future.result(PATIENCE_S).offset == 0


def test_a_thread_that_waits_for_room_hears_when_the_producer_is_closed(
    door: RunningDoor, topic: str
) -> None:
    heard: list[Exception] = []
    waits = threading.Event()

    def send() -> None:
        waits.set()
        try:
            producer.send(topic, "b")
        except Invalid as problem:
            heard.append(problem)

    until = threading.Event()
    with scripted(slow_batches(door, until)) as node, GoQueue([node.address]) as queue:
        producer = queue.producer(buffer_count=1, linger_ms=0)
        producer.send(topic, "a")
        node.wait_for("/batches")
        sender = threading.Thread(target=send)
        sender.start()
        waits.wait()
        closer = threading.Thread(target=producer.close)
        closer.start()
        sender.join(PATIENCE_S)
        until.set()
        closer.join(PATIENCE_S)

        assert [str(problem) for problem in heard] == ["the producer is closed"]
        assert not closer.is_alive()


def test_a_flush_waits_for_what_other_threads_have_sent(door: RunningDoor, topic: str) -> None:
    until = threading.Event()
    flushed = threading.Event()

    def flush() -> None:
        producer.flush()
        flushed.set()

    with (
        scripted(slow_batches(door, until)) as node,
        GoQueue([node.address]) as queue,
        queue.producer(linger_ms=0) as producer,
    ):
        future = producer.send(topic, "a")
        node.wait_for("/batches")
        thread = threading.Thread(target=flush)
        thread.start()
        assert not flushed.wait(0.05)
        until.set()
        thread.join(PATIENCE_S)
        assert flushed.is_set()
        assert future.done()


async def cancelled(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def run_slowly(
    door: RunningDoor, story: Callable[[AsyncGoQueue, ScriptedNode, threading.Event], Any]
) -> ScriptedNode:
    """A story with a node whose answers to batches wait for an event."""
    until = threading.Event()
    with scripted(slow_batches(door, until)) as node:

        async def run() -> None:
            async with AsyncGoQueue([node.address]) as queue:
                await story(queue, node, until)

        asyncio.run(run())
        return node


def test_a_send_that_is_cancelled_while_it_waits_for_room_sends_nothing(
    door: RunningDoor, topic: str
) -> None:
    async def story(queue: AsyncGoQueue, node: ScriptedNode, until: threading.Event) -> None:
        async with queue.producer(buffer_count=1, linger_ms=0) as producer:
            first = await producer.send(topic, "a", partition=0)
            await asyncio.to_thread(node.wait_for, "/batches")
            waiting = asyncio.create_task(producer.send(topic, "b", partition=0))
            await asyncio.sleep(0)  # one turn of the loop: it waits now
            await cancelled(waiting)
            until.set()
            third = await producer.send(topic, "c", partition=0)
            assert [(await first).offset, (await third).offset] == [0, 1]
        assert [one.text async for one in queue.read(topic, 0)] == ["a", "c"]

    run_slowly(door, story)


def test_a_future_that_is_cancelled_does_not_disturb_the_others(door: RunningDoor, topic: str) -> None:
    async def story(queue: AsyncGoQueue, node: ScriptedNode, until: threading.Event) -> None:
        async with queue.producer(batch_count=2, linger_ms=60_000) as producer:
            left, other = [await producer.send(topic, text, partition=0) for text in "ab"]
            await asyncio.to_thread(node.wait_for, "/batches")
            left.cancel()
            until.set()
            assert (await other).offset == 1
        assert left.cancelled()
        assert [one.text async for one in queue.read(topic, 0)] == ["a", "b"]

    run_slowly(door, story)


@pytest.mark.parametrize("verb", ["flush", "close"])
def test_who_tires_of_waiting_does_not_end_the_producer(door: RunningDoor, topic: str, verb: str) -> None:
    async def story(queue: AsyncGoQueue, node: ScriptedNode, until: threading.Event) -> None:
        producer = queue.producer(linger_ms=0)
        future = await producer.send(topic, "a", partition=0)
        await asyncio.to_thread(node.wait_for, "/batches")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.flush() if verb == "flush" else producer.close(), 0.01)
        assert not future.done()
        until.set()
        assert (await future).offset == 0
        await producer.close()

    run_slowly(door, story)


def test_a_task_that_waits_for_room_hears_when_the_producer_is_closed(door: RunningDoor, topic: str) -> None:
    async def story(queue: AsyncGoQueue, node: ScriptedNode, until: threading.Event) -> None:
        producer = queue.producer(buffer_count=1, linger_ms=0)
        await producer.send(topic, "a")
        await asyncio.to_thread(node.wait_for, "/batches")
        waiting = asyncio.create_task(producer.send(topic, "b"))
        await asyncio.sleep(0)  # one turn of the loop: it waits now
        closing = asyncio.create_task(producer.close())
        with pytest.raises(Invalid, match="closed"):
            await waiting
        until.set()
        await closing

    run_slowly(door, story)


def test_two_tasks_that_flush_both_wait_for_all(door: RunningDoor, topic: str) -> None:
    async def story(queue: AsyncGoQueue, node: ScriptedNode, until: threading.Event) -> None:
        async with queue.producer(linger_ms=60_000) as producer:
            futures = [await producer.send(topic, "a") for _ in range(3)]
            flushes = [asyncio.create_task(producer.flush()) for _ in range(2)]
            await asyncio.to_thread(node.wait_for, "/batches")
            assert not any(flush.done() for flush in flushes)
            until.set()
            await asyncio.gather(*flushes)
            assert all(future.done() for future in futures)

    run_slowly(door, story)


def test_nobody_there_is_told_by_the_future_and_not_by_send(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer() as producer:
            future = await producer.send("t", "a")
            with pytest.raises(Unavailable):
                await future

    run_at([nobody()], body, retry_for_s=0.01)
