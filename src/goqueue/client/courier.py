"""Brings parcels to a node as numbered record batches, so that what is sent again is stored once.

The node remembers the last batches of each producer in each partition by their numbers. A batch whose reply
was lost is simply sent again, with the same numbers. When nobody answers for so long that the courier gives
up, it cannot know whether the batch is stored: the messages' futures say so, and a new producer id begins to
count anew. One parcel is on its way at a time, so messages of a partition keep their order.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from goqueue.client.calls import messages, topics, transactions
from goqueue.client.calls.messages import BatchPlace
from goqueue.client.calls.transactions import ProducerId
from goqueue.client.errors import NobodyAnswers, RefusedFenced, RefusedInvalid, UnreadableReply
from goqueue.client.messages import Acks, Placed, priority_of
from goqueue.client.outbox import Parcel, Waiting, fail
from goqueue.client.steps import PROBLEMS, Steps, ask
from goqueue.model.errors import DuplicateSequence, Invalid, NotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.schemas import QUARANTINE_SUFFIX
from goqueue.model.settings import PARTITIONER_SETTING, Partitioner
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from goqueue.records.layout import SEQUENCE_MASK, stamp_producer
from goqueue.records.partitioners import hash_by
from goqueue.records.wishes import lane_asked

TOPIC_AGE_MAX_NS = 60 * 1_000_000_000
"""How long the number of a topic's partitions is taken for true. It can only grow."""


class _Batch(NamedTuple):
    """Messages of one partition and lane, in order."""

    target: TopicPartition
    lane: Lane
    waiting: list[Waiting]


class _Topic(NamedTuple):
    partitions: int
    hash_key: Callable[[bytes], int]
    known_ns: int


