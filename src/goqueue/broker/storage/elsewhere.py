"""Partitions that this node does not lead: those it has no word of yet, and those it does not hold."""

import asyncio
from collections.abc import Mapping, Sequence

from goqueue.broker.storage.partition import Partition
from goqueue.log.damage import Damage
from goqueue.log.partition_log import PartitionLog
from goqueue.model.cluster import NodeId
from goqueue.model.errors import GoQueueError, NotLeader
from goqueue.model.ports import Buffer
from goqueue.model.settings import TopicSettings


class Unled:
    """What stands for the other replicas until the node knows who leads: nothing is taken, nothing counts."""

    def __init__(self, partition: Partition) -> None:
        self._source = partition.source

    @property
    def is_leader(self) -> bool:
        return False

    @property
    def seen_mark(self) -> int:
        return 0

    @property
    def can_commit(self) -> bool:
        return False

    def admit_lead(self) -> None:
        raise NotLeader(*self._source)

    def admit_copy(self) -> None:
        raise NotLeader(*self._source)

    def admit_look_up(self) -> None:
        raise NotLeader(*self._source)

    def admit_all(self) -> None:
        raise NotLeader(*self._source)

    def seen(self, end_offset: int) -> "asyncio.Future[None]":
        raise NotLeader(*self._source)

    def written(self, base_offset: int, end_offset: int, buffers: Sequence[Buffer]) -> None:
        """Nothing is."""

    def flushed(self) -> None:
        """What the disk has does not count by itself."""

    def start_moved(self) -> None:
        """Nobody moves it here."""

    def gone_bad(self, reason: str) -> None:
        """Who leads is not known yet; the next pass tells of it again."""

    def progress(self) -> tuple[Mapping[NodeId, int], Mapping[NodeId, int]]:
        return {}, {}


class PartitionElsewhere(Partition):
    """A partition of which this node holds no replica: a place in its topic's list, and nothing more."""

    is_here = False

    @property
    def log(self) -> PartitionLog:
        raise NotLeader(*self.source)

    @property
    def damage(self) -> Damage | None:
        return None

    @property
    def takes_messages(self) -> bool:
        return False

    def admit_write(self) -> None:
        raise NotLeader(*self.source)

    def change_settings(self, settings: TopicSettings) -> None:
        """Whoever holds it does."""

    def close(self, error: GoQueueError) -> None:
        """There is nothing to close."""
