"""What nodes ask each other for transactions: those that coordinate ids or groups, and those that lead.

No door takes these. Each names the epoch in which a place was led when it became part of a transaction: a
node that leads it in an earlier one knows less than it believes, and refuses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from goqueue.model.ids import TopicPartition
from goqueue.model.places import GroupCoordinator, Partitions, TransactionCoordinator
from goqueue.model.transactions import Marker, ProducerEpoch, TransactionalPartition


class Touched(NamedTuple):
    """A partition of a transaction, the epoch its leader has at least, and how far the decision reaches."""

    target: TransactionalPartition
    epoch_min: int
    end_offset: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTransaction:
    """A leader, or a group's coordinator, asks whether it may take what a producer sends in a transaction.

    The reply is the name of the open transaction; empty, where `may_be_closed` and none is open.
    """

    transactional_id: str
    producer: ProducerEpoch
    target: TransactionalPartition | None = None
    group: str | None = None
    epoch: int
    """In which the one who asks leads."""
    may_join: bool
    """The place becomes part of the transaction by this, if it is not yet."""
    may_be_closed: bool = False

    @property
    def place(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.transactional_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealTransaction:
    """A transaction is about to be decided: leaders take nothing more for it unless they have asked anew.

    The reply tells where each partition ends, when all before that is committed; -1: it is gone.
    """

    producer: ProducerEpoch
    touched: Sequence[Touched]

    @property
    def place(self) -> Partitions:
        return Partitions([one.target.source for one in self.touched])


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkTransaction:
    """A transaction is decided: its marker, into partitions in which anything of it is open."""

    producer: ProducerEpoch
    marker: Marker
    journal: int
    """Which journal has the decision, and the epoch in which the one who asks leads that."""
    coordinator_epoch: int
    touched: Sequence[Touched]

    @property
    def place(self) -> Partitions:
        return Partitions([one.target.source for one in self.touched])


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideOffsets:
    """A transaction is decided: what it gave for a group becomes the group's, or is dropped."""

    group: str
    producer: ProducerEpoch
    transaction_id: str
    marker: Marker
    journal: int
    coordinator_epoch: int
    epoch_min: int

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindProducers:
    """The transactional ids that producer ids belong to, as far as some journals of transactions know.

    All of these must be served by the one who is asked: who finds nothing anywhere concludes from that.
    """

    producer_ids: Sequence[int]
    journals: Sequence[TopicPartition]

    @property
    def place(self) -> Partitions:
        return Partitions(self.journals)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersFor:
    """Whether a coordinator answers for what a producer has open in a partition, or waiting in a group."""

    transactional_id: str
    producer: ProducerEpoch
    target: TransactionalPartition | None = None
    first_offset: int = 0
    group: str | None = None

    @property
    def place(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.transactional_id)
