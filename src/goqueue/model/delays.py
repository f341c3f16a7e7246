"""The words of delays and schedules: what is asked for and what is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers, Lane, Message
from goqueue.model.places import DelayKeeper, DelayKeepers, Place

DELAY_HEADER = "goqueue-delay-ms"
DELIVER_AT_HEADER = "goqueue-deliver-at"


class Postponed(NamedTuple):
    """A message that is stored and will be appended to its partition when it falls due."""

    partition: int
    number: int
    """With the partition, its name until it is delivered. It is no offset of that partition."""
    due_ms: int
    lane: Lane = Lane.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedView:
    """A pending message as people see it."""

    topic: TopicName
    partition: int
    number: int
    due_ms: int
    lane: Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayStats:
    """Counts since the data folder was made, but for the pending ones, which are those of now."""

    scheduled: int
    delivered: int
    cancelled: int
    dropped: int
    """Their topic was deleted before they fell due."""
    delay_ms_sum: int
    """Of all that were scheduled: how long they were to wait."""
    pending_by_topic: Mapping[TopicName, int]
    held: int
    """Part of open transactions, and not counted as pending before these commit."""
    near: int
    """Held in memory because they fall due soon."""

    @property
    def pending(self) -> int:
        return sum(self.pending_by_topic.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledMessage:
    """What a schedule publishes each time."""

    value: bytes
    key: bytes | None = None
    headers: Headers = ()
    lane: Lane = Lane.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchedule:
    topic: TopicName
    name: str
    """Empty: the broker makes one up."""
    cron: str
    time_zone: str
    message: ScheduledMessage

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(TopicName(self.topic), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    topic: TopicName
    name: str
    cron: str
    time_zone: str
    message: ScheduledMessage
    is_paused: bool
    created_ms: int
    next_due_ms: int | None
    last_due_ms: int | None
    fired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDelayed:
    """The pending messages of a topic, the next one first."""

    topic: str
    limit: int
    skip: int = 0

    @property
    def place(self) -> DelayKeepers:
        return DelayKeepers(self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class GetDelayed:
    """One pending message."""

    topic: str
    number: int
    partition: int | None = None
    """None: the one of that number, wherever it goes."""

    @property
    def place(self) -> Place:
        if self.partition is None:
            return DelayKeepers(self.topic)
        return DelayKeeper(TopicPartition(TopicName(self.topic), self.partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelDelayed:
    """A pending message is never to be delivered."""

    topic: str
    partition: int
    number: int

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(TopicName(self.topic), self.partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveDelayed:
    """Another due time for a pending message."""

    topic: str
    partition: int
    number: int
    due_ms: int

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(TopicName(self.topic), self.partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountDelayed:
    """How many messages wait, and have waited."""

    @property
    def place(self) -> DelayKeepers:
        return DelayKeepers(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCommand:
    """What one schedule is asked. Those of a topic are kept with what waits for its first partition."""

    topic: str
    name: str

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(TopicName(self.topic), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSchedule(ScheduleCommand):
    """A schedule as it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSchedule(ScheduleCommand):
    """Let a schedule rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSchedule(ScheduleCommand):
    """Wake a paused schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndSchedule(ScheduleCommand):
    """Delete a schedule, with the message that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchedules:
    """The names of a topic's schedules, sorted."""

    topic: str

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(TopicName(self.topic), 0))


# What nodes ask of each other: the keeper and the leaders of the partitions that messages go to.


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepDelayed:
    """Keep messages for partitions of a topic until they are due."""

    topic: TopicName
    topic_id: UUID
    messages: Sequence[tuple[int, Message]]
    """Each with its partition."""
    revision: int
    """Of the image in which the topic was seen: the keeper knows it too before it takes them."""

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(TopicPartition(self.topic, self.messages[0][0]))


class LaterBatch(NamedTuple):
    """The delayed messages of a record batch, and what tells the batch when it comes again."""

    producer_id: int
    producer_epoch: int
    sequence: int
    """Of its first message; -1: it is not numbered, and new each time."""
    length: int
    trailing: int
    """So many messages at its end come later."""
    parted_ms: int
    """By which time it was told what comes later."""
    messages: Sequence[Message]
    is_held: bool = False
    """It is part of a transaction: until that ends they are due for nobody."""


class ProducerMark(NamedTuple):
    """A batch, or several in a row, of a producer whose delayed messages are kept."""

    producer_id: int
    producer_epoch: int
    first: int
    length: int
    trailing: int
    seen_ms: int
    parted_ms: int


class Asker(NamedTuple):
    """The leader of a partition that messages go to, when it asks the keeper."""

    target: TopicPartition
    topic_id: UUID
    leader_epoch: int
    number: int
    """Of the question. What this leader asked before, and comes late, counts no more."""
    revision: int
    """Of the image in which the topic was seen: the keeper knows it too before it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedByLeader:
    """What a partition's leader asks of the keeper."""

    asker: Asker

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(self.asker.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindMarks(AskedByLeader):
    """Which batches of producers have delayed messages that are kept?"""

    producer_ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepBatches(AskedByLeader):
    """Keep the delayed messages of batches, and with them what tells these. The reply has the number of the
    first message of each; -1: they are kept already.
    """

    batches: Sequence[LaterBatch]
    transaction_id: str = ""
    """The open transaction that they are part of, as the leader was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDeliveries:
    """Have in the journal what was delivered to a partition: its own log, which tells it, becomes shorter."""

    target: TopicPartition

    @property
    def place(self) -> DelayKeeper:
        return DelayKeeper(self.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindDelivered:
    """What was delivered to a partition, by its log from an offset on? An older keeper is refused then."""

    target: TopicPartition
    topic_id: UUID
    keeper_epoch: int
    from_offset: int | None
    """None: nothing was yet, and only the end is wanted."""
    delayed_end: int
    """Where the journal of the delays ends."""

    @property
    def place(self) -> TopicPartition:
        return self.target


class DeliveredFound(NamedTuple):
    steps: Sequence[tuple[int, int]]
    """Due times and offsets of the journal, see `core/delays/delivered.py`."""
    end_offset: int
    """Every delivery before this offset is in the steps, and committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverDue:
    """Append messages that have fallen due, unless some were delivered that the keeper does not know of."""

    target: TopicPartition
    topic_id: UUID
    keeper_epoch: int
    known_offset: int
    """Every delivery before this offset of the partition's log is known to the keeper, and none is behind."""
    batches: Sequence[bytes]
    lanes: Sequence[int]
    numbers: Sequence[int]
    """Of the messages, by which they were known until now."""

    @property
    def place(self) -> TopicPartition:
        return self.target
