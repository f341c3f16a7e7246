"""The commit log: what a round made safe is found, what failed or was torn is not; files are used again."""

from random import Random
from uuid import UUID

import pytest

from goqueue.log.commit_log import COMMIT_FOLDER, CommitLog, NoRoomForRound
from goqueue.log.commit_rounds import NO_TOPIC, Piece
from goqueue.log.redo import redo
from goqueue.log.snapshot import begin_at
from goqueue.model.errors import CommitLogDamaged
from goqueue.model.ports import File
from goqueue.testing.world.disk import SimulatedDisk

FOLDER = "logs/orders/0"
OTHER = "logs/orders/1"
TOPIC = UUID(int=7)


def piece(
    data: bytes, *, position: int = 0, end_offset: int = 1, folder: str = FOLDER, base: int = 0
) -> Piece:
    return Piece(folder, TOPIC, base, position, end_offset, data)


def opened(disk: SimulatedDisk, *, file_bytes: int = 4096, files_max: int = 3) -> CommitLog:
    log = CommitLog(disk, draw_salt=lambda: 1, file_bytes=file_bytes, files_max=files_max)
    log.open()
    log.make_folder()
    return log


def left(log: CommitLog, folder: str = FOLDER) -> list[bytes]:
    return [data for _, data in log.left_of(folder)]


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk(Random(3))


def test_what_was_committed_is_found_after_a_power_cut_by_folder_and_in_order(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"a"), piece(b"x", folder=OTHER)])
    log.commit([piece(b"b", position=1, end_offset=2)])

    again = opened(disk.crash())

    assert left(again) == [b"a", b"b"]
    assert left(again, OTHER) == [b"x"]
    [(found, _), _] = again.left_of(FOLDER)
    assert found[:5] == (FOLDER, TOPIC, 0, 0, 1)


def test_a_round_costs_one_sync_whatever_the_number_of_partitions(
    disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(disk, file_bytes=64 * 1024)
    log.commit([piece(b"first")])
    synced: list[str] = []
    monkeypatch.setattr(disk.faults, "meet_sync", synced.append)

    log.commit([piece(b"%d" % number, folder=f"logs/orders/{number}") for number in range(300)])

    assert synced == [f"{COMMIT_FOLDER}/{1:020d}"]


def test_a_start_reads_each_file_once(disk: SimulatedDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = opened(disk)
    for number in range(6):
        log.commit([piece(b"x" * 900, end_offset=number + 1)])
    files = log.paths
    assert len(files) > 1
    opened_again: list[str] = []
    open_existing = disk.open_existing

    def noted(path: str) -> File:
        opened_again.append(path)
        return open_existing(path)

    monkeypatch.setattr(disk, "open_existing", noted)

    opened(disk)

    assert opened_again == files


@pytest.mark.parametrize("change_count", range(12))
def test_wherever_the_power_fails_the_rounds_that_were_answered_are_there(change_count: int) -> None:
    disk = SimulatedDisk(Random(change_count))
    log = opened(disk)
    answered = 0
    disk.faults.cut_power(after_changes=change_count)
    try:
        for number in range(8):
            log.commit([piece(b"%d" % number * 900, position=number)])
            answered += 1
    except BaseException as cut:
        assert type(cut).__name__ == "PowerCut"

    found = left(opened(disk.crash()))

    assert answered <= len(found) <= answered + 1
    assert found == [b"%d" % number * 900 for number in range(len(found))]


def test_a_torn_round_is_the_end_and_the_next_life_goes_on_behind_it(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"whole")])
    log.commit([piece(b"torn" * 50, position=5)])
    disk.flip_bit(f"{COMMIT_FOLDER}/{1:020d}", 200)

    again = opened(disk.kill())
    assert left(again) == [b"whole"]
    again.commit([piece(b"later", position=5)])

    assert left(opened(disk_of(again).crash())) == [b"whole", b"later"]


def test_a_bad_round_with_a_good_one_behind_it_is_damage(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"spoilt" * 20)])
    log.commit([piece(b"good", position=120)])
    disk.flip_bit(f"{COMMIT_FOLDER}/{1:020d}", 150)
    found = disk.kill()

    with pytest.raises(CommitLogDamaged, match="round 2 is missing"):
        opened(found)

    accepted = CommitLog(found, draw_salt=lambda: 1, file_bytes=4096, files_max=3)
    accepted.open(is_damage_accepted=True)
    assert left(accepted) == []


