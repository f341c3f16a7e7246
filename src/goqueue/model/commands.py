"""Commands and replies: what a door asks of the broker and what it hears back."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from goqueue.model.cluster import NodeId
from goqueue.model.delays import Postponed
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Lane, Message, StoredMessage
from goqueue.model.places import Partitions, Place, Seat, TopicLeaders
from goqueue.model.settings import MiB
from goqueue.model.transactions import Isolation


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Messages to route, encode and store."""

    topic: TopicName
    messages: Sequence[Message]
    acks: Acks = Acks.ALL
    is_own: bool = False
    """The broker publishes for itself: no tenant's quotas stand in the way."""

    @property
    def place(self) -> TopicLeaders:
        return TopicLeaders((self.topic,))


class Placed(NamedTuple):
    """Where one message was stored."""

    partition: int
    offset: int
    lane: Lane = Lane.NORMAL


class Quarantined(NamedTuple):
    """Where one message was stored that does not fit its topic's schemas, and what is wrong with it."""

    topic: TopicName
    partition: int
    offset: int
    reason: str
    lane: Lane = Lane.NORMAL


Published = list[Placed | Postponed | Quarantined | GoQueueError]
"""One entry a message, in the order given: its place, where it waits, or why it was refused."""


class Append(NamedTuple):
    """Record batches, already built by the client, for one partition. The buffer is patched in place."""

    target: TopicPartition
    batches: memoryview
    acks: Acks
    may_join: bool = False
    """The partition becomes part of the producer's transaction by this, if it is not yet."""
    transactional_id: str | None = None
    """Whose transaction the client says it is. None: it does not say."""

    @property
    def place(self) -> TopicPartition:
        return self.target


NO_APPEND_TIME = -1
"""Messages keep the times that their producers gave."""


class Appended(NamedTuple):
    """Offsets are fixed. Await `committed` (None: nothing to wait for) before saying so to the client."""

    base_offset: int
    start_offset: int
    committed: Awaitable[None] | None
    is_duplicate: bool = False
    """It was stored before, and nothing happened now."""
    quarantined: Mapping[int, str] = {}
    """What is wrong with the messages that are in quarantine, by their places among all that were given."""
    later: Sequence["Later"] = ()
    """Those that come later. The others lie one behind the other from the base offset on."""
    append_time_ms: int = NO_APPEND_TIME
    """The time that the messages have, where the broker gives it. Nobody knows it of what comes again."""


class Later(NamedTuple):
    """A message of some that were given together which is delivered later."""

    place: int
    """Among those that were given."""
    number: int
    """Its name until it is delivered; -1: it was kept before, and nobody knows the number any more."""
    due_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEntries:
    """Record batches for many partitions in one step, each behind its address.

    The node asked reads the addresses, and each leader gets its own.
    """

    entries: memoryview
    acks: Acks

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


class EntryPlaced(NamedTuple):
    """Where one batch of a bulk write was stored."""

    target: TopicPartition
    base_offset: int
    message_count: int
    quarantined: Mapping[int, str] = {}
    later: Sequence[Later] = ()
    """Both as of batches that are appended."""


class PartitionRead(NamedTuple):
    source: TopicPartition
    offset: int
    max_bytes: int = MiB
    leader_epoch: int = -1
    """The epoch in which the reader learnt of this leader; -1 when it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Look at batches from given offsets on. Waits up to `wait_ms` until `min_bytes` are there."""

    partitions: Sequence[PartitionRead]
    min_bytes: int = 0
    max_bytes: int = 64 * MiB
    wait_ms: int = 0
    framed: bool = False
    """Hand out whole frames as they lie on the disk, several to a piece; their lanes stand in them."""
    isolation: Isolation = Isolation.COMMITTED
    """COMMITTED: nothing behind the last stable offset, and the aborted transactions are listed."""
    reader: str | None = None
    """The client that reads, or an empty text; None: the broker itself looks, which is nothing to tell of."""
    rack: str = ""
    """Where the client is, if it says: it is told of a copy there, and served by any copy that is in sync."""

    @property
    def place(self) -> Partitions:
        return Partitions([part.source for part in self.partitions])


