"""A partition at work: its log, its producers, its commit mark, and who waits for it.

Appends happen at once on the loop; whoever wants to be sure awaits `committed`. Readers see what lies before
the commit mark, which is on the disk: so nothing that names an offset, be it an ack, a lease or a committed
offset, is ever safe before the message is. `move_mark` alone moves it, and wakes who waits for it; where
there are other replicas (`copies`), when they have it too. When the disk fails, the partition stops, tells
everyone who waits, and is opened anew from what the disk confirmed.
"""

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol
from uuid import UUID

from goqueue.broker.slices import Slices
from goqueue.broker.storage.waiters import ReadWaiter, answer, tell_in_turn
from goqueue.core.access.account import Account
from goqueue.core.telemetry.counters import TopicCounters
from goqueue.core.telemetry.telemetry import PartitionTelemetry
from goqueue.core.transactions.open_transactions import OpenTransactions
from goqueue.core.transactions.producers import Producers
from goqueue.log.aborted_index import AbortedIndex
from goqueue.log.commit_log import CommitLog, PieceBytes
from goqueue.log.commit_rounds import NO_TOPIC
from goqueue.log.cutting import let_go_points
from goqueue.log.damage import Damage, put_aside
from goqueue.log.file_shelf import FileShelf
from goqueue.log.flush import Flush
from goqueue.log.partition_log import CheckedBatch, PartitionLog, storage_error
from goqueue.log.reading import from_disk
from goqueue.log.recovery import NO_LIMIT, Recovered
from goqueue.log.redo import redo
from goqueue.log.snapshot import begin_at, load_snapshots, owner_of
from goqueue.model.cluster import NodeId
from goqueue.model.errors import Corrupt, GoQueueError, PartitionDamaged, StorageFailed, StorageFull
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.ports import Buffer, Clock, Disk
from goqueue.model.settings import AcksWaitFor, TimestampType, TopicSettings
from goqueue.model.transactions import AbortedTransaction, Isolation, OpenInPartition
from goqueue.records.control import marker_of
from goqueue.records.layout import CONTROL, TRANSACTIONAL, BatchHeader, read_header, read_kind

log = logging.getLogger(__name__)
_WALK_BYTES = 1024 * 1024
_SETS_FREE_BYTES = 1 << 62
"""What a marker is worth to those who wait: it sets free what came long before, so its size says nothing."""


class FlushRequests(Protocol):
    """What a partition asks of the flusher."""

    def request(self, partition: "Partition") -> None: ...

    def request_snapshot(self, partition: "Partition") -> None: ...

    def note_dirty(self, partition: "Partition", size: int) -> None: ...


class Copies(Protocol):
    """The other replicas of a partition, where it has any: they say how far its commit mark may go."""

    @property
    def is_leader(self) -> bool:
        """Whether this replica says what is in the log, and where it starts."""

    @property
    def seen_mark(self) -> int:
        """What lies before it is written by all in sync, at least in memory."""

    @property
    def can_commit(self) -> bool:
        """Whether what is written now may come to count without anybody's help."""

    def admit_lead(self) -> None:
        """Raises NotLeader where the partition is not led."""

    def admit_copy(self) -> None:
        """Raises NotLeader where this replica neither leads nor is in sync with who does."""

    def admit_all(self) -> None:
        """Raises NotEnoughReplicas where a write with acks=all would not be answered."""

    def admit_look_up(self) -> None:
        """Raises OffsetNotAvailable where a new leader does not know yet how far messages count."""

    def seen(self, end_offset: int) -> "asyncio.Future[None] | None":
        """Done when all in sync have what lies before an offset in memory; None when they have already."""

    def written(self, base_offset: int, end_offset: int, buffers: Sequence[Buffer]) -> None:
        """Something was appended here, in one step; the bytes as they lie in the file."""

    def flushed(self) -> None:
        """More of the log is on the disk."""

    def start_moved(self) -> None:
        """What lies before the log's start was given up: the others are to do so too, now."""

    def gone_bad(self, reason: str) -> None:
        """Bytes of this replica that were safe have gone bad: another one has them, if there is another."""

    def progress(self) -> tuple[Mapping[NodeId, int], Mapping[NodeId, int]]:
        """How much each follower has on its disk, and how many bytes each was sent."""


