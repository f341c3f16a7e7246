"""Ids: which topic, which partition, which producer."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import NamedTuple, NewType

TopicName = NewType("TopicName", str)
ProducerId = NewType("ProducerId", int)

NO_PRODUCER = ProducerId(-1)
INTERNAL_PREFIX = "__"


class TopicPartition(NamedTuple):
    """One partition of one topic; reads as `orders/0`."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


_new_place = partial(tuple.__new__, TopicPartition)


def places_of(topic: TopicName, partitions: Iterable[int]) -> Iterator[TopicPartition]:
    """Partitions of a topic by their numbers. There may be very many.

    So it goes past the named tuple's own constructor, which is Python and takes twice as long.
    """
    return map(_new_place, zip(repeat(topic), partitions, strict=False))