def test_a_file_that_is_missing_between_others_is_damage(disk: SimulatedDisk) -> None:
    log = opened(disk)
    for number in range(3):
        log.commit([piece(b"%d" % number * 2500, position=number)])
    disk.remove(f"{COMMIT_FOLDER}/{2:020d}")

    with pytest.raises(CommitLogDamaged):
        opened(disk.kill())


def test_a_file_whose_sync_fails_is_followed_by_another_and_nothing_is_lost(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"a")])
    disk.faults.fail_syncs(under=COMMIT_FOLDER)

    assert log.commit([piece(b"b", position=1)]) == 2

    assert left(opened(disk.crash())) == [b"a", b"b"]


def test_a_round_that_failed_twice_is_not_found_once_it_was_sealed(disk: SimulatedDisk) -> None:
    log = opened(disk, files_max=4)
    log.commit([piece(b"a")])
    disk.faults.fail_syncs(under=f"{COMMIT_FOLDER}/{1:020d}")
    disk.stored(f"{COMMIT_FOLDER}/{1:020d}")
    failing = 0

    def fail_rounds(path: str) -> None:
        nonlocal failing
        failing += 1
        if failing != 2:  # the first round of the new file itself is not what fails
            raise OSError(5, path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(disk.faults, "meet_sync", fail_rounds)
        with pytest.raises(NoRoomForRound):
            log.commit([piece(b"never", position=1)])
    log.seal()
    log.commit([piece(b"instead", position=1)])

    assert left(opened(disk.kill())) == [b"a", b"instead"]


def test_files_that_nobody_needs_are_used_again_and_what_they_held_is_not_found(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"old" * 1000)])
    log.commit([piece(b"new" * 1000, position=3000)])
    log.cut(2)
    assert disk.list(COMMIT_FOLDER) == [f"{2:020d}", "spare"]

    log.commit([piece(b"third" * 500, position=6000)])

    assert disk.list(COMMIT_FOLDER) == [f"{2:020d}", f"{3:020d}"]
    assert left(opened(disk.crash())) == [b"new" * 1000, b"third" * 500]


def test_a_spare_file_that_was_only_renamed_counts_for_nothing(disk: SimulatedDisk) -> None:
    log = opened(disk)
    log.commit([piece(b"old")])
    log.clear()
    disk.rename(f"{COMMIT_FOLDER}/spare", f"{COMMIT_FOLDER}/{1:020d}")

    again = opened(disk.kill())

    assert left(again) == []
    assert disk_of(again).list(COMMIT_FOLDER) == []


def test_when_all_files_are_in_use_it_says_so_and_keeps_what_it_has(disk: SimulatedDisk) -> None:
    log = opened(disk, files_max=2)
    log.commit([piece(b"a" * 3000)])
    log.commit([piece(b"b" * 3000, position=3000)])
    with pytest.raises(NoRoomForRound):
        log.commit([piece(b"c" * 3000, position=6000)])
    log.commit([piece(b"d" * 100, position=6000)])

    assert left(opened(disk.crash())) == [b"a" * 3000, b"b" * 3000, b"d" * 100]


def test_a_round_that_is_larger_than_a_file_is_refused(disk: SimulatedDisk) -> None:
    log = opened(disk)
    with pytest.raises(NoRoomForRound):
        log.commit([piece(bytes(5000))])
    log.commit([piece(b"a")])

    assert left(opened(disk.crash())) == [b"a"]


def test_on_a_disk_that_is_nearly_full_no_file_is_begun(disk: SimulatedDisk) -> None:
    log = opened(disk, file_bytes=1024 * 1024)
    disk.fill_up(after_bytes=100_000)

    with pytest.raises(NoRoomForRound, match="nearly full"):
        log.commit([piece(b"a")])

    assert disk.list(COMMIT_FOLDER) == []


def test_a_broker_that_does_little_keeps_a_small_file(disk: SimulatedDisk) -> None:
    log = opened(disk, file_bytes=16 * 1024 * 1024)
    log.commit([piece(b"a")])

    assert len(disk.stored(f"{COMMIT_FOLDER}/{1:020d}").content) == 1024 * 1024


