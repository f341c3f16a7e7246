"""Offsets that wait for their transaction: they become the group's when it commits, and are gone else."""

from collections.abc import Iterator

from goqueue.model.groups import TopicOffsets


class PendingOffsets:
    """What transactional producers have given for one group, by producer."""

    def __init__(self) -> None:
        self._producers: dict[int, tuple[TopicOffsets, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._producers)

    def __iter__(self) -> Iterator[tuple[int, tuple[TopicOffsets, ...]]]:
        return iter(tuple(self._producers.items()))

    def of(self, producer_id: int) -> tuple[TopicOffsets, ...]:
        """What a producer has given, in its order: what came later holds."""
        return self._producers.get(producer_id, ())

    def pend(self, producer_id: int, topics: tuple[TopicOffsets, ...]) -> None:
        self._producers[producer_id] = self.of(producer_id) + topics

    def drop(self, producer_id: int) -> None:
        self._producers.pop(producer_id, None)
