"""Producers with a broker, in both forms, and with threads."""

import itertools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from goqueue.client import AsyncGoQueue, Busy, GoQueue, Invalid, NotFound, Refused
from goqueue.client.calls import messages
from tests.doors.http.running_door import RunningDoor
from tests.unit.client.conftest import Run


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the requests that bring batches."""
    counted: Counter[str] = Counter()
    really = messages.append_batches

    def append_batches(*args: object, **kwargs: object) -> object:
        counted["batches"] += 1
        return really(*args, **kwargs)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(messages, "append_batches", append_batches)
    return counted


def test_ten_thousand_messages_go_in_a_hundred_requests(run: Run, topic: str, requests: Counter[str]) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        # However slow the machine, no batch leaves before it is full.
        async with queue.producer(linger_ms=60_000) as producer:
            futures = [await producer.send(topic, b"%d" % number) for number in range(10_000)]
        places = [await future for future in futures]
        assert len({(place.partition, place.offset) for place in places}) == 10_000
        assert {place.partition for place in places} == {0, 1, 2}
        assert requests["batches"] == 100

    run(body)


def test_messages_of_a_key_keep_their_order_and_lane(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(batch_count=7) as producer:
            futures = [
                await producer.send(topic, f"{number}", key="k", priority="high" if number % 3 else "normal")
                for number in range(50)
            ]
        places = [await future for future in futures]
        first = places[0]
        read = queue.read(topic, first.partition, offset=first.offset)
        stored = [(message.text, message.priority) async for message in read]
        assert stored == [(f"{number}", "high" if number % 3 else "normal") for number in range(50)]
        assert [place.offset for place in places] == list(range(first.offset, first.offset + 50))

    run(body)


def test_each_message_has_an_answer_of_its_own(run: Run) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        await queue.topics.create("strict", partitions=1, settings={"goqueue.schema.validation": "full"})
        schema = '{"type": "object", "required": ["id"]}'
        await queue.schemas.register("strict-value", schema, schema_type="JSON")
        async with queue.producer(linger_ms=50) as producer:
            good, misfit, also_good, nowhere, no_topic = [
                await producer.send("strict", {"id": 1}),
                await producer.send("strict", {"name": "x"}),
                await producer.send("strict", {"id": 2}),
                await producer.send("strict", {"id": 3}, partition=4),
                await producer.send("missing", "x"),
            ]
        assert [(await good).offset, (await also_good).offset] == [0, 1]
        with pytest.raises(Invalid, match="id"):
            await misfit
        with pytest.raises(NotFound, match="no partition 4"):
            await nowhere
        with pytest.raises(Refused, match="missing does not exist"):
            await no_topic
        await queue.topics.delete("strict")

    run(body)


def test_a_producer_goes_on_when_its_topic_was_deleted_and_made_anew(run: Run) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer(linger_ms=0) as producer:
            for _ in range(2):
                await queue.topics.create("again", partitions=1)
                assert [
                    (await (await producer.send("again", "a"))).offset,
                    (await (await producer.send("again", "b"))).offset,
                ] == [0, 1]
                await queue.topics.delete("again")

    run(body)


def test_a_closed_producer_takes_nothing_more(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        async with queue.producer() as producer:
            await producer.send(topic, "a")
        await producer.close()
        with pytest.raises(Invalid, match="closed"):
            await producer.send(topic, "b")

    run(body)


def test_a_producer_can_be_closed_while_others_go_on_sending(door: RunningDoor, topic: str) -> None:
    def send_on() -> int:
        for count in itertools.count():
            try:
                producer.send(topic, "a")
            except Invalid:
                return count
        raise AssertionError

    with GoQueue(door.url) as queue, ThreadPoolExecutor(2) as threads:
        producer = queue.producer()
        producer.send(topic, "first").result()
        senders = [threads.submit(send_on) for _ in range(2)]
        producer.send(topic, "more").result()
        producer.close()

        sent = 2 + sum(sender.result() for sender in senders)
        assert queue.topics.describe(topic).total_messages == sent


def test_while_the_buffer_is_full_send_waits_and_then_gives_up(run: Run, topic: str) -> None:
    async def body(queue: AsyncGoQueue) -> None:
        # One message makes no batch, and nothing else will make it leave.
        async with queue.producer(buffer_count=1, linger_ms=60_000) as producer:
            first = await producer.send(topic, "a")
            with pytest.raises(Busy, match="full"):
                await producer.send(topic, "b", timeout_s=0.01)
            await producer.flush()
            second = await producer.send(topic, "c", timeout_s=5)
        assert (await first).offset >= 0
        assert (await second).offset >= 0

    run(body)


def test_many_threads_use_one_queue(tmp_path: Path) -> None:
    def work(worker: int) -> list[tuple[int, int]]:
        placed = [queue.publish("shared", f"{worker}-{number}") for number in range(10)]
        sent = [producer.send("shared", f"{worker}+{number}") for number in range(50)]
        return [(one.partition, one.offset) for one in [*placed, *(future.result() for future in sent)]]

    with RunningDoor(tmp_path) as door, GoQueue(door.url) as queue:
        queue.topics.create("shared", partitions=2)
        with queue.producer() as producer, ThreadPoolExecutor(8) as threads:
            places = [place for places in threads.map(work, range(8)) for place in places]

        assert len(set(places)) == len(places) == 8 * 60
        assert queue.topics.describe("shared").total_messages == 8 * 60
