"""The simulated disk keeps what was synced and is as cruel as a real one with the rest."""

import errno
from contextlib import suppress
from random import Random

import pytest

from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut

SEEDS = range(200)


def disk_with(content: bytes, *, seed: int = 0) -> SimulatedDisk:
    """A disk with one file `a/log`, synced with its name."""
    disk = SimulatedDisk(Random(seed))
    disk.make_folder("a")
    file = disk.open("a/log")
    file.append([content])
    file.sync()
    disk.sync_folder("a")
    return disk


def after_crash(content: bytes, unsynced: list[bytes], *, seed: int) -> bytes:
    disk = disk_with(content, seed=seed)
    file = disk.open("a/log")
    for data in unsynced:
        file.append([data])
    found = disk.crash().read_whole("a/log")
    assert found is not None
    return found


def test_what_was_synced_survives_every_crash() -> None:
    for seed in SEEDS:
        assert after_crash(b"kept", [b"maybe"] * 3, seed=seed).startswith(b"kept")


def test_writes_not_synced_may_vanish_arrive_or_tear_at_any_byte() -> None:
    seen = {after_crash(b"kept", [b"abc", b"def"], seed=seed) for seed in SEEDS}

    whole = b"keptabcdef"
    assert {whole[:size] for size in range(4, 11)} <= seen


def test_a_later_page_may_arrive_while_an_earlier_one_is_zeros() -> None:
    pages = [b"1" * 4096, b"2" * 4096, b"3" * 4096]

    seen = {after_crash(b"", pages, seed=seed) for seed in SEEDS}

    assert bytes(4096) + b"2" * 4096 + b"3" * 4096 in seen
    assert b"1" * 4096 + bytes(4096) + b"3" * 4096 in seen


def test_a_sync_covers_what_was_written_before_it_and_nothing_after() -> None:
    def crashed(seed: int) -> bytes | None:
        disk = disk_with(b"", seed=seed)
        file = disk.open("a/log")
        file.append([b"before"])
        file.sync()
        file.append([b"after"])
        return disk.crash().read_whole("a/log")

    seen = {crashed(seed) for seed in SEEDS}

    assert {b"before", b"beforeafter"} <= seen
    assert all(found is not None and found.startswith(b"before") for found in seen)


def test_a_truncation_not_synced_may_be_undone() -> None:
    def crashed(seed: int) -> bytes | None:
        disk = disk_with(b"abcdef", seed=seed)
        disk.open("a/log").truncate(2)
        return disk.crash().read_whole("a/log")

    assert {b"ab", b"abcdef"} <= {crashed(seed) for seed in SEEDS}


def test_a_killed_process_leaves_every_byte_it_wrote_as_unsure_as_it_was() -> None:
    disk = disk_with(b"kept")
    disk.open("a/log").append([b" and written"])

    next_disk = disk.kill()

    assert next_disk.read_whole("a/log") == b"kept and written"
    assert not next_disk.stored("a/log").is_synced


def test_files_opened_before_a_crash_are_dead() -> None:
    disk = disk_with(b"kept")
    file = disk.open("a/log")
    disk.crash()

    for act in (
        lambda: file.append([b"x"]),
        lambda: file.read(0, 1),
        file.sync,
        file.size,
        lambda: disk.open("b"),
    ):
        with pytest.raises(OSError) as caught:
            act()
        assert caught.value.errno == errno.EBADF


def test_a_closed_file_cannot_be_used() -> None:
    file = disk_with(b"kept").open("a/log")
    file.close()

    with pytest.raises(OSError):
        file.append([b"x"])


def test_a_new_name_may_be_lost_until_its_folder_is_synced() -> None:
    def exists_after_crash(seed: int, *, sync_folder: bool) -> bool:
        disk = SimulatedDisk(Random(seed))
        disk.make_folder("a")
        file = disk.open("a/log")
        file.append([b"x"])
        file.sync()
        if sync_folder:
            disk.sync_folder("a")
        return disk.crash().read_whole("a/log") == b"x"

    assert {exists_after_crash(seed, sync_folder=False) for seed in SEEDS} == {True, False}
    assert {exists_after_crash(seed, sync_folder=True) for seed in SEEDS} == {True}


def test_a_removed_name_may_come_back_until_its_folder_is_synced() -> None:
    def exists_after_crash(seed: int, *, sync_folder: bool) -> bool:
        disk = disk_with(b"x", seed=seed)
        disk.remove("a/log")
        if sync_folder:
            disk.sync_folder("a")
        return disk.crash().list("a") == ["log"]

    assert {exists_after_crash(seed, sync_folder=False) for seed in SEEDS} == {True, False}
    assert {exists_after_crash(seed, sync_folder=True) for seed in SEEDS} == {False}


def test_a_rename_happens_whole_or_not_at_all() -> None:
    def names_after_crash(seed: int) -> tuple[str, ...]:
        disk = disk_with(b"x", seed=seed)
        disk.rename("a/log", "a/moved")
        return tuple(disk.crash().list("a"))

    assert {names_after_crash(seed) for seed in SEEDS} == {("log",), ("moved",)}


