"""Transactions, step by step, when a node refuses, answers nobody's question or is gone: in both forms."""

import asyncio
import threading
from typing import Any

import pytest

from goqueue.client import AsyncGoQueue, Fenced, Invalid, Refused, Unavailable
from goqueue.client.errors import NobodyAnswers
from tests.unit.client.conftest import RunAt
from tests.unit.client.scripted_node import (
    BUSY,
    HANG_UP,
    OK,
    Answer,
    ScriptedNode,
    by_path,
    delivering,
    held,
    refused,
    said,
    scripted,
)

pytestmark = pytest.mark.usefixtures("at_once")

PRODUCER = said({"producer_id": 7, "epoch": 2})
PLACED = said({"partition": 1, "offset": 5})
FENCED = refused(409, "producer_fenced", "another has taken the transactional id over")
WHO = {"producer_id": 7, "epoch": 2, "transactional_id": "teller"}


class Taken:
    """Stands for a message that was polled by other means."""

    def __init__(self, receipt: str) -> None:
        self.receipt = receipt


def broker(**answers: Any) -> Any:
    return by_path(**{"init": PRODUCER, "publish": PLACED, **answers})


def verbs(node: ScriptedNode) -> list[str]:
    return [path.rpartition("/")[2] for path in node.paths]


def test_a_block_commits_what_was_done_in_it(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.transaction("teller", timeout=5) as transaction:
            placed = await transaction.publish("t", "a", key="k")
            await transaction.ack(Taken("r1"), Taken("r2"))
            await transaction.offsets("g", {"t": {0: 3}})
        assert (placed.partition, placed.offset) == (1, 5)

    with scripted(broker()) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "publish", "add-offsets", "add-offsets", "commit"]
        init, begin, publish, acked, offsets, commit = [asked.json for asked in node.asked]
        assert init == {"transactional_id": "teller", "transaction_timeout_ms": 5_000}
        assert begin == commit == WHO
        assert publish == {"producer_id": 7, "epoch": 2, "topic": "t", "value": "a", "key": "k"}
        assert acked == {**WHO, "receipt_handles": ["r1", "r2"]}
        assert offsets == {**WHO, "group": "g", "offsets": {"t": {"0": 3}}}


def test_an_exception_aborts_and_is_heard(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(ZeroDivisionError):
            async with queue.transaction("teller") as transaction:
                await transaction.publish("t", "a")
                _ = 1 / 0

    with scripted(broker()) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "publish", "abort"]


@pytest.mark.parametrize("trouble", [FENCED, refused(500, "oops"), HANG_UP])
def test_the_exception_is_heard_also_when_the_abort_fails(
    run_at: RunAt, trouble: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(ZeroDivisionError):
            async with queue.transaction("teller"):
                _ = 1 / 0

    with scripted(broker(abort=trouble)) as node:
        run_at([node.address], body, retry_for_s=0)

    assert "transaction teller could not be aborted" in caplog.text


def test_aborted_by_hand_the_end_of_the_block_does_nothing_more(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.transaction("teller") as transaction:
            await transaction.publish("t", "a")
            await transaction.abort()
            with pytest.raises(Invalid, match="transaction teller is not open"):
                await transaction.publish("t", "b")
            with pytest.raises(Invalid, match="not open"):
                await transaction.abort()

    with scripted(broker()) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "publish", "abort"]


def test_an_abort_by_hand_that_fails_is_tried_again_by_the_end_of_the_block(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Refused):
            async with queue.transaction("teller") as transaction:
                await transaction.abort()

    with scripted(broker(abort=[refused(500, "oops"), OK])) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "abort", "abort"]


@pytest.mark.parametrize("verb", ["publish", "ack", "offsets", "abort"])
def test_a_transaction_is_used_inside_its_block(run_at: RunAt, verb: str) -> None:
    async def use(transaction: Any) -> None:
        if verb == "publish":
            await transaction.publish("t", "a")
        elif verb == "ack":
            await transaction.ack(Taken("r"))
        elif verb == "offsets":
            await transaction.offsets("g", {})
        else:
            await transaction.abort()

    async def body(queue: AsyncGoQueue) -> None:
        transaction = queue.transaction("teller")
        with pytest.raises(Invalid, match="inside its `with` block"):
            await use(transaction)
        async with transaction:
            pass
        with pytest.raises(Invalid, match="inside its `with` block"):
            await use(transaction)

    with scripted(broker()) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "commit"]


@pytest.mark.parametrize("answers", [{"init": refused(403, "denied")}, {"begin": refused(409, "fenced")}])
def test_a_block_that_cannot_begin_is_not_entered(run_at: RunAt, answers: dict[str, Answer]) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Refused):
            async with queue.transaction("teller"):
                raise AssertionError("entered")

    with scripted(broker(**answers)) as node:
        run_at([node.address], body)

        assert "commit" not in verbs(node)
        assert "abort" not in verbs(node)


