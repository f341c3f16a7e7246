"""What a recovery point vouches for and is not there: noticed, told, and never written over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from goqueue.log.damage import Damage
from goqueue.model.errors import Corrupt
from goqueue.model.settings import TopicSettings
from goqueue.node.disk import FolderDisk
from tests.unit.log.opened import FOLDER, Opened, flush, opened, put, values_from

SMALL = TopicSettings(segment_bytes=4096)


def written(root: Path, count: int = 30) -> None:
    """A log of a few segments with a recovery point at its end, and one in the middle."""
    it = opened(FolderDisk(root), SMALL)
    for n in range(count):
        put(it.log, b"message %d " % n + b"." * 500)
        if n == count // 2:
            flush(it.log, with_snapshot=True)
    flush(it.log, with_snapshot=True)


def segments(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.log"))


def base_of(path: Path) -> int:
    return int(path.stem)


def halve(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def tear(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 7)


def empty(path: Path) -> None:
    path.write_bytes(b"")


SPOIL: dict[str, Callable[[Path], None]] = {
    "emptied": empty,
    "deleted": Path.unlink,
    "cut between frames": halve,
    "cut in a frame": tear,
}


def lost(it: Opened) -> list[int]:
    assert it.log.damage is not None
    return [offset for first, end in it.log.damage.lost for offset in range(first, end)]


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL.keys())
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_segments_that_lose_bytes_are_damage_and_the_rest_can_be_read(
    tmp_path: Path, spoil: Callable[[Path], None], which: str
) -> None:
    written(tmp_path)
    paths = segments(tmp_path)
    at = {"first": 0, "middle": len(paths) // 2, "last": len(paths) - 1}[which]
    first, end = base_of(paths[at]), base_of(paths[at + 1]) if at + 1 < len(paths) else 30
    spoil(paths[at])
    before = {path.name: path.read_bytes() for path in segments(tmp_path)}

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.end_offset == 30, "no offset is given out again"
    assert lost(again)[-1] == end - 1
    assert set(lost(again)) <= set(range(first, end))
    good = [offset for offset in range(30) if offset not in lost(again)]
    assert [readable(again, offset) for offset in good] == good
    for offset in lost(again):
        with pytest.raises(Corrupt, match="lost are the offsets"):
            readable(again, offset)
    assert {path.name: path.read_bytes() for path in segments(tmp_path)} == before
    assert not again.log.wants_snapshot


def readable(it: Opened, offset: int) -> int:
    chunk = it.log.read(offset, 1, end_offset=30, read_bytes=lambda file, at, size: file.read(at, size))
    assert chunk.batches
    return chunk.end_offset - 1


@pytest.mark.parametrize("spoil", SPOIL.values(), ids=SPOIL.keys())
@pytest.mark.parametrize("at", [0, 2, -1])
def test_a_loss_that_was_accepted_is_passed_over_and_stays_accepted(
    tmp_path: Path, spoil: Callable[[Path], None], at: int
) -> None:
    written(tmp_path)
    spoil(segments(tmp_path)[at])
    damaged = opened(FolderDisk(tmp_path), SMALL)
    gone = lost(damaged)

    damaged.log.accept_loss()
    flush(damaged.log, with_snapshot=True)
    assert put(damaged.log, b"next") == 30
    flush(damaged.log, with_snapshot=True)
    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.damage is None
    expected = [offset for offset in range(31) if offset not in gone]
    for it in (damaged, again):
        assert [offset for offset, _ in values_from(it.log, it.log.start_offset)] == expected
        for offset in gone:
            if offset >= it.log.start_offset:
                assert values_from(it.log, offset)[0][0] == min(o for o in expected if o > offset)


def test_a_loss_whose_acceptance_was_cut_short_is_damage_still(tmp_path: Path) -> None:
    written(tmp_path)
    empty(segments(tmp_path)[-1])
    opened(FolderDisk(tmp_path), SMALL).log.accept_loss()  # and the process dies before the recovery point

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.damage is not None
    assert again.log.end_offset == 30


def test_a_recovery_point_that_cannot_be_read_still_says_how_far_the_log_had_come(tmp_path: Path) -> None:
    written(tmp_path)
    newest = max((tmp_path / FOLDER).glob("*.snapshot"))
    newest.write_bytes(b"spoilt")
    assert opened(FolderDisk(tmp_path), SMALL).log.damage is None, "the log itself is whole"

    halve(segments(tmp_path)[-1])

    assert opened(FolderDisk(tmp_path), SMALL).log.damage is not None


def test_a_whole_log_without_any_recovery_point_is_taken_as_it_is(tmp_path: Path) -> None:
    written(tmp_path)
    for path in (tmp_path / FOLDER).glob("*.snapshot"):
        path.unlink()

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.damage is None
    assert len(values_from(again.log, 0)) == 30


def test_a_torn_log_without_any_recovery_point_is_not_cut(tmp_path: Path) -> None:
    written(tmp_path)
    for path in (tmp_path / FOLDER).glob("*.snapshot"):
        path.unlink()
    last = segments(tmp_path)[-1]
    tear(last)
    size = last.stat().st_size

    again = opened(FolderDisk(tmp_path), SMALL)

    assert isinstance(again.log.damage, Damage)
    assert last.stat().st_size == size
    again.log.accept_loss()
    assert put(again.log, b"next") == again.log.end_offset - 1


def test_files_that_are_not_ours_change_nothing_and_stay(tmp_path: Path) -> None:
    written(tmp_path)
    folder = tmp_path / FOLDER
    foreign = [
        ".DS_Store",
        "notes.log",
        "00000000000000000000.log~",
        "1.log",
        "00000000000000000001.log.bak",
        "x.snapshot",
        "7.snapshot",
        "a.index",
    ]
    for name in foreign:
        (folder / name).write_bytes(b"whatever")
    (folder / "lost+found").mkdir()

    again = opened(FolderDisk(tmp_path), SMALL)

    assert again.log.damage is None
    assert len(values_from(again.log, 0)) == 30
    assert all((folder / name).exists() for name in foreign)
