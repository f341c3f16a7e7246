"""Opening a partition after a crash: what is kept, what is cut, which indexes are built anew."""

from pathlib import Path
from random import Random

import pytest

from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.errors import Corrupt, StorageFull
from goqueue.model.messages import Lane, Message
from goqueue.model.settings import TopicSettings
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.layout import read_header
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.log.opened import FOLDER, Opened, flush, opened, put, values_from

SMALL = TopicSettings(segment_bytes=4096)


def only(root: Path, suffix: str) -> Path:
    [path] = (root / FOLDER).glob(f"*{suffix}")
    return path


def written(root: Path, count: int = 30) -> Opened:
    """A log of a few segments, flushed up to the middle and written on to the end."""
    it = opened(FolderDisk(root), SMALL)
    for n in range(count):
        put(it.log, b"message %d " % n + b"." * 500)
        if n == count // 2:
            flush(it.log, with_snapshot=True, producers=["state at", n])
    return it


def test_a_clean_log_is_opened_without_reading_it(tmp_path: Path) -> None:
    flush(written(tmp_path).log, with_snapshot=True)

    again = opened(FolderDisk(tmp_path), SMALL)

    assert (again.recovered.checked_bytes, again.recovered.rebuilt_indexes) == (0, 0)
    assert again.followed == []
    assert again.log.end_offset == again.log.flushed_offset == 30


def test_only_what_lies_behind_the_recovery_point_is_checked_and_handed_on(tmp_path: Path) -> None:
    written(tmp_path)

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.restored == [["state at", 15]]
    assert [header.base_offset for header in again.followed] == list(range(16, 30))
    assert (again.log.end_offset, again.log.flushed_offset) == (30, 16)
    assert [o for o, _ in values_from(again.log, 0)] == list(range(30))
    assert again.log.is_dirty


@pytest.mark.parametrize("kept_bytes", [0, 1, 33, 34, 60, 94, 95, 300])
def test_a_torn_tail_is_cut_at_the_last_whole_frame(tmp_path: Path, kept_bytes: int) -> None:
    log = opened(FolderDisk(tmp_path)).log
    put(log, b"whole")
    size = log.size_bytes
    put(log, b"torn" * 100)
    with only(tmp_path, ".log").open("r+b") as file:
        file.truncate(size + kept_bytes)

    again = opened(FolderDisk(tmp_path))

    assert again.log.end_offset == 1
    assert again.recovered.cut_bytes == kept_bytes
    assert only(tmp_path, ".log").stat().st_size == size
    assert put(again.log, b"next") == 1


def test_segments_behind_a_torn_one_go_with_its_tail(tmp_path: Path) -> None:
    written(tmp_path)
    logs = sorted((tmp_path / FOLDER).glob("*.log"))
    with logs[-2].open("r+b") as file:
        file.truncate(1000)

    again = opened(FolderDisk(tmp_path), SMALL)

    end = again.log.end_offset
    assert int(logs[-2].stem) < end < int(logs[-1].stem)
    assert not logs[-1].exists()
    assert [o for o, _ in values_from(again.log, 0)] == list(range(end))


def test_behind_a_failed_fsync_nothing_is_trusted(tmp_path: Path) -> None:
    written(tmp_path)

    again = opened(FolderDisk(tmp_path), SMALL, end_limit=20)

    assert again.log.end_offset == 20
    assert [header.base_offset for header in again.followed] == list(range(16, 20))
    assert opened(FolderDisk(tmp_path), SMALL).log.end_offset == 20


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["absent", "empty", "torn", "garbage"])
def test_an_index_that_cannot_be_right_is_built_anew(tmp_path: Path, suffix: str, damage: str) -> None:
    it = written(tmp_path)
    flush(it.log, with_snapshot=True)
    for path in (tmp_path / FOLDER).glob(f"*{suffix}"):
        if damage == "absent":
            path.unlink()
        elif damage == "empty":
            path.write_bytes(b"")
        elif damage == "torn":
            path.write_bytes(path.read_bytes()[:-3])
        else:
            path.write_bytes(b"\x7f" * 64)

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.recovered.rebuilt_indexes > 0
    for offset in (0, 7, 13, 29):
        assert values_from(again.log, offset)[0][0] == offset
    chunk = again.log.find_time(1000, from_offset=0, read_bytes=from_disk)
    assert chunk is not None and chunk.end_offset == 1


