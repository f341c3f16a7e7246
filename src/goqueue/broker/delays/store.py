"""What is pending: the machine behind the journal of `__delayed`, and the runs of entries.

A message is submitted to the journal and its entry noted here in one step. Cancelling or moving it submits a
record that kills the entry. Nothing is written when a message is delivered: its partition's log tells, and
a checkpoint now and then spares looking there from the beginning.
"""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap64

from goqueue.broker.delays.checkpoint import (
    Checkpoint,
    TargetState,
    Totals,
    as_text,
    encode_checkpoint,
    from_text,
    load_checkpoint,
    save_checkpoint,
)
from goqueue.broker.delays.journal import DelayJournal
from goqueue.broker.delays.records import (
    NEW,
    SCHEDULE_EVENTS,
    Cancelled,
    Noted,
    Record,
    Sequences,
    Waiting,
)
from goqueue.broker.delays.runs import InMemory, Run, Runs, SortedEntries, kept, unsorted, walk
from goqueue.broker.delays.targets import Target, Targets
from goqueue.broker.storage.data_folder import DELAYS_FOLDER
from goqueue.broker.storage.partition import Partition
from goqueue.broker.to_the_end import to_the_end
from goqueue.core.delays.delivered import Delivered
from goqueue.core.delays.entries import Entries, Fresh, rows
from goqueue.core.delays.held import Held, HeldMessage
from goqueue.core.delays.marks import Mark, Marks
from goqueue.core.delays.near import Row
from goqueue.core.delays.schedules import Schedules
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import Corrupt, GoQueueError
from goqueue.model.ports import Disk, Threads
from goqueue.model.settings import DelayConfig

log = logging.getLogger(__name__)

_REPLAY_BYTES = 4 * 1024 * 1024
_READ_BYTES = 64 * 1024
_CLOSE_OFFSETS = 200


