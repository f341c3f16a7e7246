"""Messages on their way to another topic, in the order in which they go.

Each gets a sequence number of the delivery's own producer when the journal hears of it. A crash between
writing a message and noting that it is written makes it be written again, with the same number: the
target partition tells that it has it.
"""

from collections.abc import Iterable, Iterator

from goqueue.model.delivery import Move
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName, TopicPartition

_SEQUENCE_MASK = 0x7FFF_FFFF


class Moves:
    def __init__(
        self,
        producer_id: ProducerId,
        next_sequences: Iterable[tuple[TopicName, int, int]],
        pending: Iterable[tuple[Move, int]],
    ) -> None:
        self.producer_id = producer_id
        self._next_sequences = {
            TopicPartition(topic, partition): sequence for topic, partition, sequence in next_sequences
        }
        self._pending = {move.offset: (move, sequence) for move, sequence in pending}

    def __iter__(self) -> Iterator[int]:
        return iter(self._pending)

    def __bool__(self) -> bool:
        return bool(self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def pop(self, offset: int, default: None) -> None:
        """A message is where it should be."""
        self._pending.pop(offset, default)

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER

    def pending(self) -> tuple[tuple[Move, int], ...]:
        """What is to be moved, with its sequence number, in order."""
        return tuple(self._pending.values())

    def next_sequences(self) -> tuple[tuple[TopicName, int, int], ...]:
        return tuple((*target, sequence) for target, sequence in self._next_sequences.items())

    def begin(self, move: Move) -> None:
        if move.offset not in self._pending:
            self._pending[move.offset] = (move, self._number(move))

    def take_producer(self, producer_id: ProducerId) -> None:
        """A new producer begins to count at 0."""
        self.producer_id = producer_id
        self._next_sequences.clear()
        for move, _ in self.pending():
            self._pending[move.offset] = (move, self._number(move))

    def _number(self, move: Move) -> int:
        target = TopicPartition(move.topic, move.partition)
        sequence = self._next_sequences.get(target, 0)
        self._next_sequences[target] = (sequence + 1) & _SEQUENCE_MASK
        return sequence
