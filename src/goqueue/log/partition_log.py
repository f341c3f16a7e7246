"""A partition's log: append at the end, read from anywhere, and know what is on the disk.

Offsets only grow, and are dense but for what was lost with an operator's leave. `end_offset` is where the
next message goes; everything before `flushed_offset` survives a power failure. All methods run on the loop
except those of `Flush`, `accept_loss`, and the reads with `from_disk`, which touch only what does not change
under them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from goqueue.log.aborted_index import AbortedIndex
from goqueue.log.active_segment import ActiveSegment
from goqueue.log.commit_rounds import NO_TOPIC
from goqueue.log.damage import Damage
from goqueue.log.draft import Swap
from goqueue.log.file_shelf import FileShelf
from goqueue.log.flush import Flush
from goqueue.log.look_up import ReadOne, TimeLookUp, newest_time, split
from goqueue.log.reading import ANY_SIZE, Chunk, FrameReader, ReadBytes
from goqueue.log.received import check_received
from goqueue.log.recovery import NO_LIMIT, OnBatch, Recovered, recover
from goqueue.log.retention import count_expired, is_past
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.segment_list import SegmentList
from goqueue.log.snapshot import Snapshot
from goqueue.log.sparse_index import Checksum
from goqueue.log.unlogged import Unlogged
from goqueue.model.errors import OffsetOutOfRange, StorageFailed, StorageFull
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane
from goqueue.model.ports import Buffer, Disk, is_disk_full
from goqueue.model.settings import TopicSettings
from goqueue.records.compacted import filler, is_filler
from goqueue.records.frame import FRAME_BYTES, Frame, encode_frame, whole_steps
from goqueue.records.layout import DELETE_HORIZON, HEADER_BYTES, BatchHeader, patch, read_header

STEP_FRAMES_MAX = 500
"""What goes to another replica at once has no more frames than these, unless one append has: to check and
note so many takes it less than 10 ms, in which its loop does nothing else."""
_NO_INDEXES = (Checksum(0, 0), Checksum(0, 0))


class CheckedBatch(NamedTuple):
    """A batch whose header has been read and whose bytes have been checked."""

    header: BatchHeader
    body: memoryview
    lane: int


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
        self._segments = SegmentList(disk, folder, recovered, shelf)
        self._reader = FrameReader(source)
        self._times = TimeLookUp()
        self.epochs = recovered.epochs
        self.start_offset = recovered.start_offset
        self.flushed_offset = recovered.safe_offset
        self._synced_offset = recovered.safe_offset
        """Before it all is safe in the log's own files; from there to `flushed_offset` in the commit log."""
        self._unlogged = Unlogged()
        self._empty_base = recovered.safe_offset
        self._snapshot_of: tuple[int, int] | None = None
        self._swap: Swap | None = None
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
        must_be_own: bool = False,
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
            topic_id=topic_id if must_be_own else None,
            vouched_end=vouched_end,
            end_limit=end_limit,
        )
        log = cls(disk, folder, source, settings, topic_id, recovered, aborted, shelf or FileShelf())
        return log, recovered

    @property
    def end_offset(self) -> int:
        active = self._segments.active
        return active.end_offset if active is not None else self._empty_base

    @property
    def first_offset(self) -> int:
        """Where its files begin: a batch begins there, and the start is there or within that segment."""
        return self._segments.all[0].base_offset if self._segments.all else self._empty_base

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments.all)

    @property
    def segment_count(self) -> int:
        return len(self._segments.all)

    @property
    def sealed_segments(self) -> list[SealedSegment]:
        """Those that nothing is written to any more, as they are now."""
        return self._segments.closed

    @property
    def segments_begun(self) -> int:
        """Since it was opened."""
        return self._segments.begun_count

    @property
    def segments_removed(self) -> int:
        """Since it was opened."""
        return self._segments.removed_count

    @property
    def offset_look_ups(self) -> int:
        """Since it was opened; threads that read count too, so a few may be missing."""
        return self._reader.look_ups

    @property
    def time_look_ups(self) -> int:
        """The same of those by time."""
        return self._times.count

    @property
    def is_dirty(self) -> bool:
        """Whether its own files could lose something in a power failure now."""
        return self._synced_offset < self.end_offset or self._segments.is_any_unsynced

    @property
    def is_safe(self) -> bool:
        """Whether a power failure now would lose nothing, thanks to its own files or to the commit log."""
        return self.flushed_offset == self.end_offset

    @property
    def is_small(self) -> bool:
        """Whether what was written since the last flush is little enough for the commit log."""
        return self._unlogged.is_small and self.damage is None

    @property
    def unlogged_bytes(self) -> int:
        """Written since the last flush began."""
        return self._unlogged.size_bytes

    @property
    def wants_snapshot(self) -> bool:
        """Whether the newest recovery point is out of date."""
        if self.damage is not None:
            return False  # it would vouch for less than the one there is
        return self._snapshot_of != (self.start_offset, self.end_offset) or bool(self._segments.removed)

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Offsets that are lost between segments: first and end of each run."""
        return self._segments.gaps

    def append(
        self, batches: Sequence[CheckedBatch], *, leader_epoch: int, written: list[Buffer] | None = None
    ) -> int:
        """Write batches at the end, all or none; returns the first one's base offset.

        `written`: takes the bytes, as they lie in the file now.
        """
        assert not self.is_broken, "a broken log must be opened anew"
        base_offset = offset = self.end_offset
        buffers: list[Buffer] = [] if written is None else written
        last = len(batches) - 1
        for at, (header, body, lane) in enumerate(batches):
            patch(body, base_offset=offset, leader_epoch=leader_epoch)
            frame = encode_frame(header, body, base_offset=offset, lane=lane, continues=at < last)
            buffers += (frame, body)
            offset += header.last_offset_delta + 1
        size = sum(map(len, buffers))
        segment = self._write(buffers, size, offset)
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

    def append_frames(self, data: memoryview) -> list[Frame]:
        """Write whole steps as another replica has them, unchanged, all or none; the frames in them.

        Raises Corrupt when they do not fit behind what is here.
        """
        assert not self.is_broken, "a broken log must be opened anew"
        frames = check_received(data, self._source, due_offset=self.end_offset, last_epoch=self.last_epoch)
        segment = self._write([data], len(data), frames[-1].end_offset)
        segment.note_frames(frames, len(data))
        epoch = self.last_epoch
        if frames[-1].leader_epoch > epoch:  # epochs do not fall
            for frame in frames:
                if frame.leader_epoch > epoch:
                    epoch = frame.leader_epoch
                    self.epochs.append((epoch, frame.base_offset))
        return frames

    def _write(self, buffers: Sequence[Buffer], size: int, end_offset: int) -> ActiveSegment:
        """Write at the end, in one segment that is still to note it, and keep it for the commit log."""
        try:
            segment = self._segment_for(size)
            segment.write(buffers)
        except OSError as error:
            active = self._segments.active
            self.is_broken = active is not None and not active.take_back()
            raise storage_error(error, f"append to {self._source}") from error
        self._unlogged.keep(segment.base_offset, segment.size, end_offset, buffers, size=size)
        return segment

    def read_steps(self, offset: int, max_bytes: int, *, read_bytes: ReadBytes) -> Chunk:
        """For another replica: whole appends from an offset on, as they lie in the file, about `max_bytes`.

        Up to what is written, be it committed or not, and from `first_offset` on: batches travel whole. At
        least one append, however large.
        """
        pieces: list[memoryview] = []
        size = 0
        while True:
            chunk = self._read(offset, max_bytes, self.end_offset, read_bytes, True)
            if not chunk.batches:
                assert not pieces, "an append lies whole in one segment"
                return chunk
            [piece] = chunk.batches
            piece = _begun_at(piece, offset)
            end, end_offset = whole_steps(piece, count_max=STEP_FRAMES_MAX)
            if end:
                pieces.append(piece[:end])
                whole = pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))
                return Chunk([whole], [], size + end, end_offset)
            pieces.append(piece)
            size += chunk.size
            offset = chunk.end_offset

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool = False,
        first_bytes_max: int = ANY_SIZE,
    ) -> Chunk:
        """Batches from the one that holds `offset` on, of one segment, at least one, up to `max_bytes`.

        `framed`: with their frames, in one piece as they lie in the file, and no list of lanes.
        `first_bytes_max`: a first batch larger than this is not brought, and then none is.
        """
        if not self.start_offset <= offset <= end_offset:
            raise OffsetOutOfRange(offset, start_offset=self.start_offset, end_offset=end_offset)
        return self._read(offset, max_bytes, end_offset, read_bytes, framed, first_bytes_max)

    def _read(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int,
        read_bytes: ReadBytes,
        framed: bool,
        first_bytes_max: int = ANY_SIZE,
    ) -> Chunk:
        if offset == end_offset:
            return Chunk([], [], 0, offset)
        segment = self._segments.holding(offset)
        if not segment.base_offset <= offset < segment.end_offset:
            if self.damage is not None:
                raise self._reader.corrupt(offset, str(self.damage))
            offset = self.behind_gap(offset)
            if offset >= end_offset:
                return Chunk([], [], 0, end_offset)
            segment = self._segments.holding(offset)
        try:
            return self._reader.read(
                segment,
                offset,
                max_bytes,
                end_offset=end_offset,
                read_bytes=read_bytes,
                framed=framed,
                first_bytes_max=first_bytes_max,
            )
        except OSError as error:
            raise storage_error(error, f"read of {self._source}") from error

    def behind_gap(self, offset: int) -> int:
        """The same offset, or where messages go on when it is one that is lost."""
        return self._segments.behind_gap(offset)

    def declare_lost(self, reason: str, end_offset: int) -> None:
        """Somebody has had messages up to an offset, and they are not there: the log ends where it did."""
        self.damage = Damage(reason, ((self.end_offset, end_offset),))
        self._segments.stand_for_lost(end_offset)
        self.flushed_offset = end_offset

    def accept_loss(self, end_offset: int = 0) -> None:
        """Go on without what is lost, behind all that was ever vouched for, or further. Save a snapshot next.

        Nothing is cut: what a torn file still holds behind its good frames stays in it, unread.
        """
        end_offset = max(end_offset, self.end_offset)
        self._segments.go_on_at(end_offset)
        self.damage = None
        self.flushed_offset = self._synced_offset = end_offset
        self._reader.forget()
        self.move_start(max(self.start_offset, self._segments.all[0].base_offset))

    def begin_anew(self, offset: int) -> None:
        """Let go of everything, and go on at an offset that is not before the end. Save a snapshot next."""
        assert offset >= self.end_offset, "what lies behind the offset must have been cut"
        active = self._segments.active
        if active is None:
            self._empty_base = offset
        elif active.size or active.base_offset != offset:
            self._segments.begin(offset)
        self.epochs = []
        self.flushed_offset = self._synced_offset = offset
        self._unlogged.clear()
        self._reader.forget()
        self.move_start(offset)

    def split(self, from_offset: int, until_offset: int, *, piece_bytes: int) -> list[int]:
        """Offsets between the two at which batches begin, about so many bytes apart. Waits for the disk."""
        forget = self._reader.forget_indexes
        return split(
            self._segments.all, from_offset, until_offset, piece_bytes=piece_bytes, forget_indexes=forget
        )

    def find_time(self, timestamp_ms: int, *, from_offset: int, read_bytes: ReadBytes) -> Chunk | None:
        """The first batch, from an offset on, that has a message of that time or later; or None."""
        read_one = self._reading_one(read_bytes)
        return self._times.find(self._segments.all, timestamp_ms, from_offset=from_offset, read_one=read_one)

    def newest_time(self, *, end_offset: int, read_bytes: ReadBytes) -> int:
        """The largest timestamp of the messages before an offset that can be read; -1 when there are none."""
        return newest_time(
            self._segments.all,
            start_offset=self.start_offset,
            end_offset=end_offset,
            read_one=self._reading_one(read_bytes),
        )

    def _reading_one(self, read_bytes: ReadBytes) -> ReadOne:
        return lambda offset: self.read(offset, 1, end_offset=self.end_offset, read_bytes=read_bytes)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the newest messages; -1: there have never been any."""
        return self.epochs[-1][0] if self.epochs else -1

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        """The last epoch not above the one asked for, and the offset where it ended; (-1, -1): none known."""
        found = -1
        for epoch, first_offset in self.epochs:
            if epoch > leader_epoch:
                return (found, first_offset) if found >= 0 else (-1, -1)
            found = epoch
        return (found, self.end_offset) if found >= 0 else (-1, -1)

    def has_expired(self, *, now_ms: int, end_offset: int) -> bool:
        """Whether `expire` would give up anything."""
        self._seal_past(now_ms)
        return bool(count_expired(self._segments.all, self.settings, now_ms=now_ms, end_offset=end_offset))

    def expire(self, *, now_ms: int, end_offset: int) -> int:
        """Give up sealed segments that age or size no longer covers, up to an offset; returns how many."""
        self._seal_past(now_ms)
        segments = self._segments.all
        count = count_expired(segments, self.settings, now_ms=now_ms, end_offset=end_offset)
        if count:
            self.move_start(segments[count].base_offset)
        return count

    def _seal_past(self, now_ms: int) -> None:
        active = self._segments.active
        if not self.settings.is_deleting:
            return
        if active is not None and active.size and is_past(active, self.settings, now_ms=now_ms):
            self._segments.begin(active.end_offset)

    def move_start(self, start_offset: int) -> None:
        """Everything before `start_offset` is gone: unreadable now, off the disk with the next snapshot."""
        assert start_offset <= self.end_offset, "the start cannot pass the end"
        self.start_offset = max(self.start_offset, start_offset)
        self.aborted.drop_before(self.start_offset)
        if dropped := self._segments.drop_before(self.start_offset):
            self._reader.forget(dropped)

    @property
    def disk(self) -> Disk:
        """Where its folder is."""
        return self._disk

    def first_time(self, segment: SealedSegment | None) -> int | None:
        """The time of the first message of a segment, or of the one being written to (None). Waits for the
        disk.

        None: there is no message in it.
        """
        found = segment or self._segments.active
        if found is None or not found.size:
            return None
        header = read_header(found.file.read(0, FRAME_BYTES + HEADER_BYTES), FRAME_BYTES)
        is_told = header.record_count and not header.attributes & DELETE_HORIZON
        return header.first_timestamp_ms if is_told else found.max_timestamp_ms

    def plan_swap(self, swap: Swap | None) -> None:
        """Let a finished draft take the place of sealed segments with the next recovery point; None: do not.

        That it was done is seen by the segments. Those who read from the old ones go on undisturbed: they are
        pinned. Behind it `remove_replaced`.
        """
        self._swap = swap

    def _take_swap(self) -> Swap | None:
        """What is to be swapped now, if it is all there."""
        swap, self._swap = self._swap, None
        return swap if swap is not None and set(swap.old) <= set(self._segments.all) else None

    def _note_swapped(self, swap: Swap) -> None:
        # Where retention has taken one of them meanwhile, the new file goes with it, by its name.
        if set(swap.old) <= set(self._segments.all):
            self._segments.replace(swap.old, swap.new)
            self._reader.forget(swap.old)
            if len(swap.old) > 1:
                self.aborted.move()

    def roll(self) -> None:
        """Seal the segment being written, if it holds anything, and begin another."""
        active = self._segments.active
        if active is not None and active.size:
            self._segments.begin(active.end_offset)

    def begin_logged(self) -> Flush:
        """What the commit log must take to make all of the present log safe; then `finish_flush`."""
        flush = Flush(
            disk=self._disk,
            folder=self.folder,
            pieces=self._unlogged.pieces(self.folder, self.topic_id),
            end_offset=self.end_offset,
        )
        self._unlogged.clear()
        return flush

    def begin_flush(self, *, producers: object = None, with_snapshot: bool = False) -> Flush:
        """The work that makes all of the present log safe; run it in a thread, then `finish_flush`."""
        segments, active = self._segments, self._segments.active
        snapshot = self._recovery_point(producers) if with_snapshot else None
        grown = [active.file] if active is not None and self.is_dirty else []
        flush = Flush(
            disk=self._disk,
            folder=self.folder,
            files=[*segments.take_unsynced(), *grown],
            sealed=segments.sealed if with_snapshot else [],
            sync_folder=segments.folder_changed,
            snapshot=snapshot,
            aborted_files=self.aborted.unsaved(segments.bases) if with_snapshot else {},
            removed=segments.removed if with_snapshot else [],
            swap=self._take_swap() if with_snapshot else None,
            end_offset=self.end_offset,
        )
        segments.folder_changed = False
        self._unlogged.clear()
        if with_snapshot:
            segments.removed, segments.sealed = [], []
            self._snapshot_of = (self.start_offset, self.end_offset)
        return flush

    def _recovery_point(self, producers: object) -> Snapshot:
        """What a recovery can build on when all of the present log is safe."""
        active = self._segments.active
        if active is not None:
            active.save_indexes()
        return Snapshot(
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
            topic_id=self.topic_id,
        )

    def finish_flush(self, flush: Flush, *, is_snapshot_saved: bool = True) -> None:
        """Take note that a flush came through, with its recovery point or without."""
        self.flushed_offset = max(self.flushed_offset, flush.end_offset)
        if not flush.pieces:
            self._synced_offset = max(self._synced_offset, flush.end_offset)
        if is_snapshot_saved and flush.swap is not None:
            self._note_swapped(flush.swap)
        if not is_snapshot_saved:
            self._snapshot_of = None
            self._segments.removed = [*flush.removed, *self._segments.removed]
            self._segments.sealed = [*flush.sealed, *self._segments.sealed]
            self.aborted.note_unsaved()

    def close(self) -> None:
        self._segments.close()

    def _segment_for(self, size: int) -> ActiveSegment:
        active = self._segments.active
        if active is None:
            return self._segments.begin(self._empty_base)
        if active.size and active.size + size > self.settings.segment_bytes:
            return self._segments.begin(active.end_offset)
        return active


def _begun_at(piece: memoryview, offset: int) -> memoryview:
    """Frames from an offset on where the first stands for more offsets that are gone.

    A replica that was away has ended where a batch did, of which compaction has left nothing here.
    """
    header = read_header(piece, FRAME_BYTES)
    if header.base_offset >= offset or not is_filler(header):
        return piece
    rest = filler(offset, header.end_offset, leader_epoch=header.leader_epoch)
    frame = encode_frame(read_header(rest), rest, base_offset=offset, lane=Lane.NORMAL)
    return memoryview(b"".join((frame, rest, piece[FRAME_BYTES + header.size_bytes :])))


def storage_error(error: OSError, what: str) -> StorageFull | StorageFailed:
    """An error of the operating system in the words of the house."""
    kind = StorageFull if is_disk_full(error) else StorageFailed
    return kind(f"{what}: {error.strerror or error}")
