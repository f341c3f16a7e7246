"""read: look at batches or messages from an offset on, waiting for more when there are too few."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import check_epoch, find_offset
from goqueue.broker.read.large_batches import open_large, place_of
from goqueue.broker.read.nearest import nearer_copy
from goqueue.broker.slices import Slices
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable, ReadableLog, ReadElsewhere
from goqueue.broker.storage.waiters import ReadWaiter
from goqueue.broker.tenants.quotas import admit_owner, admit_reader, charge_reader
from goqueue.log.reading import ANY_SIZE, Chunk, NotCached, from_disk, from_memory
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    MessagesRead,
    PartitionRead,
    PartitionReadFailed,
    Read,
    ReadMessages,
)
from goqueue.model.errors import (
    Corrupt,
    GoQueueError,
    InvalidRecord,
    OffsetOutOfRange,
)
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.settings import KiB, MiB
from goqueue.model.transactions import Isolation
from goqueue.records.batch import open_batch
from goqueue.records.control import is_transactional
from goqueue.records.frame import FLAG_TRANSACTIONAL, FRAME_BYTES, frame_borders
from goqueue.records.large_batch import is_large
from goqueue.records.layout import CONTROL, TRANSACTIONAL, read_header

ReadOutcome = BatchesRead | PartitionReadFailed

SHARE_BYTES = 4 * MiB
"""So much is copied and checked before others get their turn on the loop, however much a reader wants: 2 ms.

Smaller ones would cost more than they spare: memory in pieces of 1 MiB goes back to the system and is
cleared for us anew each time, which takes thrice as long as the copy.
"""
_SHARE_COUNT = 500
"""So many partitions are looked at before others may have their turn."""
_FIRST_BYTES = 256 * KiB
"""Messages are mostly small: a reader of a thousand needs little of all that it might have."""
COLD_SHARE_BYTES = 8 * MiB
"""The same in a thread, where the copying hinders nobody and the checking little."""


async def read(broker: Broker, command: Read) -> list[ReadOutcome]:
    """One outcome a partition, in the order asked. Failures and enough bytes answer at once."""
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    is_first_time = True
    while True:
        outcomes, is_full = await _read_all(broker, command)
        size = sum(outcome.size for outcome in outcomes if isinstance(outcome, BatchesRead))
        # What has failed, and who is better off elsewhere, is told at once; so is what leaves no room.
        must_tell = is_full or any(
            isinstance(outcome, PartitionReadFailed) or outcome.nearer for outcome in outcomes
        )
        if size < max(command.min_bytes, 1) and is_first_time:
            is_first_time = False
            if hidden := await _hidden_from(broker, command):
                await commit_written(hidden)
                continue
        left_ns = deadline_ns - broker.clock.monotonic_ns()
        if size >= command.min_bytes or must_tell or left_ns <= 0 or not broker.is_open:
            if size and command.reader is not None:
                _tell(broker, command, outcomes, command.reader)
                if broker.tenants.accounts:
                    _charge(broker, command, outcomes)
            return outcomes
        await _wait(broker, command, outcomes, command.min_bytes - size, left_ns)


async def read_messages(broker: Broker, command: ReadMessages) -> MessagesRead:
    """Single messages of one partition, in log order. An offset before the log's start means its start."""
    if broker.tenants.accounts:
        limit = admit_reader(broker, command.source, command.limit)
        command = replace(command, limit=limit)
    found = await _open_messages(broker, command)
    if found.messages:
        first, end = found.messages[0].offset, found.messages[-1].offset + 1
        size = sum(len(message.value or b"") for message in found.messages)
        broker.telemetry.of(command.source).read(first, end, size, "", broker.clock.wall_us())
        if broker.tenants.accounts:
            charge_reader(broker, command.source, len(found.messages), size)
    return found


