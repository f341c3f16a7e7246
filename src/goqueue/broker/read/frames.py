"""What a bulk reader asks: where partitions begin and end, where to cut them, and their frames unopened."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.read import read, visible_frames, wait_for_bytes
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable
from goqueue.broker.tenants.quotas import admit_reader
from goqueue.log.partition_log import storage_error
from goqueue.model.cluster import NodeId
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    FindOffsets,
    OffsetRange,
    PartitionRead,
    PartitionReadFailed,
    Read,
    ReadFrames,
    SplitRange,
    WatchOffsets,
)
from goqueue.model.errors import GoQueueError, Invalid
from goqueue.model.ids import TopicPartition

PIECES_MAX = 10_000
"""A range is never cut into more pieces than this; they become larger instead."""
PATTERN_LENGTH_MAX = 1_000
REPEATS_MAX = 3
"""Matching takes time to the power of its repeats, on the loop that serves everybody."""
_REPEATS = re.compile(r"[*+{]")
_REPEATED_GROUP = re.compile(r"\)[*+{]")


async def read_frames(broker: Broker, command: ReadFrames) -> BatchesRead:
    """Whole frames from the one that holds `offset` on; waits for one when there is none."""
    return await _read_frames(broker, command, rack="")


async def read_near_frames(broker: Broker, command: ReadFrames) -> BatchesRead | None:
    """The same from the copy that is here, as far as it goes by what it knows to count.

    None: who leads is to be asked. This node is in another rack, its copy is not in sync, ends before what is
    wanted, or cannot be read: whatever is wrong, the leader says it.
    """
    here = broker.metadata.nodes.get(NodeId(broker.config.node_id))
    if here is None or not command.rack or here.rack != command.rack:
        return None
    try:
        found = await _read_frames(broker, replace(command, wait_ms=0), rack=command.rack)
    except GoQueueError:
        return None
    return found if found.end_offset > command.offset else None


async def _read_frames(broker: Broker, command: ReadFrames, *, rack: str) -> BatchesRead:
    if broker.tenants.accounts:
        admit_reader(broker, command.source, 1)
    part = PartitionRead(command.source, command.offset, command.max_bytes)
    reading = Read(
        partitions=[part],
        min_bytes=1,
        max_bytes=command.max_bytes,
        wait_ms=command.wait_ms,
        framed=True,
        reader="",
        rack=rack,
    )
    [outcome] = await read(broker, reading)
    if isinstance(outcome, PartitionReadFailed):
        raise outcome.error
    return await visible_frames(broker, outcome)


async def watch_offsets(broker: Broker, command: WatchOffsets) -> dict[TopicPartition, OffsetRange]:
    """Where partitions begin and end. Waits until one ends behind what the caller knows of it."""
    watched = watched_by(broker, command)
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    is_first_time = True
    while True:
        partitions = _partitions(broker, watched(), command.only)
        if is_first_time and any(partition.has_hidden for partition in partitions):
            is_first_time = False
            await commit_written(partitions)
            continue
        ranges = {partition.source: _range_of(partition) for partition in partitions}
        left_ns = deadline_ns - broker.clock.monotonic_ns()
        has_more = any(found.end_offset > command.past.get(at, -1) for at, found in ranges.items())
        if has_more or left_ns <= 0 or not broker.is_open:
            return ranges
        await wait_for_bytes(broker, partitions, 1, left_ns)


async def offsets_at(broker: Broker, command: FindOffsets) -> dict[TopicPartition, int]:
    """The first offset of that time or later in each partition; its end when there is none."""
    offsets = {}
    partitions = _partitions(broker, command.topics, command.only)
    await commit_written(partitions)
    for partition in partitions:
        # Taken before the look-up: what arrives meanwhile is behind it and is not passed over.
        end_offset = partition.last_stable_offset
        found = await find_offset(broker, FindOffset(source=partition.source, spot=command.time_ms))
        offsets[partition.source] = end_offset if found.offset < 0 else found.offset
    return offsets


async def split_points(broker: Broker, command: SplitRange) -> list[int]:
    """Offsets that cut a range into pieces of about so many bytes: both its ends, batch borders between."""
    if command.from_offset > command.until_offset:
        raise Invalid(f"a range from {command.from_offset} cannot end before it, at {command.until_offset}")
    if command.from_offset == command.until_offset:
        return [command.from_offset]
    log = broker.readable(command.source).log
    piece_bytes = max(command.piece_bytes, log.size_bytes // PIECES_MAX)
    try:
        cuts = await broker.threads.run(
            log.split, command.from_offset, command.until_offset, piece_bytes=piece_bytes
        )
    except OSError as error:
        raise storage_error(error, f"look-up in {command.source}") from error
    return [command.from_offset, *cuts, command.until_offset]


def _compile(pattern: str) -> Callable[[str], object]:
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise Invalid(f"a pattern has at most {PATTERN_LENGTH_MAX} characters, not {len(pattern)}")
    if len(_REPEATS.findall(pattern)) > REPEATS_MAX or _REPEATED_GROUP.search(pattern):
        raise Invalid(f"a pattern has at most {REPEATS_MAX} of '*', '+' and '{{', and none behind a group")
    try:
        return re.compile(pattern).fullmatch
    except (re.error, RecursionError, OverflowError) as error:
        raise Invalid(f"{pattern!r} is not a regular expression: {error}") from error


def watched_by(broker: Broker, command: WatchOffsets) -> Callable[[], Iterable[str]]:
    """Gives the topics that are watched, by name and by pattern, as there are now."""
    matches = None if command.pattern is None else _compile(command.pattern)

    def topics() -> Iterable[str]:
        matching = [] if matches is None else sorted(name for name in broker.topics if matches(name))
        return dict.fromkeys([*command.topics, *matching])

    return topics


def _partitions(
    broker: Broker, topics: Iterable[str], only: Iterable[TopicPartition] | None
) -> list[Readable]:
    if only is not None:
        return [broker.readable(source) for source in only]
    return [partition for topic in topics for partition in broker.topic(topic).readables]


def _range_of(partition: Readable) -> OffsetRange:
    log = partition.log
    return OffsetRange(log.start_offset, partition.last_stable_offset, log.size_bytes)
