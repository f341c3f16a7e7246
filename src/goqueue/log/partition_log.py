"""A partition's log: append at the end, read from anywhere, and know what is on the disk.

Offsets only grow, and are dense but for what was lost with an operator's leave. `end_offset` is where the
next message goes; everything before `flushed_offset` survives a power failure. All methods run on the loop
except those of `Flush`, `accept_loss`, and the reads with `from_disk`, which touch only what does not change
under them.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from goqueue.log.aborted_index import AbortedIndex
from goqueue.log.commit_rounds import NO_TOPIC, Piece
from goqueue.log.damage import Damage
from goqueue.log.file_shelf import FileShelf
from goqueue.log.flush import Flush
from goqueue.log.recovery import NO_LIMIT, OnBatch, Recovered, recover, reindex
from goqueue.log.segment import Segment
from goqueue.log.snapshot import Snapshot
from goqueue.log.sparse_index import Checksum
from goqueue.model.errors import Corrupt, InvalidRecord, OffsetOutOfRange, StorageFailed, StorageFull
from goqueue.model.ids import TopicPartition
from goqueue.model.ports import Buffer, Disk, File, is_disk_full
from goqueue.model.settings import UNLIMITED, TopicSettings
from goqueue.records.batch import open_batch
from goqueue.records.frame import FRAME_BYTES, Frame, encode_frame, find_behind, scan_frames
from goqueue.records.layout import BatchHeader, patch, read_header

_HINTS_MAX = 64
_base_offset = attrgetter("base_offset")
_NO_INDEXES = (Checksum(0, 0), Checksum(0, 0))
_READ_AHEAD_BYTES = 4096
"""Read a little more than asked, so that the skipped frames before an offset do not cost a second read."""
LOGGED_BYTES_MAX = 64 * 1024
"""What a partition has written goes through the commit log up to this size. To write more than that twice
costs more than to sync its file (ADR 32 has the figures)."""
_FRAMES_MAX = 2_000
"""A read ends behind so many frames, however small: to check them takes 5 ms, and the loop waits for it."""


class CheckedBatch(NamedTuple):
    """A batch whose header has been read and whose bytes have been checked."""

    header: BatchHeader
    body: memoryview
    lane: int


class WrittenBytes(NamedTuple):
    """One write to a segment."""

    segment_base: int
    position: int
    end_offset: int
    data: bytes


class Chunk(NamedTuple):
    """Batches read, whole and checked."""

    batches: list[memoryview]
    lanes: list[int]
    size: int
    end_offset: int


class NotCached(Exception):
    """What is wanted is not in memory: read again from a thread, which may wait for the disk."""


def from_memory(file: File, position: int, size: int) -> bytes | bytearray:
    """Read without waiting, or raise NotCached."""
    data = file.read_cached(position, size)
    if data is None:
        raise NotCached
    return data


def from_disk(file: File, position: int, size: int) -> bytes:
    """Read, waiting for the disk if need be."""
    return file.read(position, size)


ReadBytes = Callable[[File, int, int], bytes | bytearray]


class PartitionLog:
    """The frames of one partition in their segments."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        source: TopicPartition,
        settings: TopicSettings,
        topic_id: UUID,
        recovered: Recovered,
        aborted: AbortedIndex,
        shelf: FileShelf,
    ) -> None:
        self.settings = settings
        self.topic_id = topic_id
        self.aborted = aborted
        self.folder = folder
        self._disk = disk
        self._source = source
        self._segments = recovered.segments
        """Replaced, never changed in place: a thread that reads keeps the list it began with."""
        self._unsynced: list[Segment] = recovered.unsynced
        self._sealed: list[Segment] = recovered.sealed
        """Closed since the last recovery point."""
        self._removed: list[Segment] = []
        self._shelf = shelf
        for segment in self._segments[:-1]:
            if segment not in self._unsynced:
                segment.retire(shelf)
        # What a process that was killed has created may not be durable yet.
        self._folder_changed = True
        self._hints: dict[int, tuple[Segment, int]] = {}
        self._warm: Segment | None = None
        self.epochs = recovered.epochs
        self.start_offset = recovered.start_offset
        self.flushed_offset = recovered.safe_offset
        self._synced_offset = recovered.safe_offset
        """Before it all is safe in the log's own files; from there to `flushed_offset` in the commit log."""
        self._unlogged: list[WrittenBytes] | None = []
        """What was written since the last flush began; None: too much for the commit log."""
        self.unlogged_bytes = 0
        self._empty_base = recovered.safe_offset
        self._snapshot_of: tuple[int, int] | None = None
        self._reindexed: set[int] = set()
        self.segments_begun = 0
        self.segments_removed = 0
        self.offset_look_ups = 0
        self.time_look_ups = 0
        """Since it was opened; threads that read count too, so a few may be missing."""
        # A crash may have brought back segments that were given up; the next recovery point removes them.
        self.move_start(self.start_offset)
        self.damage = recovered.damage
        """Something is lost that was vouched for: it is not written to until `accept_loss`."""
        self.is_broken = False
        """A failed write could not be taken back: what the file ends with is unknown, so open it anew."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        source: TopicPartition,
        settings: TopicSettings,
        *,
        topic_id: UUID = NO_TOPIC,
        vouched_end: int | None = None,
        restore_producers: Callable[[object], None],
        on_batch: OnBatch,
        aborted: AbortedIndex,
        end_limit: int = NO_LIMIT,
        shelf: FileShelf | None = None,
    ) -> tuple["PartitionLog", Recovered]:
        """Recover a partition from its folder, which may be empty. Waits for the disk."""
        recovered = recover(
            disk,
            folder,
            restore_producers=restore_producers,
            on_batch=on_batch,
            aborted=aborted,
            vouched_end=vouched_end,
            end_limit=end_limit,
        )
        log = cls(disk, folder, source, settings, topic_id, recovered, aborted, shelf or FileShelf())
        return log, recovered

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset if self._segments else self._empty_base

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def sealed_segments(self) -> list[Segment]:
        """Those that nothing is written to any more, as they are now."""
        return self._segments[:-1]

    @property
    def is_dirty(self) -> bool:
        """Whether its own files could lose something in a power failure now."""
        return self._synced_offset < self.end_offset or bool(self._unsynced)

    @property
    def is_safe(self) -> bool:
        """Whether a power failure now would lose nothing, thanks to its own files or to the commit log."""
        return self.flushed_offset == self.end_offset

    @property
    def is_small(self) -> bool:
        """Whether what was written since the last flush is little enough for the commit log."""
        return self._unlogged is not None and self.damage is None

    @property
    def wants_snapshot(self) -> bool:
        """Whether the newest recovery point is out of date."""
        if self.damage is not None:
            return False  # it would vouch for less than the one there is
        return self._snapshot_of != (self.start_offset, self.end_offset) or bool(self._removed)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Offsets that are lost between segments: first and end of each run."""
        ends = ((before.end_offset, behind.base_offset) for before, behind in pairwise(self._segments))
        return [(first, end) for first, end in ends if first < end]

    def append(self, batches: Sequence[CheckedBatch], *, leader_epoch: int) -> int:
        """Write batches at the end, all or none; returns the first one's base offset."""
        assert not self.is_broken, "a broken log must be opened anew"
        base_offset = offset = self.end_offset
        buffers: list[Buffer] = []
        last = len(batches) - 1
        for at, (header, body, lane) in enumerate(batches):
            patch(body, base_offset=offset, leader_epoch=leader_epoch)
            frame = encode_frame(header, body, base_offset=offset, lane=lane, continues=at < last)
            buffers += (frame, body)
            offset += header.last_offset_delta + 1
        size = sum(map(len, buffers))
        try:
            segment = self._segment_for(size)
            segment.write(buffers)
        except OSError as error:
            self.is_broken = bool(self._segments) and not self._segments[-1].take_back()
            raise storage_error(error, f"append to {self._source}") from error
        self._keep_for_commit(segment, size, offset, buffers)
        for header, body, _ in batches:
            first = segment.end_offset
            segment.note_frame(
                segment.size,
                FRAME_BYTES + len(body),
                offsets=range(first, first + header.last_offset_delta + 1),
                max_timestamp_ms=header.max_timestamp_ms,
            )
        if not self.epochs or leader_epoch > self.epochs[-1][0]:
            self.epochs.append((leader_epoch, base_offset))
        return base_offset

    def _keep_for_commit(self, segment: Segment, size: int, end_offset: int, buffers: list[Buffer]) -> None:
        """Keep what was written, for the commit log, unless it becomes too much for that."""
        self.unlogged_bytes += size
        if self._unlogged is not None:
            if self.unlogged_bytes <= LOGGED_BYTES_MAX:
                written = WrittenBytes(segment.base_offset, segment.size, end_offset, b"".join(buffers))
                self._unlogged.append(written)
            else:
                self._unlogged = None

    def read(
        self, offset: int, max_bytes: int, *, end_offset: int, read_bytes: ReadBytes, framed: bool = False
    ) -> Chunk:
        """Batches from the one that holds `offset` on, of one segment, at least one, up to `max_bytes`.

        `framed`: with their frames, in one piece as they lie in the file, and no list of lanes.
        """
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset, start_offset=self.start_offset, end_offset=end_offset)
        if offset == end_offset:
            return Chunk([], [], 0, offset)
        segment = self._segment_of(offset)
        if not segment.base_offset <= offset < segment.end_offset:
            if self.damage is not None:
                raise self._corrupt(offset, str(self.damage))
            offset = self.behind_gap(offset)
            if offset >= end_offset:
                return Chunk([], [], 0, end_offset)
            segment = self._segment_of(offset)
        try:
            return self._read_segment(segment, offset, max_bytes, end_offset, read_bytes, framed)
        except OSError as error:
            raise storage_error(error, f"read of {self._source}") from error
        except Corrupt:
            # An index that lies looks like a corrupt log. Believe the worst only after building it anew.
            if segment is self._segments[-1] or segment.base_offset in self._reindexed:
                raise
            if read_bytes is from_memory:
                raise NotCached from None
            self._reindexed.add(segment.base_offset)
            reindex(segment)
            self._hints.clear()
            return self._read_segment(segment, offset, max_bytes, end_offset, read_bytes, framed)

    def behind_gap(self, offset: int) -> int:
        """The same offset, or where messages go on when it is one that is lost."""
        for segment in self._segments:
            if offset < segment.end_offset or segment is self._segments[-1]:
                return max(offset, segment.base_offset)
        return offset

    def declare_lost(self, reason: str, end_offset: int) -> None:
        """Somebody has had messages up to an offset, and they are not there: the log ends where it did."""
        self.damage = Damage(reason, ((self.end_offset, end_offset),))
        phantom = Segment(self._disk, self.folder, end_offset)
        phantom.stand_for_lost()
        self._segments = [*self._segments, phantom]
        self.flushed_offset = end_offset

    def accept_loss(self, end_offset: int = 0) -> None:
        """Go on without what is lost, behind all that was ever vouched for, or further. Save a snapshot next.

        Nothing is cut: what a torn file still holds behind its good frames stays in it, unread.
        """
        end_offset = max(end_offset, self.end_offset)
        if self._segments and not self._segments[-1].is_on_disk():
            self._segments = self._segments[:-1]
        last = self._segments[-1] if self._segments else None
        if last is None or last.end_offset < end_offset:
            self._begin_segment(end_offset)
            if last is not None:
                last.seal()
                self._unsynced.append(last)
                self._sealed.append(last)
        else:
            last.cut()
        self.damage = None
        self.flushed_offset = self._synced_offset = end_offset
        self._hints.clear()
        self.move_start(max(self.start_offset, self._segments[0].base_offset))

    def _read_segment(
        self,
        segment: Segment,
        offset: int,
        max_bytes: int,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool,
    ) -> Chunk:
        segment_bytes = segment.size
        expected, position = self._locate(segment, offset, may_wait=read_bytes is not from_memory)
        want = max_bytes + _READ_AHEAD_BYTES
        while True:
            want = min(want, segment_bytes - position)
            data = memoryview(read_bytes(segment.file, position, want))
            # A crash may bring back what was cut off a file once: where the next begins, this one ends.
            stop_offset = min(end_offset, segment.end_offset)
            scan = scan_frames(data, stop_offset=stop_offset, count_max=_FRAMES_MAX)
            chunk, next_position, expected = self._take(scan.frames, data, offset, max_bytes, expected)
            if chunk.batches:
                self._remember(chunk.end_offset, segment, position + next_position)
                return _with_frames(chunk, data, next_position) if framed else chunk
            if scan.problem:
                # The bad frame may lie before the offset asked for, which can still be good.
                behind = find_behind(data, scan.consumed_bytes)
                if behind is None and position + want < segment_bytes:
                    want *= 4
                elif behind is None or not expected < behind[1] <= offset:
                    next_offset = stop_offset if behind is None else min(behind[1], stop_offset)
                    raise self._corrupt(expected, scan.problem, next_offset if next_offset > offset else -1)
                else:
                    position, expected = position + behind[0], behind[1]
                continue
            if not scan.consumed_bytes and not scan.wanted_bytes:
                raise self._corrupt(expected, "a frame of a later offset stands here")
            position += scan.consumed_bytes
            if len(data) < want or position + scan.wanted_bytes > segment_bytes or position >= segment_bytes:
                raise self._corrupt(expected, "the file ends too early")
            want = max(scan.wanted_bytes, max_bytes + _READ_AHEAD_BYTES)

    def split(self, from_offset: int, until_offset: int, *, piece_bytes: int) -> list[int]:
        """Offsets between the two at which batches begin, about so many bytes apart. Waits for the disk.

        They come from the sparse indexes alone: nothing of the log itself is read.
        """
        cuts: list[int] = []
        room_bytes = piece_bytes
        for segment in self._segments:
            if segment.end_offset <= from_offset or segment.base_offset >= until_offset:
                continue
            position = 0
            if segment.base_offset < from_offset:
                position = segment.position_at_or_before(from_offset)[1]
            while (place := segment.frame_behind(position + room_bytes)) is not None:
                if place[0] >= until_offset:
                    return cuts
                if place[0] > (cuts[-1] if cuts else from_offset):
                    cuts.append(place[0])
                position, room_bytes = place[1], piece_bytes
            room_bytes = max(room_bytes - (segment.size - position), 0)
            if segment is not self._segments[-1] and segment is not self._warm:
                segment.forget_indexes()
        return cuts

    def find_time(self, timestamp_ms: int, *, from_offset: int, read_bytes: ReadBytes) -> Chunk | None:
        """The first batch, from an offset on, that has a message of that time or later; or None."""
        for segment in self._segments:
            if segment.end_offset <= from_offset or segment.max_timestamp_ms < timestamp_ms:
                continue
            self.time_look_ups += 1
            offset = max(segment.offset_before_time(timestamp_ms), from_offset)
            while offset < segment.end_offset:
                batch, max_timestamp_ms = self._one_batch(offset, read_bytes)
                if max_timestamp_ms >= timestamp_ms:
                    return batch
                offset = batch.end_offset
        return None

    def newest_time(self, *, end_offset: int, read_bytes: ReadBytes) -> int:
        """The largest timestamp of the messages before an offset that can be read; -1 when there are none."""
        newest = -1
        for segment in self._segments:
            if segment.base_offset >= end_offset:
                break
            is_whole = self.start_offset <= segment.base_offset and segment.end_offset <= end_offset
            found = segment.max_timestamp_ms if is_whole else self._newest_of(segment, end_offset, read_bytes)
            newest = max(newest, found)
        return newest

    def _newest_of(self, segment: Segment, end_offset: int, read_bytes: ReadBytes) -> int:
        """The same of a part of a segment: its largest may be among what was deleted, or is not shown yet."""
        newest, offset = segment.newest_before(end_offset)
        if self.start_offset > segment.base_offset:
            newest, offset = -1, self.start_offset
        while offset < min(segment.end_offset, end_offset):
            batch, max_timestamp_ms = self._one_batch(offset, read_bytes)
            if offset == self.start_offset:
                with suppress(InvalidRecord):  # what nobody can open is as late as its header says
                    messages = open_batch(batch.batches[0], batch.lanes[0])
                    late_ms = (m.timestamp_ms for m in messages if m.offset >= offset)
                    max_timestamp_ms = max(late_ms, default=-1)
            newest = max(newest, max_timestamp_ms)
            offset = batch.end_offset
        return newest

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The last epoch not above the one asked for, and the offset where it ended; (-1, -1): none known."""
        found = -1
        for epoch, first_offset in self.epochs:
            if epoch > leader_epoch:
                return (found, first_offset) if found >= 0 else (-1, -1)
            found = epoch
        return (found, self.end_offset) if found >= 0 else (-1, -1)

    def expire(self, *, now_ms: int) -> int:
        """Give up sealed segments that age or size no longer covers; returns how many."""
        keep_ms, keep_bytes = self.settings.retention_ms, self.settings.retention_bytes
        active = self._segments[-1] if self._segments else None
        if active and active.size and keep_ms != UNLIMITED and active.max_timestamp_ms < now_ms - keep_ms:
            self._roll()
        surplus = self.size_bytes - keep_bytes if keep_bytes != UNLIMITED else 0
        count = 0
        for segment in self._segments[:-1]:
            is_old = keep_ms != UNLIMITED and segment.max_timestamp_ms < now_ms - keep_ms
            is_surplus = keep_bytes != UNLIMITED and surplus >= segment.size
            # What groups have of a partition never runs ahead of its disk, so neither does its start.
            if not (is_old or is_surplus) or segment.end_offset > self.flushed_offset:
                break
            surplus -= segment.size
            count += 1
        if count:
            self.move_start(self._segments[count].base_offset)
        return count

    def move_start(self, start_offset: int) -> None:
        """Everything before `start_offset` is gone: unreadable now, off the disk with the next snapshot."""
        assert start_offset <= self.end_offset, "the start cannot pass the end"
        self.start_offset = max(self.start_offset, start_offset)
        self.aborted.drop_before(self.start_offset)
        kept = max(bisect_right(self._segments, self.start_offset, key=_base_offset) - 1, 0)
        if kept:
            self._removed += self._segments[:kept]
            self.segments_removed += kept
            self._segments = self._segments[kept:]
            self._hints.clear()
            self._warm = None if self._warm in self._removed else self._warm

    def roll(self) -> None:
        """Seal the segment being written, if it holds anything, and begin another."""
        if self._segments and self._segments[-1].size:
            self._roll()

    def begin_logged(self) -> Flush:
        """What the commit log must take to make all of the present log safe; then `finish_flush`."""
        flush = Flush(
            disk=self._disk,
            folder=self.folder,
            pieces=self._pieces(),
            files=(),
            sealed=(),
            sync_folder=False,
            snapshot=None,
            aborted_files={},
            removed=(),
            end_offset=self.end_offset,
        )
        self._unlogged, self.unlogged_bytes = [], 0
        return flush

    def _pieces(self) -> list[Piece]:
        """What was written since the last flush, each stretch of a file in one piece."""
        assert self._unlogged is not None, "it is little enough for the commit log"
        pieces = []
        for segment_base, stretch in groupby(self._unlogged, key=attrgetter("segment_base")):
            writes = list(stretch)
            data = writes[0].data if len(writes) == 1 else b"".join(write.data for write in writes)
            pieces.append(
                Piece(
                    self.folder, self.topic_id, segment_base, writes[0].position, writes[-1].end_offset, data
                )
            )
        return pieces

    def begin_flush(self, *, producers: object = None, with_snapshot: bool = False) -> Flush:
        """The work that makes all of the present log safe; run it in a thread, then `finish_flush`."""
        snapshot = None
        active = self._segments[-1] if self._segments else None
        if with_snapshot:
            if active:
                active.save_indexes()
            snapshot = Snapshot(
                end_offset=self.end_offset,
                segment_base=active.base_offset if active else self.end_offset,
                position=active.size if active else 0,
                start_offset=self.start_offset,
                epochs=list(self.epochs),
                max_timestamp_ms=active.max_timestamp_ms if active else -1,
                indexes=active.index_checksums() if active else _NO_INDEXES,
                aborted=self.aborted.checksum(),
                producers=producers,
                gaps=self.gaps,
            )
        written = [segment for segment in self._unsynced if segment is not active]
        files = [segment.file for segment in written]
        for segment in written:
            segment.retire(self._shelf)
        if active and self.is_dirty:
            files.append(active.file)
        flush = Flush(
            disk=self._disk,
            folder=self.folder,
            pieces=(),
            files=files,
            sealed=self._sealed if with_snapshot else [],
            sync_folder=self._folder_changed,
            snapshot=snapshot,
            aborted_files=self._unsaved_aborted() if with_snapshot else {},
            removed=self._removed if with_snapshot else [],
            end_offset=self.end_offset,
        )
        self._unsynced, self._folder_changed = [], False
        self._unlogged, self.unlogged_bytes = [], 0
        if with_snapshot:
            self._removed, self._sealed = [], []
            self._snapshot_of = (self.start_offset, self.end_offset)
        return flush

    def finish_flush(self, flush: Flush, *, is_snapshot_saved: bool = True) -> None:
        """Take note that a flush came through, with its recovery point or without."""
        self.flushed_offset = max(self.flushed_offset, flush.end_offset)
        if not flush.pieces:
            self._synced_offset = max(self._synced_offset, flush.end_offset)
        if not is_snapshot_saved:
            self._snapshot_of = None
            self._removed = [*flush.removed, *self._removed]
            self._sealed = [*flush.sealed, *self._sealed]
            self.aborted.note_unsaved()

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def _unsaved_aborted(self) -> dict[str, bytes]:
        return self.aborted.unsaved([segment.base_offset for segment in self._segments])

    def _segment_for(self, size: int) -> Segment:
        if not self._segments:
            self._begin_segment(self._empty_base)
        elif self._segments[-1].size and self._segments[-1].size + size > self.settings.segment_bytes:
            self._roll()
        return self._segments[-1]

    def _roll(self) -> None:
        sealed = self._segments[-1]
        self._begin_segment(sealed.end_offset)
        sealed.seal()
        self._unsynced.append(sealed)
        self._sealed.append(sealed)

    def _begin_segment(self, base_offset: int) -> None:
        segment = Segment(self._disk, self.folder, base_offset)
        segment.begin()
        self._segments = [*self._segments, segment]
        self.segments_begun += 1
        self._folder_changed = True

    def _segment_of(self, offset: int) -> Segment:
        segments = self._segments
        return segments[bisect_right(segments, offset, key=_base_offset) - 1]

    def _locate(self, segment: Segment, offset: int, *, may_wait: bool) -> tuple[int, int]:
        """(offset, position) of a frame at or before `offset`."""
        hint = self._hints.get(offset)
        if hint is not None and hint[0] is segment:
            return offset, hint[1]
        if offset == segment.base_offset:
            return offset, 0
        if not may_wait and not segment.has_index_at_hand:
            raise NotCached
        if segment is not self._segments[-1] and segment is not self._warm:
            if self._warm is not None:
                self._warm.forget_indexes()
            self._warm = segment
        self.offset_look_ups += 1
        return segment.position_at_or_before(offset)

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Where the reader that goes on at `offset` will find it."""
        if len(self._hints) >= _HINTS_MAX:
            self._hints.pop(next(iter(self._hints), -1), None)
        self._hints[offset] = (segment, position)

    def _take(
        self, frames: list[Frame], data: memoryview, offset: int, max_bytes: int, expected: int
    ) -> tuple[Chunk, int, int]:
        """What of the scanned frames goes to the reader, where it ends, and the offset due behind it."""
        batches: list[memoryview] = []
        lanes: list[int] = []
        size, position = 0, 0
        for base_offset, frame_end_offset, lane, _, _, body_start, body_end, _ in frames:
            if base_offset != expected:
                if batches:
                    break
                raise self._corrupt(expected, f"offset {base_offset} stands where {expected} is due")
            if frame_end_offset > offset:
                body_bytes = body_end - body_start
                if batches and size + body_bytes > max_bytes:
                    break
                batches.append(data[body_start:body_end])
                lanes.append(lane)
                size += body_bytes
            expected = frame_end_offset
            position = body_end
        return Chunk(batches, lanes, size, expected), position, expected

    def _one_batch(self, offset: int, read_bytes: ReadBytes) -> tuple[Chunk, int]:
        chunk = self.read(offset, 1, end_offset=self.end_offset, read_bytes=read_bytes)
        return chunk, read_header(chunk.batches[0]).max_timestamp_ms

    def _corrupt(self, offset: int, problem: str, next_offset: int = -1) -> Corrupt:
        topic, partition = self._source
        way_past = f"; messages go on at offset {next_offset}" if next_offset >= 0 else ""
        return Corrupt(
            f"{topic}/{partition} is corrupt at offset {offset}: {problem}{way_past}",
            topic=topic,
            partition=partition,
            offset=offset,
            next_offset=next_offset,
        )


def _with_frames(chunk: Chunk, data: memoryview, end_position: int) -> Chunk:
    """The same batches with their frames: those lie between them, so it is one piece of the file."""
    size = chunk.size + FRAME_BYTES * len(chunk.batches)
    return Chunk([data[end_position - size : end_position]], [], size, chunk.end_offset)


def storage_error(error: OSError, what: str) -> StorageFull | StorageFailed:
    """An error of the operating system in the words of the house."""
    kind = StorageFull if is_disk_full(error) else StorageFailed
    return kind(f"{what}: {error.strerror or error}")
