"""Delayed messages of open transactions: stored, and due for nobody until their transaction commits.

Which they are is told by the records of `__delayed` alone, like what is open in a partition is told by its
batches: a message is held from its first record on, until one lets it go or cancels it.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class HeldMessage(NamedTuple):
    """A message, by its number, and the producer whose transaction decides on it."""

    number: int
    producer_id: int
    producer_epoch: int
    target: int


class Held:
    def __init__(self) -> None:
        self._messages: dict[int, HeldMessage] = {}
        self._by_producer: dict[int, dict[int, HeldMessage]] = {}
        self._counts: Counter[int] = Counter()

    def __iter__(self) -> Iterator[HeldMessage]:
        return iter(self._messages.values())

    def __contains__(self, message: HeldMessage) -> bool:
        return message.number in self._messages

    def of_producer(self, producer_id: int, end_number: int = sys.maxsize) -> list[HeldMessage]:
        """What a producer's open transaction has delayed, in the order it came, with lower numbers."""
        mine = self._by_producer.get(producer_id, {}).values()
        return [message for message in mine if message.number < end_number]

    def count(self, target: int) -> int:
        """How many are held for a target."""
        return self._counts[target]

    def add(self, message: HeldMessage) -> None:
        """Held from now on. One that is known, and lies elsewhere now, changes nothing."""
        self._counts[message.target] += message.number not in self._messages
        self._messages[message.number] = message
        self._by_producer.setdefault(message.producer_id, {})[message.number] = message

    def drop(self, number: int) -> None:
        """Its transaction has been decided. One that is not held changes nothing."""
        message = self._messages.pop(number, None)
        if message is not None:
            self._counts[message.target] -= 1
            mine = self._by_producer[message.producer_id]
            del mine[number]
            if not mine:
                del self._by_producer[message.producer_id]
