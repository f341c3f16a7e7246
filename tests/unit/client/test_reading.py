"""Reading a log without a group, page by page: each story in both forms."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from goqueue.client import AsyncGoQueue, NotFound, Refused
from tests.unit.client.conftest import RunAt
from tests.unit.client.scripted_node import (
    BUSY,
    HANG_UP,
    Answer,
    answering,
    cut,
    held,
    refused,
    said,
    scripted,
)

pytestmark = pytest.mark.usefixtures("at_once")

AT = datetime(2030, 1, 2, tzinfo=UTC)


def page(first_offset: int, *texts: str, next_offset: int | None = None) -> Answer:
    messages = [
        {"offset": first_offset + index, "timestamp": AT, "value": text, "priority": "normal"}
        for index, text in enumerate(texts)
    ]
    following = first_offset + len(texts) if next_offset is None else next_offset
    return said({"messages": messages, "next_offset": following})


def test_pages_follow_each_other_to_the_end_of_the_log(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        found = [
            (one.offset, one.text, one.topic, one.partition) async for one in queue.read("t", 2, limit=2)
        ]
        assert found == [(0, "a", "t", 2), (1, "b", "t", 2), (2, "c", "t", 2)]

    with answering(page(0, "a", "b"), page(2, "c"), page(3)) as node:
        run_at([node.address], body)

        assert [asked.query for asked in node.asked] == [
            {"offset": "0", "limit": "2"},
            {"offset": "2", "limit": "2"},
            {"offset": "3", "limit": "2"},
        ]


def test_a_page_without_messages_that_leads_on_is_not_the_end(run_at: RunAt) -> None:
    """What was there belonged to transactions that were undone."""

    async def body(queue: AsyncGoQueue) -> None:
        assert [one.text async for one in queue.read("t", offset=4)] == ["a"]

    with answering(page(4, next_offset=9), page(9, "a"), page(10)) as node:
        run_at([node.address], body)

        assert [asked.query["offset"] for asked in node.asked] == ["4", "9", "10"]


def test_from_a_time_on_the_first_page_is_found_by_it_and_the_next_by_offset(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        assert [one.text async for one in queue.read("t", at=AT)] == ["a"]

    with answering(page(7, "a"), page(8)) as node:
        run_at([node.address], body)

        assert [asked.query for asked in node.asked] == [{"from_time": AT.isoformat()}, {"offset": "8"}]


def test_who_follows_waits_for_more_until_it_has_enough(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        texts = []
        async for one in queue.read("t", follow=True):
            texts.append(one.text)
            if len(texts) == 2:
                break
        assert texts == ["a", "b"]

    with answering(page(0), page(0, "a"), page(1), page(1, "b")) as node:
        run_at([node.address], body)

        assert [asked.query["wait"] for asked in node.asked] == ["20000ms"] * 4


@pytest.mark.parametrize("trouble", [BUSY, HANG_UP, cut(page(2, "c"), after_bytes=80)])
def test_a_page_that_is_lost_is_asked_for_again_and_nothing_comes_twice(
    run_at: RunAt, trouble: Answer
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        assert [one.text async for one in queue.read("t")] == ["a", "b", "c"]

    with answering(page(0, "a", "b"), trouble, trouble, page(2, "c"), page(3)) as node:
        run_at([node.address], body)

        assert [asked.query["offset"] for asked in node.asked] == ["0", "2", "2", "2", "3"]


def test_what_came_before_a_refusal_is_read_and_then_it_is_told(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        last_text = ""
        with pytest.raises(NotFound, match="offset 1 is gone"):
            async for one in queue.read("t"):
                last_text = one.text
        assert last_text == "a"

    with answering(page(0, "a"), refused(404, "offset_not_found", "offset 1 is gone")) as node:
        run_at([node.address], body)


def test_nothing_is_asked_before_the_first_message_is_wanted(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        queue.read("t")
        queue.read("u", follow=True)

    with answering() as node:
        run_at([node.address], body)


def test_a_reader_that_follows_is_cancelled_while_it_waits() -> None:
    never = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:

            async def follow() -> list[str]:
                return [one.text async for one in queue.read("t", follow=True)]

            task = asyncio.create_task(follow())
            await asyncio.to_thread(node.wait_for, "/messages")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(Refused):
                await queue.read_page("t")

    answers = iter([held(never, page(0))])
    with scripted(lambda asked: next(answers, refused(400, "invalid"))) as node:
        asyncio.run(story())
