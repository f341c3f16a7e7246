"""Where a log is split for work in pieces."""

from itertools import pairwise
from pathlib import Path

from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.settings import KiB, TopicSettings
from goqueue.node.disk import FolderDisk
from tests.unit.log.opened import flush, opened, put

COUNT = 400
PIECE_BYTES = 20 * KiB


def written(root: Path) -> PartitionLog:
    log = opened(FolderDisk(root), TopicSettings(segment_bytes=64 * KiB)).log
    for _ in range(COUNT):
        put(log, b"x" * 900)
    flush(log)
    return log


def bytes_between(log: PartitionLog, first: int, end: int) -> int:
    size = 0
    while first < end:
        chunk = log.read(first, 1, end_offset=end, read_bytes=from_disk)
        size, first = size + chunk.size, chunk.end_offset
    return size


def test_a_log_is_split_into_pieces_of_about_the_size_asked_for_over_segments(tmp_path: Path) -> None:
    log = written(tmp_path)
    assert log.segment_count > 3

    cuts = log.split(0, COUNT, piece_bytes=PIECE_BYTES)

    sizes = [bytes_between(log, first, end) for first, end in pairwise([0, *cuts, COUNT])]
    assert len(sizes) > 10
    assert all(PIECE_BYTES - 5 * KiB <= size <= PIECE_BYTES + 5 * KiB for size in sizes[:-1])
    assert sizes[-1] <= PIECE_BYTES + 5 * KiB


def test_cuts_lie_between_the_offsets_asked_for(tmp_path: Path) -> None:
    log = written(tmp_path)

    cuts = log.split(100, 200, piece_bytes=PIECE_BYTES)

    assert cuts == sorted(set(cuts))
    assert cuts
    assert cuts[0] > 100
    assert cuts[-1] < 200
    assert log.split(100, 101, piece_bytes=PIECE_BYTES) == []


def test_splitting_leaves_no_indexes_of_sealed_segments_in_memory(tmp_path: Path) -> None:
    log = written(tmp_path)

    log.split(0, COUNT, piece_bytes=PIECE_BYTES)

    assert not any(segment.has_index_at_hand for segment in log.sealed_segments)