class TestRedo:
    """Putting pieces into a partition's files."""

    def test_bytes_that_the_power_cut_has_taken_are_put_back(self, disk: SimulatedDisk) -> None:
        disk.make_folder(FOLDER)
        log = opened(disk)
        file = disk.open(f"{FOLDER}/{0:020d}.log")
        file.append([b"abcd"])
        log.commit([piece(b"ab", end_offset=1), piece(b"cd", position=2, end_offset=2)])

        found = disk.crash()
        vouched_end = redo(found, FOLDER, TOPIC, opened(found).left_of(FOLDER))

        assert vouched_end == 2
        assert bytes(found.stored(f"{FOLDER}/{0:020d}.log").content) == b"abcd"

    def test_what_lies_behind_a_piece_stays(self, disk: SimulatedDisk) -> None:
        disk.make_folder(FOLDER)
        file = disk.open(f"{FOLDER}/{0:020d}.log")
        file.append([b"XXcd"])
        log = opened(disk)
        log.commit([piece(b"ab")])

        redo(disk, FOLDER, TOPIC, log.pieces_of(FOLDER))

        assert bytes(disk.stored(f"{FOLDER}/{0:020d}.log").content) == b"abcd"

    def test_a_piece_of_a_topic_that_had_the_name_before_is_passed_over(self, disk: SimulatedDisk) -> None:
        disk.make_folder(FOLDER)
        log = opened(disk)
        log.commit([piece(b"ab")])

        assert redo(disk, FOLDER, NO_TOPIC, log.pieces_of(FOLDER)) is None
        assert disk.list(FOLDER) == []

    def test_a_piece_that_a_recovery_point_covers_is_passed_over(self, disk: SimulatedDisk) -> None:
        disk.make_folder(FOLDER)
        begin_at(disk, FOLDER, 5)
        log = opened(disk)
        log.commit([piece(b"ab", end_offset=5)])

        assert redo(disk, FOLDER, TOPIC, log.pieces_of(FOLDER)) is None
        assert disk.list(FOLDER) == [f"{5:020d}.snapshot"]

    def test_a_piece_that_would_leave_a_hole_is_passed_over_but_told(self, disk: SimulatedDisk) -> None:
        disk.make_folder(FOLDER)
        log = opened(disk)
        log.commit([piece(b"ab", position=10, end_offset=9)])

        assert redo(disk, FOLDER, TOPIC, log.pieces_of(FOLDER)) == 9
        assert disk.list(FOLDER) == []


def disk_of(log: CommitLog) -> SimulatedDisk:
    disk = log._disk
    assert isinstance(disk, SimulatedDisk)
    return disk


def test_what_was_voided_is_not_put_back_and_what_came_later_is(disk: SimulatedDisk) -> None:
    disk.make_folder(FOLDER)
    begin_at(disk, FOLDER, 0, topic_id=TOPIC)
    log = opened(disk)
    log.commit([piece(b"old")])
    log.void(FOLDER, TOPIC)
    log.commit([piece(b"ne")])

    disk = disk.crash()
    assert redo(disk, FOLDER, TOPIC, opened(disk).left_of(FOLDER)) == 1
    assert disk.read_whole(f"{FOLDER}/{0:020d}.log") == b"ne"


def test_voiding_one_partition_leaves_the_others(disk: SimulatedDisk) -> None:
    disk.make_folder(OTHER)
    log = opened(disk)
    log.commit([piece(b"a", folder=OTHER)])
    log.void(FOLDER, TOPIC)
    log.void(OTHER, UUID(int=8))

    disk = disk.crash()
    assert redo(disk, OTHER, TOPIC, opened(disk).left_of(OTHER)) == 1


def test_voiding_finds_room_where_rounds_do_not(disk: SimulatedDisk) -> None:
    log = opened(disk, files_max=1)
    log.commit([piece(bytes(3_900))])
    with pytest.raises(NoRoomForRound):
        log.commit([piece(bytes(100))])

    log.void(FOLDER, TOPIC)

    assert len(log.paths) == 2


def test_an_empty_commit_log_has_nothing_to_void(disk: SimulatedDisk) -> None:
    log = opened(disk)

    log.void(FOLDER, TOPIC)

    assert log.paths == []
