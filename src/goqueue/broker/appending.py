"""The last step of every write: batches into a partition, each once.

What a door takes in comes here through the write room; what the broker writes for itself (dead letters and
their way back, delayed messages, quarantine, epochs of sinks, markers) comes here directly. Whether a batch
is stored already is told by its sequence numbers, and asked in this module only.
"""

from collections.abc import Awaitable, Iterable, Sequence
from typing import NamedTuple

from goqueue.broker.storage.journal import Submitted
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import NO_APPEND_TIME, Appended
from goqueue.model.errors import DuplicateSequence, StorageFailed
from goqueue.model.messages import Acks, Message
from goqueue.records.batch import LaneBatch, encode
from goqueue.records.layout import (
    CONTROL,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    SEQUENCE_MASK,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
    stamp_producer,
    stamp_time,
)


class Numbering(NamedTuple):
    """How strictly a producer counts its messages."""

    first_max: int = 0
    """It begins at 0, or anywhere up to this."""
    may_skip: bool = False
    """It has only to count upwards: what lies between is elsewhere."""


class Stored(NamedTuple):
    """Where batches lie, and whether they are there since just now."""

    base_offset: int
    is_new: bool


LONG_AGO = -1
"""The offset of what was stored too long ago to tell where."""
STRICT = Numbering()
UPWARDS = Numbering(may_skip=True)


def batches_of(messages: Sequence[Message], *, now_ms: int) -> list[CheckedBatch]:
    """Messages as they are stored, one batch or more for each run of a lane."""
    return checked(encode(messages, now_ms=now_ms))


def checked(built: Iterable[LaneBatch]) -> list[CheckedBatch]:
    """Batches that were built here, of which nothing needs to be checked."""
    return [CheckedBatch(read_header(body), body, lane) for body, lane in built]


def numbered_batches(
    messages: Sequence[Message], *, producer_id: int, producer_epoch: int, first: int, now_ms: int
) -> list[CheckedBatch]:
    """The same of a producer that counts, from `first` on."""
    batches = []
    for body, lane in encode(messages, now_ms=now_ms):
        sequence = first & SEQUENCE_MASK
        stamp_producer(body, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence)
        header = read_header(body)
        batches.append(CheckedBatch(header, body, lane))
        first += header.record_count
    return batches


def find_stored(
    partition: Partition, header: BatchHeader, count: int, numbering: Numbering = STRICT
) -> int | None:
    """The offset of batches that are stored already, by the header of the first; None: they are new.

    Raises DuplicateSequence where that is too long ago to tell, and OutOfSequence before a gap.
    """
    if header.producer_id < 0 or header.base_sequence == NO_SEQUENCE:
        return None
    first_max, may_skip = numbering
    return partition.producers.duplicate(header, count, first_max=first_max, may_skip=may_skip)


def append_once(
    partition: Partition, batches: Sequence[CheckedBatch], numbering: Numbering = STRICT
) -> Stored:
    """Append batches unless they are there, which the first of them tells. Without numbers they are new."""
    header = batches[0].header
    count = header.last_offset_delta + 1  # numbers are counted where messages went to quarantine, too
    try:
        stored_offset = find_stored(partition, header, count, numbering)
    except DuplicateSequence:
        return Stored(LONG_AGO, is_new=False)
    if stored_offset is not None:
        return Stored(stored_offset, is_new=False)
    if partition.stamps_time and not header.attributes & CONTROL:  # a marker's time is the broker's already
        batches = _timed(partition, batches)
    return Stored(partition.append(batches), is_new=True)


def _timed(partition: Partition, batches: Sequence[CheckedBatch]) -> Sequence[CheckedBatch]:
    """Batches whose messages have the time of now."""
    time_ms = partition.now_ms()
    for batch in batches:
        stamp_time(batch.body, time_ms)
    return [CheckedBatch(read_header(body), body, lane) for _, body, lane in batches]


def append_time_of(body: memoryview) -> int:
    """The time that the broker gave to a batch's messages when it was stored."""
    header = read_header(body)
    return header.max_timestamp_ms if header.attributes & LOG_APPEND_TIME else NO_APPEND_TIME


def store(partition: Partition, batches: Sequence[CheckedBatch], count: int, acks: Acks) -> Appended:
    """Append batches of so many messages that are known to be new."""
    if acks is Acks.ALL:
        partition.admit_all()
    if partition.stamps_time:
        batches = _timed(partition, batches)
    base_offset = partition.append(batches)
    if acks is Acks.ALL and not batches[0].header.attributes & TRANSACTIONAL:
        answered = partition.answered(base_offset + count)
        outcome = Appended(base_offset, partition.log.start_offset, answered)
    else:
        outcome = appended(partition, base_offset, count, acks)
    if partition.stamps_time:
        return outcome._replace(append_time_ms=append_time_of(batches[0].body))
    return outcome


def appended(partition: Partition, base_offset: int, count: int, acks: Acks) -> Appended:
    """The answer to whoever has stored messages, with what is left to wait for: the disks.

    Also where the topic asks for less: when something was stored that comes again is not known, and a
    transaction that is decided names its messages on the disks of others.
    """
    committed = partition.committed(base_offset + count) if acks is Acks.ALL else None
    return Appended(base_offset, partition.log.start_offset, committed)


async def await_all(*waits: Awaitable[None] | None) -> None:
    """One wait for several, of which some are over."""
    for wait in waits:
        if wait is not None:
            await wait


class OwnWrites:
    """Batches that the broker moves somewhere, and counts as moved when the disk has all of them.

    A partition that fails meanwhile comes back in another epoch, perhaps without the first of them.
    """

    def __init__(self, partitions: Iterable[Partition] = (), submitted: Sequence[Submitted] = ()) -> None:
        self._epochs = {partition: partition.leader_epoch for partition in partitions}
        self._submitted = submitted
        """What belongs to them in journals. Those have no other epoch: one that fails ends the process."""

    def append_once(self, partition: Partition, batches: Sequence[CheckedBatch]) -> Stored:
        self._epochs.setdefault(partition, partition.leader_epoch)
        return append_once(partition, batches)

    async def durable(self) -> None:
        """Return when the disk has everything; raises StorageFailed where it must be written again."""
        # All are asked for before the first is waited for, so that they share a round of fsyncs.
        asked = [partition.committed(partition.log.end_offset) for partition in self._epochs]
        await await_all(*asked, *[one.committed() for one in self._submitted])
        for partition, leader_epoch in self._epochs.items():
            if partition.leader_epoch != leader_epoch:
                raise StorageFailed(f"{partition.source} was opened anew while it was written to")
