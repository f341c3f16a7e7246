"""The records of `__delayed`: a message that waits, and what changes its fate.

A record keeps value and headers of its message as they are. Before the message's key stand 39 bytes that
tell what kind of record it is, when the message is due and where it goes.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import lru_cache
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.core.delays import schedules
from goqueue.core.delays.delivered import Step
from goqueue.model.errors import Corrupt
from goqueue.model.messages import Lane, Message, StoredMessage
from goqueue.records.batch import LaneBatch, encode

_HEAD = Struct(">BBqq16siB")
_MARK = Struct(">qhiii")
_HOLDER = Struct(">qqh")
_STEP = Struct(">qq")
_HAS_KEY = 1
_IS_HELD = 2
"""Behind the 39 bytes stand 18 more: when the message will be due, and whose transaction decides on it."""
HELD_MS = 2**62
"""The due time of a message whose transaction is open: behind all that can be asked for."""
PIECE_BYTES = 4096
"""A batch of `__delayed` takes no more messages beyond this: each is read by itself when it falls due."""
_RECORD_BYTES = 64
NEW = -1
"""The number of a message whose record is its first: its offset."""
_NOBODY = bytes(16)
_LANES = tuple(Lane)
SCHEDULE_EVENTS = EventCodec(schedules.EVENT_TYPES)


class Kind(IntEnum):
    MESSAGE = 0
    CANCELLED = 1
    SEQUENCES = 2
    SCHEDULE = 3
    NOTED = 4


_MESSAGE = int(Kind.MESSAGE)


class Holder(NamedTuple):
    """The producer whose transaction decides on a message, and when that is due once it has committed."""

    due_ms: int
    producer_id: int
    producer_epoch: int


class Waiting(NamedTuple):
    """A message and when it goes where."""

    number: int
    due_ms: int
    topic_id: UUID
    partition: int
    message: Message
    holder: Holder | None = None

    def held(self, producer_id: int, producer_epoch: int) -> "Waiting":
        """The same as part of an open transaction."""
        holder = Holder(self.due_ms, producer_id, producer_epoch)
        return self._replace(due_ms=HELD_MS, holder=holder)

    def let_go(self) -> "Waiting":
        """The same once its transaction has committed."""
        assert self.holder is not None, f"delayed message {self.number} is not part of a transaction"
        return self._replace(due_ms=self.holder.due_ms, holder=None)


class Cancelled(NamedTuple):
    number: int


class Sequences(NamedTuple):
    """A batch of an idempotent producer with delayed messages in it, which are stored in the same step."""

    topic_id: UUID
    partition: int
    producer_id: int
    producer_epoch: int
    first: int
    length: int
    trailing: int
    parted_ms: int = 0
    """By when it was told what of it comes later; 0 in what was written by versions that did not say."""


class Noted(NamedTuple):
    """What was delivered to a partition, told before its own log, which tells it too, is shortened."""

    topic_id: UUID
    partition: int
    scan_offset: int
    """Every delivery before this offset of the partition's log is in the steps."""
    steps: tuple[Step, ...]


Record = Waiting | Cancelled | Sequences | Noted | schedules.Event


class RecordCodec:
    """How the journal of the delays holds its records."""

    def encode_all(self, events: Sequence[Record], *, now_ms: int) -> list[LaneBatch]:
        return encode_records(events, now_ms=now_ms)

    def decode_record(self, stored: StoredMessage) -> Record:
        return decode_record(stored)


def encode_records(records: Iterable[Record], *, now_ms: int) -> list[LaneBatch]:
    """Small batches, in the order given."""
    batches: list[LaneBatch] = []
    piece: list[Message] = []
    size = 0
    for record in records:
        message = _to_message(record)
        piece.append(message)
        size += _RECORD_BYTES + len(message[0] or b"") + len(message[1] or b"")
        if size >= PIECE_BYTES:
            batches += encode(piece, now_ms=now_ms)
            piece, size = [], 0
    if piece:
        batches += encode(piece, now_ms=now_ms)
    return batches


def decode_record(stored: StoredMessage) -> Record:
    """What stands in a record of `__delayed`."""
    key = stored.key or b""
    if len(key) < _HEAD.size:
        raise Corrupt(f"__delayed holds no record of ours at offset {stored.offset}")
    kind, flags, due_ms, number, topic_id, partition, lane = _HEAD.unpack_from(key)
    rest = key[_HEAD.size :]
    if kind == _MESSAGE:  # a start reads many of these
        holder = None
        if flags & _IS_HELD:
            holder, rest = Holder(*_HOLDER.unpack_from(rest)), rest[_HOLDER.size :]
        message = Message(stored.value, rest if flags & _HAS_KEY else None, stored.headers, _LANES[lane])
        number = stored.offset if number == NEW else number
        return Waiting(number, due_ms, _topic_id(topic_id), partition, message, holder)
    match kind:
        case Kind.CANCELLED:
            return Cancelled(number)
        case Kind.SEQUENCES:
            return Sequences(_topic_id(topic_id), partition, *_MARK.unpack(rest))._replace(parted_ms=due_ms)
        case Kind.NOTED:
            steps = tuple(Step(*pair) for pair in _STEP.iter_unpack(rest))
            return Noted(_topic_id(topic_id), partition, number, steps)
        case _:
            return SCHEDULE_EVENTS.decode(stored.value or b"")


@lru_cache(maxsize=1024)
def _topic_id(data: bytes) -> UUID:
    return UUID(bytes=data)


def _to_message(record: Record) -> Message:
    if isinstance(record, Waiting):  # a thousand of these come at a time, and a pattern is slower
        number, due_ms, topic_id, partition, message, holder = record
        value, key, headers, lane = message[:4]
        flags = 0 if key is None else _HAS_KEY
        if holder is not None:
            flags |= _IS_HELD
        head = _HEAD.pack(_MESSAGE, flags, due_ms, number, topic_id.bytes, partition, lane)
        if holder is not None:
            head += _HOLDER.pack(*holder)
        return Message(value, head + (key or b""), headers)
    match record:
        case Cancelled(number):
            return Message(None, _HEAD.pack(Kind.CANCELLED, 0, 0, number, _NOBODY, 0, 0))
        case Sequences(topic_id, partition):
            head = _HEAD.pack(Kind.SEQUENCES, 0, record.parted_ms, NEW, topic_id.bytes, partition, 0)
            return Message(None, head + _MARK.pack(*record[2:-1]))
        case Noted(topic_id, partition, scan_offset, steps):
            head = _HEAD.pack(Kind.NOTED, 0, 0, scan_offset, topic_id.bytes, partition, 0)
            return Message(None, head + b"".join(_STEP.pack(*step) for step in steps))
        case _:
            return Message(
                SCHEDULE_EVENTS.encode(record), _HEAD.pack(Kind.SCHEDULE, 0, 0, NEW, _NOBODY, 0, 0)
            )
