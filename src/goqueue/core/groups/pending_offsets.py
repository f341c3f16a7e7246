"""Offsets that wait for their transaction: they become the group's when it commits, and are gone else."""

from collections.abc import Iterator

from goqueue.model.groups import TopicOffsets


class PendingOffsets:
    """What transactional producers have given for one group, by producer."""

    def __init__(self) -> None:
        self._producers: dict[int, tuple[TopicOffsets, ...]] = {}
        self._transactions: dict[int, str] = {}
        """Whose they are, as far as that was told."""

    def __bool__(self) -> bool:
        return bool(self._producers)

    def __iter__(self) -> Iterator[tuple[int, tuple[TopicOffsets, ...]]]:
        return iter(tuple(self._producers.items()))

    def of(self, producer_id: int) -> tuple[TopicOffsets, ...]:
        """What a producer has given, in its order: what came later holds."""
        return self._producers.get(producer_id, ())

    def transaction_of(self, producer_id: int) -> str:
        """The name of the transaction that a producer has given them in; empty where nobody has said it."""
        return self._transactions.get(producer_id, "")

    def pend(self, producer_id: int, topics: tuple[TopicOffsets, ...], transaction_id: str = "") -> None:
        if transaction_id != self.transaction_of(producer_id):
            self.drop(producer_id)  # of an earlier one, which has ended
            self._transactions[producer_id] = transaction_id
        self._producers[producer_id] = self.of(producer_id) + topics

    def drop(self, producer_id: int) -> None:
        self._producers.pop(producer_id, None)
        self._transactions.pop(producer_id, None)
