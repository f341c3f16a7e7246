"""The courier against scripted replies: what is sent, with which numbers, and what the tickets hear."""

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from goqueue.client.call import Call
from goqueue.client.calls.messages import BatchPlace
from goqueue.client.calls.topics import Topic
from goqueue.client.calls.transactions import ProducerId
from goqueue.client.courier import TOPIC_AGE_MAX_NS, Courier
from goqueue.client.errors import NobodyAnswers, Refused, UnreadableReply, refusal
from goqueue.client.messages import Acks, Placed, Priority, to_store
from goqueue.client.outbox import Parcel, Waiting
from goqueue.client.steps import take
from goqueue.model.errors import GoQueueError, Invalid, NotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import PRIORITY_HEADER, Headers, Lane
from goqueue.model.schemas import QUARANTINE_SUFFIX
from goqueue.model.settings import PARTITIONER_SETTING, Partitioner
from goqueue.records.entries import read_entries
from goqueue.records.layout import SEQUENCE_MASK, read_header
from goqueue.records.partitioners import MURMUR2_KEY_BYTES_MAX, hash_by
from goqueue.wire.logs import LaterPlace


class Node:
    """Gives out producer ids, keeps offsets, and says no when it is told to."""

    def __init__(self, *, partitions: int = 2) -> None:
        self.partitions = partitions
        self.sent: list[list[tuple[int, int, int, int]]] = []
        """For each request: partition, producer, first number and count of each batch."""
        self.described = 0
        self.settings: dict[str, str] = {}
        self.lanes: list[list[Lane]] = []
        self.acks: list[object] = []
        self.places: list[BatchPlace] | None = None
        """What is answered instead of the truth."""
        self.problems: list[Exception | None] = []
        self._producers = 0
        self._ends: dict[int, int] = {}

    def carry(self, call: Call[object]) -> object:
        if call.path == "/producers/init":
            self._producers += 1
            return ProducerId(self._producers, 0)
        if call.method == "GET":
            self.described += 1
            return Topic("t", self.partitions, 0, 0, {}, None, self.settings)  # type: ignore[arg-type]  # not looked at
        self.acks.append(call.query["acks"])
        return self._store(call.body or b"")

    def _store(self, body: bytes) -> list[BatchPlace]:
        request = []
        self.lanes.append([lane for _, lane, _ in read_entries(memoryview(body))])
        for target, _, batch in read_entries(memoryview(body)):
            header = read_header(batch)
            request.append((target.partition, header.producer_id, header.base_sequence, header.record_count))
        self.sent.append(request)
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        if self.places is not None:
            return self.places
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


def sent_by(
    node: Node,
    *given: tuple[bytes | None, Priority | None],
    courier: Courier | None = None,
    headers: Headers = (),
    acks: Acks = "all",
) -> tuple[list["Future[Placed]"], NobodyAnswers | None]:
    """Messages with these keys and priorities; what their futures hear, and whether anybody answered."""
    futures: list[Future[Placed]] = [Future() for _ in given]
    waiting = [
        Waiting(to_store("v", key=key, headers=headers, partition=None, priority=priority), future, 1, 0)
        for (key, priority), future in zip(given, futures, strict=True)
    ]
    courier = courier or Courier(acks=acks)
    silence = take(courier.deliver(Parcel("t", waiting), now_ns=0, now_ms=0), node)  # type: ignore[arg-type]  # scripted
    return futures, silence


@pytest.mark.parametrize("name", [None, *Partitioner])
def test_a_key_goes_where_the_topics_partitioner_says(name: Partitioner | None) -> None:
    node = Node(partitions=7)
    node.settings = {} if name is None else {PARTITIONER_SETTING: name}
    keys = [b"a", b"order-5", b"\xff\0", b"x" * 40]
    futures, _ = sent_by(node, *((key, None) for key in keys))

    hash_key = hash_by(name or Partitioner.MURMUR3)
    assert [future.result().partition for future in futures] == [hash_key(key) % 7 for key in keys]


