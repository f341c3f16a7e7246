"""The order of questions between the leaders of partitions and the keeper of the delays.

A leader asks about a partition one thing after another, and each question has a number. The keeper refuses
what was asked before the last that it has heard: whoever asked that has given it up.
"""

import asyncio
from itertools import count
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from goqueue.broker.storage.partition import Partition

Asked = tuple[int, int]
"""The epoch of the leader, and the number of its question."""


class Turns:
    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[Partition, asyncio.Lock] = WeakKeyDictionary()
        self._numbers = count(1)
        self._heard: dict[tuple[UUID, int], Asked] = {}

    # The leader's side.

    def lock(self, partition: "Partition") -> asyncio.Lock:
        """Who holds it asks about a partition."""
        return self._locks.setdefault(partition, asyncio.Lock())

    def next_number(self) -> int:
        return next(self._numbers)

    # The keeper's side.

    def hear(self, topic_id: UUID, partition: int, asked: Asked, *, known_epoch: int) -> bool:
        """Note a question; False where a later one was heard, or there is a leader of a later epoch."""
        if asked < max(self._heard.get((topic_id, partition), (0, 0)), (known_epoch, 0)):
            return False
        self._heard[topic_id, partition] = asked
        return True

    def forget_heard(self) -> None:
        """Another node is the keeper from now on."""
        self._heard.clear()
