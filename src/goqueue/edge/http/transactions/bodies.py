"""The JSON of the routes for producers and transactions.

Clients of several makes speak to these routes: what one of them leaves out has a default, and replies
have the keys of all of them.
"""

from collections.abc import Sequence
from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct, field

from goqueue.edge.http.groups.bodies import OffsetBody, OffsetMap
from goqueue.edge.http.parts.bodies import MessageBody
from goqueue.wire import transactions as wire
from goqueue.wire.pages import Next
from goqueue.wire.times import Time

_INT32 = Meta(ge=-(2**31), le=2**31 - 1)
_INT64 = Meta(ge=-(2**63), le=2**63 - 1)
_SEQUENCE = Meta(ge=-1, le=2**31 - 1)
_RECEIPTS_MAX = 10_000

Number = Annotated[int, _INT64]


class InitProducerBody(Struct):
    """A producer. Without a transactional id it only has its messages stored once."""

    transactional_id: str | None = None
    transaction_timeout_ms: (
        Annotated[int, _INT64, Meta(description="0 or absent: the server's default, a minute.")] | None
    ) = None


class ProducerReply(Struct):
    producer_id: int
    epoch: int
    transactional_id: str | None = None


class ProducerBeat(Struct):
    """A sign of life of a producer."""

    epoch: Number = 0
    transactional_id: str | None = None


class BeatReply(Struct):
    status: Literal["ok"] = "ok"
    success: Literal[True] = True


class TransactionBody(Struct):
    """Who speaks, for which transactional id. Absent, it is the one that the producer holds."""

    producer_id: Number
    epoch: Number = 0
    transactional_id: str | None = None


class BeginReply(Struct):
    transaction_id: str
    status: Literal["begun"] = "begun"


class PublishOnceBody(MessageBody, kw_only=True):
    """A message of a producer, part of its transaction while one is open."""

    producer_id: Number
    epoch: Number = 0
    topic: str
    sequence: (
        Annotated[
            int,
            _SEQUENCE,
            Meta(
                description="Counts the producer's messages to a partition, from 0 or 1. Where the server "
                "chooses the partition it has only to rise. Absent or -1: the server counts."
            ),
        ]
        | None
    ) = None


class PublishedOnceReply(Struct, omit_defaults=True):
    """`duplicate`: the message was stored before; the offset is -1 when nobody knows any more where.

    `quarantined`: it does not fit the topic's schemas and was stored in its quarantine instead. `delayed`: it
    is delivered later, and the offset is its number among the delayed messages until then.
    """

    partition: int
    offset: int
    duplicate: bool
    quarantined: bool = False
    delayed: bool = False
    deliver_at: str | None = field(default=None, name="deliverAt")


class AddPartitionBody(TransactionBody, kw_only=True):
    topic: str
    partition: Annotated[int, _INT32] = 0


class AddOffsetsBody(TransactionBody, kw_only=True):
    """What the transaction has consumed: it counts as read, or acknowledged, when it commits."""

    group: Annotated[str, Meta(description="Whose offsets they are.")] | None = None
    offsets: (
        Annotated[
            OffsetMap | list[OffsetBody],
            Meta(description="Where the group reads on, as in a commit of offsets."),
        ]
        | None
    ) = None
    member_id: str | None = None
    generation: Annotated[int, _INT32] | None = None
    receipt_handles: (
        Annotated[
            list[str],
            Meta(max_length=_RECEIPTS_MAX, description="Of messages that were polled by a queue group."),
        ]
        | None
    ) = None


ListedStates = Literal["open", "all"]
StateWord = Literal[
    "empty",
    "ongoing",
    "preparing_commit",
    "preparing_abort",
    "completed_commit",
    "completed_abort",
    "dead",
]


class StatusReply(Struct):
    status: Literal["added", "committed", "aborted"]


TouchedPartition = wire.TouchedPartition


class TransactionRow(wire.TransactionView[Time], Generic[Time], frozen=True, kw_only=True):
    """One transactional id and its last transaction."""

    start_time: Time


class TransactionList(Struct, omit_defaults=True):
    transactions: list[TransactionRow[str]]
    count: int
    next: Next = None


class ProducerStatsBody(Struct):
    active: int = field(name="ActiveProducers")
    sequence_states: int = field(name="SequenceStates")
    next_producer_id: int = field(name="NextProducerID")
    by_state: dict[str, int] = field(name="ProducersByState")


class JournalStatsBody(Struct):
    size_bytes: int = field(name="WALSizeBytes")
    records: int = field(name="RecordsSinceSnapshot")
    last_sync_time: str | None = field(name="LastSyncTime")
    has_snapshot: bool = field(name="SnapshotExists")
    is_enabled: bool = field(name="WALEnabled")


class TransactionStatsReply(wire.TransactionStats[Time], Generic[Time], frozen=True, kw_only=True):
    """Both sets of keys that clients know."""

    active: int = field(name="ActiveTransactions")
    by_state: dict[str, int] = field(name="TransactionsByState")
    producers: ProducerStatsBody = field(name="ProducerStats")
    journal: JournalStatsBody = field(name="LogStats")
    longest_open: Sequence[TransactionRow[Time]]
