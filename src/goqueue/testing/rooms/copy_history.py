"""What a simulated replica was told to hold, and what must be found of it whatever has happened since.

A copy is a row of steps, each with its bytes. What was confirmed stays, what was cut is gone; a cut that was
under way when the power went may have come anywhere between.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.broker.storage.partition import Partition
from goqueue.core.transactions.open_transactions import OpenTransactions
from goqueue.log.reading import from_disk
from goqueue.model.transactions import AbortedTransaction, Marker
from goqueue.records.control import marker_of
from goqueue.records.frame import scan_frames
from goqueue.records.layout import CONTROL, BatchHeader, read_header
from goqueue.testing.whole.partition_history import demand

_NO_STOP = 2**63 - 1
_READ_BYTES = 2_000


class CopiedBatch(NamedTuple):
    header: BatchHeader
    marker: Marker | None


class CopiedStep(NamedTuple):
    """One append, as it lies in the file."""

    data: bytes
    batches: list[CopiedBatch]

    @property
    def base_offset(self) -> int:
        return self.batches[0].header.base_offset

    @property
    def end_offset(self) -> int:
        return self.batches[-1].header.end_offset


def steps_of(data: bytes) -> Iterable[CopiedStep]:
    """Frames, step by step."""
    batches: list[CopiedBatch] = []
    position = 0
    for frame in scan_frames(memoryview(data), stop_offset=_NO_STOP).frames:
        body = memoryview(data)[frame.body_start : frame.body_end]
        header = read_header(body)
        batches.append(CopiedBatch(header, marker_of(body) if header.attributes & CONTROL else None))
        if not frame.continues:
            yield CopiedStep(data[position : frame.body_end], batches)
            batches, position = [], frame.body_end


@dataclass(slots=True)
class CopyHistory:
    """One partition's."""

    steps: list[CopiedStep] = field(default_factory=list)
    """Since it was last begun."""
    begun_at: int = 0
    start_offset: int = 0
    confirmed_start: int = 0
    """The start that no crash takes back."""
    confirmed_end: int = 0
    """The end that no crash takes back."""
    cutting_to: int | None = None
    """A cut is under way, perhaps to begin it anew there."""
    is_beginning: bool = False

    @property
    def end_offset(self) -> int:
        return self.steps[-1].end_offset if self.steps else self.begun_at

    @property
    def last_epoch(self) -> int:
        return self.steps[-1].batches[-1].header.leader_epoch if self.steps else 0

    def add(self, data: bytes) -> None:
        self.steps += steps_of(data)

    def note_cut(self) -> None:
        """The cut, or the new beginning, was answered."""
        assert self.cutting_to is not None, "it was asked for"
        if self.is_beginning:
            self._begin(self.cutting_to)
        else:
            self._cut(self._border_before(self.cutting_to))
            # A step across the cut goes whole, also if the log starts in it.
            self.start_offset = min(self.start_offset, self.end_offset)
        self.confirmed_end, self.confirmed_start = self.end_offset, self.start_offset
        self.cutting_to, self.is_beginning = None, False

    def check(self, partition: Partition) -> None:
        """The log is what it may be now. From here on it is what was found."""
        log = partition.log
        demand(log.damage is None, f"{partition.source} is damaged: {log.damage}")
        if self.is_beginning and log.start_offset == log.end_offset == self.cutting_to:
            self._begin(self.cutting_to)
        self._check_ends(log.start_offset, log.end_offset)
        self._cut(log.end_offset)
        self.start_offset = log.start_offset
        self.confirmed_end = min(self.confirmed_end, self.end_offset)
        self.confirmed_start = min(self.confirmed_start, self.start_offset)
        self.cutting_to, self.is_beginning = None, False
        self._check_bytes(partition)
        self._check_epochs(partition)
        self._check_transactions(partition)
        self._check_producers(partition)

    def _check_ends(self, start_offset: int, end_offset: int) -> None:
        confirmed, confirmed_start = self.confirmed_end, self.confirmed_start
        if self.cutting_to is not None:
            confirmed = min(confirmed, self._border_before(self.cutting_to))
            confirmed_start = min(confirmed_start, end_offset, self.cutting_to)
        demand(end_offset >= confirmed, f"it ends at {end_offset}, and {confirmed} was confirmed")
        demand(
            end_offset <= self.end_offset, f"it ends at {end_offset}: what was cut {self.end_offset} is back"
        )
        is_border = end_offset in (self.begun_at, *(step.end_offset for step in self.steps))
        demand(is_border, f"it ends at {end_offset}, inside a step")
        demand(
            confirmed_start <= start_offset <= self.start_offset,
            f"it starts at {start_offset}, not from {confirmed_start} to {self.start_offset}",
        )

    def _check_bytes(self, partition: Partition) -> None:
        log = partition.log
        offset = log.start_offset
        due = b"".join(step.data for step in self.steps if step.end_offset > offset)
        found = b""
        while offset < log.end_offset:
            chunk = log.read_steps(offset, _READ_BYTES, read_bytes=from_disk)
            found += chunk.batches[0]
            offset = chunk.end_offset
        # A start within a step leaves out the frames before it.
        demand(due.endswith(found) and bool(found) == bool(due), f"{partition.source} holds other bytes")

    def _check_epochs(self, partition: Partition) -> None:
        log = partition.log
        ends = {batch.header.leader_epoch: batch.header.end_offset for batch in self._batches()}
        for epoch, end_offset in ends.items():
            told = log.epoch_end(epoch)
            if end_offset > log.start_offset:
                demand(told == (epoch, end_offset), f"epoch {epoch} ended at {end_offset}, {told} is told")
        demand(log.last_epoch <= self.last_epoch or not self.steps, "the last epoch is one that was cut")

    def _check_transactions(self, partition: Partition) -> None:
        log, opened = partition.log, OpenTransactions()
        aborted: list[AbortedTransaction] = []
        for header, marker in self._batches():
            taken_back = opened.apply(header, marker, base_offset=header.base_offset, seen_ms=0)
            if taken_back is not None and taken_back.last_offset >= log.start_offset:
                aborted.append(taken_back)
        open_due = {(one.producer_id, one.first_offset) for one in opened.all()}
        aborted_due = {(one.producer_id, one.first_offset) for one in aborted}
        open_now = {(one.producer_id, one.first_offset) for one in partition.transactions.all()}
        aborted_now = set(log.aborted.between(log.start_offset, log.end_offset))
        for due, now, what in ((open_due, open_now, "open"), (aborted_due, aborted_now, "aborted")):
            # One that began before the start may be forgotten, or known by what is left of it.
            told = {one for one in due if one[1] >= log.start_offset}
            now = {one for one in now if one[1] >= log.start_offset}
            unsure = {producer for producer, first in due if first < log.start_offset}
            demand(told <= now, f"{told - now} should be {what}")
            demand(all(one[0] in unsure for one in now - told), f"{now - told} should not be {what}")

    def _check_producers(self, partition: Partition) -> None:
        log = partition.log
        newest: dict[int, int] = {}
        for header, marker in self._batches():
            if marker is None and header.producer_id >= 0:
                newest[header.producer_id] = header.base_offset
        known = {
            row[0]: [batch[2] for batch in row[3]] for row in partition.producers.snapshot()["producers"]
        }
        for producer_id, offsets in known.items():
            demand(
                all(at < log.end_offset for at in offsets), f"producer {producer_id} is known by what was cut"
            )
        for producer_id, base_offset in newest.items():
            is_known = base_offset in known.get(producer_id, ())
            demand(is_known or base_offset < log.start_offset, f"producer {producer_id} is forgotten")

    def _batches(self) -> Iterable[CopiedBatch]:
        return (batch for step in self.steps for batch in step.batches)

    def _border_before(self, offset: int) -> int:
        """The last end of a step that is not behind an offset."""
        return max((s.end_offset for s in self.steps if s.end_offset <= offset), default=self.begun_at)

    def _begin(self, offset: int) -> None:
        self.steps, self.begun_at = [], offset
        self.start_offset = self.confirmed_start = self.confirmed_end = offset

    def _cut(self, end_offset: int) -> None:
        self.steps = [step for step in self.steps if step.end_offset <= end_offset]