class BatchesRead(NamedTuple):
    """Whole batches as the producer built them; the first may begin before the offset asked for."""

    batches: list[memoryview]
    size: int
    end_offset: int
    """The offset behind the last batch returned: where to read on."""
    start_offset: int
    high_watermark: int
    lanes: list[int]
    """The lane of each batch, in step with `batches`; none when frames were asked for."""
    last_stable_offset: int = -1
    """Before it every transaction is decided."""
    aborted: Sequence[tuple[int, int]] = ()
    """Read committed: (producer id, first offset) of the aborted transactions among the batches."""
    nearer: NodeId | None = None
    """Nothing was read: this node has a copy that is nearer to the reader."""


class PartitionReadFailed(NamedTuple):
    error: GoQueueError
    start_offset: int = -1
    high_watermark: int = -1


class AsideRun(NamedTuple):
    """Messages in a row that do not fit their topic's schemas, as they are kept."""

    messages: Sequence[Message]
    producer_id: int
    producer_epoch: int
    first: int
    """The number of the first; -1: they have none, and are new each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAside:
    """Put messages that do not fit into quarantine, except what is there already."""

    target: TopicPartition
    runs: Sequence[AsideRun]

    @property
    def place(self) -> TopicPartition:
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMessages:
    """Look at single messages of one partition, opened, in log order."""

    source: TopicPartition
    offset: int = 0
    from_time_ms: int | None = None
    limit: int = 100
    max_bytes: int = 4 * MiB
    wait_ms: int = 0

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRead:
    messages: list[StoredMessage]
    next_offset: int


class Spot(Enum):
    """A place in a partition that needs no offset to name it."""

    EARLIEST = "earliest"
    LATEST = "latest"
    MAX_TIMESTAMP = "max_timestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOffset:
    """A named spot of a partition, or the first message of a time (unix ms) or later."""

    source: TopicPartition
    spot: Spot | int
    isolation: Isolation = Isolation.COMMITTED
    leader_epoch: int = -1
    """The epoch in which the asker learnt of this leader; -1 when it does not say."""

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class FindEpochEnd:
    """Where an epoch of a partition ended."""

    source: TopicPartition
    epoch: int
    leader_epoch: int = -1
    """As above."""

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowWritten:
    """Have what is written committed, so that whoever looks next sees it."""

    sources: Sequence[TopicPartition] | None
    """Those that are gone are left out; None: all there are."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE if self.sources is None else Partitions(self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindOffsets:
    """The first offset of a time or later in each partition of some topics; its end when there is none."""

    topics: Sequence[str]
    time_ms: int
    only: Sequence[TopicPartition] | None = None
    """These, of whatever topic: what one of several leaders is asked for. None: all of the topics."""

    @property
    def place(self) -> Place:
        return TopicLeaders(self.topics) if self.only is None else Partitions(self.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFrames:
    """Whole frames from the one that holds an offset on; waits for one when there is none."""

    source: TopicPartition
    offset: int
    max_bytes: int
    wait_ms: int
    rack: str = ""
    """Where the reader is: a copy at the node asked will do, if that is there too and has what is wanted."""

    @property
    def place(self) -> TopicPartition:
        return self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRange:
    """Offsets that cut a range into pieces of about so many bytes."""

    source: TopicPartition
    from_offset: int
    until_offset: int
    piece_bytes: int

    @property
    def place(self) -> TopicPartition:
        return self.source


class FoundOffset(NamedTuple):
    """offset and timestamp_ms are -1 when nothing in the log answers the question."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOffsets:
    """Look at the ends of topics, by name and by pattern; waits for one to be behind `past`."""

    topics: Sequence[str] = ()
    pattern: str | None = None
    past: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The end offsets that are known already; a partition that is not here counts as new."""
    wait_ms: int = 0
    only: Sequence[TopicPartition] | None = None
    """As above, in the place of topics and pattern."""

    @property
    def place(self) -> Place:
        if self.only is not None:
            return Partitions(self.only)
        return TopicLeaders(self.topics) if self.pattern is None else Seat.EVERY_NODE


class OffsetRange(NamedTuple):
    """What of a partition can be read."""

    start_offset: int
    end_offset: int
    size_bytes: int
