"""One flush of one partition: the fsyncs, and behind them the recovery point. Runs in a thread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import ENOSPC

from goqueue.log.commit_rounds import Piece
from goqueue.log.draft import Swap, put_in_place
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.snapshot import Snapshot, save_snapshot
from goqueue.model.ports import Disk, File


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """What has to reach the disk so that everything before `end_offset` survives a power failure."""

    disk: Disk
    folder: str
    pieces: Sequence[Piece] = ()
    """What the commit log is to take, and nothing else is done then; empty: the files are synced."""
    files: Sequence[File] = ()
    sealed: Sequence[SealedSegment] = ()
    """Segments closed since the last recovery point: the new one vouches for their indexes."""
    sync_folder: bool = False
    snapshot: Snapshot | None = None
    aborted_files: Mapping[str, bytes] = field(default_factory=dict)
    """Indexes of aborted transactions that the new recovery point will vouch for."""
    removed: Sequence[SealedSegment] = ()
    """Segments that the snapshot's start offset gives up; their files go once it is safe."""
    swap: Swap | None = None
    """A segment that compaction has written anew, of whose old places the snapshot does not speak."""
    end_offset: int

    @property
    def has_work(self) -> bool:
        """Whether the disk has to be asked at all: an earlier flush may have covered everything."""
        return bool(self.pieces) or bool(self.files) or self.sync_folder or self.snapshot is not None

    def run(self) -> OSError | None:
        """Raises OSError when the data is refused; then nothing is certain but what earlier flushes covered.

        A recovery point that cannot be written (a full disk) is returned, not raised: the data is safe,
        and opening it will only take longer.
        """
        for file in self.files:
            file.sync()
        if self.sync_folder:
            self.disk.sync_folder(self.folder)
        try:
            self._save_snapshot()
        except OSError as error:
            return error
        return None

    def _save_snapshot(self) -> None:
        for segment in self.sealed:
            _sync_indexes(segment)
        for path, data in self.aborted_files.items():
            self.disk.replace(path, data)
        if self.snapshot is not None:
            save_snapshot(self.disk, self.folder, self.snapshot)
        for segment in self.removed:
            segment.remove()
        if self.removed:
            self.disk.sync_folder(self.folder)
        if self.swap is not None:
            put_in_place(self.swap.new)


def _sync_indexes(segment: SealedSegment) -> None:
    if not segment.save_indexes():
        raise OSError(ENOSPC, "the indexes of a segment do not fit on the disk")
    for index in segment.open_indexes():
        try:
            index.sync()
        finally:
            index.close()