def test_a_begin_whose_reply_is_lost_is_not_sent_again(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(NobodyAnswers, match="is not known"):
            async with queue.transaction("teller"):
                raise AssertionError("entered")

    with scripted(broker(begin=[HANG_UP, OK])) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin"]


def test_a_publish_whose_reply_is_lost_undoes_all(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        with pytest.raises(Unavailable):
            async with queue.transaction("teller") as transaction:
                await transaction.publish("t", "a")

    with scripted(broker(publish=[HANG_UP, PLACED])) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "publish", "abort"]


@pytest.mark.parametrize("trouble", [HANG_UP, BUSY, refused(429, "busy", retry_after_ms=1)])
def test_a_commit_whose_reply_is_lost_is_sent_again(run_at: RunAt, trouble: Answer) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.transaction("teller") as transaction:
            await transaction.publish("t", "a")

    with scripted(broker(commit=[trouble, trouble, OK])) as node:
        run_at([node.address], body)

        assert verbs(node)[3:] == ["commit"] * 3


def test_a_commit_that_is_refused_is_told_and_not_followed_by_an_abort(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        transaction = queue.transaction("teller")
        with pytest.raises(Fenced, match="taken the transactional id over"):
            async with transaction:
                pass
        with pytest.raises(Invalid, match="not open"):
            await transaction.publish("t", "a")

    with scripted(broker(commit=FENCED)) as node:
        run_at([node.address], body)

        assert verbs(node) == ["init", "begin", "commit"]


def test_one_object_serves_for_one_block_after_the_other(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        transaction = queue.transaction("teller")
        for _ in range(2):
            async with transaction:
                await transaction.publish("t", "a")

    epochs = [PRODUCER, said({"producer_id": 7, "epoch": 3})]
    with scripted(broker(init=epochs)) as node:
        run_at([node.address], body)

        assert [asked.json["epoch"] for asked in node.of("/publish")] == [2, 3]


def work_queue(**answers: Any) -> Any:
    settled = said({"results": []})
    joined = said({"member_id": "m"})
    return broker(
        **{"join": joined, "poll": delivering("a", "b"), "ack": settled, "nack": settled, **answers}
    )


def test_a_message_that_was_handed_over_is_not_settled_by_its_own_block(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=0) as consumer:
            first, second = await consumer.poll()
            async with queue.transaction("teller") as transaction, first:
                await transaction.ack(first)
            async with second:
                pass
            await consumer.flush()

    with scripted(work_queue()) as node:
        run_at([node.address], body)

        assert node.of("/add-offsets")[0].json["receipt_handles"] == ["a"]
        assert {receipt for asked in node.of("/ack") for receipt in asked.json["receipt_handles"]} == {"b"}
        assert node.of("/nack") == []


def test_the_transaction_hears_of_a_problem_in_the_block_of_a_message_it_was_handed(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            first, _ = await consumer.poll()
            with pytest.raises(ZeroDivisionError):
                async with queue.transaction("teller") as transaction, first:
                    await transaction.ack(first)
                    _ = 1 / 0

    with scripted(work_queue()) as node:
        run_at([node.address], body)

        assert len(node.of("/abort")) == 1
        assert node.of("/nack") == []


def test_a_message_whose_transaction_has_ended_is_settled_by_its_own_block_again(run_at: RunAt) -> None:
    """The transaction was undone within the block, and the problem came after: the message is given back."""

    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g") as consumer:
            first, _ = await consumer.poll()
            async with first:
                async with queue.transaction("teller") as transaction:
                    await transaction.ack(first)
                    await transaction.abort()
                raise ValueError("broken")

    with scripted(work_queue()) as node:
        run_at([node.address], body)

        assert [asked.json["receipt_handles"] for asked in node.of("/nack")] == [["a"]]


def test_a_message_that_the_transaction_did_not_take_is_not_handed_over(run_at: RunAt) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.consumer("t", group="g", ack_linger_ms=60_000) as consumer:
            first, _ = await consumer.poll()
            async with queue.transaction("teller") as transaction:
                with pytest.raises(Refused):
                    await transaction.ack(first)
            async with first:
                pass
            await consumer.flush()

    with scripted(work_queue(add_offsets=refused(400, "invalid"))) as node:
        run_at([node.address], body)

        assert [asked.json["receipt_handles"] for asked in node.of("/ack")] == [["a"]]


@pytest.mark.parametrize("verb", ["publish", "add-offsets"])
def test_a_block_that_is_cancelled_at_any_step_is_undone(verb: str) -> None:
    never = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:

            async def work() -> None:
                async with queue.transaction("teller") as transaction:
                    await transaction.publish("t", "a")
                    await transaction.ack(Taken("r"))

            task = asyncio.create_task(work())
            await asyncio.to_thread(node.wait_for, f"/{verb}")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with scripted(broker(**{verb.replace("-", "_"): held(never, PLACED)})) as node:
        asyncio.run(story())

        assert verbs(node)[-1] == "abort"
        assert "commit" not in verbs(node)


def test_a_commit_that_is_cancelled_is_not_taken_back() -> None:
    """Whether it was carried out is not known: the caller hears of the cancellation and of nothing else."""
    never = threading.Event()

    async def story() -> None:
        async with AsyncGoQueue([node.address]) as queue:

            async def work() -> None:
                async with queue.transaction("teller"):
                    pass

            task = asyncio.create_task(work())
            await asyncio.to_thread(node.wait_for, "/commit")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with scripted(broker(commit=held(never, OK))) as node:
        asyncio.run(story())

        assert verbs(node) == ["init", "begin", "commit"]
