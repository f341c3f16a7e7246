"""A partition's log: dense offsets, reads from anywhere, segments, look-ups by time, retention."""

from pathlib import Path

import pytest

from goqueue.log.reading import NotCached, from_disk, from_memory
from goqueue.model.errors import Corrupt, OffsetOutOfRange
from goqueue.model.ports import File
from goqueue.model.settings import TopicSettings
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import open_batch
from tests.unit.log.opened import FOLDER, flush, opened, put, values_from

SMALL = TopicSettings(segment_bytes=4096)


def files(root: Path, suffix: str) -> list[Path]:
    return sorted((root / FOLDER).glob(f"*{suffix}"))


def test_offsets_follow_each_other_over_batches_and_segments(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log

    offsets = [put(log, b"a" * 500, b"b" * 500) for _ in range(20)]

    assert offsets == list(range(0, 40, 2))
    assert [offset for offset, _ in values_from(log, 0)] == list(range(40))
    assert len(files(tmp_path, ".log")) > 3
    assert all(file.stat().st_size <= 4096 for file in files(tmp_path, ".log"))


def test_a_batch_larger_than_a_segment_has_one_to_itself(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log

    put(log, b"small")
    put(log, b"x" * 10_000)
    put(log, b"small again")

    assert [len(value) for _, value in values_from(log, 0)] == [5, 10_000, 11]


@pytest.mark.parametrize("max_bytes", [1, 100, 700, 5_000, 1 << 20])
def test_any_offset_can_be_read_with_any_budget(tmp_path: Path, max_bytes: int) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log
    for n in range(60):
        put(log, *(b"%d-%d" % (n, k) + b"." * (n * 7 % 300) for k in range(1 + n % 3)))

    for offset in range(0, log.end_offset, 7):
        found = values_from(log, offset, max_bytes=max_bytes)
        assert [o for o, _ in found] == list(range(offset, log.end_offset))


def test_a_read_gives_at_least_one_batch_and_not_much_more_than_asked(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path)).log
    for _ in range(10):
        put(log, b"x" * 1000)

    one = log.read(0, 1, end_offset=10, read_bytes=from_disk)
    some = log.read(0, 5000, end_offset=10, read_bytes=from_disk)

    assert len(one.batches) == 1
    assert 3 <= len(some.batches) <= 5
    assert some.size <= 5000


def test_a_reader_sees_nothing_behind_the_end_it_was_given(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path)).log
    put(log, b"seen")
    put(log, b"not yet")

    chunk = log.read(0, 1 << 20, end_offset=1, read_bytes=from_disk)

    assert (len(chunk.batches), chunk.end_offset) == (1, 1)


def test_offsets_outside_the_log_are_refused_with_its_bounds(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path)).log
    put(log, b"a", b"b", b"c")
    log.move_start(1)

    for offset in (0, 4, -1):
        with pytest.raises(OffsetOutOfRange) as raised:
            log.read(offset, 100, end_offset=3, read_bytes=from_disk)
        assert (raised.value.start_offset, raised.value.end_offset) == (1, 3)
    assert log.read(3, 100, end_offset=3, read_bytes=from_disk).batches == []


def test_what_is_not_in_memory_is_left_to_a_thread(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path)).log
    put(log, b"a")

    def cold(file: File, position: int, size: int) -> bytes:
        raise NotCached

    with pytest.raises(NotCached):
        log.read(0, 100, end_offset=1, read_bytes=cold)
    assert log.read(0, 100, end_offset=1, read_bytes=from_memory).end_offset == 1


def test_an_old_segment_is_looked_up_in_a_thread_the_first_time(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log
    for _ in range(30):
        put(log, b"x" * 500)

    with pytest.raises(NotCached):
        log.read(3, 100, end_offset=30, read_bytes=from_memory)
    assert log.read(3, 100, end_offset=30, read_bytes=from_disk).end_offset == 4
    assert log.read(2, 100, end_offset=30, read_bytes=from_memory).end_offset == 3


def test_a_time_finds_the_first_message_not_older(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log
    for n in range(100):
        put(log, b"x" * 200, at_ms=1000 + 10 * n)

    for at_ms, offset in [(0, 0), (1000, 0), (1001, 1), (1500, 50), (1985, 99), (1990, 99)]:
        chunk = log.find_time(at_ms, from_offset=0, read_bytes=from_disk)
        assert chunk is not None
        assert open_batch(chunk.batches[0], 2)[0].offset == offset
    assert log.find_time(1991, from_offset=0, read_bytes=from_disk) is None


def test_times_out_of_order_still_find_the_first_that_is_late_enough(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), SMALL).log
    times = [100, 900, 200, 300, 950, 400] * 10
    for at_ms in times:
        put(log, b"x" * 300, at_ms=at_ms)

    found = log.find_time(901, from_offset=0, read_bytes=from_disk)
    newest = log.newest_time(end_offset=log.end_offset, read_bytes=from_disk)
    log.move_start(len(times) - 1)
    newest_left = log.newest_time(end_offset=log.end_offset, read_bytes=from_disk)

    assert found is not None and open_batch(found.batches[0], 2)[0].offset == 4
    assert (newest, newest_left) == (950, 400)


def test_the_largest_timestamp_before_an_offset_is_found_in_any_part_of_a_log(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=16_384)).log
    times_ms = [1_000 + (n * 7919) % 400 + n for n in range(200)]
    for time_ms in times_ms:
        put(log, b"x" * 400, at_ms=time_ms)

    found = [log.newest_time(end_offset=end, read_bytes=from_disk) for end in range(1, 201)]
    log.move_start(77)
    left = [log.newest_time(end_offset=end, read_bytes=from_disk) for end in range(78, 201)]

    assert log.segment_count > 2
    assert found == [max(times_ms[:end]) for end in range(1, 201)]
    assert left == [max(times_ms[77:end]) for end in range(78, 201)]


