"""Idempotent producers of one partition: which batches were stored lately, by sequence number.

A producer numbers its messages per partition. The last five batches of each are remembered with
their offsets: one of them sent again is answered with its first place, a gap is refused, and so is a
producer of an older epoch. The state can be rebuilt from the batch headers alone.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from goqueue.model.errors import DuplicateSequence, OutOfSequence, ProducerFenced
from goqueue.model.ids import NO_PRODUCER, ProducerId
from goqueue.records.layout import NO_SEQUENCE, SEQUENCE_MASK, BatchHeader

WINDOW_BATCHES = 5
_HALF = (SEQUENCE_MASK + 1) // 2


class StoredBatch(NamedTuple):
    """A run of sequence numbers and where it lies."""

    base_sequence: int
    message_count: int
    base_offset: int
    lane: int


@dataclass(slots=True)
class _Producer:
    epoch: int
    seen_ms: int
    batches: deque[StoredBatch] = field(default_factory=lambda: deque(maxlen=WINDOW_BATCHES))

    @property
    def next_sequence(self) -> int:
        last = self.batches[-1]
        return (last.base_sequence + last.message_count) & SEQUENCE_MASK


class Producers:
    """The producers that wrote to one partition."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}
        self._forgotten_max = NO_PRODUCER
        """The largest id ever forgotten. Ids only grow: an unknown one above it has never been here."""

    def __len__(self) -> int:
        return len(self._producers)

    def all(self) -> list[tuple[int, int, int, int]]:
        """Id, epoch, last sequence number (-1: none in this epoch) and when it was last seen, for each."""
        return [
            (
                producer_id,
                producer.epoch,
                (producer.next_sequence - 1) & SEQUENCE_MASK if producer.batches else NO_SEQUENCE,
                producer.seen_ms,
            )
            for producer_id, producer in self._producers.items()
        ]

    def last_ends(self) -> dict[int, int]:
        """Of each the offset behind its last batch, if it has any in this epoch."""
        return {
            producer_id: producer.batches[-1].base_offset + producer.batches[-1].message_count
            for producer_id, producer in self._producers.items()
            if producer.batches
        }

    def next_sequence(self, producer_id: int, epoch: int) -> int:
        """The number that is due next from a producer that leaves the counting to the broker."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch or not producer.batches:
            return 0
        return producer.next_sequence

    def duplicate(
        self, header: BatchHeader, count: int, *, first_max: int = 0, may_skip: bool = False
    ) -> int | None:
        """The offset of a batch that is stored already, None for a new one; refuses what does not fit.

        `count` messages may come in several batches, of which `header` is the first. A producer begins to
        count at 0, or anywhere up to `first_max`; one that `may_skip` numbers has only to count upwards.
        """
        if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
            return None
        producer = self._producers.get(header.producer_id)
        if producer is None:
            is_start = header.base_sequence <= first_max or may_skip
            if not is_start and header.producer_id > self._forgotten_max:
                # Its first batch was refused or is yet to come: behind this one it would seem a duplicate.
                raise OutOfSequence(f"a new producer starts at sequence 0, not {header.base_sequence}")
            return None
        if header.producer_epoch < producer.epoch:
            raise ProducerFenced(
                f"producer {header.producer_id} has moved on to epoch {producer.epoch}; "
                f"this batch is of epoch {header.producer_epoch}"
            )
        if header.producer_epoch > producer.epoch:
            if header.base_sequence > first_max and not may_skip:
                raise OutOfSequence(f"a new producer epoch starts at sequence 0, not {header.base_sequence}")
            return None
        for batch in producer.batches:
            distance = (header.base_sequence - batch.base_sequence) & SEQUENCE_MASK
            if distance + count <= batch.message_count:
                return batch.base_offset + distance
        if not producer.batches and header.base_sequence <= first_max:
            return None
        expected = producer.next_sequence if producer.batches else 0
        if header.base_sequence == expected:
            return None
        if (expected - header.base_sequence) & SEQUENCE_MASK < _HALF:
            raise DuplicateSequence(f"sequence {header.base_sequence} was stored before; {expected} is next")
        if may_skip:
            return None
        raise OutOfSequence(f"sequence {header.base_sequence} came where {expected} is due")

    def apply(self, header: BatchHeader, *, base_offset: int, count: int, lane: int, seen_ms: int) -> None:
        """A batch of a producer has been stored."""
        if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
            return
        producer = self._producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch, seen_ms)
        stored = StoredBatch(header.base_sequence, count, base_offset, lane)
        last = producer.batches[-1] if producer.batches else None
        if last is not None and _continues(last, stored):
            producer.batches[-1] = last._replace(message_count=last.message_count + count, lane=lane)
        else:
            producer.batches.append(stored)
        producer.seen_ms = max(producer.seen_ms, seen_ms)

    def fence(self, producer_id: int, epoch: int, *, seen_ms: int) -> None:
        """A marker has been stored: batches of older epochs are refused from here on."""
        producer = self._producers.get(producer_id)
        if producer is not None and producer.epoch < epoch:
            self._producers[producer_id] = _Producer(epoch, seen_ms)

    def expire(self, *, before_ms: int) -> None:
        """Forget producers that have been silent since then."""
        silent = [pid for pid, producer in self._producers.items() if producer.seen_ms < before_ms]
        for producer_id in silent:
            del self._producers[producer_id]
            self._forgotten_max = max(self._forgotten_max, ProducerId(producer_id))

    def snapshot(self) -> dict[str, Any]:
        """The state in plain values, for the recovery point."""
        return {
            "forgotten_max": self._forgotten_max,
            "producers": [
                [producer_id, producer.epoch, producer.seen_ms, [list(batch) for batch in producer.batches]]
                for producer_id, producer in self._producers.items()
            ],
        }

    def restore(self, snapshot: Any) -> None:
        """Begin from a recovery point; from nothing when there is none."""
        self._producers.clear()
        self._forgotten_max = NO_PRODUCER
        if snapshot:
            self._forgotten_max = snapshot["forgotten_max"]
            for producer_id, epoch, seen_ms, batches in snapshot["producers"]:
                stored = deque(map(StoredBatch._make, batches), WINDOW_BATCHES)
                self._producers[producer_id] = _Producer(epoch, seen_ms, stored)


def _continues(last: StoredBatch, stored: StoredBatch) -> bool:
    """Whether a batch is the next piece of one that was split because its messages are of several lanes."""
    return (
        last.lane != stored.lane
        and last.base_offset + last.message_count == stored.base_offset
        and (last.base_sequence + last.message_count) & SEQUENCE_MASK == stored.base_sequence
    )