class Courier:
    """One producer id, how far it has counted in each partition, and the partitions of each topic."""

    def __init__(self, *, acks: Acks) -> None:
        self._acks = acks
        self._producer: ProducerId | None = None
        self._numbers: dict[TopicPartition, int] = {}
        self._topics: dict[str, _Topic] = {}
        self._turns: dict[str, int] = {}
        self._now_ms = 0
        """The time that the messages of the parcel under way get."""
        self._silence: NobodyAnswers | None = None
        """That nobody has answered for the parcel under way: so nobody will for the rest of it."""

    def deliver(self, parcel: Parcel, *, now_ns: int, now_ms: int) -> Steps[NobodyAnswers | None]:
        """Bring a parcel; then each of its tickets has its place or what went wrong.

        Gives the problem where nobody answered: what has waited as long need not be tried for as long again.
        """
        self._now_ms, self._silence = now_ms, None
        try:
            topic = yield from self._topic(parcel.topic, now_ns)
        except PROBLEMS as problem:
            self._fail(parcel.waiting, problem)
        else:
            yield from self._send_all(self._routed(parcel, topic))
        return self._silence

    def _topic(self, topic: str, now_ns: int) -> Steps[_Topic]:
        known = self._topics.get(topic)
        if known is None or now_ns - known.known_ns > TOPIC_AGE_MAX_NS:
            found = yield from ask(topics.describe(topic))
            # A node that is older than the setting routes by murmur3.
            name = Partitioner(found.settings.get(PARTITIONER_SETTING, Partitioner.MURMUR3))
            known = self._topics[topic] = _Topic(found.partitions, hash_by(name), now_ns)
        return known

    def _routed(self, parcel: Parcel, known: _Topic) -> list[_Batch]:
        """As the broker routes, but that messages without a key stay together: each parcel is one turn."""
        count, hash_key, _ = known
        topic = TopicName(parcel.topic)
        turn = self._turns[parcel.topic] = (self._turns.get(parcel.topic, -1) + 1) % count
        routed: dict[int, list[Waiting]] = {}
        for waiting in parcel.waiting:
            partition, key = waiting.message.partition, waiting.message.key
            if partition is None:
                try:
                    partition = hash_key(key) % count if key else turn
                except Invalid as problem:
                    fail([waiting], problem)
                    continue
            elif not 0 <= partition < count:
                fail([waiting], NotFound(f"topic {topic} has no partition {partition}"))
                continue
            routed.setdefault(partition, []).append(waiting)
        return [
            _Batch(TopicPartition(topic, partition), lane, list(run))
            for partition, all_of_it in routed.items()
            for lane, run in groupby(all_of_it, key=lambda waiting: waiting.message.lane)
        ]

    def _send_all(self, batches: list[_Batch]) -> Steps[None]:
        """All in one request; where that is refused, part by part: each message has its own answer."""
        if not batches:
            return
        if self._silence is not None:
            self._fail([waiting for batch in batches for waiting in batch.waiting], self._silence)
            return
        try:
            yield from self._send(batches)
        except RefusedFenced as problem:
            if len(batches) > 1:
                # What lies before the one that was refused is stored, and is told so when it comes again.
                for batch in batches:
                    yield from self._send_all([batch])
            elif problem.code == DuplicateSequence.code:
                self._answer(batches[0])
            else:
                yield from self._send_anew(batches[0])
        except RefusedInvalid as problem:
            parts = batches if len(batches) > 1 else _singles(batches[0])
            if len(parts) == 1:
                fail(parts[0].waiting, problem)
                return
            for part in parts:
                yield from self._send_all([part])
        except PROBLEMS as problem:
            # Its topic is gone, or nobody knows whether it is stored: nothing we know can be relied upon.
            self._forget(batches[0].target.topic)
            self._fail([waiting for batch in batches for waiting in batch.waiting], problem)

    def _send(self, batches: list[_Batch]) -> Steps[None]:
        if self._producer is None:
            self._producer = yield from ask(transactions.init_producer())
        places = yield from ask(
            messages.append_batches(self._packed(batches, self._producer), acks=self._acks)
        )
        if len(places) != len(batches):
            raise UnreadableReply(f"{len(batches)} batches were sent, and {len(places)} are told of")
        for batch, place in zip(batches, places, strict=True):
            self._answer(batch, place)

    def _send_anew(self, batch: _Batch) -> Steps[None]:
        """The partition does not know this producer, so the batch is not there: count anew."""
        self._forget(batch.target.topic)
        try:
            yield from self._send([batch])
        except PROBLEMS as problem:
            self._forget(batch.target.topic)
            self._fail(batch.waiting, problem)

    def _packed(self, batches: Sequence[_Batch], producer: ProducerId) -> bytes:
        numbers = dict(self._numbers)
        entries = []
        for target, lane, waiting in batches:
            [(body, _)] = encode([one.message for one in waiting], now_ms=self._now_ms)
            number = numbers.get(target, 0)
            stamp_producer(
                body,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=number,
            )
            numbers[target] = (number + len(waiting)) & SEQUENCE_MASK
            entries.append(encode_entry(target, lane, body))
        return b"".join(entries)

    def _answer(self, batch: _Batch, place: BatchPlace | None = None) -> None:
        """Tell each message where it is; without a place it is stored and nobody knows where."""
        target, _, waiting = batch
        self._numbers[target] = (self._numbers.get(target, 0) + len(waiting)) & SEQUENCE_MASK
        for one, placed in zip(waiting, _places(batch, place), strict=True):
            if not one.ticket.done():
                one.ticket.set_result(placed)

    def _fail(self, waiting: list[Waiting], problem: Exception) -> None:
        if isinstance(problem, NobodyAnswers):
            self._silence = problem
        fail(waiting, problem)

    def _forget(self, topic: str) -> None:
        self._producer = None
        self._numbers.clear()
        self._topics.pop(topic, None)


def _places(batch: _Batch, place: BatchPlace | None) -> Iterator[Placed]:
    """Where each message of a batch is."""
    target, lane, waiting = batch
    later = {} if place is None else {one.index: one for one in place.delayed}
    offset = -1 if place is None else place.base_offset
    for index, one in enumerate(waiting):
        priority = priority_of(lane_asked(one.message.headers, index, lane))
        if index in later:
            due = datetime.fromtimestamp(later[index].due_ms / 1_000, UTC)
            yield Placed(target.partition, later[index].number, priority, delayed=True, deliver_at=due)
            continue
        if place is not None and index in place.quarantined:
            aside, reason = target.topic + QUARANTINE_SUFFIX, place.quarantined[index]
            yield Placed(target.partition, -1, priority, quarantined=aside, reason=reason)
        else:
            yield Placed(target.partition, offset, priority)
        offset += place is not None


def _singles(batch: _Batch) -> list[_Batch]:
    return [_Batch(batch.target, batch.lane, [waiting]) for waiting in batch.waiting]