async def _open_messages(broker: Broker, command: ReadMessages) -> MessagesRead:
    partition = broker.readable(command.source)
    partition.admit_read()
    offset = command.offset
    if command.from_time_ms is not None:
        place = await find_offset(broker, FindOffset(source=command.source, spot=command.from_time_ms))
        offset = partition.last_stable_offset if place.offset < 0 else place.offset
    if offset >= partition.commit_mark:
        partition.admit_look_up()  # a new leader may have more that counts than it knows
    if offset > partition.commit_mark and partition.has_hidden:
        await commit_written([partition])
    if offset > partition.commit_mark:
        return MessagesRead(messages=[], next_offset=offset)
    deadline_ns = broker.clock.monotonic_ns() + command.wait_ms * 1_000_000
    messages: list[StoredMessage] = []
    room_bytes, ask_bytes = command.max_bytes, _FIRST_BYTES
    slices = Slices(broker.clock)
    while len(messages) < command.limit and room_bytes > 0:
        # Retention may move the start at any time, also between two reads.
        start_offset = partition.log.start_offset
        if messages and offset < start_offset:
            break  # one answer has no gap
        offset = max(offset, start_offset)
        wait_ms = 0 if messages else max((deadline_ns - broker.clock.monotonic_ns()) // 1_000_000, 0)
        part = PartitionRead(command.source, offset, min(room_bytes, ask_bytes))
        ask_bytes = min(2 * ask_bytes, SHARE_BYTES)
        [found] = await read(broker, Read(partitions=[part], min_bytes=1, wait_ms=wait_ms))
        if isinstance(found, PartitionReadFailed):
            if isinstance(found.error, OffsetOutOfRange) and offset < found.start_offset:
                continue
            if messages:
                break  # what came before the bad place is good; the next read names it
            raise found.error
        if not found.batches:
            break
        outcome = visible(found)
        for body, lane in zip(outcome.batches, outcome.lanes, strict=True):
            try:
                for piece in await _pieces(broker, command.source, body, lane, offset):
                    if len(messages) == command.limit:
                        return MessagesRead(messages=messages, next_offset=offset)
                    await slices.pause()
                    for message in open_batch(piece, lane):
                        if message.offset < offset:
                            continue
                        size = len(message.value or b"") + len(message.key or b"")
                        if len(messages) == command.limit or (messages and size > room_bytes):
                            return MessagesRead(messages=messages, next_offset=offset)
                        messages.append(message)
                        room_bytes -= size
                        offset = message.offset + 1
            except InvalidRecord as error:
                if messages:
                    return MessagesRead(messages=messages, next_offset=offset)
                raise _unreadable(command.source, body, error) from error
        offset = max(offset, outcome.end_offset)
    return MessagesRead(messages=messages, next_offset=offset)


async def _pieces(
    broker: Broker, source: TopicPartition, body: memoryview, lane: int, offset: int
) -> Iterable[memoryview]:
    """The batch itself, or of a large one its windows, from the one that holds the offset on."""
    if not is_large(body):
        return (body,)
    large = await open_large(broker, place_of(broker, source), body, lane, offset)
    return large.windows(offset)


def visible(outcome: BatchesRead) -> BatchesRead:
    """Only what readers of committed messages see: no markers, no batch of an aborted transaction.

    They are dropped here and, of frames, below. `end_offset` stays, so that a reader goes on behind them.
    """
    if not any(map(is_transactional, outcome.batches)):
        return outcome
    committed = _Committed(outcome.aborted)
    pairs = zip(outcome.batches, outcome.lanes, strict=True)
    kept = [(body, lane) for body, lane in pairs if committed.keeps(body)]
    batches = [body for body, _ in kept]
    return outcome._replace(batches=batches, lanes=[lane for _, lane in kept], size=sum(map(len, batches)))


async def visible_frames(broker: Broker, outcome: BatchesRead) -> BatchesRead:
    """The same of frames, in slices: a large answer may have hundreds of thousands of them."""
    committed = _Committed(outcome.aborted)
    slices = Slices(broker.clock)
    kept: list[memoryview] = []
    for piece in outcome.batches:
        await slices.pause()
        borders = frame_borders(piece)
        if any(flags & FLAG_TRANSACTIONAL for _, _, flags in borders):
            kept += [
                piece[start:end]
                for start, end, _ in borders
                if committed.keeps(piece[start + FRAME_BYTES : end])
            ]
        else:
            kept.append(piece)
    return outcome._replace(batches=kept, size=sum(map(len, kept)))


class _Committed:
    """Tells, batch by batch in their order, which hold messages that were not taken back."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._upcoming = deque(aborted)
        self._aborting: set[int] = set()

    def keeps(self, body: memoryview) -> bool:
        header = read_header(body)
        while self._upcoming and self._upcoming[0][1] < header.end_offset:
            self._aborting.add(self._upcoming.popleft()[0])
        if header.attributes & CONTROL:
            self._aborting.discard(header.producer_id)
            return False
        return header.producer_id not in self._aborting or not header.attributes & TRANSACTIONAL


def _unreadable(source: TopicPartition, body: memoryview, error: InvalidRecord) -> Corrupt:
    """Batches are stored unopened: a producer can send one whose inside is senseless."""
    header = read_header(body)
    return Corrupt(
        f"{source} has a batch at offset {header.base_offset} that its producer built wrongly ({error}); "
        f"messages go on at offset {header.end_offset}",
        topic=source.topic,
        partition=source.partition,
        offset=header.base_offset,
    )


def _tell(broker: Broker, command: Read, outcomes: Sequence[ReadOutcome], reader: str) -> None:
    """Somebody has got batches."""
    time_us = broker.clock.wall_us()
    for part, outcome in zip(command.partitions, outcomes, strict=True):
        if isinstance(outcome, BatchesRead) and outcome.size:
            listener = broker.telemetry.of(part.source)
            listener.read(part.offset, outcome.end_offset, outcome.size, reader, time_us)


def _charge(broker: Broker, command: Read, outcomes: Sequence[ReadOutcome]) -> None:
    """Count what was handed out against the tenants whose it is; batches are not opened for that."""
    for part, outcome in zip(command.partitions, outcomes, strict=True):
        if isinstance(outcome, BatchesRead) and outcome.size:
            charge_reader(broker, part.source, outcome.end_offset - part.offset, outcome.size)


async def _read_all(broker: Broker, command: Read) -> tuple[list[ReadOutcome], bool]:
    """One outcome a partition, and whether there is more that did not fit.

    Only the first batch of all may be larger than asked: it would never be had else. A client that has little
    more room than it asked for is stuck with an answer that has a large batch in every partition.
    """
    outcomes: list[ReadOutcome] = []
    room_bytes, is_full = command.max_bytes, False
    is_first = True
    slices = Slices(broker.clock)
    for part in command.partitions:
        await slices.pause()
        max_bytes = min(part.max_bytes, room_bytes)
        outcome = await _read_one(broker, part, max_bytes, command, slices, is_first=is_first)
        if isinstance(outcome, BatchesRead):
            room_bytes -= outcome.size
            if outcome.size:
                is_first = False
            elif not is_first:
                is_full = is_full or _end_of(outcome, command.isolation) > part.offset
        outcomes.append(outcome)
    return outcomes, is_full


def _end_of(outcome: BatchesRead, isolation: Isolation) -> int:
    return outcome.last_stable_offset if isolation is Isolation.COMMITTED else outcome.high_watermark


async def _read_one(
    broker: Broker, part: PartitionRead, max_bytes: int, command: Read, slices: Slices, *, is_first: bool
) -> ReadOutcome:
    try:
        partition = broker.readable(part.source)
        if command.rack:
            partition.admit_near_read()
        elif command.reader is not None:  # the broker itself reads what copy it has, up to the commit mark
            partition.admit_read()
        check_epoch(partition, part.leader_epoch)
        if partition.account is not None and command.reader is not None:
            admit_owner(partition.account, part.source.topic)
        log = partition.log
    except GoQueueError as error:
        # Without the frames that it came through: tens of thousands of them are let go in one go.
        return PartitionReadFailed(error.with_traceback(None))
    framed = command.framed
    begun_ns = broker.clock.monotonic_ns()
    try:
        mark, stable_offset = partition.commit_mark, partition.last_stable_offset
        if command.rack and (node := nearer_copy(broker, partition, part.offset, command.rack)) is not None:
            return BatchesRead([], 0, part.offset, log.start_offset, mark, [], stable_offset, nearer=node)
        end_offset = stable_offset if command.isolation is Isolation.COMMITTED else mark
        if max_bytes <= 0 or end_offset <= part.offset:
            # The answer is full, or all that is there is undecided. Where the log begins and ends is still
            # worth telling. Who stands behind the mark may know of what is written and not committed yet.
            partition.hurry()
            if not log.start_offset <= part.offset <= log.end_offset:
                raise OffsetOutOfRange(part.offset, start_offset=log.start_offset, end_offset=mark)
            return BatchesRead([], 0, part.offset, log.start_offset, mark, [], stable_offset)
        first_bytes_max = ANY_SIZE if is_first else max_bytes
        batches, lanes, size, offset = await read_chunk(
            broker, log, part.offset, max_bytes, end_offset, framed, first_bytes_max
        )
        # A segment's end must not look like the end of the log to a reader with a minimum to wait for.
        while batches and offset < end_offset and (size * 2 < max_bytes or max_bytes - size >= SHARE_BYTES):
            await slices.pause()
            try:
                more = await read_chunk(broker, log, offset, max_bytes - size, end_offset, framed)
            except GoQueueError:
                break  # what is there is good; the next read, which begins at the bad place, names it
            if size + more.size > max_bytes:
                break  # a large batch, for which there is no room any more
            batches += more.batches
            lanes += more.lanes
            size, offset = size + more.size, more.end_offset
        partition.counters.served_bytes += size
        partition.counters.read_seconds.observe((broker.clock.monotonic_ns() - begun_ns) / 1e9)
        aborted: Sequence[tuple[int, int]] = ()
        if command.isolation is Isolation.COMMITTED and log.aborted:
            aborted = log.aborted.between(part.offset, offset)
        return BatchesRead(batches, size, offset, log.start_offset, mark, lanes, stable_offset, aborted)
    except GoQueueError as error:
        if isinstance(error, Corrupt):
            partition.found_bad(error)
        return PartitionReadFailed(error, log.start_offset, partition.commit_mark)


async def read_chunk(
    broker: Broker,
    log: ReadableLog,
    offset: int,
    max_bytes: int,
    end_offset: int,
    framed: bool,
    first_bytes_max: int = ANY_SIZE,
) -> Chunk:
    """A share of what is wanted: at once if it is in memory, else in a thread that may wait for the disk."""
    share_bytes = min(max_bytes, SHARE_BYTES)
    try:
        return log.read(
            offset,
            share_bytes,
            end_offset=end_offset,
            read_bytes=from_memory,
            framed=framed,
            first_bytes_max=first_bytes_max,
        )
    except ReadElsewhere as there:
        return await there.fetch()
    except NotCached:
        share_bytes = min(max_bytes, COLD_SHARE_BYTES)
        return await broker.threads.run(
            log.read,
            offset,
            share_bytes,
            end_offset=end_offset,
            read_bytes=from_disk,
            framed=framed,
            first_bytes_max=first_bytes_max,
        )


async def _hidden_from(broker: Broker, command: Read) -> list[Readable]:
    """Partitions in which something is written that the command would show if it were committed."""
    hidden: list[Readable] = []
    slices = Slices(broker.clock)
    for number, part in enumerate(command.partitions):
        if number % _SHARE_COUNT == _SHARE_COUNT - 1:
            await slices.pause()
        topic = broker.topics.get(part.source.topic)
        if topic is not None and 0 <= part.source.partition < len(partitions := topic.readables):
            partition = partitions[part.source.partition]
            if partition.has_hidden:
                hidden.append(partition)
    return hidden


async def _wait(
    broker: Broker,
    command: Read,
    outcomes: Sequence[ReadOutcome],
    missing_bytes: int,
    left_ns: int,
) -> None:
    """Return when enough may have come, or the time is up."""
    partitions: list[Readable] = []
    for part, outcome in zip(command.partitions, outcomes, strict=True):
        assert isinstance(outcome, BatchesRead), "a failure is answered, not waited for"
        try:
            partition = broker.readable(part.source)
            seen_offset = _end_of(outcome, command.isolation)
            if partition.end_for(command.isolation) > seen_offset:
                return  # more came while the disk was read
        except GoQueueError:
            return  # it was deleted or has failed meanwhile: the next round says so
        partitions.append(partition)
    await wait_for_bytes(broker, partitions, missing_bytes, left_ns)


async def wait_for_bytes(
    broker: Broker, partitions: Sequence[Readable], missing_bytes: int, left_ns: int
) -> None:
    """Return when so many bytes have come to the partitions, one of them stops, or the time is up."""
    waiter = ReadWaiter(missing_bytes)
    timer = asyncio.get_running_loop().call_later(left_ns / 1e9, waiter.wake)
    broker.waiting_reads[waiter] = None
    for partition in partitions:
        partition.add_reader(waiter)
    try:
        await waiter.ready
    finally:
        timer.cancel()
        del broker.waiting_reads[waiter]
        for partition in partitions:
            partition.drop_reader(waiter)