def test_a_file_is_replaced_whole_or_not_at_all_and_for_good_once_that_is_said() -> None:
    def crashed(seed: int, *, after_changes: int) -> bytes | None:
        disk = disk_with(b"old", seed=seed)
        disk.faults.cut_power(after_changes=after_changes)
        with suppress(PowerCut):
            disk.replace("a/log", b"new")
        return disk.crash().read_whole("a/log")

    assert {crashed(seed, after_changes=1) for seed in SEEDS} == {b"old", b"new"}
    assert {crashed(seed, after_changes=9) for seed in SEEDS} == {b"new"}


def test_a_made_folder_is_durable_and_a_removed_tree_may_come_back_in_part() -> None:
    def left_after_crash(seed: int) -> tuple[str, ...] | None:
        disk = SimulatedDisk(Random(seed))
        disk.make_folder("a/b")
        for name in ("1", "2"):
            disk.open(f"a/b/{name}").append([b"x"])
        disk.sync_folder("a/b")
        disk.remove_tree("a/b")
        assert disk.list("a") == []
        crashed = disk.crash()
        return tuple(crashed.list("a/b")) if crashed.list("a") else None

    assert {left_after_crash(seed) for seed in SEEDS} == {("1", "2"), ("2",), (), None}


def test_a_flipped_bit_stays_flipped() -> None:
    disk = disk_with(b"abc")

    disk.flip_bit("a/log", 1, bit=0)

    assert disk.open("a/log").read(0, 3) == b"acc"
    assert disk.crash().read_whole("a/log") == b"acc"


def test_a_full_disk_takes_part_of_a_write_and_all_again_once_there_is_room() -> None:
    disk = disk_with(b"")
    file = disk.open("a/log")
    disk.fill_up(after_bytes=4)

    with pytest.raises(OSError) as caught:
        file.append([b"abc", b"def"])
    assert caught.value.errno == errno.ENOSPC
    assert file.read(0, 10) == b"abcd"

    file.truncate(0)
    file.append([b"wxyz"])
    disk.faults.heal()
    file.append([b"!"])
    assert file.read(0, 10) == b"wxyz!"


def test_a_full_disk_leaves_the_old_bytes_of_a_file_that_was_to_be_replaced() -> None:
    disk = disk_with(b"old")
    disk.fill_up(after_bytes=1)

    with pytest.raises(OSError):
        disk.replace("a/log", b"newer")

    assert disk.read_whole("a/log") == b"old"


def test_after_a_failed_sync_the_next_one_succeeds_without_the_bytes_of_the_first() -> None:
    def crashed(seed: int) -> bytes | None:
        disk = disk_with(b"kept", seed=seed)
        file = disk.open("a/log")
        file.append([b"lost?"])
        disk.faults.fail_syncs()
        with pytest.raises(OSError) as caught:
            file.sync()
        assert caught.value.errno == errno.EIO
        assert file.size() == 9
        file.append([b"later"])
        file.sync()
        return disk.crash().read_whole("a/log")

    seen = {crashed(seed) for seed in SEEDS}

    assert {b"keptlost?later", b"kept" + bytes(5) + b"later"} <= seen


def test_a_failed_sync_may_drop_the_cached_bytes_at_once() -> None:
    def shown(seed: int) -> bytes:
        disk = disk_with(b"kept", seed=seed)
        file = disk.open("a/log")
        file.append([b"lost?"])
        disk.faults.fail_syncs()
        with pytest.raises(OSError):
            file.sync()
        return file.read(0, 9)

    assert {b"keptlost?", b"kept" + bytes(5)} <= {shown(seed) for seed in SEEDS}


def test_faults_strike_only_below_the_folder_named_and_only_as_often_as_told() -> None:
    disk = disk_with(b"x")
    disk.make_folder("b")
    other = disk.open("b/log")
    file = disk.open("a/log")
    disk.faults.fail_reads(under="a/")
    disk.faults.fail_syncs(under="a/")

    other.sync()
    other.read(0, 1)
    with pytest.raises(OSError):
        file.read(0, 1)
    with pytest.raises(OSError):
        file.sync()
    assert file.read(0, 1) == b"x"
    file.sync()


def test_cached_reads_are_refused_now_and_then() -> None:
    file = disk_with(b"abc").open("a/log")

    assert {file.read_cached(1, 2) for _ in SEEDS} == {b"bc", None}


def test_the_same_seed_gives_the_same_crash() -> None:
    assert [after_crash(b"a", [b"bcd"] * 5, seed=seed) for seed in SEEDS] == [
        after_crash(b"a", [b"bcd"] * 5, seed=seed) for seed in SEEDS
    ]


def test_opening_needs_the_folder_and_makes_the_file() -> None:
    disk = SimulatedDisk(Random(0))

    with pytest.raises(OSError):
        disk.open("nowhere/log")
    assert disk.list("nowhere") == []
    assert disk.read_whole("nowhere/log") is None
    disk.make_folder("somewhere")
    disk.open("somewhere/log")
    assert disk.list("somewhere") == ["log"]


def test_the_power_can_be_cut_in_the_middle_of_a_call() -> None:
    disk = disk_with(b"kept")
    file = disk.open("a/log")
    disk.faults.cut_power(after_changes=1)

    file.append([b" and synced"])
    with pytest.raises(PowerCut):
        file.sync()

    assert not disk.faults.has_power
    found = disk.crash().read_whole("a/log")
    assert found is not None
    assert found.startswith(b"kept")
