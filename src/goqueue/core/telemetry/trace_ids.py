"""Trace ids: a message that brings none has one all the same, made of its place.

    16 digits: topic and partition, mixed   16 digits: the offset, mixed

Both halves can be turned back into what they were made of, so the message of a made id is found without an
index, after a restart too. Mixing keeps ids from looking like counters and lets collectors that sample by
the last digits sample fairly. It hides nothing: an id is no secret.
"""

import re
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from goqueue.model.telemetry import Stage, TraceContext

_MASK = 2**64 - 1
_PARTITION_BITS = 24
_PARTITION_MASK = 2**_PARTITION_BITS - 1
_TAG_BYTES = 5
_OFFSET_MAX = 2**63 - 1
# The finaliser of SplitMix64 and its inverse.
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_INVERSES = tuple(pow(multiplier, -1, 2**64) for multiplier in _MULTIPLIERS)
_TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.DOTALL)


class Place(NamedTuple):
    """What a made id is made of."""

    tag: int
    partition: int
    offset: int


def topic_tag(name: str) -> int:
    """The 40 bits that stand for a topic, by its id as text or, for one of the house, by its name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=_TAG_BYTES).digest(), "big")


class TraceIds:
    """The made ids of one cluster."""

    def __init__(self, cluster_id: str) -> None:
        digest = blake2b(cluster_id.encode(), digest_size=8, person=b"goqueue-traces").digest()
        self._key = int.from_bytes(digest, "big")

    def of_partition(self, tag: int, partition: int) -> "PartitionIds":
        return PartitionIds(_mix((tag << _PARTITION_BITS | partition) ^ self._key))

    def place_of(self, trace_id: str) -> Place | None:
        """What an id was made of; None for one that was not made here."""
        half = int(trace_id[:16], 16)
        word = _unmix(half) ^ self._key
        offset = _unmix(int(trace_id[16:], 16)) - _shift_of(half)
        if not 0 <= offset <= _OFFSET_MAX:
            return None
        return Place(word >> _PARTITION_BITS, word & _PARTITION_MASK, offset)


class PartitionIds:
    """The made ids of one partition: the first half is the same for all its messages."""

    __slots__ = ("_half", "_shift")

    def __init__(self, half: int) -> None:
        self._half = f"{half:016x}"
        self._shift = _shift_of(half)

    def trace_id(self, offset: int) -> str:
        return f"{self._half}{_mix(offset + self._shift):016x}"

    def traceparents(self, offsets: range) -> list[str]:
        """Hundreds at a time, each in a fourth of the time."""
        words = np.arange(offsets.start, offsets.stop, offsets.step, dtype=np.uint64) + np.uint64(self._shift)
        words = (words ^ words >> np.uint64(30)) * np.uint64(_MULTIPLIERS[0])
        words = (words ^ words >> np.uint64(27)) * np.uint64(_MULTIPLIERS[1])
        digits = (words ^ words >> np.uint64(31)).astype(">u8").tobytes().hex(" ", words.itemsize)
        start = f"00-{self._half}"
        return [f"{start}{own}-{own}-01" for own in digits.split()]

    def traceparent(self, offset: int) -> bytes:
        """What a consumer is told: the trace, and as its parent the message's first span."""
        digits = f"{_mix(offset + self._shift):016x}"
        return f"00-{self._half}{digits}-{digits}-01".encode()


def parse_traceparent(value: bytes | None) -> TraceContext | None:
    """The trace that a header names; None for what W3C would have ignored."""
    match = _TRACEPARENT.fullmatch(value or b"")
    if match is None or match[1] == b"ff" or (match[1] == b"00" and match[4]):
        return None
    trace_id, span_id = match[2].decode(), match[3].decode()
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceContext(trace_id, span_id)


def root_span_id(context: TraceContext, topic: str, partition: int, offset: int) -> str:
    """The first span of a message. In a made trace it is the id's second half."""
    if context.parent_span_id is None:
        return context.trace_id[16:]
    return span_id(context, Stage.RECEIVED, topic, partition, offset)


def span_id(
    context: TraceContext,
    stage: Stage,
    topic: str,
    partition: int,
    offset: int,
    group: str = "",
    time_us: int = 0,
) -> str:
    """16 digits that are the same whoever tells of the span."""
    text = f"{context.trace_id}\n{stage.value}\n{topic}\n{partition}\n{offset}\n{group}\n{time_us}"
    digest = blake2b(text.encode(), digest_size=8).hexdigest()
    return digest if int(digest, 16) else f"{1:016x}"


def _shift_of(half: int) -> int:
    """Equal offsets of two partitions are to look different.

    It is not 0 and below 2^63: an offset added to it is not 0 either, and no mixed one is.
    """
    return half >> 1 | 1


def _mix(word: int) -> int:
    word = (word ^ word >> 30) * _MULTIPLIERS[0] & _MASK
    word = (word ^ word >> 27) * _MULTIPLIERS[1] & _MASK
    return word ^ word >> 31


def _unmix(word: int) -> int:
    word ^= word >> 31 ^ word >> 62
    word = word * _INVERSES[1] & _MASK
    word ^= word >> 27 ^ word >> 54
    word = word * _INVERSES[0] & _MASK
    return word ^ word >> 30 ^ word >> 60
