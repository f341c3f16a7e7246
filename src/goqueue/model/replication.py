"""Words of replication: what replicas of a partition say to each other, and what a replica asks of its node.

A follower follows a leader in a *session*, whose number only grows on that node. Frames are named by offsets:
their bytes travel beside the message, and no machine ever holds them. Which node a message came from, and in
which incarnation, is the connection's knowledge and stands in no message.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from goqueue.model.cluster import Incarnation, NodeId, PartitionRecord

NO_EPOCH = -1
"""The epoch of a log without messages."""


class Image(Protocol):
    """What a node has heard of the store."""

    @property
    def revision(self) -> int:
        """All that was changed up to it has been heard, of records as of registrations."""


class ReplicaLog(Protocol):
    """What a replica looks at in its log. Offsets are ends, exclusive."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int:
        """All before it is written."""

    @property
    def flushed_offset(self) -> int:
        """All before it is durable."""

    @property
    def last_epoch(self) -> int:
        """The epoch of the newest messages; NO_EPOCH: there are none."""

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The last epoch not above the one asked for, and the offset where it ended; (-1, -1): none known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """A follower's question: may I go on from here? It begins a session."""

    session: int
    topic_id: UUID
    partition: int
    epoch: int
    start_offset: int
    end_offset: int
    durable_offset: int
    last_epoch: int
    """The epoch of the last message in the log; NO_EPOCH when it holds none."""


class Answer(StrEnum):
    GO = "go"
    """Frames follow from the end of the follower's log on."""
    CUT = "cut"
    """Cut to where that epoch ends, here or there, whichever is less; then ask again."""
    BEGIN = "begin"
    """The leader's log starts behind the follower's: drop it, begin at `start_offset`, ask again."""
    FENCED = "fenced"
    """The follower's epoch has passed: wait for the record of the newer one."""
    LATER = "later"
    """The leader does not know yet that it leads, or cannot look now: ask again in a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """A leader's answer to `Follow`."""

    session: int
    answer: Answer
    epoch: int = NO_EPOCH
    """cut: the epoch of which the end is told. fenced: the leader's own."""
    end_offset: int = 0
    """cut: where that epoch ended in the leader's log."""
    start_offset: int = 0
    commit_mark: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """Whole steps of frames from one offset to another, or none of them and only the news of the marks."""

    session: int
    base_offset: int
    end_offset: int
    commit_mark: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """How far a follower is; said after each write and after each fsync."""

    session: int
    written_offset: int
    durable_offset: int


Message = Follow | Following | Frames | Ack


@dataclass(frozen=True, slots=True)
class Send:
    """Say something to another node. `Frames` come from `Replica.frames_to`, with bytes, never by this.

    A `Following` without a question ends the session that it names: there are no more frames in it.
    """

    target: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class WriteFrames:
    """Check what came and write it behind the log's end, then tell `written`; `durable` when it is that."""

    base_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class CutTo:
    """Cut the log there, durably, then tell `reopened`."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class BeginAt:
    """Drop the log and begin an empty one there, durably, then tell `reopened`."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class MoveStart:
    """The leader has given up what lies before."""

    start_offset: int


@dataclass(frozen=True, slots=True)
class ProposeRecord:
    """Put a record in the place of the one of that revision, then tell `proposed`.

    `joining`: only while that node has that incarnation, as it is whose log was looked at.
    """

    record: PartitionRecord
    revision: int
    joining: tuple[NodeId, Incarnation] | None = None


@dataclass(frozen=True, slots=True)
class CommitMarkMoved:
    """All before it counts."""

    offset: int


@dataclass(frozen=True, slots=True)
class SeenMarkMoved:
    """All before it is written by every in-sync replica."""

    offset: int


@dataclass(frozen=True, slots=True)
class BecameLeader:
    epoch: int
    begun_at: int
    """The end of the log then: look-ups that need the commit mark wait until it is there."""


@dataclass(frozen=True, slots=True)
class BecameFollower:
    """Whoever waits for an offset of an earlier leadership here is told that it leads no more."""

    epoch: int
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class Resigned:
    """It leads no more and never again in this epoch; the record proposed with it asks for another leader."""

    epoch: int


@dataclass(frozen=True, slots=True)
class FollowLater:
    """Ask again in a while, by `begin_session`."""


Effect = (
    Send
    | WriteFrames
    | CutTo
    | BeginAt
    | MoveStart
    | ProposeRecord
    | CommitMarkMoved
    | SeenMarkMoved
    | BecameLeader
    | BecameFollower
    | Resigned
    | FollowLater
)
