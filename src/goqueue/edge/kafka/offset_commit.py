"""OffsetCommit: how far a group has read. Hot, because consumers commit all the time, so packed by hand.

Almost always the text beside an offset is empty. Then all partitions of a topic have the same size, and
one call reads them all; the first row that says otherwise sends the reader down the long way.

A client may send commits without waiting for replies. They are begun one behind the other and share an
fsync, and the heartbeat behind them is heard before the disk is done with all of them.
"""

from collections.abc import Awaitable, Sequence
from functools import lru_cache
from struct import Struct

from goqueue.broker.access.needs import group_need
from goqueue.broker.access.warden import Warden
from goqueue.broker.groups.offsets import CommitBegun, Refusals, begin_commit
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code
from goqueue.edge.kafka.later import Answer, Later, Wait
from goqueue.edge.kafka.wire import INT32, NO_TAGS, Reader, count, string
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import Membership, OffsetRow, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition

FIRST_FLEXIBLE = 8
_WITH_THROTTLE_TIME = 3
_WITHOUT_RETENTION = 5
_WITH_LEADER_EPOCH = 6
_WITH_INSTANCE_ID = 7

_NO_EPOCH = -1
_PARTITION_AND_OFFSET = Struct(">iq")
_SHORT_ROW = Struct(">iqiH")
"""Partition, offset, epoch, and a text that is empty or null: its length, which in flexible versions is one
byte, one more than it means, and followed by one for no tags."""
_NO_TEXT = frozenset({0x0000, 0xFFFF})
_NO_TEXT_FLEXIBLE = frozenset({0x0000, 0x0100})
_OUTCOME = Struct(">ih")
_OUTCOME_FLEXIBLE = Struct(">ihx")
_NOT_THROTTLED = INT32.pack(0)


class CommitOutcome:
    """What became of one request."""

    __slots__ = ("_commits", "_version", "denied", "refusals")

    def __init__(self, version: int, commits: Sequence[TopicCommit]) -> None:
        self._version = version
        self._commits = commits
        self.refusals: Refusals = {}
        self.denied: Refusals = {}
        """What whoever asks may not commit; the rest is committed."""

    def leave_out(self, warden: Warden, command: CommitOffsets) -> CommitOffsets:
        """What of it whoever asks may commit. Raises NotAllowed when it is none of their group."""
        warden.demand([group_need(Operation.READ, command.who.group)])
        denied = warden.denied(Operation.READ, (commit.topic for commit in command.commits))
        if not denied:
            return command
        self.denied = {
            TopicPartition(commit.topic, row[0]): denied[commit.topic]
            for commit in command.commits
            if commit.topic in denied
            for row in commit.rows
        }
        return command._replace(commits=[each for each in command.commits if each.topic not in denied])

    def fail(self, error: GoQueueError) -> None:
        """Refuse all of it."""
        self.refusals = {
            TopicPartition(commit.topic, row[0]): error for commit in self._commits for row in commit.rows
        }

    def encode(self) -> bytes:
        """The body of the reply."""
        codes = {target: coordinator_code(error).value for target, error in self.refusals.items()}
        flexible = self._version >= FIRST_FLEXIBLE
        parts = [_NOT_THROTTLED] if self._version >= _WITH_THROTTLE_TIME else []
        parts.append(count(len(self._commits), flexible=flexible))
        for topic, rows in self._commits:
            parts += (string(topic, flexible=flexible), count(len(rows), flexible=flexible))
            if codes:
                outcome = _OUTCOME_FLEXIBLE if flexible else _OUTCOME
                parts += [outcome.pack(row[0], codes.get(TopicPartition(topic, row[0]), 0)) for row in rows]
            else:
                parts.append(_all_well(len(rows), flexible=flexible).pack(*[row[0] for row in rows]))
            if flexible:
                parts.append(NO_TAGS)
        if flexible:
            parts.append(NO_TAGS)
        return b"".join(parts)


def offset_commit(context: Context, version: int, reader: Reader) -> Answer | Awaitable[Answer]:
    """Keep offsets; the reply waits for the disk."""
    command = decode_commit(version, reader)
    outcome = CommitOutcome(version, command.commits)
    try:
        command = outcome.leave_out(context.broker.warden, command)
        begun = begin_commit(context.broker, command)
    except GoQueueError as error:
        return _refused(outcome, error)
    return _begun(outcome, begun) if isinstance(begun, CommitBegun) else _opened_and_begun(outcome, begun)


async def _opened_and_begun(outcome: CommitOutcome, beginning: Awaitable[CommitBegun]) -> Answer:
    """The first of a group may have to wait for its journal."""
    try:
        return _begun(outcome, await beginning)
    except GoQueueError as error:
        return _refused(outcome, error)


def _begun(outcome: CommitOutcome, begun: CommitBegun) -> Answer:
    outcome.refusals = {**outcome.denied, **begun.refusals}
    committed = begun.committed
    if committed is None:
        return [outcome.encode()]
    return Later([Wait(outcome, committed)], outcome.encode)


def _refused(outcome: CommitOutcome, error: GoQueueError) -> Answer:
    outcome.fail(error)
    return [outcome.encode()]


def decode_commit(version: int, reader: Reader) -> CommitOffsets:
    """Who commits, and what."""
    flexible = version >= FIRST_FLEXIBLE
    group = reader.string(flexible=flexible)
    generation = reader.int32()
    member_id = reader.string(flexible=flexible)
    instance_id = reader.string_or_null(flexible=flexible) if version >= _WITH_INSTANCE_ID else None
    if version < _WITHOUT_RETENTION:
        reader.int64()  # how long to keep the offsets: they are kept until they are deleted
    commits = []
    for _ in range(reader.count(flexible=flexible)):
        topic = TopicName(reader.string(flexible=flexible))
        commits.append(TopicCommit(topic, _rows(version, reader)))
        if flexible:
            reader.skip_tags()
    return CommitOffsets(Membership(group, member_id, generation, instance_id), commits)


def _rows(version: int, reader: Reader) -> list[OffsetRow]:
    flexible = version >= FIRST_FLEXIBLE
    row_count = reader.count(flexible=flexible)
    if version >= _WITH_LEADER_EPOCH and row_count * _SHORT_ROW.size <= reader.left:
        end = reader.position + row_count * _SHORT_ROW.size
        no_text = _NO_TEXT_FLEXIBLE if flexible else _NO_TEXT
        rows = [
            (partition, offset, epoch, "")
            for partition, offset, epoch, text in _SHORT_ROW.iter_unpack(reader.buffer[reader.position : end])
            if text in no_text
        ]
        if len(rows) == row_count:
            reader.position = end
            return rows
    return [_row(version, reader, flexible=flexible) for _ in range(row_count)]


def _row(version: int, reader: Reader, *, flexible: bool) -> OffsetRow:
    partition, offset = reader.unpack(_PARTITION_AND_OFFSET)
    epoch = reader.int32() if version >= _WITH_LEADER_EPOCH else _NO_EPOCH
    text = reader.string_or_null(flexible=flexible)
    if flexible:
        reader.skip_tags()
    return partition, offset, epoch, text or ""


@lru_cache(maxsize=64)
def _all_well(row_count: int, *, flexible: bool) -> Struct:
    """Many outcomes at once, none of them an error: partitions, with zeros for code and tags in between."""
    return Struct(">" + ("i3x" if flexible else "i2x") * row_count)
