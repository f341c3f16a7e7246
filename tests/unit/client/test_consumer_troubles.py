"""Consumers before a node that does not do as a healthy one does: each story in both forms."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from goqueue.client import (
    AsyncConsumer,
    AsyncGoQueue,
    Consumer,
    GoQueue,
    Invalid,
    NotFound,
    Refused,
    Unavailable,
)
from goqueue.client.errors import NobodyAnswers, UnreadableReply
from tests.unit.client.conftest import RunAt
from tests.unit.client.scripted_node import (
    BUSY,
    HANG_UP,
    OK,
    PATIENCE_S,
    Answer,
    Asked,
    by_path,
    cut,
    delivering,
    held,
    nobody,
    refused,
    said,
    scripted,
)

pytestmark = pytest.mark.usefixtures("at_once")

JOINED = said({"member_id": "m"})
NOTHING = said({"messages": []})
SETTLED = said({"results": []})
UNKNOWN = refused(404, "unknown_member")


def not_done(receipt: str) -> Answer:
    result = {
        "receipt_handle": receipt,
        "success": False,
        "error": "too late",
        "code": "lease_lost",
        "status": 409,
    }
    return said({"results": [result]})


def group(**answers: Any) -> Any:
    """The routes of a group, all of them well but those that are told."""
    well = {
        "join": JOINED,
        "poll": NOTHING,
        "ack": SETTLED,
        "nack": SETTLED,
        "reject": SETTLED,
        "visibility": SETTLED,
    }
    return by_path(**{**well, **answers})


@pytest.mark.parametrize("trouble", [BUSY, HANG_UP, cut(JOINED, after_bytes=50)])
@pytest.mark.parametrize("verb", ["join", "poll", "ack", "leave"])
def test_each_step_of_a_consumer_survives_a_node_that_stumbles(
    run_at: RunAt, verb: str, trouble: Answer
) -> None:
    well = {"join": JOINED, "poll": delivering("a"), "ack": SETTLED, "leave": OK}

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            [message] = await consumer.poll()
            await message.ack(wait=True)
            assert message.text == "a"

    with scripted(group(**{**well, verb: [trouble, trouble, well[verb]]})) as node:
        run_at([node.address], body)

        assert len(node.of(f"/{verb}")) == 3


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ({"join": refused(404, "topic_not_found", "topic t does not exist")}, NotFound),
        ({"join": refused(403, "denied")}, Refused),
        ({"join": said(b"<html>")}, UnreadableReply),
        ({"poll": refused(404, "topic_not_found", "topic t does not exist")}, NotFound),
        ({"poll": refused(500, "oops")}, Refused),
        ({"poll": said(b'{"messages": [{}]}')}, UnreadableReply),
    ],
)
def test_what_a_poll_cannot_mend_it_tells_and_the_consumer_can_be_closed(
    run_at: RunAt, answers: dict[str, Answer], kind: type[Exception]
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            with pytest.raises(kind):
                await consumer.poll()
            with pytest.raises(kind):
                async for _ in consumer:
                    raise AssertionError

    with scripted(group(**answers)) as node:
        run_at([node.address], body)

        assert len(node.of("/leave")) == ("poll" in answers)


def test_a_member_that_the_group_has_forgotten_joins_again(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", idle_timeout=5) as consumer:
            async for message in consumer:
                assert message.text == "a"
                break

    members = [JOINED, said({"member_id": "second"})]
    with scripted(group(join=members, poll=[UNKNOWN, delivering("a")])) as node:
        run_at([node.address], body)

        assert [asked.query["member_id"] for asked in node.of("/poll")] == ["m", "second"]
        assert node.of("/leave")[0].json == {"member_id": "second"}


def test_signs_of_life_that_fail_are_tried_again_and_told(
    run_at: RunAt, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.client.membership._RETRY_NS", 1_000_000)

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", session_timeout=0.05) as consumer:
            await consumer.poll()
            await asyncio.to_thread(node.wait_for, "/heartbeat", 3)

    unreadable = refused(500, "oops", "the disk is gone")
    with scripted(group(heartbeat=[unreadable, unreadable, OK])) as node:
        run_at([node.address], body)

    told = [record.getMessage() for record in caplog.records]
    assert told[:1] == ["a consumer's upkeep has failed and is tried again: the disk is gone"]


def test_an_answer_of_no_broker_does_not_end_the_upkeep(
    run_at: RunAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.client.membership._RETRY_NS", 1_000_000)

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=0) as consumer:
            [message] = await consumer.poll()
            await message.ack()
            await asyncio.to_thread(node.wait_for, "/ack", 2)

    with scripted(group(poll=delivering("a"), ack=[said(b'{"results": 5}'), SETTLED])) as node:
        run_at([node.address], body)

        assert [asked.json["receipt_handles"] for asked in node.of("/ack")][:2] == [["a"], ["a"]]


def test_acknowledgements_go_by_themselves_and_together(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=50) as consumer:
            messages = await consumer.poll()
            for message in messages:
                async with message:
                    pass
            await asyncio.to_thread(node.wait_for, "/ack")

    with scripted(group(poll=delivering(*"abc"))) as node:
        run_at([node.address], body)

        # The close may ask once more, for it does not wait for the answer to the first.
        assert {tuple(asked.json["receipt_handles"]) for asked in node.of("/ack")} == {("a", "b", "c")}


def test_leases_are_extended_by_themselves(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", visibility=0.1, auto_extend=True) as consumer:
            [message] = await consumer.poll()
            await asyncio.to_thread(node.wait_for, "/visibility", 2)
            await message.ack(wait=True)

    with scripted(group(poll=delivering("a"))) as node:
        run_at([node.address], body)

        assert node.of("/visibility")[0].json == {"receipt_handles": ["a"], "timeout": "100ms"}


def test_acknowledgements_that_came_too_late_are_counted(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            [message] = await consumer.poll()
            await message.ack()
            await consumer.flush()
            assert consumer.lost_count == 1
            with pytest.raises(Refused, match="too late"):
                await message.ack(wait=True)

    with scripted(group(poll=delivering("a"), ack=not_done("a"))) as node:
        run_at([node.address], body)


@pytest.mark.parametrize("verb", ["nack", "reject", "extend"])
def test_what_came_too_late_is_told_to_who_settles_by_hand(run_at: RunAt, verb: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            [message] = await consumer.poll()
            with pytest.raises(Refused, match="too late"):
                if verb == "nack":
                    await message.nack(delay=1, reason="r")
                elif verb == "reject":
                    await message.reject("r")
                else:
                    await message.extend(5)

    late = not_done("a")
    with scripted(group(poll=delivering("a"), nack=late, reject=late, visibility=late)) as node:
        run_at([node.address], body)

        expected: dict[str, dict[str, object]] = {
            "nack": {"delay": "1000ms", "reason": "r"},
            "reject": {"reason": "r"},
            "extend": {"timeout": "5000ms"},
        }
        [asked] = node.of("/visibility" if verb == "extend" else f"/{verb}")
        assert asked.json == {"receipt_handles": ["a"], **expected[verb]}


def test_a_message_whose_node_is_gone_is_not_given_back_and_the_problem_goes_no_further(
    run_at: RunAt, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=0) as consumer:
            [message] = await consumer.poll()
            async with message:
                raise ValueError("broken")

    with scripted(group(poll=delivering("a"), nack=refused(500, "oops"))) as node:
        run_at([node.address], body)

        assert node.of("/ack") == []
        assert node.of("/nack")[0].json["reason"] == "ValueError: broken"
    assert "could not be handled: ValueError: broken" in caplog.text


def test_a_consumer_that_cannot_leave_tells_so_and_the_second_time_does_the_rest(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        consumer = queue.consumer("t", group="g", ack_linger_ms=60_000)
        [message] = await consumer.poll()
        await message.ack()
        with pytest.raises(Refused, match="no"):
            await consumer.close()
        with pytest.raises(Invalid, match="closed"):
            await consumer.poll()
        await consumer.close()
        await consumer.close()

    with scripted(group(poll=delivering("a"), leave=[refused(500, "oops"), OK])) as node:
        run_at([node.address], body)

        assert (len(node.of("/ack")), len(node.of("/leave"))) == (1, 2)


def test_the_problem_of_a_block_is_heard_and_not_that_of_its_end(
    run_at: RunAt, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(ZeroDivisionError):
            async with queue.consumer("t", group="g") as consumer:
                await consumer.poll()
                _ = 1 / 0
        with pytest.raises(Refused):
            async with queue.consumer("t", group="g") as consumer:
                await consumer.poll()

    with scripted(group(leave=refused(500, "oops"))) as node:
        run_at([node.address], body)

    assert caplog.text.count("a consumer could not be closed properly") == 1


def test_what_was_fetched_and_not_looked_at_is_given_back_in_one_request(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", limit=4) as consumer:
            async for message in consumer:
                assert message.text == "a"
                break

    with scripted(group(poll=delivering(*"abcd"))) as node:
        run_at([node.address], body)

        [nack] = node.of("/nack")
        assert nack.json["receipt_handles"] == ["b", "c", "d"]
        assert nack.json["delay"] == "0ms"


def test_a_consumer_that_never_polled_asks_nothing(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            await consumer.flush()
            consumer.stop()
        with pytest.raises(Invalid, match="closed"):
            await consumer.poll()

    with scripted(group()) as node:
        run_at([node.address], body)

        assert node.asked == []


def test_an_iteration_ends_when_nothing_has_come_for_the_idle_time(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        seen = []
        async with queue.consumer("t", group="g", idle_timeout=0.05) as consumer:
            async for message in consumer:
                seen.append(message.text)
                await message.ack()
        assert seen == ["a", "b"]

    with scripted(group(poll=[delivering("a"), NOTHING, delivering("b"), NOTHING])) as node:
        run_at([node.address], body)

        assert node.of("/poll")[0].query["timeout"] == "50ms"


# What follows is about one form alone: threads, or tasks that are cancelled.


def iterating(consumer: Consumer) -> tuple[threading.Thread, list[object]]:
    ended: list[object] = []
    thread = threading.Thread(target=lambda: ended.append([one.text for one in consumer]), daemon=True)
    thread.start()
    return thread, ended


@pytest.mark.parametrize("answer", ["held", "busy"])
@pytest.mark.parametrize("verb", ["stop", "close"])
def test_another_thread_ends_an_iteration_whatever_it_waits_for(answer: str, verb: str) -> None:
    never = threading.Event()
    poll = held(never, NOTHING) if answer == "held" else refused(429, "busy", retry_after_ms=25_000)
    with scripted(group(poll=poll)) as node, GoQueue([node.address]) as queue:
        consumer = queue.consumer("t", group="g")
        thread, ended = iterating(consumer)
        node.wait_for("/poll")
        consumer.stop() if verb == "stop" else consumer.close()
        thread.join(PATIENCE_S / 2)
        assert ended == [[]]
        consumer.close()

        assert len(node.of("/leave")) == 1


def test_two_threads_that_close_a_consumer_leave_once() -> None:
    slow = threading.Event()
    with scripted(group(leave=held(slow, OK))) as node, GoQueue([node.address]) as queue:
        consumer = queue.consumer("t", group="g")
        consumer.poll()
        threads = [threading.Thread(target=consumer.close) for _ in range(2)]
        for thread in threads:
            thread.start()
        node.wait_for("/leave")
        slow.set()
        for thread in threads:
            thread.join(PATIENCE_S)

        assert len(node.of("/leave")) == 1


def test_a_heartbeat_that_is_held_does_not_hold_the_close() -> None:
    never = threading.Event()
    with scripted(group(heartbeat=held(never, OK))) as node, GoQueue([node.address]) as queue:
        consumer = queue.consumer("t", group="g")
        consumer.poll()
        node.wait_for("/heartbeat")
        consumer.close()

        assert len(node.of("/leave")) == 1


def test_a_poll_that_fails_after_stop_gives_nothing_and_before_it_tells() -> None:
    with scripted(group(poll=BUSY)) as node, GoQueue([node.address], retry_for_s=0) as queue:
        consumer = queue.consumer("t", group="g")
        with pytest.raises(Unavailable):
            consumer.poll()
        consumer.stop()
        assert consumer.poll() == []
        consumer.close()


async def cancelled_at(node: Any, path: str, work: Any) -> None:
    """Has a coroutine cancelled as soon as it waits for an answer to that path."""
    task = asyncio.ensure_future(work)
    await asyncio.to_thread(node.wait_for, path)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("verb", ["nack", "ack", "leave"])
def test_a_close_that_is_cancelled_at_any_step_is_finished_by_the_next(verb: str) -> None:
    never = threading.Event()
    answers = {"poll": delivering("a", "b"), "leave": OK, verb: [held(never, SETTLED), SETTLED]}

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            consumer = queue.consumer("t", group="g", ack_linger_ms=60_000)
            async for message in consumer:
                await message.ack()
                break
            await cancelled_at(node, f"/{verb}", consumer.close())
            await consumer.close()

    with scripted(group(**answers)) as node:
        asyncio.run(story())

        assert node.of("/nack")[-1].json["receipt_handles"] == ["b"]
        assert node.of("/ack")[-1].json["receipt_handles"] == ["a"]
        assert len(node.of(f"/{verb}")) == 2
        assert node.paths[-1] == "POST /groups/g/leave"


@pytest.mark.parametrize("verb", ["join", "poll"])
def test_a_poll_that_is_cancelled_at_any_step_loses_nothing(verb: str) -> None:
    late = threading.Event()
    well = {"join": JOINED, "poll": delivering("a")}

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue, queue.consumer("t", group="g") as consumer:
            await cancelled_at(node, f"/{verb}", consumer.poll())
            late.set()
            [message] = await consumer.poll(wait=PATIENCE_S)
            assert message.text == "a"
            await message.ack(wait=True)

    with scripted(group(**{**well, verb: held(late, well[verb])})) as node:
        asyncio.run(story())

        assert (len(node.of("/join")), len(node.of("/poll"))) == (1, 1)


def test_what_a_cancelled_poll_has_taken_is_given_back_by_the_close() -> None:
    late = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue, queue.consumer("t", group="g") as consumer:
            await cancelled_at(node, "/poll", consumer.poll())
            late.set()
            assert consumer._poll is not None
            await asyncio.wait([consumer._poll])

    with scripted(group(poll=held(late, delivering("a", "b")))) as node:
        asyncio.run(story())

        assert node.of("/nack")[0].json["receipt_handles"] == ["a", "b"]


def test_a_block_that_is_cancelled_gives_its_message_back_at_once() -> None:
    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue, queue.consumer("t", group="g") as consumer:
            [message] = await consumer.poll()
            entered = asyncio.Event()

            async def work() -> None:
                async with message:
                    entered.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with scripted(group(poll=delivering("a"))) as node:
        asyncio.run(story())

        [nack] = node.of("/nack")
        assert (nack.json["delay"], nack.json["receipt_handles"]) == ("0ms", ["a"])
        assert node.of("/ack") == []


@pytest.mark.parametrize("verb", ["ack", "nack", "visibility"])
def test_a_settlement_that_is_cancelled_can_be_made_again(verb: str) -> None:
    never = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue, queue.consumer("t", group="g") as consumer:
            [message] = await consumer.poll()
            ways: dict[str, Callable[[], Awaitable[None]]] = {
                "ack": lambda: message.ack(wait=True),
                "nack": message.nack,
                "visibility": lambda: message.extend(5),
            }
            settle = ways[verb]
            await cancelled_at(node, f"/{verb}", settle())
            assert consumer._membership.is_open("a")
            await settle()

    with scripted(group(poll=delivering("a"), **{verb: [held(never, SETTLED), SETTLED]})) as node:
        asyncio.run(story())

        assert len(node.of(f"/{verb}")) == 2


def test_a_flush_that_is_cancelled_leaves_the_acknowledgements_to_the_next() -> None:
    never = threading.Event()

    async def story() -> None:
        async with (
            AsyncGoQueue([node.address]) as queue,
            queue.consumer("t", group="g", ack_linger_ms=60_000) as consumer,
        ):
            [message] = await consumer.poll()
            await message.ack()
            await cancelled_at(node, "/ack", consumer.flush())
            await consumer.flush()

    with scripted(group(poll=delivering("a"), ack=[held(never, SETTLED), SETTLED])) as node:
        asyncio.run(story())

        assert [asked.json["receipt_handles"] for asked in node.of("/ack")] == [["a"], ["a"]]


def test_stop_does_not_interrupt_joining_for_nobody_would_leave() -> None:
    late = threading.Event()

    async def story(consumer: AsyncConsumer) -> None:
        polling = asyncio.create_task(consumer.poll(wait=20))
        await asyncio.to_thread(node.wait_for, "/join")
        consumer.stop()
        late.set()
        assert await polling == []
        await consumer.close()

    async def opened() -> None:
        async with AsyncGoQueue([node.address]) as queue:
            await story(queue.consumer("t", group="g"))

    with scripted(group(join=held(late, JOINED))) as node:
        asyncio.run(opened())

        assert [path.rpartition("/")[2] for path in node.paths if "heartbeat" not in path] == [
            "join",
            "leave",
        ]


def test_a_poll_left_behind_that_fails_is_told_to_the_next_and_not_to_the_close() -> None:
    late = threading.Event()
    answers = [held(late, refused(500, "oops")), held(late, refused(500, "oops"))]

    async def story(is_closing: bool) -> None:
        async with AsyncGoQueue([node.address]) as queue:
            consumer = queue.consumer("t", group="g")
            await cancelled_at(node, "/poll", consumer.poll())
            late.set()
            if not is_closing:
                with pytest.raises(Refused):
                    await consumer.poll(wait=PATIENCE_S)
            await consumer.close()

    for is_closing in (False, True):
        late.clear()
        with scripted(group(poll=answers)) as node:
            asyncio.run(story(is_closing))
            assert len(node.of("/leave")) == 1


def test_consumers_ask_with_the_key_of_their_queue(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=0) as consumer:
            [message] = await consumer.poll()
            await message.ack()
            await asyncio.to_thread(node.wait_for, "/heartbeat")

    def all_keys(asked: list[Asked]) -> set[str | None]:
        return {one.headers["x-api-key"] for one in asked}

    with scripted(group(poll=delivering("a"))) as node:
        run_at([node.address], body, api_key="gq_secret")

        assert all_keys(node.asked) == {"gq_secret"}
        assert {path.rpartition("/")[2] for path in node.paths} >= {"join", "poll", "heartbeat", "leave"}


def test_nobody_there_is_told_by_the_first_poll(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            with pytest.raises(NobodyAnswers):
                await consumer.poll()

    run_at([nobody()], body, retry_for_s=0)