def test_an_index_that_lies_is_found_out_when_it_is_used(tmp_path: Path) -> None:
    it = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=64 * 1024))
    for n in range(300):
        put(it.log, b"message %d " % n + b"." * 500)
    flush(it.log, with_snapshot=True)
    first = sorted((tmp_path / FOLDER).glob("*.index"))[0]
    data = bytearray(first.read_bytes())
    data[31] ^= 0x40  # the second entry's position
    first.write_bytes(data)

    again = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=64 * 1024))

    assert [o for o, _ in values_from(again.log, 9)] == list(range(9, 300))


def test_a_damaged_recovery_point_falls_back_to_the_one_before(tmp_path: Path) -> None:
    it = written(tmp_path)
    flush(it.log, with_snapshot=True, producers="newest")
    newest = sorted((tmp_path / FOLDER).glob("*.snapshot"))[-1]
    newest.write_bytes(newest.read_bytes()[:-1])

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.restored == [["state at", 15]]
    assert again.log.end_offset == 30


def test_without_any_recovery_point_damage_in_the_middle_is_kept_and_named(tmp_path: Path) -> None:
    written(tmp_path)
    for path in (tmp_path / FOLDER).glob("*.snapshot"):
        path.unlink()
    logs = sorted((tmp_path / FOLDER).glob("*.log"))
    data = bytearray(logs[1].read_bytes())
    data[100] ^= 1
    logs[1].write_bytes(data)

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.end_offset == 30
    assert again.recovered.cut_bytes == 0
    last_base = int(logs[-1].stem)
    assert [o for o, _ in values_from(again.log, last_base)] == list(range(last_base, 30))


def test_segments_given_up_by_retention_do_not_come_back(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    log = written(tmp_path).log
    first = sorted((tmp_path / FOLDER).glob("*.log"))[0]
    data = first.read_bytes()
    log.move_start(20)
    flush(log, with_snapshot=True)
    assert not first.exists()
    first.write_bytes(data)  # as a crash before the folder's own fsync could have it

    again = opened(disk, SMALL).log
    assert again.start_offset == 20
    flush(again, with_snapshot=True)

    assert not first.exists()


def test_a_full_disk_refuses_the_batch_and_leaves_no_trace(tmp_path: Path) -> None:
    disk = SimulatedDisk(Random(1))
    log = opened(disk).log
    put(log, b"fits")
    disk.fill_up(after_bytes=100)

    with pytest.raises(StorageFull):
        put(log, b"x" * 1000)
    disk.faults.heal()

    assert not log.is_broken
    assert put(log, b"fits again") == 1
    assert [v for _, v in values_from(log, 0)] == [b"fits", b"fits again"]


def test_batches_written_in_one_step_survive_a_crash_together_or_not_at_all(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path)).log
    put(log, b"before")
    size = log.size_bytes
    batches = [
        CheckedBatch(read_header(body), body, lane)
        for body, lane in encode(
            [Message(b"a"), Message(b"b", lane=Lane.HIGH), Message(b"c", lane=Lane.LOW)], now_ms=1_000
        )
    ]
    log.append(batches, leader_epoch=1)
    whole_bytes = only(tmp_path, ".log").read_bytes()
    assert len(batches) == 3

    for kept in range(size, len(whole_bytes)):
        only(tmp_path, ".log").write_bytes(whole_bytes[:kept])
        again = opened(FolderDisk(tmp_path))
        assert again.log.end_offset == 1, kept
        assert [header.base_offset for header in again.followed] == [0]


def test_behind_a_frame_that_went_bad_messages_can_be_found_by_offset_and_time(tmp_path: Path) -> None:
    it = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=32 * 1024))
    for n in range(100):
        put(it.log, b"message %d " % n + b"." * 500, at_ms=1_000 + n)
    flush(it.log, with_snapshot=True)
    for path in (tmp_path / FOLDER).glob("*.log"):
        data = bytearray(path.read_bytes())
        data[900] ^= 1  # in the second frame of each segment
        path.write_bytes(data)
    for path in (tmp_path / FOLDER).glob("*index"):
        path.unlink()

    again = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=32 * 1024)).log

    bad = {segment + 1 for segment in (int(p.stem) for p in (tmp_path / FOLDER).glob("*.log"))}
    for offset in range(100):
        if offset in bad:
            with pytest.raises(Corrupt) as raised:
                again.read(offset, 1, end_offset=100, read_bytes=from_disk)
            assert raised.value.offset == offset
        else:
            chunk = again.read(offset, 1, end_offset=100, read_bytes=from_disk)
            assert chunk.end_offset == offset + 1
    newest = again.find_time(1_099, from_offset=90, read_bytes=from_disk)
    assert newest is not None and newest.end_offset == 100
