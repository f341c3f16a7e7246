"""The segments of a partition: begun, sealed and given up, and unharmed by a disk that refuses."""

from errno import ENOSPC
from pathlib import Path

import pytest

from goqueue.log.file_shelf import FileShelf
from goqueue.log.recovery import Recovered
from goqueue.log.sealed_segment import SealedSegment
from goqueue.log.segment_list import SegmentList
from goqueue.model.errors import StorageFull
from goqueue.model.settings import KiB, TopicSettings
from goqueue.node.disk import DiskFile, FolderDisk
from tests.unit.log.opened import FOLDER, flush, opened, put, values_from

SMALL = TopicSettings(segment_bytes=4 * KiB)
VALUE = b"x" * 3_000


class FullDisk(FolderDisk):
    """A disk that takes no new log file while it is full."""

    is_full = False

    def open(self, path: str) -> DiskFile:
        if self.is_full and path.endswith(".log"):
            raise OSError(ENOSPC, "no room")
        return super().open(path)


@pytest.fixture
def disk(tmp_path: Path) -> FullDisk:
    return FullDisk(tmp_path)


def grown(disk: FolderDisk, *ends: int) -> SegmentList:
    """A list of segments that end at those offsets, the last of them empty and active."""
    disk.make_folder(FOLDER)
    segments = SegmentList(disk, FOLDER, Recovered(is_new=True), FileShelf())
    active = segments.begin(0)
    for end in ends:
        active.write([b"x"])
        active.note_frame(0, 1, offsets=range(active.base_offset, end), max_timestamp_ms=1)
        active = segments.begin(end)
    return segments


def test_all_but_the_last_are_sealed(disk: FullDisk) -> None:
    segments = grown(disk, 10, 20, 30)

    assert [segment.base_offset for segment in segments.all] == [0, 10, 20, 30]
    assert segments.all[-1] is segments.active
    assert segments.closed == segments.all[:-1] == segments.sealed
    assert all(isinstance(segment, SealedSegment) for segment in segments.closed)
    assert len(segments.take_unsynced()) == 3
    assert not segments.is_any_unsynced


def test_a_thread_keeps_the_list_it_began_with(disk: FullDisk) -> None:
    segments = grown(disk, 10, 20)
    held = segments.all
    copy = list(held)

    segments.begin(20 + 1)
    segments.drop_before(15)

    assert held == copy
    assert [segment.base_offset for segment in segments.all] == [10, 20, 21]
    assert [segment.base_offset for segment in segments.removed] == [0]


def test_only_segments_that_lie_before_an_offset_as_a_whole_are_dropped(disk: FullDisk) -> None:
    segments = grown(disk, 10, 20)

    assert segments.drop_before(9) == []
    assert [segment.base_offset for segment in segments.drop_before(10)] == [0]
    assert [segment.base_offset for segment in segments.drop_before(1_000)] == [10]
    assert segments.all == [segments.active], "the one that is written to stays"


def test_a_gap_is_known_and_passed_over(disk: FullDisk) -> None:
    segments = grown(disk, 10)

    segments.stand_for_lost(25)
    assert disk.list(FOLDER).count(f"{25:020d}.log") == 0
    segments.go_on_at(25)

    assert segments.gaps == [(10, 25)]
    assert [segments.behind_gap(offset) for offset in (9, 10, 24, 25, 26)] == [9, 25, 25, 25, 26]
    assert segments.holding(9).base_offset == 0
    assert segments.active is not None
    assert segments.active.is_on_disk()


def test_a_disk_that_refuses_a_new_segment_leaves_the_old_one_to_go_on_with(disk: FullDisk) -> None:
    log = opened(disk, SMALL).log
    put(log, VALUE)
    disk.is_full = True
    with pytest.raises(StorageFull):
        put(log, VALUE)
    disk.is_full = False

    assert not log.is_broken
    assert put(log, VALUE) == 1
    assert [offset for offset, _ in values_from(log, 0)] == [0, 1]


def test_a_loss_that_the_disk_did_not_let_be_accepted_gives_no_offset_out_again(
    disk: FullDisk, tmp_path: Path
) -> None:
    log = opened(disk, SMALL).log
    for _ in range(3):
        put(log, VALUE)
    flush(log, with_snapshot=True)
    log.close()
    (tmp_path / FOLDER / f"{2:020d}.log").unlink()
    damaged = opened(disk, SMALL).log
    disk.is_full = True
    with pytest.raises(OSError, match="no room"):
        damaged.accept_loss()

    assert damaged.end_offset == 3
    disk.is_full = False
    damaged.accept_loss()
    assert put(damaged, VALUE) == 3
    assert [offset for offset, _ in values_from(damaged, 0)] == [0, 1, 3]
