"""Transactions in words: what a reader may see, the states of one, and how it looks from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple
from uuid import UUID

from goqueue.model.ids import ProducerId, TopicName, TopicPartition

NO_EPOCH = -1
"""The epoch of a producer that does not say which one it is in."""
EPOCH_MAX = 32_766
"""An epoch is an int16; behind this one a transactional id goes on under a new producer id."""


class Isolation(Enum):
    """What a reader may see: all that is in the log, or only what no abort can take back."""

    UNCOMMITTED = "read_uncommitted"
    COMMITTED = "read_committed"


class TransactionState(Enum):
    """The states of a transaction, by the names that Kafka's tools show."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"

    @property
    def is_prepared(self) -> bool:
        """Whether it is decided how the transaction ends, and the markers are on their way."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class Marker(IntEnum):
    """How a transaction ended, by Kafka's numbers for control records."""

    ABORT = 0
    COMMIT = 1


class AbortedTransaction(NamedTuple):
    """The messages of one producer that an abort took back, between two offsets of a partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Where the abort marker stands."""
    last_stable_offset: int
    """That of the partition when the marker was written: later aborts begin at or behind it."""


class ProducerEpoch(NamedTuple):
    """Who writes: a producer and the epoch in which it believes to be."""

    producer_id: ProducerId
    epoch: int


class TransactionalPartition(NamedTuple):
    """A partition that a transaction has written to. The id tells a topic from one of the same name."""

    topic: TopicName
    topic_id: UUID
    partition: int

    @property
    def source(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class Reach(NamedTuple):
    """How far a decision reaches: what lies behind these offsets is of a later transaction."""

    end_offsets: tuple[int, ...]
    """Where each of its partitions ended when it was decided."""
    delayed_end: int
    """The same of the delayed messages."""


class Epochs(NamedTuple):
    """In which epoch each place of a transaction was led at least when it became part of it.

    Who leads one in an earlier epoch was replaced, and does not know all that was written there.
    """

    partitions: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()


class PublishedOnce(NamedTuple):
    """Where the message is. `is_duplicate`: it was there before; offset -1: so long ago that nobody knows."""

    partition: int
    offset: int
    is_duplicate: bool
    is_quarantined: bool = False
    """It does not fit the topic's schemas and is in quarantine; nothing stands at its offset."""
    due_ms: int | None = None
    """When it will be delivered. Until then the offset is its number among the delayed messages."""


class OpenInPartition(NamedTuple):
    """A transaction that holds back readers of a partition: by whom, from where on, since when."""

    producer_id: int
    epoch: int
    first_offset: int
    started_ms: int


class OpenTransaction(NamedTuple):
    """The same with its names, which are empty when no transactional id answers for it."""

    transaction_id: str
    transactional_id: str
    producer: ProducerEpoch
    first_offset: int
    started_ms: int


class ActiveProducer(NamedTuple):
    """A producer that has written to a partition lately."""

    producer_id: int
    epoch: int
    last_sequence: int
    seen_ms: int
    open_from: int
    """Where its open transaction begins in the partition; -1: none is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionView:
    """A transactional id as people and doors see it."""

    transactional_id: str
    transaction_id: str
    """Names this one transaction, for HTTP; empty before the first."""
    producer: ProducerEpoch
    state: TransactionState
    timeout_ms: int
    started_ms: int
    """-1: none has begun yet."""
    partitions: Sequence[TopicPartition]
    groups: Sequence[str]
    receipt_count: int = 0
    """Messages of queue groups that are acknowledged with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStats:
    """All transactions at a glance."""

    by_state: Mapping[TransactionState, int]
    committed: int
    """Since the broker has started, like the next two."""
    aborted: int
    average_ms: float
    sequence_states: int
    """Producers that partitions remember, each partition for itself."""
    next_producer_id: int
    journal_bytes: int
    journal_events: int
    is_synced: bool
    """Whether the disk has all of the journals."""
    longest_open: Sequence[TransactionView]
    """The open ones, the oldest first: they hold readers of committed messages back."""
