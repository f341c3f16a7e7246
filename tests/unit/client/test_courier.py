"""The courier against scripted replies: what is sent, with which numbers, and what the tickets hear."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from goqueue.client.call import Call
from goqueue.client.calls.messages import BatchPlace
from goqueue.client.calls.topics import Topic
from goqueue.client.calls.transactions import ProducerId
from goqueue.client.courier import TOPIC_AGE_MAX_NS, Courier
from goqueue.client.errors import NobodyAnswers, Refused, refusal
from goqueue.client.messages import Placed, to_store
from goqueue.client.outbox import Parcel, Waiting
from goqueue.client.steps import take
from goqueue.records.entries import read_entries
from goqueue.records.layout import read_header


class Node:
    """Gives out producer ids, keeps offsets, and says no when it is told to."""

    def __init__(self, *, partitions: int = 2) -> None:
        self.partitions = partitions
        self.sent: list[list[tuple[int, int, int, int]]] = []
        """For each request: partition, producer, first number and count of each batch."""
        self.described = 0
        self.problems: list[Exception | None] = []
        self._producers = 0
        self._ends: dict[int, int] = {}

    def carry(self, call: Call[object]) -> object:
        if call.path == "/producers/init":
            self._producers += 1
            return ProducerId(self._producers, 0)
        if call.method == "GET":
            self.described += 1
            return Topic("t", self.partitions, 0, 0, {}, None, {})  # type: ignore[arg-type]  # not looked at
        return self._store(call.body or b"")

    def _store(self, body: bytes) -> list[BatchPlace]:
        request = []
        for target, _, batch in read_entries(memoryview(body)):
            header = read_header(batch)
            request.append((target.partition, header.producer_id, header.base_sequence, header.record_count))
        self.sent.append(request)
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        places = []
        for partition, _, _, count in request:
            offset = self._ends.get(partition, 0)
            self._ends[partition] = offset + count
            places.append(BatchPlace("t", partition, offset, count))
        return places


def no(code: str, status: int = 400) -> Refused:
    return refusal(status, b'{"error": "no", "code": "%s"}' % code.encode(), None)


def parcel(*partitions: int | None) -> tuple[Parcel, list["Future[Placed]"]]:
    futures: list[Future[Placed]] = [Future() for _ in partitions]
    waiting = [
        Waiting(
            to_store("v", key=None, headers=(), partition=partition, priority=None), future, 1, since_ns=0
        )
        for partition, future in zip(partitions, futures, strict=True)
    ]
    return Parcel("t", waiting), futures


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def deliver(node: Node) -> Callable[..., list["Future[Placed]"]]:
    courier = Courier(acks="all")

    def deliver(*partitions: int | None, now_ns: int = 0) -> list["Future[Placed]"]:
        taken, futures = parcel(*partitions)
        take(courier.deliver(taken, now_ns=now_ns, now_ms=0), node)  # type: ignore[arg-type]  # scripted
        return futures

    return deliver


Deliver = Callable[..., list["Future[Placed]"]]


def test_messages_are_numbered_from_0_in_each_partition(node: Node, deliver: Deliver) -> None:
    deliver(0, 1, 0)
    places = [future.result() for future in deliver(1, 0)]

    assert node.sent == [[(0, 1, 0, 2), (1, 1, 0, 1)], [(1, 1, 1, 1), (0, 1, 2, 1)]]
    assert [(place.partition, place.offset) for place in places] == [(1, 1), (0, 2)]


def test_messages_without_a_key_stay_together_and_each_parcel_is_one_turn(
    node: Node, deliver: Deliver
) -> None:
    for _ in range(3):
        deliver(None, None)

    assert [[batch[0] for batch in request] for request in node.sent] == [[0], [1], [0]]


def test_a_request_that_is_refused_is_sent_again_message_by_message(node: Node, deliver: Deliver) -> None:
    node.problems = [no("invalid_record"), None, no("invalid_record"), None, no("invalid_record"), None]
    first, bad, last = deliver(0, 0, 1)

    # Whole; the batch of partition 0; its two messages, of which the second is bad; partition 1 …
    assert node.sent[:2] == [[(0, 1, 0, 2), (1, 1, 0, 1)], [(0, 1, 0, 2)]]
    assert all(future.done() for future in (first, bad, last))


def test_a_refused_message_takes_no_number(node: Node, deliver: Deliver) -> None:
    node.problems = [no("message_too_large", 413), None, no("message_too_large", 413), None]
    first, bad, last = deliver(0, 0, 0)

    assert node.sent == [[(0, 1, 0, 3)], [(0, 1, 0, 1)], [(0, 1, 1, 1)], [(0, 1, 1, 1)]]
    assert (first.result().offset, last.result().offset) == (0, 1)
    assert isinstance(bad.exception(), Refused)


def test_when_nobody_answers_the_next_parcel_is_of_another_producer(node: Node, deliver: Deliver) -> None:
    node.problems = [NobodyAnswers("gone")]
    [lost] = deliver(0)
    [stored] = deliver(0)

    assert isinstance(lost.exception(), NobodyAnswers)
    assert stored.result().offset == 0
    assert node.sent == [[(0, 1, 0, 1)], [(0, 2, 0, 1)]]


def test_when_nobody_answers_the_rest_of_the_parcel_is_not_tried(node: Node, deliver: Deliver) -> None:
    node.problems = [no("invalid_record"), NobodyAnswers("gone")]
    futures = deliver(0, 1, 2)

    assert len(node.sent) == 2
    assert [type(future.exception()) for future in futures[:2]] == [NobodyAnswers, NobodyAnswers]


def test_a_partition_that_does_not_know_the_producer_gets_a_new_one(node: Node, deliver: Deliver) -> None:
    deliver(0)
    node.problems = [no("out_of_sequence")]
    [again] = deliver(0)

    assert again.result().offset == 1
    assert node.sent[1:] == [[(0, 1, 1, 1)], [(0, 2, 0, 1)]]


def test_what_was_stored_too_long_ago_to_tell_where_is_stored(node: Node, deliver: Deliver) -> None:
    node.problems = [no("duplicate_sequence", 409)]
    [future] = deliver(0)

    assert (future.result().partition, future.result().offset) == (0, -1)


def test_the_partitions_of_a_topic_are_asked_for_now_and_then(node: Node, deliver: Deliver) -> None:
    deliver(0)
    deliver(0, now_ns=TOPIC_AGE_MAX_NS)
    assert node.described == 1

    node.partitions = 3
    [future] = deliver(2, now_ns=TOPIC_AGE_MAX_NS + 1)
    assert node.described == 2
    assert future.result().partition == 2