def test_a_key_that_cannot_be_routed_fails_alone() -> None:
    node = Node()
    node.settings = {PARTITIONER_SETTING: Partitioner.MURMUR2}
    (bad, good), _ = sent_by(node, (b"x" * (MURMUR2_KEY_BYTES_MAX + 1), None), (b"x", None))

    assert isinstance(bad.exception(), Invalid)
    assert good.result().offset == 0


def test_a_partition_that_is_not_there_fails_alone_and_is_not_sent(node: Node, deliver: Deliver) -> None:
    below, good, above = deliver(-1, 1, 2)

    assert isinstance(below.exception(), NotFound)
    assert isinstance(above.exception(), NotFound)
    assert good.result().partition == 1
    assert node.sent == [[(1, 1, 0, 1)]]


def test_nothing_is_sent_when_nothing_can_be(node: Node, deliver: Deliver) -> None:
    deliver(9)

    assert node.sent == []


def test_lanes_have_batches_of_their_own_in_the_order_of_the_messages() -> None:
    node = Node(partitions=1)
    lanes: list[Priority | None] = ["high", "high", None, "high"]
    futures, _ = sent_by(node, *((None, lane) for lane in lanes))

    assert node.sent == [[(0, 1, 0, 2), (0, 1, 2, 1), (0, 1, 3, 1)]]
    assert node.lanes == [[Lane.HIGH, Lane.NORMAL, Lane.HIGH]]
    assert [future.result().offset for future in futures] == [0, 1, 2, 3]
    assert [future.result().priority for future in futures] == ["high", "high", "normal", "high"]


def test_a_priority_that_a_header_asks_for_is_told_too() -> None:
    (future,), _ = sent_by(Node(), (None, None), headers=((PRIORITY_HEADER, b"low"),))

    assert future.result().priority == "low"


@pytest.mark.parametrize("acks", ["all", "leader", "none"])
def test_answers_wait_for_what_was_chosen(acks: Acks) -> None:
    node = Node()
    sent_by(node, (None, None), acks=acks)

    assert node.acks == [acks]


def test_messages_that_come_later_or_were_put_aside_are_told_so() -> None:
    node = Node(partitions=1)
    node.places = [
        BatchPlace("t", 0, 10, 4, [LaterPlace(1, 77, 1_893_456_000_000)], {2: "value: no"}),
    ]
    futures, _ = sent_by(node, *[(None, None)] * 4)
    plain, later, aside, last = (future.result() for future in futures)

    assert (plain.offset, plain.delayed, plain.quarantined) == (10, False, None)
    assert (later.offset, later.delayed) == (77, True)
    assert later.deliver_at is not None
    assert later.deliver_at.isoformat() == "2030-01-01T00:00:00+00:00"
    assert (aside.offset, aside.quarantined, aside.reason) == (-1, f"t{QUARANTINE_SUFFIX}", "value: no")
    # What comes later takes no offset; what was put aside leaves the others theirs.
    assert (last.offset, last.delayed) == (12, False)


def test_numbers_begin_anew_behind_the_last_that_there_is() -> None:
    node, courier = Node(partitions=1), Courier(acks="all")
    courier._numbers = {TopicPartition(TopicName("t"), 0): SEQUENCE_MASK}
    courier._producer = ProducerId(9, 0)
    sent_by(node, (None, None), courier=courier)
    sent_by(node, (None, None), courier=courier)

    assert node.sent == [[(0, 9, SEQUENCE_MASK, 1)], [(0, 9, 0, 1)]]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_answer_with_more_or_fewer_places_than_batches_is_none(count: int) -> None:
    node, courier = Node(partitions=1), Courier(acks="all")
    node.places = [BatchPlace("t", 0, 5, 1)] * count
    (first, second), _ = sent_by(node, (None, "high"), (None, "low"), courier=courier)
    assert isinstance(first.exception(), UnreadableReply)
    assert isinstance(second.exception(), UnreadableReply)

    # Nobody knows what is stored: another producer counts anew.
    node.places = None
    sent_by(node, (None, None), courier=courier)
    assert node.sent[-1] == [(0, 2, 0, 1)]


