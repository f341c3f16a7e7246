"""What is asked of producers and transactions, one command a verb; most are the id's coordinator's."""

from collections.abc import Sequence
from dataclasses import dataclass

from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.places import GroupCoordinator, Place, Seat, TopicLeaders, TransactionCoordinator
from goqueue.model.transactions import Marker, ProducerEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeProducerId:
    """An id for a producer without transactions, never given twice. Each node has a block of them."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer:
    """A transactional producer begins, or begins anew: whoever had the id before is fenced."""

    transactional_id: str
    timeout_ms: int
    current: ProducerEpoch | None = None
    """What the producer believes to be, when it asks for its next epoch after an error."""

    @property
    def place(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.transactional_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOnce:
    """One message of a producer that numbers its messages; part of its transaction while one is open."""

    topic: TopicName
    message: Message
    producer: ProducerEpoch
    sequence: int | None = None
    """None: the broker counts, and a message that comes twice is stored twice."""
    names_time: bool = False
    """It is to come later, or was: the time that it names may have passed since it came first."""

    @property
    def place(self) -> Place:
        if self.message.partition is None:
            return TopicLeaders((self.topic,))
        return TopicPartition(self.topic, self.message.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandProducer:
    """Whether whoever asks may write under a producer: not where its transactions are somebody else's."""

    topic: TopicName
    """To which."""
    producer: ProducerEpoch

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCommand:
    """What a producer asks within its transaction."""

    transactional_id: str
    producer: ProducerEpoch

    @property
    def place(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.transactional_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class HearProducer:
    """A producer speaks. The reply is the transactional id that it may speak for."""

    producer: ProducerEpoch
    transactional_id: str = ""
    """Empty: whichever is the producer's, which any node finds out."""
    is_heartbeat: bool = False
    """From its first heartbeat on a producer has to say that it is there, before its session is over."""

    @property
    def place(self) -> Place:
        if self.transactional_id:
            return TransactionCoordinator(self.transactional_id)
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransaction(TransactionCommand):
    """Open a transaction before it touches anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsToTransaction(TransactionCommand):
    """Partitions that the transaction will write to."""

    targets: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPartition(TransactionCommand):
    """Is a partition part of the open transaction?"""

    target: TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class AddGroupToTransaction(TransactionCommand):
    """A consumer group whose offsets the transaction will commit."""

    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReceiptsToTransaction(TransactionCommand):
    """Messages of queue groups that are acknowledged when the transaction commits."""

    receipts: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendOffsets:
    """Offsets that become the group's when the transaction commits."""

    transactional_id: str
    producer: ProducerEpoch
    who: Membership
    commits: Sequence[TopicCommit]
    may_join: bool = False
    """The group becomes part of the transaction by this, if it is not yet."""

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction(TransactionCommand):
    """Commit or abort all that was done since the transaction began."""

    marker: Marker
    until_complete: bool = False
    """For a producer that writes on at once, without a step that would wait for the markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAndBump(TransactionCommand):
    """The same for a producer whose transactions have an epoch each."""

    marker: Marker


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransaction:
    """For operators: abort an open transaction, by its name or transactional id, and fence its producer."""

    name: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortOpenIn:
    """For operators: end what a producer has open in a partition, with all of its transaction."""

    target: TopicPartition
    producer: ProducerEpoch

    @property
    def place(self) -> TopicPartition:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeTransaction:
    """A transactional id as it is now."""

    transactional_id: str

    @property
    def place(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.transactional_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTransactions:
    """All transactional ids, by name."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTransactions:
    """How many transactions there are and how they ended, and those that are open."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeProducers:
    """Who has written to a partition lately."""

    source: TopicPartition

    @property
    def place(self) -> TopicPartition:
        return self.source
