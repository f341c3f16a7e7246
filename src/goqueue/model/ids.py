"""Ids: which topic, which partition, which producer."""

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
