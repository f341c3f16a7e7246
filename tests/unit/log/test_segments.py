"""Active and sealed segments: what is handed over, and what stays as it was for those who still read."""

from pathlib import Path
from random import Random

import pytest

from goqueue.log.active_segment import INDEX_INTERVAL_BYTES, ActiveSegment
from goqueue.log.reindex import reindex
from goqueue.log.segment import Segment
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.log.opened import FOLDER

FRAME = b"x" * INDEX_INTERVAL_BYTES
BASE = 100
TIMES_MS = [10, 50, 20, 30]


def filled(disk: FolderDisk | SimulatedDisk) -> ActiveSegment:
    """Frames of ten messages each, every one of them in the index; the last ones are not the latest."""
    disk.make_folder(FOLDER)
    segment = ActiveSegment.begun(disk, FOLDER, BASE)
    for number, at_ms in enumerate(TIMES_MS):
        segment.write([FRAME])
        first = BASE + 10 * number
        segment.note_frame(segment.size, len(FRAME), offsets=range(first, first + 10), max_timestamp_ms=at_ms)
    return segment


def answers(segment: Segment) -> list[object]:
    """All that can be asked of a segment."""
    return [
        (segment.base_offset, segment.end_offset, segment.size, segment.max_timestamp_ms),
        [segment.position_at_or_before(offset) for offset in range(BASE, BASE + 41, 5)],
        [segment.frame_behind(position) for position in range(0, 5 * len(FRAME), 1000)],
        [segment.offset_before_time(at_ms) for at_ms in (5, 10, 11, 50)],
        segment.file.read(0, 1 << 20),
    ]


def index_files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / FOLDER).glob("*index")}


def test_a_sealed_segment_answers_as_it_did_while_it_was_written(tmp_path: Path) -> None:
    active = filled(FolderDisk(tmp_path))
    before = answers(active)

    sealed = active.seal()

    assert not sealed.has_index_at_hand, "its indexes are in their files, and take no memory"
    assert answers(sealed) == before
    assert sealed.file is active.file, "an error of a write that failed is told only to who had it open then"


def test_who_still_reads_the_active_segment_needs_nothing_that_sealing_has_written(tmp_path: Path) -> None:
    active = filled(FolderDisk(tmp_path))
    before = answers(active)

    sealed = active.seal()
    sealed.let_go()
    sealed.remove()

    assert active.has_index_at_hand
    assert answers(active) == before


def test_a_sealed_segment_has_no_way_to_write() -> None:
    sealed = filled(SimulatedDisk(Random(1))).seal()

    for name in ("write", "note_frame", "take_back", "cut", "rewind", "begin_indexes", "seal"):
        assert hasattr(ActiveSegment, name)
        assert not hasattr(sealed, name)


def test_indexes_that_do_not_fit_on_the_disk_go_on_in_memory() -> None:
    disk = SimulatedDisk(Random(1))
    active = filled(disk)
    before = answers(active)
    disk.fill_up(after_bytes=0)

    sealed = active.seal()
    sealed.forget_indexes()

    assert sealed.has_index_at_hand
    assert answers(sealed) == before
    disk.faults.heal()
    assert sealed.save_indexes()
    sealed.forget_indexes()
    assert not sealed.has_index_at_hand
    assert answers(sealed) == before


def test_sealing_in_a_damaged_folder_changes_nothing_in_it(tmp_path: Path) -> None:
    active = filled(FolderDisk(tmp_path))
    before, files_before = answers(active), index_files(tmp_path)

    sealed = active.seal(saves_indexes=False)

    assert index_files(tmp_path) == files_before
    assert answers(sealed) == before


def test_the_largest_timestamp_is_known_from_the_files_alone(tmp_path: Path) -> None:
    active = filled(FolderDisk(tmp_path))
    # Too little for an index entry of its own.
    active.write([b"y"])
    active.note_frame(active.size, 1, offsets=range(BASE + 40, BASE + 41), max_timestamp_ms=99)

    sealed = active.seal()
    sealed.note_reindexed()

    assert sealed.max_timestamp_ms == 99


def test_a_write_that_failed_is_taken_back_and_what_lies_behind_the_end_is_cut(tmp_path: Path) -> None:
    active = filled(FolderDisk(tmp_path))
    active.write([b"half a frame"])

    assert active.take_back()
    assert active.file.size() == active.size

    active.write([b"torn"])
    assert active.cut() == 4
    assert active.cut() == 0
    assert active.file.size() == active.size


def test_removing_a_segment_leaves_none_of_its_files_and_no_other_is_touched(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    sealed = filled(disk).seal()
    follower = ActiveSegment.begun(disk, FOLDER, sealed.end_offset)
    follower.save_indexes()

    sealed.remove()

    names = disk.list(FOLDER)
    assert names
    assert all(name.startswith(f"{follower.base_offset:020d}") for name in names)


def test_a_segment_that_stands_for_what_is_lost_makes_no_file(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    disk.make_folder(FOLDER)

    phantom = ActiveSegment.without_file(disk, FOLDER, 7)

    assert (phantom.base_offset, phantom.end_offset, phantom.size, phantom.max_timestamp_ms) == (7, 7, 0, -1)
    assert not phantom.is_on_disk()
    assert ActiveSegment.begun(disk, FOLDER, 7).is_on_disk()


def test_a_new_segment_never_begins_in_a_file_that_holds_something(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    filled(disk)

    with pytest.raises(AssertionError, match="holds data"):
        ActiveSegment.begun(disk, FOLDER, BASE)


def test_reindexing_leaves_end_and_size_as_they_are_for_readers(tmp_path: Path) -> None:
    sealed = filled(FolderDisk(tmp_path)).seal()
    end = (sealed.end_offset, sealed.size)

    reindex(sealed)  # nothing in it is a frame, so there is nothing to find

    assert (sealed.end_offset, sealed.size) == end
    assert sealed.position_at_or_before(BASE + 25) == (BASE, 0)
    assert set(index_files(tmp_path).values()) == {b""}
