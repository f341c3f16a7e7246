"""The work queue in words: poll with a lease, settle by receipt, dead letters."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from goqueue.model.errors import GoQueueError, InvalidReceipt
from goqueue.model.groups import NO_GENERATION, Membership
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.places import GroupCoordinator, LeaseCoordinators, Place, Seat
from goqueue.model.settings import MiB

DEAD_LETTER_SUFFIX = ".dlq"
REDRIVE_GROUP_PREFIX = "goqueue.redrive."
"""Of the broker's own groups, one a topic: what was sent back is settled for them."""
TTL_HEADER = "goqueue-ttl-ms"
NONCE_DIGITS = 16


class Reason(Enum):
    """Why a message was moved."""

    MAX_RETRIES_EXCEEDED = "MAX_RETRIES_EXCEEDED"
    REJECTED = "REJECTED"
    TTL_EXPIRED = "TTL_EXPIRED"
    REDRIVEN = "REDRIVEN"


class Move(NamedTuple):
    """A message on its way to another topic, and the story that goes with it."""

    offset: int
    topic: TopicName
    partition: int
    reason: Reason
    attempts: int
    consumer: str
    error: str
    time_ms: int


class Receipt(NamedTuple):
    """The token for one message that is out: it names the lease, and what the holder believes to hold."""

    topic: str
    partition: int
    offset: int
    delivery_count: int
    nonce: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}:{self.delivery_count}:{self.nonce:016x}"


def parse_receipt(text: str) -> Receipt:
    """The receipt that a consumer was given; refuses what cannot be one."""
    try:
        topic, partition, offset, count, nonce = text.split(":")
        if len(nonce) == NONCE_DIGITS:
            return Receipt(topic, int(partition), int(offset), int(count), int(nonce, 16))
    except ValueError:
        pass
    raise InvalidReceipt(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """Take messages with a lease. Waits up to `wait_ms` for the first of them."""

    group: str
    member_id: str
    generation: int = NO_GENERATION
    """NO_GENERATION: not checked."""
    limit: int = 100
    max_bytes: int = 4 * MiB
    wait_ms: int = 0
    visibility_ms: int | None = None
    """How long they stay hidden from others of the group; None: as the topic says."""
    sources: Collection[TopicPartition] | None = None
    """Take from these alone; None: from all that the member may take from."""

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.group)


class PolledPart(NamedTuple):
    """Messages of one partition under one lease."""

    source: TopicPartition
    nonce: int
    messages: Sequence[StoredMessage]
    delivery_counts: dict[int, int]
    """By offset, for messages that were delivered before; all others are delivered the first time."""


class Polled(NamedTuple):
    parts: list[PolledPart]
    floors: dict[TopicPartition, int]
    """The group's committed offset in each partition asked."""
    end_offsets: dict[TopicPartition, int]
    """What there was to take when the poll began to look, in every partition of the member."""


class PassedRun(NamedTuple):
    """Messages that a group had to leave out, because nobody can read them any more."""

    first: int
    end: int
    reason: str
    time_ms: int


class Action(Enum):
    ACK = "ack"
    NACK = "nack"
    REJECT = "reject"
    EXTEND = "extend"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """What is to become of messages that are out, by their receipts."""

    action: Action
    receipts: Sequence[str]
    reason: str = ""
    delay_ms: int | None = None
    """nack: when the message may go out again; None: by the topic's back-off."""
    visibility_ms: int = 0
    """extend: for how long from now."""
    is_pledge: bool = False
    """extend: until a transaction, which may be kept by another node, settles them."""
    is_own: bool = False
    """The broker finishes what it has decided: also while it opens, and though a tenant is suspended."""

    @property
    def place(self) -> LeaseCoordinators:
        return LeaseCoordinators(self.receipts)


class CommitPolled(NamedTuple):
    """A member that polls again is done with what it was given before."""

    who: Membership

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


class KnowMember(NamedTuple):
    """A share consumer speaks: is it a member of its group?"""

    who: Membership

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


class Acquire(NamedTuple):
    """The same as a poll, for whoever has the bytes of the messages: they are named by their offsets."""

    wanted: Poll

    @property
    def wait_ms(self) -> int:
        return self.wanted.wait_ms

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.wanted.group)


class AcquiredPart(NamedTuple):
    """Messages of one partition that a share consumer has out now."""

    source: TopicPartition
    offsets: list[int]
    """They rise."""
    delivery_counts: dict[int, int]
    """Of those that were out before."""


class SettleRuns(NamedTuple):
    """What is to become of messages that a share consumer has out, named by runs of offsets that rise."""

    who: Membership
    source: TopicPartition
    runs: Sequence[tuple[int, int]]
    action: Action

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


class ReleaseAll(NamedTuple):
    """A share consumer fetches no more: what it has out goes to others at once."""

    who: Membership
    sources: Collection[TopicPartition]

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.who.group)


class ReadBatches(NamedTuple):
    """The stored batches that hold some messages, whole. The offsets rise."""

    source: TopicPartition
    offsets: Sequence[int]

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPassed:
    """What a group had to leave out, because nobody can read it any more."""

    group: str

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(self.group)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReliability:
    """What the work queue has done since the broker began, and what is out and waiting now."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeLanes:
    """What is stored, ready and out in each lane of each partition."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowseDeadLetters:
    """Dead letters of a topic that were not sent back, the oldest of each partition first."""

    topic: str
    from_offsets: Mapping[int, int] | None = None
    """Where to look on, by partition; None: at the start of all."""
    limit: int = 100

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(REDRIVE_GROUP_PREFIX + self.topic)


class SettledPart(NamedTuple):
    """Where a group stands in a partition after some of its messages were settled."""

    source: TopicPartition
    floor: int
    has_floor_moved: bool
    in_flight: int
    """What the consumer still has out."""


@dataclass(slots=True)
class SettleOutcome:
    """What became of the receipts of a request, by their place in it."""

    refusals: dict[int, GoQueueError] = field(default_factory=dict)
    parts: dict[int, SettledPart] = field(default_factory=dict)
    """By the place of the first receipt of each lease."""
    times_ms: dict[int, int] = field(default_factory=dict)
    """nack: when the message may go out again. extend: its new deadline."""
    dead_letter_topics: dict[int, str] = field(default_factory=dict)
    """Where messages went that are not to be delivered any more."""


class DeadLetter(NamedTuple):
    """A message in a dead-letter topic that has not been sent back."""

    source: TopicPartition
    message: StoredMessage


class DeadLetters(NamedTuple):
    letters: list[DeadLetter]
    next_offsets: dict[int, int]
    """Where to look on, by partition; a partition that is not here has no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendMoved:
    """Store messages that a delivery moves, each once: they bear the numbers of the delivery's producer."""

    target: TopicPartition
    batches: Sequence[tuple[bytes, int]]
    """Of one message each, with its lane, in order."""

    @property
    def place(self) -> TopicPartition:
        return self.target


class MovedTo(NamedTuple):
    """Where a message lies that was moved, and whether it is there since just now."""

    offset: int
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """Send dead letters of a topic back to where they came from."""

    topic: TopicName
    reasons: Sequence[str] = ()
    """Only those that died of one of these; none: of any."""
    group: str = ""
    """Only those of this group; empty: of any."""
    key: bytes | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    rate_per_s: float | None = None
    limit: int | None = None
    is_dry_run: bool = False

    @property
    def place(self) -> GroupCoordinator:
        return GroupCoordinator(REDRIVE_GROUP_PREFIX + self.topic)


class Redriven(NamedTuple):
    matched: int
    moved: int
    is_complete: bool
    """Whether all that match have been seen; if not, the same request goes on."""
