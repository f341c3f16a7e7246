"""What a node was told of transactions that write to what it leads, so that it asks once for each of them.

An answer holds until the transaction is sealed, and only in the epoch in which it was asked for. One that was
under way meanwhile does not count: what it allowed would come behind the decision, and stay open for ever.
"""

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from goqueue.broker.storage.partition import Partition


class Question:
    """One that is under way, asked in an epoch of the partition."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._epoch = partition.leader_epoch
        self.is_outdated = False

    @property
    def counts(self) -> bool:
        """Whether the answer holds."""
        is_led = self._partition.is_leader and self._partition.leader_epoch == self._epoch
        return is_led and not self.is_outdated


class Verified:
    """By partition, be it a log or a group's journal; there by producer, or by group and producer."""

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[Partition, dict[Hashable, tuple[int, int, str]]] = WeakKeyDictionary()
        self._asking: WeakKeyDictionary[Partition, dict[Hashable, set[Question]]] = WeakKeyDictionary()

    def is_told(self, partition: Partition, who: Hashable, epoch: int) -> bool:
        """Whether a producer of that epoch may write in its transaction."""
        return self.name_of(partition, who, epoch) is not None

    def name_of(self, partition: Partition, who: Hashable, epoch: int) -> str | None:
        """The name of the open transaction in which it may; None: nobody has said that it may."""
        told = self._told.get(partition, {}).get(who)
        return None if told is None or told[:2] != (epoch, partition.leader_epoch) else told[2]

    def note(self, partition: Partition, who: Hashable, epoch: int, name: str) -> None:
        self._told.setdefault(partition, {})[who] = (epoch, partition.leader_epoch, name)

    @contextmanager
    def asking(self, partition: Partition, who: Hashable) -> Iterator[Question]:
        """Around a question to the coordinator."""
        question = Question(partition)
        under_way = self._asking.setdefault(partition, {}).setdefault(who, set())
        under_way.add(question)
        try:
            yield question
        finally:
            under_way.discard(question)
            all_of_partition = self._asking.get(partition, {})
            if not under_way and all_of_partition.get(who) is under_way:
                del all_of_partition[who]

    def forget(self, partition: Partition, who: Hashable) -> None:
        """A transaction is sealed or decided: what was told of it holds no more, nor what is under way."""
        if (told := self._told.get(partition)) is not None:
            told.pop(who, None)
        for question in self._asking.get(partition, {}).pop(who, ()):
            question.is_outdated = True

    def forget_all(self, partition: Partition) -> None:
        """The partition is led by another: nobody is to remember it for ever."""
        self._told.pop(partition, None)
