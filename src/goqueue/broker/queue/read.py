"""Messages by their offsets, for whoever hands them out or moves them."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.queue.delivery import StoredBatch, damaged, may_others_have, stored_batches
from goqueue.broker.read.cache import OpenedBatch
from goqueue.broker.read.large_batches import open_large, place_of
from goqueue.broker.read.read import read, visible
from goqueue.broker.slices import Slices
from goqueue.core.delivery.runs import Run, Runs
from goqueue.model.commands import PartitionRead, PartitionReadFailed, Read
from goqueue.model.delivery import PassedRun
from goqueue.model.errors import Corrupt, InvalidRecord, OffsetNotAvailable, OffsetOutOfRange
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.settings import KiB
from goqueue.records.batch import open_batch
from goqueue.records.large_batch import is_large
from goqueue.records.layout import Codec, read_header

_READ_BYTES = 256 * KiB
_UNOPENED_MAX = 8


class Opened(NamedTuple):
    messages: list[StoredMessage]
    """In the order in which they were asked for."""
    void: list[Run]
    """Where no message is (any more)."""
    left: list[Run]
    """What was not read because it would have been too much."""
    damaged: list[PassedRun]
    """Batches that are there and cannot be read: what was asked for of them is void."""
    is_full: bool = False
    """Whether the next batch did not fit into the room there is."""


class BatchRoom:
    """Room in an answer of whole batches, as they are stored. The first of all may be larger than it."""

    def __init__(self, max_bytes: int) -> None:
        self.left_bytes = max_bytes
        self._last: tuple[TopicPartition, int] | None = None

    def admit(self, source: TopicPartition, stored: tuple[int, int]) -> bool:
        """Whether a batch comes too. One that is opened in several windows counts once."""
        base_offset, size = stored
        if self._last == (source, base_offset):
            return True
        if self._last is not None and size > self.left_bytes:
            return False
        self._last = source, base_offset
        self.left_bytes -= size
        return True


async def open_runs(
    broker: Broker,
    source: TopicPartition,
    runs: Sequence[Run],
    max_bytes: int,
    at_hand: Sequence[StoredBatch] = (),
    *,
    is_patient: bool = True,
    room: BatchRoom | None = None,
) -> Opened:
    """The messages of some runs, up to so many bytes but at least one; `at_hand` need not be read again.

    Who is not patient gets nothing where batches that cannot be opened come first, each of which may have
    taken its time, and asks again for what is left. What is good before
    a place that cannot be read comes first. Who hands out whole batches has room for so many of them.
    """
    wanted = Runs(runs)
    is_full = False
    void = Runs()
    unreadable: list[PassedRun] = []
    found: dict[int, StoredMessage] = {}
    size = unopened_count = 0
    place = place_of(broker, source)
    cache, large_batches = broker.queue.opened, broker.queue.large
    slices = Slices(broker.clock)
    batches = deque(batch for batch in at_hand if batch[1] > wanted.first)
    while wanted and (not found or size < max_bytes) and (is_patient or unopened_count < _UNOPENED_MAX):
        if slices.is_over:
            await slices.pause()
        opened = cache.find(place, wanted.first)
        if opened is None:
            large = large_batches.find(place, wanted.first)
            if large is None and (not batches or batches[0][0] > wanted.first):
                offset = wanted.first
                try:
                    read_batches, end_offset = await batches_from(broker, source, offset)
                except Corrupt as error:
                    if found:
                        break
                    if error.next_offset <= offset:
                        raise
                    _leave_out(wanted, void, unreadable, damaged(broker, offset, error.next_offset, error))
                    unopened_count += 1
                    continue
                batches = deque(read_batches)
                behind = batches[0][0] if batches else end_offset
                if behind > offset:
                    # Retention has taken what was there, or it is no message.
                    for run in wanted.within(offset, behind):
                        void.add(*run)
                    wanted.remove(offset, behind)
                    continue
            try:
                if large is None:
                    first, end, body, lane = batches.popleft()
                    if not wanted.within(first, end):
                        continue
                    if is_large(body):
                        large = await open_large(broker, place, body, lane, wanted.first)
                    else:
                        messages = {message[0]: message for message in open_batch(body, lane)}
                        size_here = _size(body, messages)
                        stored = first, len(body)
                if large is not None:
                    first, end = large.borders(wanted.first)
                    messages = {message[0]: message for message in large.window(wanted.first)}
                    size_here = large.size * len(messages) // large.count
                    stored = large.first, large.stored_bytes
            except InvalidRecord as error:
                # Whoever polls would else stand before it for ever. It stays in the log, and who reads by
                # offset is told.
                if found:
                    break
                _leave_out(wanted, void, unreadable, damaged(broker, first, end, error))
                unopened_count += 1
                await asyncio.sleep(0)  # others are served meanwhile
                continue
            opened = OpenedBatch(first, end, messages, size_here, stored)
            if not wanted.covers(first, end):
                cache.keep(place, opened)
        if room is not None and not room.admit(source, opened.stored):
            is_full = True
            break
        size += _take(opened, wanted, found, void)
    if len(runs) == 1:
        in_order = list(found.values())  # batches were read in the order of their offsets
    else:
        in_order = [found[offset] for run in runs for offset in range(*run) if offset in found]
    return Opened(in_order, list(void), list(wanted), unreadable, is_full)


def _leave_out(wanted: Runs, void: Runs, unreadable: list[PassedRun], run: PassedRun) -> None:
    """A batch cannot be read: nothing of it is wanted any more."""
    for piece in wanted.within(run.first, run.end):
        void.add(*piece)
    wanted.remove(run.first, run.end)
    unreadable.append(run)


def _size(body: memoryview, messages: Mapping[int, StoredMessage]) -> int:
    """How many bytes a batch is, opened; what was compressed tells nothing of that."""
    if read_header(body).codec == Codec.NONE:
        return len(body)
    return sum(len(message.value or b"") + len(message.key or b"") for message in messages.values())


def _take(opened: OpenedBatch, wanted: Runs, found: dict[int, StoredMessage], void: Runs) -> int:
    """Take what is wanted out of a batch; how many bytes that were, about."""
    first, end, messages, size, _ = opened
    if wanted.covers(first, end) and len(messages) == end - first:
        found.update(messages)
        wanted.remove(first, end)
        return size
    offsets = [offset for piece in wanted.within(first, end) for offset in range(*piece)]
    taken = {offset: messages[offset] for offset in offsets if offset in messages}
    found.update(taken)
    for offset in offsets if len(taken) < len(offsets) else ():
        if offset not in taken:
            void.add(offset, offset + 1)
    wanted.remove(first, end)
    return size * len(taken) // max(len(messages), 1)


async def batches_from(broker: Broker, source: TopicPartition, offset: int) -> tuple[list[StoredBatch], int]:
    """Batches from an offset on, and where to go on behind them."""
    [outcome] = await read(broker, Read(partitions=[PartitionRead(source, offset, _READ_BYTES)]))
    if isinstance(outcome, PartitionReadFailed):
        if isinstance(outcome.error, OffsetOutOfRange) and offset < outcome.start_offset:
            return [], outcome.start_offset
        if broker.is_one_of_several and isinstance(outcome.error, OffsetOutOfRange):
            raise OffsetNotAvailable(*source)
        if isinstance(outcome.error, Corrupt) and may_others_have(broker, source):
            raise OffsetNotAvailable(*source)
        raise outcome.error
    if outcome.end_offset <= offset:
        raise OffsetNotAvailable(*source)  # the copy that is read here is behind what was handed out
    return stored_batches(visible(outcome)), outcome.end_offset
