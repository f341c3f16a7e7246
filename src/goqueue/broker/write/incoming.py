"""The steps at a write's beginning: who may write where, and what a client has sent as record batches."""

from collections.abc import Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Lane
from goqueue.model.settings import CleanupPolicy, TopicSettings
from goqueue.records.batch import has_wishes, split_lanes
from goqueue.records.layout import BatchHeader, read_header
from goqueue.records.record_check import check_incoming
from goqueue.records.record_places import require_keys

_new_named = tuple.__new__
"""Past a named tuple's own constructor, which is Python: every publish passes here."""


class Incoming(NamedTuple):
    """Sound batches for one partition."""

    headers: Sequence[BatchHeader]
    bodies: Sequence[memoryview]
    lane: int = Lane.NORMAL
    """Of messages that do not wish for another."""
    has_wishes: bool = False
    """Whether a message in them may ask for a lane or a delay."""
    inspect_compressed: bool = False
    is_promised: bool = False
    """It was checked before and must be stored now, all of it: part of an epoch that is prepared. Of its many
    batches only the last that came later would be known again after a crash."""

    @property
    def message_count(self) -> int:
        return sum([header.record_count for header in self.headers])


def admit_partition(broker: Broker, target: TopicPartition, acks: Acks = Acks.ALL) -> Partition:
    """The partition, if it and its tenant take messages now, and its replicas do.

    That is asked before sequence numbers are looked at: a producer that has sent several batches ahead would
    else hear of a gap behind the first that was refused, begin to count anew, and send twice what is stored.
    """
    broker.admit(target.topic)
    partition = broker.partition(target)
    partition.admit_write()
    if partition.copies is not None:
        if acks is Acks.ALL:
            partition.copies.admit_all()
        else:
            partition.copies.admit_lead()
    return partition


def read_incoming(buffer: memoryview, settings: TopicSettings, lane: int = Lane.NORMAL) -> Incoming:
    """The batches in a buffer, if they are sound and no larger than the topic takes them."""
    inspect_compressed = settings.inspect_compressed
    headers, are_plain = check_incoming(
        buffer,
        max_batch_bytes=settings.max_message_bytes,
        inspect_compressed=inspect_compressed,
        is_thorough=settings.inspect_records,
    )
    wishes = not are_plain and has_wishes(buffer, headers, inspect_compressed=inspect_compressed)
    bodies = _cut(buffer, headers)
    if settings.cleanup_policy is not CleanupPolicy.DELETE:
        require_keys([*zip(headers, bodies, strict=True)])
    return _new_named(Incoming, (headers, bodies, lane, wishes, inspect_compressed, False))


def _cut(buffer: memoryview, headers: Sequence[BatchHeader]) -> list[memoryview]:
    if len(headers) == 1:
        return [buffer]  # as nearly every producer sends it
    bodies = []
    position = 0
    for header in headers:
        bodies.append(buffer[position : position + header.size_bytes])
        position += header.size_bytes
    return bodies


def in_lanes(incoming: Incoming) -> list[CheckedBatch]:
    """What is to be stored: the batches as they came, or where messages wish for other lanes one for each."""
    headers, bodies, lane, wishes, inspect_compressed, _ = incoming
    batches = [
        _new_named(CheckedBatch, (header, body, lane)) for header, body in zip(headers, bodies, strict=True)
    ]
    if not wishes:
        return batches
    return [
        CheckedBatch(header if part is body else read_header(part), part, part_lane)
        for header, body, _ in batches
        for part, part_lane in split_lanes(body, header, inspect_compressed=inspect_compressed, lane=lane)
    ]