def test_retention_by_age_removes_whole_old_segments_from_the_disk(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=4096, retention_ms=1_000)).log
    for n in range(40):
        put(log, b"x" * 400, at_ms=100 * n)
    flush(log)
    before = len(files(tmp_path, ".log"))

    removed = log.expire(now_ms=3_900, end_offset=log.flushed_offset)
    flush(log, with_snapshot=True)

    assert 0 < removed < before
    assert len(files(tmp_path, ".log")) == len(files(tmp_path, ".index")) == before - removed
    assert [o for o, _ in values_from(log, log.start_offset)] == list(range(log.start_offset, 40))
    kept = [m for m in range(40) if 100 * m >= 3_900 - 1_000]
    assert log.start_offset <= kept[0]


def test_retention_reaches_the_last_segment_too_and_offsets_go_on(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    settings = TopicSettings(retention_ms=1_000)
    log = opened(disk, settings).log
    put(log, b"old", b"older", at_ms=10)
    flush(log)

    log.expire(now_ms=5_000, end_offset=log.flushed_offset)
    flush(log, with_snapshot=True)

    assert (log.start_offset, log.end_offset) == (2, 2)
    assert put(opened(disk, settings).log, b"new") == 2


def test_retention_by_size_keeps_at_least_what_was_asked(tmp_path: Path) -> None:
    log = opened(FolderDisk(tmp_path), TopicSettings(segment_bytes=4096, retention_bytes=10_000)).log
    for _ in range(60):
        put(log, b"x" * 400)

    log.expire(now_ms=2_000, end_offset=log.flushed_offset)
    assert log.size_bytes > 20_000, "the start never passes what is on the disk"
    flush(log)
    log.expire(now_ms=2_000, end_offset=log.flushed_offset)

    assert 10_000 <= log.size_bytes < 10_000 + 4096


def test_a_start_moved_by_hand_survives_a_restart(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    log = opened(disk, SMALL).log
    for _ in range(30):
        put(log, b"x" * 500)
    log.move_start(17)
    flush(log, with_snapshot=True)

    again = opened(disk, SMALL).log

    assert (again.start_offset, again.end_offset) == (17, 30)
    assert [o for o, _ in values_from(again, 17)] == list(range(17, 30))


def test_leader_epochs_tell_where_each_one_ended(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    log = opened(disk).log
    put(log, b"a", b"b", epoch=1)
    put(log, b"c", epoch=4)
    flush(log, with_snapshot=True)
    put(log, b"d", epoch=6)

    again = opened(disk).log

    for it in (log, again):
        assert it.epoch_end(0) == (-1, -1)
        assert it.epoch_end(1) == (1, 2)
        assert it.epoch_end(3) == (1, 2)
        assert it.epoch_end(4) == (4, 3)
        assert it.epoch_end(9) == (6, 4)


def test_a_damaged_frame_is_named_and_what_surrounds_it_still_served(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path)
    log = opened(disk).log
    for n in range(3):
        put(log, b"message %d" % n)
    flush(log, with_snapshot=True)
    path = files(tmp_path, ".log")[0]
    data = bytearray(path.read_bytes())
    data[data.index(b"message 1")] ^= 1
    path.write_bytes(data)

    again = opened(disk)

    assert again.recovered.cut_bytes == 0
    assert log.read(0, 1 << 20, end_offset=3, read_bytes=from_disk).end_offset == 1
    with pytest.raises(Corrupt) as raised:
        again.log.read(1, 1 << 20, end_offset=3, read_bytes=from_disk)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 0, 1)
    assert put(again.log, b"message 3") == 3