@pytest.mark.parametrize(
    "problem",
    [no("topic_not_found", 404), no("denied", 403), no("unavailable", 503), UnreadableReply("<html>")],
    ids=lambda problem: type(problem).__name__,
)
def test_what_helps_nothing_is_told_to_all_and_nothing_known_is_relied_upon(
    node: Node, deliver: Deliver, problem: Exception
) -> None:
    deliver(0)
    node.problems = [problem]
    futures = deliver(0, 1, 0)
    assert [future.exception() for future in futures] == [problem] * 3
    assert len(node.sent) == 2

    deliver(1)
    assert node.described == 2
    assert node.sent[-1] == [(1, 2, 0, 1)]


def test_a_topic_that_cannot_be_asked_for_fails_the_parcel(node: Node) -> None:
    gone = NobodyAnswers("gone")

    class Nobody:
        def carry(self, call: Call[object]) -> object:
            raise gone

    futures, silence = sent_by(Nobody(), (None, None), (None, None))  # type: ignore[arg-type]  # scripted
    assert [future.exception() for future in futures] == [gone, gone]
    assert silence is gone


def test_only_silence_is_told_to_who_sends_the_rest(node: Node) -> None:
    node.problems = [no("topic_not_found", 404)]
    _, silence = sent_by(node, (None, None))
    assert silence is None

    node.problems = [gone := NobodyAnswers("gone")]
    _, silence = sent_by(node, (None, None))
    assert silence is gone


def test_after_silence_the_next_parcel_is_tried(node: Node, deliver: Deliver) -> None:
    node.problems = [NobodyAnswers("gone")]
    deliver(0)
    [future] = deliver(0)

    assert future.exception() is None


def test_of_batches_that_are_refused_for_their_numbers_each_is_sent_by_itself(
    node: Node, deliver: Deliver
) -> None:
    """The first was stored with its reply lost; the second does not know the producer."""
    deliver(0, 1)
    node.problems = [no("out_of_sequence", 409), no("duplicate_sequence", 409), no("out_of_sequence", 409)]
    stored, anew = deliver(0, 1)

    assert stored.result().offset == -1
    assert anew.result().offset == 1
    assert node.sent[1:] == [
        [(0, 1, 1, 1), (1, 1, 1, 1)],
        [(0, 1, 1, 1)],
        [(1, 1, 1, 1)],
        [(1, 2, 0, 1)],
    ]


@pytest.mark.parametrize("problem", [no("out_of_sequence", 409), no("invalid_record"), NobodyAnswers("gone")])
def test_a_batch_that_is_refused_anew_is_not_tried_for_ever(
    node: Node, deliver: Deliver, problem: Exception
) -> None:
    node.problems = [no("out_of_sequence", 409), problem]
    [future] = deliver(0)
    assert future.exception() is problem
    assert len(node.sent) == 2

    deliver(0)
    assert node.sent[-1] == [(0, 3, 0, 1)]


def test_who_was_called_off_meanwhile_is_left_alone(node: Node) -> None:
    cancelled: Future[Placed] = Future()
    cancelled.cancel()
    other: Future[Placed] = Future()
    message = to_store("v", key=None, headers=(), partition=0, priority=None)
    waiting = [Waiting(message, ticket, 1, 0) for ticket in (cancelled, other)]
    take(Courier(acks="all").deliver(Parcel("t", waiting), now_ns=0, now_ms=0), node)  # type: ignore[arg-type]  # scripted

    assert cancelled.cancelled()
    assert other.result().offset == 1


def test_every_problem_of_the_tree_reaches_the_tickets(node: Node, deliver: Deliver) -> None:
    """None of them may leave a sender waiting."""
    families = [kind for kind in GoQueueError.__subclasses__() if kind.__module__ == GoQueueError.__module__]
    assert len(families) >= 6
    for family in families:
        node.problems = [family.__new__(family)]
        [future] = deliver(0)
        assert isinstance(future.exception(), family)
