"""Frames from another replica: read as they lie, checked in full, stored byte for byte."""

from pathlib import Path
from random import Random

import pytest

from goqueue.log.partition_log import CheckedBatch, PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.errors import Corrupt, StorageFull
from goqueue.model.messages import Message
from goqueue.model.settings import TopicSettings
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.frame import FRAME_BYTES, whole_steps
from goqueue.records.layout import read_header
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.log.opened import FOLDER, Opened, flush, opened, put, values_from

SMALL = TopicSettings(segment_bytes=4096)


def logs(root: Path, name: str) -> bytes:
    """All bytes of a log, segment by segment."""
    return b"".join(file.read_bytes() for file in sorted((root / name / FOLDER).glob("*.log")))


def pair(root: Path, settings: TopicSettings | None = None) -> tuple[PartitionLog, PartitionLog]:
    return tuple(opened(FolderDisk(root / name), settings).log for name in ("leader", "follower"))  # type: ignore[return-value]


def put_step(log: PartitionLog, *values: bytes, epoch: int = 1) -> None:
    """Append a batch for each value, all in one step."""
    batches = [batch for value in values for batch in encode([Message(value)], now_ms=1_000)]
    log.append([CheckedBatch(read_header(body), body, lane) for body, lane in batches], leader_epoch=epoch)


def steps(log: PartitionLog, offset: int = 0, max_bytes: int = 1 << 20) -> memoryview:
    [data] = log.read_steps(offset, max_bytes, read_bytes=from_disk).batches
    return data


def copy(leader: PartitionLog, follower: PartitionLog, *, max_bytes: int) -> int:
    """Bring a follower up to date; in how many pieces."""
    count = 0
    while follower.end_offset < leader.end_offset:
        chunk = leader.read_steps(follower.end_offset, max_bytes, read_bytes=from_disk)
        follower.append_frames(chunk.batches[0])
        assert follower.end_offset == chunk.end_offset
        count += 1
    return count


@pytest.mark.parametrize("max_bytes", [1, 700, 3_000, 1 << 20])
def test_a_replica_that_was_sent_everything_is_the_same_byte_for_byte(tmp_path: Path, max_bytes: int) -> None:
    leader, follower = pair(tmp_path, SMALL)
    for number in range(40):
        put_step(leader, *(b"%d" % number * 40 for _ in range(1 + number % 3)), epoch=1 + number // 10)

    copy(leader, follower, max_bytes=max_bytes)

    assert logs(tmp_path, "follower") == logs(tmp_path, "leader")
    assert values_from(follower, 0) == values_from(leader, 0)
    assert follower.epochs == leader.epochs
    assert follower.epochs[-1] == (4, values_from(leader, 0)[-1][0] - 18)


def test_what_was_sent_is_found_by_recovery_and_by_time(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path, SMALL)
    for number in range(60):
        put(leader, b"x" * 300, at_ms=1_000 + number)
    copy(leader, follower, max_bytes=2_000)
    flush(follower)
    follower.close()

    again = opened(FolderDisk(tmp_path / "follower"), SMALL)

    assert [header.base_offset for header in again.followed] == list(range(60))
    assert again.log.end_offset == 60
    assert again.log.newest_time(end_offset=60, read_bytes=from_disk) == 1_059
    found = again.log.find_time(1_030, from_offset=0, read_bytes=from_disk)
    assert found is not None
    assert read_header(found.batches[0]).base_offset == 30


def test_frames_of_one_step_are_read_together_however_small_the_budget(tmp_path: Path) -> None:
    leader, _ = pair(tmp_path)
    put_step(leader, b"a" * 5_000, b"b" * 5_000, b"c" * 5_000)
    put_step(leader, b"d")

    chunk = leader.read_steps(0, 10, read_bytes=from_disk)

    assert chunk.end_offset == 3
    assert chunk.size == len(chunk.batches[0]) == whole_steps(chunk.batches[0], count_max=10)[0]


def test_a_step_of_thousands_of_frames_is_read_whole(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    put_step(leader, *[b"x"] * 4_500)

    assert copy(leader, follower, max_bytes=1 << 20) == 1
    assert follower.end_offset == 4_500


def test_small_appends_are_read_a_bounded_number_at_a_time(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    for _ in range(1_100):
        put(leader, b"x")

    assert copy(leader, follower, max_bytes=1 << 20) == 3
    assert values_from(follower, 0) == values_from(leader, 0)


def test_at_the_end_there_is_nothing_to_send(tmp_path: Path) -> None:
    leader, _ = pair(tmp_path)
    put(leader, b"a")

    assert leader.read_steps(1, 100, read_bytes=from_disk).batches == []


def refusal(follower: PartitionLog, data: bytes | bytearray | memoryview) -> str:
    before = follower.end_offset, list(follower.epochs), follower.size_bytes
    with pytest.raises(Corrupt) as refused:
        follower.append_frames(memoryview(data))
    assert (follower.end_offset, list(follower.epochs), follower.size_bytes) == before
    return str(refused.value)


def test_not_one_bit_may_differ_from_what_the_leader_wrote(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    put(leader, b"good")
    put(leader, b"to be spoilt")
    data = bytes(steps(leader))

    for position in range(len(data)):
        spoilt = bytearray(data)
        spoilt[position] ^= 1
        assert refusal(follower, spoilt)


def test_a_gap_a_repetition_and_a_piece_of_a_frame_are_refused(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    for value in (b"a", b"b", b"c"):
        put(leader, value)
    first = steps(leader, 0, 1)

    assert "offset 1 stands where 0 is due" in refusal(follower, steps(leader, 1))
    assert "inside a frame" in refusal(follower, first[:-1])
    assert "inside a frame" in refusal(follower, b"")
    follower.append_frames(first)
    assert "offset 0 stands where 1 is due" in refusal(follower, first)


def test_an_epoch_never_falls(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    put(leader, b"old", epoch=3)
    old = opened(FolderDisk(tmp_path / "old")).log
    put(old, b"x", epoch=1)
    put(old, b"later, in an older epoch", epoch=1)
    follower.append_frames(steps(leader))

    assert "epoch 1 follows 3" in refusal(follower, steps(old, 1))


def test_a_step_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    put_step(leader, b"a", b"b")
    data = steps(leader)
    half = FRAME_BYTES + int.from_bytes(data[28:32], "big")

    assert "inside an append" in refusal(follower, data[:half])


def test_a_full_disk_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    leader, _ = pair(tmp_path)
    put(leader, b"x" * 3_000)
    disk = SimulatedDisk(Random(1))
    follower: Opened = opened(disk)
    disk.fill_up(after_bytes=1_000)

    with pytest.raises(StorageFull):
        follower.log.append_frames(steps(leader))

    assert follower.log.end_offset == 0
    disk.faults.heal()
    follower.log.append_frames(steps(leader))
    assert values_from(follower.log, 0) == values_from(leader, 0)


def test_what_was_sent_goes_through_the_commit_log_when_it_is_little(tmp_path: Path) -> None:
    leader, follower = pair(tmp_path)
    put(leader, b"little")
    data = steps(leader)

    follower.append_frames(data)

    [piece] = follower.begin_logged().pieces
    assert (piece.position, piece.end_offset, piece.data) == (0, 1, bytes(data))