class DelayStore:
    def __init__(
        self,
        partition: Partition,
        config: DelayConfig,
        *,
        disk: Disk,
        threads: Threads,
        is_shared: bool = False,
    ) -> None:
        """`is_shared`: several nodes take turns with the journal, and it has all that the next one needs."""
        self.journal: DelayJournal[DelayStore] = DelayJournal(partition, self)
        self.config = config
        self.is_shared = is_shared
        self._disk = disk
        self.threads = threads
        self.targets = Targets()
        self.fresh = Fresh()
        self.run_files = Runs(disk, DELAYS_FOLDER)
        self.runs: list[Run] = []
        self.dead = BitMap64()
        """Offsets of records that were cancelled, or written anew elsewhere."""
        self.moved: dict[int, int] = {}
        """Where messages lie that were moved, by their number."""
        self.marks = Marks()
        self.held = Held()
        self.schedules = Schedules()
        self.totals = Totals()
        self.entries_offset = 0
        """The runs hold the entries of everything before it."""
        self._counted_offset = 0
        """The totals of the checkpoint count everything before it."""
        self._is_checkpoint_lost = False
        self._checkpoint_lock = asyncio.Lock()
        self._saving: asyncio.Task[None] | None = None
        self.is_changed = False
        """Something has happened that the last checkpoint does not tell."""

    # Opening.

    def begin_replay(self) -> int:
        """Take what the checkpoint tells; returns from where the journal goes on. Waits for the disk."""
        if self.is_shared:
            self.runs = self.run_files.open([])  # those of before are of another time, or another's
            return 0
        checkpoint, self._is_checkpoint_lost = self._load_checkpoint()
        self.runs = self._open_runs(checkpoint)
        for state in checkpoint.targets:
            target = self.targets.at(state.topic_id, state.partition)
            target.confirmed = Delivered(state.steps)
            target.scan_offset = target.noted_offset = state.scan_offset
        if checkpoint.dead:
            self.dead = BitMap64.deserialize(from_text(checkpoint.dead))
        self.moved = dict(checkpoint.moved)
        for mark in checkpoint.marks:
            self.marks.apply(mark)
        for message in checkpoint.held:
            self.held.add(message)
        for text in checkpoint.schedules:
            self.schedules.apply(SCHEDULE_EVENTS.decode(text.encode()))
        self.totals = checkpoint.totals
        self.entries_offset = checkpoint.entries_offset
        self._counted_offset = checkpoint.end_offset
        return self.entries_offset

    def end_replay(self) -> None:
        """All is read back."""
        if self._is_checkpoint_lost:
            for target in self.targets.all:
                # What was delivered is told by the partition's log, from its start or where the journal says.
                target.noted_offset = target.noted_offset or 0
            self.is_changed = True

    def _load_checkpoint(self) -> tuple[Checkpoint, bool]:
        """The checkpoint, and whether there should be another. All but its counts is in the log as well."""
        try:
            return load_checkpoint(self._disk), False
        except Corrupt as error:
            is_lost = self.journal.end_offset > 0
            if is_lost:
                log.warning("delay_checkpoint_rebuilt reason=%s", error)
            return Checkpoint(), is_lost

    def _open_runs(self, checkpoint: Checkpoint) -> list[Run]:
        """The runs it names. When one is lost or spoilt, all entries are read back from the log."""
        try:
            return self.run_files.open(checkpoint.runs)
        except Corrupt as error:
            log.warning("delay_runs_rebuilt reason=%s", error)
            checkpoint.entries_offset, checkpoint.runs = 0, []
            self.is_changed = True
            return self.run_files.open([])

    def count_pending(self, parts: Sequence[SortedEntries]) -> list[int]:
        """How many messages are pending for each target. Waits for the disk."""
        counts = np.zeros(len(self.targets.all), dtype=np.int64)
        for piece in kept(unsorted(parts), self.is_live):
            counts += np.bincount(piece["target"], minlength=len(counts))[: len(counts)]
        return list(counts.tolist())

    # Taking in.

    def apply(self, record: Record, offset: int, *, now_ms: int) -> None:
        """A record was just written."""
        self._apply(record, offset, now_ms=now_ms, is_new=True)

    def restore(self, record: Record, offset: int, *, written_ms: int) -> None:
        """A record is read back. The checkpoint has counted it, or has not come so far."""
        if isinstance(record, Noted):
            target = self.targets.at(record.topic_id, record.partition)
            for step in record.steps:
                target.confirmed.add(step)
            target.scan_offset = max(target.scan_offset, record.scan_offset)
            target.noted_offset = target.noted_offset or 0
            target.told_offset = record.scan_offset
            return
        self._apply(record, offset, now_ms=written_ms, is_new=offset >= self._counted_offset)

    def _apply(self, record: Record, offset: int, *, now_ms: int, is_new: bool) -> None:
        """Take a record, fresh or read back. One that is read back a second time changes nothing."""
        if isinstance(record, Waiting):
            self._apply_waiting(record, offset, now_ms=now_ms, is_new=is_new)
            return
        match record:
            case Cancelled(number):
                self.dead.add(self.moved.pop(number, number))
                self.held.drop(number)
                self.totals.cancelled += is_new
            case Sequences(topic_id, partition):
                target = self.targets.at(topic_id, partition)
                self.marks.apply(Mark(target.index, *record[2:-1], now_ms, record.parted_ms))
            case Noted():
                pass  # the target knows it already
            case _:
                self.schedules.apply(record)

    def _apply_waiting(self, record: Waiting, offset: int, *, now_ms: int, is_new: bool) -> None:
        number, due_ms, topic_id, partition, _, holder = record
        target = self.targets.at(topic_id, partition)
        self.fresh.add(due_ms, offset, target.index)
        if holder is not None:
            due_ms = holder.due_ms
            name = offset if number == NEW else number
            self.held.add(HeldMessage(name, holder.producer_id, holder.producer_epoch, target.index))
        elif number not in (NEW, offset):
            self.held.drop(number)
        if number not in (NEW, offset):
            earlier = self.moved.get(number, number)
            if earlier < offset:
                self.dead.add(earlier)
                self.moved[number] = offset
        elif is_new:
            target.pending += 1
            self.totals.scheduled += 1
            self.totals.delay_ms_sum += max(due_ms - now_ms, 0)

    def note(self, target: Target) -> Noted:
        """What is known of a target's deliveries, for whoever has the journal and no checkpoint."""
        return Noted(target.topic_id, target.partition, target.scan_offset, tuple(target.confirmed.steps))

    def noted_marks(self) -> list[Sequences]:
        """What producers have numbered, for the same."""
        return [
            Sequences(
                self.targets.all[mark.target].topic_id,
                self.targets.all[mark.target].partition,
                *mark[1:6],
                parted_ms=mark.parted_ms or mark.seen_ms,
            )
            for mark in self.marks
        ]

    # Looking.

    def parts(self) -> list[SortedEntries]:
        """All entries, as they are now."""
        return [*self.runs, InMemory(self.fresh.entries())]

    def is_live(self, entries: Entries, *, confirmed: bool = False) -> NDArray[np.bool_]:
        """Which entries are still to be delivered; `confirmed`: or may have to be delivered again."""
        live = entries["offset"] >= self.journal.partition.log.start_offset
        for index in np.unique(entries["target"]).tolist():
            target = self.targets.all[index]
            mine = entries["target"] == index
            if target.is_gone:
                live &= ~mine
            else:
                done = target.confirmed if confirmed else target.delivered
                live &= ~(mine & done.covered(entries))
        if self.dead:
            live &= ~np.fromiter(
                map(self.dead.__contains__, entries["offset"].tolist()), np.bool_, len(entries)
            )
        return live

    def is_pending(self, target: Target, due_ms: int, offset: int) -> bool:
        return not (target.is_gone or self.is_dead(offset) or target.delivered.covers(due_ms, offset))

    def is_dead(self, offset: int) -> bool:
        """Whether a record was cancelled or written anew. Before the start of the log all are."""
        return offset < self.journal.partition.log.start_offset or offset in self.dead

    def read(self, offsets: Sequence[int]) -> dict[int, Waiting]:
        """The messages at these offsets, which rise. Waits for the disk."""
        found = self.journal.read(offsets)
        return {offset: record for offset, record in found.items() if isinstance(record, Waiting)}

    def page(
        self, parts: Sequence[SortedEntries], from_due_ms: int, until_ms: int, count: int
    ) -> tuple[list[Row], int]:
        """Live entries from a due time on, about so many, and until when that is all. Waits for the disk."""
        found: list[Row] = []
        for piece in kept(walk(parts, from_due_ms=from_due_ms), self.is_live):
            found += rows(piece[piece["due"] < until_ms])
            if len(found) > count:
                cut_ms = found[count][0]
                if found[0][0] == cut_ms:
                    cut_ms += 1  # all those are due together, and one cannot have some of them
                return [row for row in found if row[0] < cut_ms], cut_ms
            if piece["due"][-1] >= until_ms:
                break
        return found, until_ms

    # Checkpoints.

    async def checkpoint(self) -> None:
        """Write down where a restart may begin; to its end, also when whoever asked for it goes away."""
        self._saving = asyncio.get_running_loop().create_task(self._checkpoint())
        await to_the_end(self._saving)

    async def drain(self) -> None:
        """Return when no checkpoint is under way."""
        if self._saving is not None:
            await asyncio.wait([self._saving])

    async def _checkpoint(self) -> None:
        if self.is_shared:
            await self._note_deliveries()
            return
        async with self._checkpoint_lock:
            state = self._state()
            noted = [(target, target.scan_offset) for target in self.targets.all]
            self.is_changed = False
            try:
                # What it tells of cancelled and moved messages must be in the journal before.
                await self.journal.submit()
                await self.threads.run(save_checkpoint, self._disk, encode_checkpoint(state))
            except (OSError, GoQueueError) as error:
                self.is_changed = True
                if isinstance(error, OSError):
                    raise storage_error(error, "checkpoint of the delays") from error
                raise
            for target, scan_offset in noted:
                target.noted_offset = scan_offset

    async def _note_deliveries(self) -> None:
        """Tell the journal what was delivered: whoever takes it over looks for what came later alone."""
        async with self._checkpoint_lock:
            self.is_changed = False
            noted = [
                (target, target.scan_offset)
                for target in self.noted_targets()
                if target.told_offset != target.scan_offset
            ]
            try:
                await self.journal.submit(*(self.note(target) for target, _ in noted))
            except GoQueueError:
                self.is_changed = True
                raise
            for target, scan_offset in noted:
                target.told_offset = target.noted_offset = scan_offset

    def noted_targets(self) -> list[Target]:
        """Targets that something may have been delivered to."""
        return [each for each in self.targets.all if each.noted_offset is not None and not each.is_gone]

    def _state(self) -> Checkpoint:
        return Checkpoint(
            entries_offset=self.entries_offset,
            end_offset=self.journal.end_offset,
            runs=[run.name for run in self.runs],
            targets=[
                TargetState(
                    target.topic_id, target.partition, list(target.confirmed.steps), target.scan_offset
                )
                for target in self.targets.all
            ],
            dead=as_text(self.dead.serialize()) if self.dead else "",
            moved=list(self.moved.items()),
            marks=list(self.marks),
            held=list(self.held),
            schedules=[SCHEDULE_EVENTS.encode(event).decode() for event in self.schedules.whole_state()],
            totals=self.totals,
        )