class Partition:
    is_here = True
    """Whether this node holds it; another stands in the list of those that are elsewhere."""

    def __init__(
        self,
        source: TopicPartition,
        folder: str,
        settings: TopicSettings,
        *,
        disk: Disk,
        clock: Clock,
        leader_epoch: int,
        on_failure: Callable[["Partition"], None],
        topic_id: UUID = NO_TOPIC,
        commit_log: CommitLog | None = None,
        shelf: FileShelf | None = None,
    ) -> None:
        self.source = source
        self._topic_id = topic_id
        self._commit_log = commit_log
        self.leader_epoch = leader_epoch
        self.producers = Producers()
        self.transactions = OpenTransactions()
        self.lane_counts = [0] * len(Lane)
        """Messages stored in each lane since the partition was opened."""
        self.commit_mark = 0
        """What lies before it is safe, and is all that readers see."""
        self.readers: dict[ReadWaiter, None] = {}
        """Who waits for more, in the order they came."""
        self.flusher: FlushRequests
        self.copies: Copies | None = None
        """None: there is only this one, and what its disk has counts."""
        self.account: Account | None = None
        """The tenant that owns the topic, if one does."""
        self.telemetry: PartitionTelemetry | None = None
        """Who hears what happens to messages here; nobody listens to journals."""
        self.counters = TopicCounters()
        """Those of its topic, once the broker has given them."""
        self.folder = folder
        self._settings = settings
        self.stamps_time = settings.timestamp_type is TimestampType.LOG_APPEND
        """Whether messages have the time at which they are stored."""
        self.asks_of_batches = settings.asks_of_batches
        self._disk = disk
        self._clock = clock
        self._on_failure = on_failure
        self._shelf = shelf
        self._hidden: deque[tuple[int, int]] = deque()
        """What is written and not committed: the end offset and the size of each append."""
        self._commit_waiters: deque[tuple[int, asyncio.Future[None], int | None]] = deque()
        """Who waits for which end offset, and since when; None: a reader, whose wait is no publisher's."""
        self._seen_waiters: deque[tuple[int, asyncio.Future[None], int | None]] = deque()
        """Publishers that wait for the seen mark only."""
        self._stopped: GoQueueError | None = None
        self._confirmed_offset = 0
        self._is_full = False
        self._log: PartitionLog
        self.was_made_anew = False
        """Whether nothing of it was there when it was opened last."""
        self._snapshot_waiters: list[asyncio.Future[None]] = []
        self._snapshot_begun: list[asyncio.Future[None]] = []

    @property
    def is_full(self) -> bool:
        """Whether the last message that came found no room on the disk."""
        return self._is_full

    @property
    def log(self) -> PartitionLog:
        """The log, if the partition is at work."""
        if self._stopped is not None:
            raise self._stopped
        return self._log

    @property
    def last_stable_offset(self) -> int:
        """Before it every transaction is decided: readers of committed messages see nothing behind it."""
        first_offset, start_offset = self.transactions.first_offset, self.log.start_offset
        if first_offset is None or first_offset >= self.commit_mark:
            return self.commit_mark
        # Retention may have taken the beginning of a transaction that nobody ends.
        return max(first_offset, start_offset)

    @property
    def oldest_transaction(self) -> OpenInPartition | None:
        """The one that holds back readers of committed messages, if any does."""
        return self.transactions.oldest

    def admit_read(self) -> None:
        """Raises NotLeader where others lead it: who wants the newest asks there."""
        if self.copies is not None:
            self.copies.admit_lead()

    def admit_near_read(self) -> None:
        """Raises NotLeader where it is neither led nor in sync: a copy may hear of the newest a bit later."""
        if self.copies is not None:
            self.copies.admit_copy()

    def admit_look_up(self) -> None:
        """Raises OffsetNotAvailable where a new leader does not know yet how far messages count."""
        if self.copies is not None:
            self.copies.admit_look_up()

    def found_bad(self, error: Corrupt) -> None:
        """Who reads has met bytes that are not what was written: one of several copies is made anew."""
        if self.copies is not None:
            self.copies.gone_bad(str(error))

    def end_for(self, isolation: Isolation) -> int:
        """The offset before which a reader may see messages."""
        stable_offset = self.last_stable_offset
        return stable_offset if isolation is Isolation.COMMITTED else self.commit_mark

    @property
    def has_hidden(self) -> bool:
        """Whether something is written that readers do not see yet."""
        return bool(self._hidden)

    @property
    def is_failed(self) -> bool:
        """Whether the disk has failed it, so that it can be opened anew."""
        return isinstance(self._stopped, StorageFailed)

    @property
    def damage(self) -> Damage | None:
        """What of it is lost, when that is so and nobody has accepted it."""
        return None if self._stopped is not None else self._log.damage

    @property
    def takes_messages(self) -> bool:
        """Whether it is neither stopped nor damaged."""
        return self._stopped is None and self._log.damage is None

    def admit_write(self) -> None:
        """Refuse whatever would write to a partition that is damaged, before anything else is done for it."""
        if self._log.damage is not None:
            raise PartitionDamaged(*self.source, str(self._log.damage))

    @property
    def is_leader(self) -> bool:
        """Whether this replica, which may be the only one, says what is in the log."""
        return self.copies is None or self.copies.is_leader

    def admit_all(self) -> None:
        """Refuse a write with acks=all that too few replicas could answer for. Raises NotEnoughReplicas."""
        if self.copies is not None:
            self.copies.admit_all()

    def open(self, *, must_exist: bool = False, first_offset: int = 0) -> Recovered:
        """Read the partition from its folder. Waits for the disk: call it from a thread.

        With `must_exist` a folder without anything is damage: since a partition is made with a recovery
        point, and answered for behind it, its folder has never been empty. So is another topic's folder.
        Without it, what is found there is taken over: somebody has lost the metadata, and asks for it again.
        Where nothing is found it begins at `first_offset`.
        """
        left = [] if self._commit_log is None else self._commit_log.left_of(self.folder)
        begins_later = first_offset > 0 and not left and not self._disk.list(self.folder)
        if begins_later:
            begin_at(self._disk, self.folder, first_offset, topic_id=self._topic_id)
        recovered = self._open(left, must_exist=must_exist)
        self.was_made_anew |= begins_later
        return recovered

    def _open(
        self, committed: Sequence[PieceBytes], *, end_limit: int = NO_LIMIT, must_exist: bool = False
    ) -> Recovered:
        """Put into the files what the commit log has of them, and read them."""
        vouched_end = None
        if committed and self._owner() in (None, self._topic_id):
            vouched_end = redo(self._disk, self.folder, self._topic_id, committed)
        with _collector_off():
            recovered = self._read_files(end_limit, must_exist, vouched_end)
        # All that was found is on the disk by now. After a failure that is what was confirmed before it, so
        # the mark does not go back.
        self._set_mark()
        return recovered

    def _set_mark(self) -> None:
        """The log was opened, or is another one."""
        if self.copies is None:
            self.commit_mark = self._log.flushed_offset
        else:
            # What lies behind what was known to count is for the leader to say.
            self.commit_mark = max(min(self.commit_mark, self._log.end_offset), self._log.start_offset)

    def put_others_aside(self) -> None:
        """Make room where the folder is that of another topic. Waits for the disk: call it from a thread."""
        owner = self._owner()
        if owner not in (None, self._topic_id):
            aside = put_aside(self._disk, self.folder, owner)
            log.warning("folder_put_aside partition=%s folder=%s", self.source, aside)
            self._disk.make_folder(self.folder)

    def _owner(self) -> UUID | None:
        """Whose the folder is, as far as it tells."""
        return owner_of(load_snapshots(self._disk, self.folder))

    def _read_files(self, end_limit: int, must_exist: bool, vouched_end: int | None) -> Recovered:
        self._restore(None)
        aborted = AbortedIndex(self._disk, self.folder)

        def follow(header: BatchHeader, body: memoryview, lane: int) -> None:
            """Recovery met a batch behind the recovery point."""
            now_ms = self._clock.wall_ms()
            self._note(header, body, lane, base_offset=header.base_offset, seen_ms=now_ms, aborted=aborted)

        self._log, recovered = PartitionLog.open(
            self._disk,
            self.folder,
            self.source,
            self._settings,
            topic_id=self._topic_id,
            must_be_own=must_exist,
            vouched_end=vouched_end,
            restore_producers=self._restore,
            on_batch=follow,
            aborted=aborted,
            end_limit=end_limit,
            shelf=self._shelf,
        )
        self.was_made_anew = recovered.is_new
        if must_exist and recovered.is_new:
            recovered.damage = self._log.damage = Damage("its folder is gone, or holds nothing of it")
        if recovered.is_aborted_index_lost:
            log.warning("aborted_index_rebuilt partition=%s", self.source)
            aborted.rebuild(self._find_aborted(recovered.point_offset))
        if recovered.damage is not None:
            log.error("partition_damaged partition=%s reason=%s", self.source, recovered.damage)
            return recovered
        is_taken_over = not recovered.is_new and recovered.owner not in (None, self._topic_id)
        if is_taken_over:
            log.warning("folder_taken_over partition=%s from_topic_id=%s", self.source, recovered.owner)
        if not must_exist and not recovered.is_new:
            # A process that was killed has left it: from now on its absence is damage, so it must be durable.
            self._disk.sync_folder(self.folder)
        is_own = recovered.owner == self._topic_id
        # What a recovery point says of the start would hide what comes next.
        must_save = recovered.is_new or is_taken_over or recovered.is_start_lowered
        if must_save or recovered.sealed or self._log.is_dirty or not is_own:
            # What is served from now on must survive the next power failure too. And a partition is never
            # without a recovery point: its absence later means damage, not youth.
            flush = self._log.begin_flush(producers=self._snapshot(), with_snapshot=True)
            error = flush.run()
            if error is not None and must_save:
                raise error
            self._log.finish_flush(flush, is_snapshot_saved=error is None)
        return recovered

    def now_ms(self) -> int:
        return self._clock.wall_ms()

    def slices(self) -> Slices:
        """For long work on what it holds."""
        return Slices(self._clock)

    @property
    def is_seen_enough(self) -> bool:
        """Whether acks=all is answered before disks have a message, when all in sync have it in memory."""
        return self._settings.acks_all_wait_for is AcksWaitFor.WRITTEN

    def change_settings(self, settings: TopicSettings) -> None:
        self._settings = self._log.settings = settings
        self.stamps_time = settings.timestamp_type is TimestampType.LOG_APPEND
        self.asks_of_batches = settings.asks_of_batches

    def append(self, batches: Sequence[CheckedBatch]) -> int:
        """Store batches, all or none; returns the base offset of the first."""
        self.admit_write()
        copies = self.copies
        written: list[Buffer] | None = None
        if copies is not None:
            copies.admit_lead()
            written = []
        try:
            base_offset = self.log.append(batches, leader_epoch=self.leader_epoch, written=written)
        except (StorageFull, StorageFailed) as error:
            self._note_refusal(error)
            raise
        if self._is_full:
            self._tell_room(is_full=False)
        offset, count, size = base_offset, 0, 0
        now_ms = self._clock.wall_ms()
        is_decided = False
        for header, body, lane in batches:
            self._note(header, body, lane, base_offset=offset, seen_ms=now_ms, aborted=self._log.aborted)
            if header.attributes & CONTROL:
                is_decided = True
            else:
                # Fewer than offsets where some went to quarantine.
                self.lane_counts[lane] += header.record_count
                count += header.record_count
            offset += header.last_offset_delta + 1
            size += len(body)
        self.counters.written_bytes += size
        if self.account is not None and not is_decided:
            self.account.note_stored(count, size)
        if self.telemetry is not None and not is_decided:
            self.telemetry.stored(base_offset, offset, count, size, self._clock.wall_us())
        self._hidden.append((offset, _SETS_FREE_BYTES if is_decided else size))
        self.flusher.note_dirty(self, size)
        if self.readers:
            self.flusher.request(self)
        if copies is not None and written is not None:
            copies.written(base_offset, offset, written)
        return base_offset

    def append_frames(self, data: memoryview) -> int:
        """Store whole steps as another replica has them, unchanged, all or none; returns the end offset.

        Raises Corrupt when they do not fit behind what is here. Nobody counts them as published here.
        """
        self.admit_write()
        try:
            frames = self.log.append_frames(data)
        except (StorageFull, StorageFailed) as error:
            self._note_refusal(error)
            raise
        if self._is_full:
            self._tell_room(is_full=False)
        now_ms, aborted = self._clock.wall_ms(), self._log.aborted
        is_decided = False
        for base_offset, _, lane, _, _, start, end, _ in frames:
            attributes, producer_id, record_count = read_kind(data, start)
            if producer_id >= 0 or attributes & TRANSACTIONAL:  # of all else nothing is kept
                header, body = read_header(data, start), data[start:end]
                self._note(header, body, lane, base_offset=base_offset, seen_ms=now_ms, aborted=aborted)
            if attributes & CONTROL:
                is_decided = True
            else:
                self.lane_counts[lane] += record_count
        end_offset, size = frames[-1].end_offset, len(data)
        self.counters.written_bytes += size
        self._hidden.append((end_offset, _SETS_FREE_BYTES if is_decided else size))
        self.flusher.note_dirty(self, size)
        return end_offset

    def committed(self, end_offset: int) -> "asyncio.Future[None] | None":
        """Done when everything before `end_offset` is safe; None when it is so already."""
        if self._stopped is not None:
            raise self._stopped
        if end_offset <= self.commit_mark:
            return None
        return self._wait_for_mark(end_offset, self._clock.monotonic_ns())

    def answered(self, end_offset: int) -> "asyncio.Future[None] | None":
        """Done when acks=all is answered to who has published what lies before `end_offset`; None: now.

        That is when it is safe, or where the topic asks for less, when all in sync have it in memory. Readers
        see it when it is safe, also then.
        """
        if not self.is_seen_enough:
            return self.committed(end_offset)
        if self._stopped is not None:
            raise self._stopped
        self.flusher.request(self)
        if self.copies is None or end_offset <= self.copies.seen_mark:
            return None
        waiter = asyncio.get_running_loop().create_future()
        self._seen_waiters.append((end_offset, waiter, self._clock.monotonic_ns()))
        return waiter

    def seen(self) -> "asyncio.Future[None] | None":
        """Done when whoever may lead it next has all that is written by now, at least in memory.

        So it is not done where another leads by now. None where they have it, or there is nobody else.
        """
        return None if self.copies is None else self.copies.seen(self.log.end_offset)

    def commit_written(self) -> "asyncio.Future[None] | None":
        """A reader's: done when all that is written by now can be seen; None when it can already.

        Or when that is in the hands of replicas that are not there: no reader waits for those.
        """
        if not self._hidden or (self.copies is not None and not self.copies.can_commit):
            return None
        return self._wait_for_mark(self._hidden[-1][0], None)

    def _wait_for_mark(self, end_offset: int, asked_ns: int | None) -> "asyncio.Future[None]":
        waiter = asyncio.get_running_loop().create_future()
        self._commit_waiters.append((end_offset, waiter, asked_ns))
        self.flusher.request(self)
        return waiter

    def hurry(self) -> None:
        """Somebody reads at the end: what is written is committed now, not at leisure."""
        if self._hidden:
            self.flusher.request(self)

    def add_reader(self, reader: ReadWaiter) -> None:
        """Have somebody told of what comes from now on, until it is taken out of `readers`."""
        self.readers[reader] = None
        self.hurry()

    def drop_reader(self, reader: ReadWaiter) -> None:
        """It waits no longer."""
        self.readers.pop(reader, None)

    async def save_recovery_point(self) -> None:
        """Flush, and return when the present end and start are on the disk as the recovery point."""
        self.admit_write()
        if self._stopped is not None:
            raise self._stopped  # nobody flushes it any more, so nobody would answer
        waiter = asyncio.get_running_loop().create_future()
        self._snapshot_waiters.append(waiter)
        self.flusher.request_snapshot(self)
        await waiter

    @property
    def is_small(self) -> bool:
        """The flusher's: whether the commit log can make it safe."""
        return self._stopped is None and self._log.is_small

    @property
    def unlogged_bytes(self) -> int:
        """The flusher's: how much that would be."""
        return self._log.unlogged_bytes

    def begin_logged(self) -> Flush:
        """The flusher's: what the commit log is to take now."""
        return self._log.begin_logged()

    def begin_flush(self, *, with_snapshot: bool) -> Flush | None:
        """The flusher's: what to do now; None when the partition has stopped."""
        if self._stopped is not None:
            return None
        if with_snapshot:
            self._snapshot_begun, self._snapshot_waiters = self._snapshot_waiters, []
        return self._log.begin_flush(
            producers=self._snapshot() if with_snapshot else None, with_snapshot=with_snapshot
        )

    def finish_flush(
        self, flush: Flush | None, error: OSError | None, snapshot_error: OSError | None = None
    ) -> None:
        """The flusher's: how it went, with the data and then with the recovery point."""
        if flush is None:
            return
        if self._stopped is not None:
            if error is None:
                # It failed meanwhile, and is not opened anew before this. What is on the disk stays.
                self._confirmed_offset = max(self._confirmed_offset, flush.end_offset)
            return
        if error is not None:
            self.counters.fsync_errors += 1
            self._fail(storage_error(error, f"flush of {self.source}"))
            return
        safe_offset = self._log.flushed_offset
        self._log.finish_flush(flush, is_snapshot_saved=snapshot_error is None)
        if self.telemetry is not None and self._log.flushed_offset > safe_offset:
            self.telemetry.flushed(safe_offset, self._log.flushed_offset, self._clock.wall_us())
        if self.copies is None:
            self.move_mark(self._log.flushed_offset)
        else:
            self.copies.flushed()
        if flush.snapshot is not None:
            refusal = None
            if snapshot_error is not None:
                refusal = storage_error(snapshot_error, f"recovery point of {self.source}")
                log.warning("recovery_point_failed partition=%s reason=%s", self.source, refusal)
            for waiter in self._snapshot_begun:
                answer(waiter, refusal)
            self._snapshot_begun = []
        if self._snapshot_waiters:
            self.flusher.request_snapshot(self)
        if self._commit_waiters and not self._log.is_safe:
            self.flusher.request(self)

    def move_mark(self, offset: int) -> None:
        """What lies before an offset is safe: show it, and wake those who wait for that."""
        self.commit_mark = offset
        self._answer_until(offset, self._commit_waiters)
        if self._seen_waiters:
            self._answer_until(offset, self._seen_waiters)  # the seen mark waits for who joins, this does not
        size = 0
        while self._hidden and self._hidden[0][0] <= offset:
            size += self._hidden.popleft()[1]
        if size and self.readers:
            tell_in_turn(self.readers, lambda reader: reader.offer(size, self))

    def move_seen(self, offset: int) -> None:
        """What lies before an offset is in the memory of all in sync: wake those who wait for no more."""
        self._answer_until(offset, self._seen_waiters)

    def _answer_until(
        self, offset: int, waiters: deque[tuple[int, asyncio.Future[None], int | None]]
    ) -> None:
        now_ns = self._clock.monotonic_ns()
        while waiters and waiters[0][0] <= offset:
            _, waiter, asked_ns = waiters.popleft()
            if asked_ns is not None:
                self.counters.publish_seconds.observe((now_ns - asked_ns) / 1e9)
            answer(waiter)

    def reopen(self) -> Recovered:
        """After a failure: open anew what the disk confirmed. Waits for the disk; raises OSError.

        Before it the flusher has sealed the commit log, so that nothing of what is cut is ever found there.
        """
        committed = [] if self._commit_log is None else self._commit_log.pieces_of(self.folder)
        self._close_log()
        return self._open(committed, end_limit=self._confirmed_offset)

    def resume(self, *, leader_epoch: int) -> None:
        """Go back to work after `reopen`, under a new epoch.

        No reader has seen what is gone. But producers that did not wait for the disk were told its offsets,
        and whoever writes in several steps sees by the epoch that the first of them may be gone.
        """
        self.leader_epoch = leader_epoch
        self._stopped = None

    def pause(self, error: GoQueueError) -> None:
        """Stop for a while, to be cut: whoever waits or comes hears `error`. Then `cut`, `end_pause`."""
        self._confirmed_offset = self._log.flushed_offset
        self._stopped = error
        self._release(error)

    def sync(self) -> None:
        """While it is paused: bring all of it into its own files. Waits for the disk; raises OSError."""
        flush = self._log.begin_flush()
        flush.run()
        self._log.finish_flush(flush)

    def cut(self, end_offset: int) -> None:
        """While it is paused: drop what lies behind an offset. It ends earlier if a step goes across that.

        All of it is in its own files, and the commit log has forgotten it (`cutting.py` in this room).
        Waits for the disk; raises OSError.
        """
        now = self._log
        if end_offset >= now.end_offset:
            return
        self._close_log()
        let_go_points(
            self._disk,
            self.folder,
            end_offset,
            start_offset=min(now.start_offset, end_offset),
            gaps=now.gaps,
            topic_id=self._topic_id,
        )
        self._open((), end_limit=end_offset)

    def begin(self, offset: int) -> None:
        """Drop everything, and begin at an offset that is not before the end. Waits for the disk too."""
        self._restore(None)
        self._log.begin_anew(offset)
        self._save_point()
        self._set_mark()

    def move_start(self, start_offset: int) -> None:
        """Give up what lies before an offset, here and on the other replicas. Raises NotLeader."""
        self.admit_read()
        self.log.move_start(start_offset)
        if self.copies is not None:
            self.copies.start_moved()

    def begin_empty(self, offset: int) -> None:
        """While it is paused: drop everything, damaged as it may be, and begin in an empty folder.

        The commit log has forgotten it. Others have what is dropped: a power cut in between leaves a folder
        without anything, which is damage, and then this is done again. Waits for the disk; raises OSError.
        """
        damage = self._log.damage
        self._close_log()
        if damage is not None and damage.owner is not None:
            put_aside(self._disk, self.folder, damage.owner)  # another topic's is not ours to remove
        else:
            self._disk.remove_tree(self.folder)
        self._disk.make_folder(self.folder)
        begin_at(self._disk, self.folder, offset, topic_id=self._topic_id)
        self._open(())

    def end_pause(self, why: GoQueueError, error: OSError | None = None) -> None:
        """Go back to work, or stop and be opened anew. Raises what keeps it from work."""
        if self._stopped is why:
            self._stopped = None
            if error is not None:
                # A flush that was under way when the pause began may have made more safe than the log knows.
                confirmed_offset = self._confirmed_offset
                self._fail(storage_error(error, f"cut of {self.source}"))
                self._confirmed_offset = max(confirmed_offset, self._confirmed_offset)
        if self._stopped is not None:
            raise self._stopped

    @property
    def topic_id(self) -> UUID:
        return self._topic_id

    def refuse_waiters(self, error: GoQueueError) -> None:
        """What publishers wait for may never count: they hear it, and readers look again."""
        self._refuse_waiters(error)
        tell_in_turn(self.readers, ReadWaiter.wake)

    def _refuse_waiters(self, error: GoQueueError) -> None:
        for waiters in (self._commit_waiters, self._seen_waiters):
            for _, waiter, _ in waiters:
                answer(waiter, error)
            waiters.clear()

    def declare_lost(self, reason: str, end_offset: int) -> None:
        """Stop writing: messages up to an offset were there once, and are not any more."""
        self._log.declare_lost(reason, end_offset)
        self.commit_mark = end_offset
        log.error("partition_damaged partition=%s reason=%s", self.source, self._log.damage)

    def accept_loss(self, end_offset: int) -> None:
        """Go on without what is lost. Waits for the disk; raises OSError, and is damaged then as before."""
        damage = self._log.damage
        try:
            if damage is not None and damage.owner is not None:
                self._begin_anew(damage.owner)
            self._log.accept_loss(end_offset)
            self._save_point()
        except OSError:
            self._log.damage = damage
            raise
        self.commit_mark = self._log.flushed_offset

    def _save_point(self) -> None:
        """Make all of it safe, with a recovery point. Waits for the disk; raises OSError."""
        flush = self._log.begin_flush(producers=self._snapshot(), with_snapshot=True)
        error = flush.run()
        if error is not None:
            raise error
        self._log.finish_flush(flush)

    def _begin_anew(self, owner: UUID) -> None:
        """Put another topic's folder aside, and open an empty one with what the commit log has of this."""
        if self._owner() == owner:
            aside = put_aside(self._disk, self.folder, owner)
            log.warning("folder_put_aside partition=%s folder=%s", self.source, aside)
        self._disk.make_folder(self.folder)
        committed = [] if self._commit_log is None else self._commit_log.pieces_of(self.folder)
        self._close_log()
        self._open(committed)

    def close(self, error: GoQueueError) -> None:
        """Stop for good: `error` is what everyone hears who waits or comes later."""
        self._stopped = error
        self._release(error)
        self._close_log()

    def _close_log(self) -> None:
        self.counters.segments_begun += self._log.segments_begun
        self.counters.segments_removed += self._log.segments_removed
        self.counters.offset_look_ups += self._log.offset_look_ups
        self.counters.time_look_ups += self._log.time_look_ups
        self._log.close()

    def _note(
        self,
        header: BatchHeader,
        body: memoryview,
        lane: int,
        *,
        base_offset: int,
        seen_ms: int,
        aborted: AbortedIndex,
    ) -> None:
        """A batch is in the log: who wrote it, and what it opens or decides."""
        marker = None
        if header.attributes & CONTROL:
            marker = marker_of(body)
            self.producers.fence(header.producer_id, header.producer_epoch, seen_ms=seen_ms)
        else:
            count = header.last_offset_delta + 1
            self.producers.apply(header, base_offset=base_offset, count=count, lane=lane, seen_ms=seen_ms)
        taken_back = self.transactions.apply(header, marker, base_offset=base_offset, seen_ms=seen_ms)
        if taken_back is not None:
            aborted.add(taken_back)

    def _snapshot(self) -> dict[str, object]:
        return self.producers.snapshot() | {"transactions": self.transactions.snapshot()}

    def _restore(self, snapshot: object) -> None:
        self.producers.restore(snapshot)
        self.transactions.restore(snapshot.get("transactions") if isinstance(snapshot, dict) else None)

    def _find_aborted(self, end_offset: int) -> list[AbortedTransaction]:
        """What the batches before an offset say was aborted. Waits for the disk."""
        opened = OpenTransactions()
        found = []
        offset = self._log.start_offset
        while offset < end_offset:
            try:
                chunk = self._log.read(offset, _WALK_BYTES, end_offset=end_offset, read_bytes=from_disk)
            except Corrupt as error:
                behind = self._log.behind_gap(offset)
                if behind > offset:
                    offset = behind
                    continue
                # Readers hear of it at the same place; what was aborted behind it cannot be told any more.
                log.error("aborted_index_incomplete partition=%s reason=%s", self.source, error)
                break
            for body in chunk.batches:
                header = read_header(body)
                marker = marker_of(body) if header.attributes & CONTROL else None
                aborted = opened.apply(header, marker, base_offset=header.base_offset, seen_ms=0)
                if aborted is not None:
                    found.append(aborted)
            offset = chunk.end_offset
        return found

    def _note_refusal(self, error: StorageFull | StorageFailed) -> None:
        """The disk has not taken what was to be written."""
        if isinstance(error, StorageFull):
            self._tell_room(is_full=True)
        if self._stopped is None and self._log.is_broken:
            self._fail(error)

    def _tell_room(self, *, is_full: bool) -> None:
        """One log line when the disk becomes full, and one when it takes messages again."""
        if is_full and not self._is_full:
            log.error("disk_full partition=%s", self.source)
        elif self._is_full and not is_full:
            log.warning("disk_has_room partition=%s", self.source)
        self._is_full = is_full

    def _fail(self, error: GoQueueError) -> None:
        self._confirmed_offset = self._log.flushed_offset
        self._stopped = StorageFailed(f"{self.source} has stopped after a disk error: {error}")
        log.error("partition_stopped partition=%s reason=%s", self.source, error)
        self._release(self._stopped)
        self._on_failure(self)

    def _release(self, error: GoQueueError) -> None:
        self._refuse_waiters(error)
        for waiter in self._snapshot_waiters + self._snapshot_begun:
            answer(waiter, error)
        self._hidden.clear()
        self._snapshot_waiters, self._snapshot_begun = [], []
        tell_in_turn(self.readers, ReadWaiter.wake)


@contextmanager
def _collector_off() -> Iterator[None]:
    """Without Python's collector 100,000 producers are restored in a fourth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
