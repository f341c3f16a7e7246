"""Sequence numbers that idempotent producers have given to delayed messages.

Such messages are not in their partition's log yet, where sequence numbers are usually found. So they are
kept here, a batch at a time: delayed messages that come again are not stored twice, and a gap in the log
that they explain is none.
"""

from collections.abc import Iterator
from typing import NamedTuple

from goqueue.records.layout import SEQUENCE_MASK

WINDOW_MARKS = 16
_HALF = (SEQUENCE_MASK + 1) // 2


class Mark(NamedTuple):
    """A batch of a producer, numbered from `first` on, whose delayed messages are stored in `__delayed`."""

    target: int
    producer_id: int
    producer_epoch: int
    first: int
    length: int
    trailing: int
    """So many at its end were delayed: the log knows nothing of these numbers."""
    seen_ms: int
    parted_ms: int = 0
    """The time by which it was told what comes later; 0: nobody has written that down."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it came at once."""
        return self.trailing == self.length

    @property
    def end(self) -> int:
        return (self.first + self.length) & SEQUENCE_MASK


class Marks:
    """The last batches with delayed messages of each producer and partition."""

    def __init__(self) -> None:
        self._marks: dict[tuple[int, int], list[Mark]] = {}

    def __iter__(self) -> Iterator[Mark]:
        return (mark for marks in self._marks.values() for mark in marks)

    def apply(self, mark: Mark) -> None:
        """A batch has been stored. A new epoch of its producer begins anew."""
        marks = self._marks.setdefault((mark.target, mark.producer_id), [])
        if marks and marks[-1].producer_epoch != mark.producer_epoch:
            marks.clear()
        last = marks[-1] if marks else None
        if last is not None and (last.first - mark.first) & SEQUENCE_MASK < _HALF:
            if any((mark.first - known.first) & SEQUENCE_MASK < known.length for known in marks):
                return  # read back from the journal a second time
        elif last is not None and _continues(last, mark):
            # A producer of nothing but delayed messages has one mark, however many it sends.
            length = min(last.length + mark.length, _HALF - 1)
            first = (mark.end - length) & SEQUENCE_MASK
            marks[-1] = mark._replace(first=first, length=length, trailing=length)
            return
        marks.append(mark)
        del marks[:-WINDOW_MARKS]

    def holds(self, target: int, producer_id: int, producer_epoch: int, sequence: int) -> bool:
        """Whether the delayed messages of the batch that begins with this number are stored already."""
        return self.find(target, producer_id, producer_epoch, sequence) is not None

    def find(self, target: int, producer_id: int, producer_epoch: int, sequence: int) -> Mark | None:
        """The mark of the batch that begins with this number, if it was stored."""
        for mark in self._marks.get((target, producer_id), ()):
            if (
                mark.producer_epoch == producer_epoch
                and (sequence - mark.first) & SEQUENCE_MASK < mark.length
            ):
                return mark
        return None

    def of_producer(self, target: int, producer_id: int) -> list[Mark]:
        """What is known of one producer in one partition."""
        return list(self._marks.get((target, producer_id), ()))

    def explains(
        self, target: int, producer_id: int, producer_epoch: int, *, expected: int, sequence: int
    ) -> bool:
        """Whether everything between the number that the log expects and the one that came was delayed."""
        position = expected
        for mark in self._marks.get((target, producer_id), ()):
            delayed_first = (mark.end - mark.trailing) & SEQUENCE_MASK
            if (
                mark.producer_epoch == producer_epoch
                and (position - delayed_first) & SEQUENCE_MASK < mark.trailing
            ):
                position = mark.end
        return (position - sequence) & SEQUENCE_MASK < _HALF

    def expire(self, *, before_ms: int) -> None:
        """Forget producers that have been silent since then."""
        for key in [key for key, marks in self._marks.items() if marks[-1].seen_ms < before_ms]:
            del self._marks[key]


def _continues(last: Mark, mark: Mark) -> bool:
    """Whether both were delayed as a whole, and one follows the other."""
    return last.is_whole and mark.is_whole and last.end == mark.first
