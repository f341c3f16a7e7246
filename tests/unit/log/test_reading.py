"""Reading frames: where a reader goes on, and how it gets past a frame that has gone bad."""

from pathlib import Path

import pytest

from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import NotCached, from_disk, from_memory
from goqueue.model.errors import Corrupt
from goqueue.model.settings import KiB, TopicSettings
from goqueue.node.disk import DiskFile, FolderDisk
from tests.unit.log.opened import FOLDER, flush, opened, put, values_from

LARGE_BYTES = 50 * KiB


def with_a_bad_frame(root: Path, *, behind: int, bad_byte: int = LARGE_BYTES // 2) -> PartitionLog:
    """A few small messages, a large one of which a byte went bad, and small ones behind it."""
    log = opened(FolderDisk(root)).log
    for _ in range(3):
        put(log, b"small")
    large_from = log.size_bytes
    put(log, b"L" * LARGE_BYTES)
    for _ in range(behind):
        put(log, b"small")
    flush(log)
    [path] = (root / FOLDER).glob("*.log")
    with path.open("r+b") as file:
        file.seek(large_from + bad_byte)
        file.write(b"?")
    return log


@pytest.mark.parametrize("bad_byte", [0, LARGE_BYTES // 2], ids=["head", "body"])
@pytest.mark.parametrize("max_bytes", [1, LARGE_BYTES - 4 * KiB, LARGE_BYTES, 1 << 20])
def test_a_bad_frame_larger_than_what_was_asked_for_is_told_with_the_way_past_it(
    tmp_path: Path, max_bytes: int, bad_byte: int
) -> None:
    log = with_a_bad_frame(tmp_path, behind=2_000, bad_byte=bad_byte)

    with pytest.raises(Corrupt) as raised:
        log.read(3, max_bytes, end_offset=log.end_offset, read_bytes=from_disk)

    assert (raised.value.offset, raised.value.next_offset) == (3, 4)
    assert len(values_from(log, 4)) == 2_000


def test_a_bad_frame_at_the_end_is_told_with_the_end(tmp_path: Path) -> None:
    log = with_a_bad_frame(tmp_path, behind=0)

    with pytest.raises(Corrupt) as raised:
        log.read(3, 1, end_offset=4, read_bytes=from_disk)

    assert (raised.value.offset, raised.value.next_offset) == (3, 4)


def test_a_reader_that_goes_on_needs_no_look_up_even_when_the_segment_was_sealed_meanwhile(
    tmp_path: Path,
) -> None:
    log = opened(FolderDisk(tmp_path)).log
    for _ in range(50):
        put(log, b"x" * 500)
    offset = log.read(0, 5_000, end_offset=50, read_bytes=from_disk).end_offset
    assert 0 < offset < 50

    log.roll()
    put(log, b"in the next segment")
    while offset < log.end_offset:
        offset = log.read(offset, 5_000, end_offset=log.end_offset, read_bytes=from_disk).end_offset

    assert log.offset_look_ups == 0


def test_indexes_are_not_built_anew_by_a_reader_that_must_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiskFile, "read_cached", DiskFile.read)
    log = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=8 * KiB)).log
    for _ in range(30):
        put(log, b"x" * 500)
    flush(log)
    index = min((tmp_path / FOLDER).glob("*.index"))
    lie = bytearray(index.read_bytes())
    lie[-1] ^= 1  # the position of its last entry
    index.write_bytes(lie)
    sealed = log.sealed_segments[0]
    offset = sealed.last_indexed()[0]
    sealed.position_at_or_before(offset)
    assert sealed.has_index_at_hand

    with pytest.raises(NotCached):
        log.read(offset, 1, end_offset=30, read_bytes=from_memory)

    assert index.read_bytes() == lie
    assert log.read(offset, 1, end_offset=30, read_bytes=from_disk).end_offset == offset + 1
    assert index.read_bytes() != lie
