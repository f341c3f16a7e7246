"""What a node asks of the leader of a partition that it reads for groups and holds no copy of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicPartition
from goqueue.model.places import Partitions, Seat
from goqueue.model.transactions import OpenInPartition


class Marks(NamedTuple):
    """How far a partition can be read, by its leader."""

    leader_epoch: int
    start_offset: int
    commit_mark: int
    last_stable_offset: int
    size_bytes: int
    oldest_transaction: OpenInPartition | None = None
    """The one that holds back readers of committed messages, if any does."""


class MarksKnown(NamedTuple):
    """A partition of one topic, and what whoever asks has heard of it; -1: nothing."""

    source: TopicPartition
    topic_id: UUID
    leader_epoch: int = -1
    commit_mark: int = -1
    last_stable_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TellMarks:
    """The marks of partitions that one node leads, as soon as one of them is another than is known.

    Without a wait all of them are told, and what is written by then is committed first.
    """

    partitions: Sequence[MarksKnown]
    wait_ms: int = 0

    @property
    def place(self) -> Partitions:
        return Partitions([known.source for known in self.partitions])


@dataclass(frozen=True, slots=True)
class MarksTold:
    """By the index of the partition; those of which there is no news are left out."""

    marks: dict[int, Marks] = field(default_factory=dict)
    refused: dict[int, GoQueueError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCommitted:
    """Batches from an offset on that readers of committed messages see, and nothing else of what is there."""

    source: TopicPartition
    topic_id: UUID
    offset: int
    max_bytes: int

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmEpoch:
    """Does a node that holds a partition know of no newer leader than the one that asks?"""

    source: TopicPartition
    topic_id: UUID
    leader_epoch: int

    @property
    def place(self) -> Seat:
        return Seat.THIS_NODE
