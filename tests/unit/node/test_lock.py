"""One broker a data folder."""

import errno
import os
from pathlib import Path

import pytest

from goqueue.node.lock import FolderInUse, FolderLock


def test_a_held_folder_is_refused_and_the_holder_named(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        FolderLock(tmp_path).__enter__()


def test_a_folder_is_free_again_after_its_holder_ended(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        assert (tmp_path / "goqueue.pid").read_text() == f"{os.getpid()}\n"

    assert not (tmp_path / "goqueue.pid").exists()
    with FolderLock(tmp_path):
        pass


def test_a_process_id_left_by_a_killed_broker_does_not_hold_the_folder(tmp_path: Path) -> None:
    (tmp_path / "goqueue.pid").write_text("1\n")
    (tmp_path / "goqueue.lock").touch()

    with FolderLock(tmp_path):
        assert (tmp_path / "goqueue.pid").read_text() == f"{os.getpid()}\n"


def test_the_folder_is_made_when_it_is_absent(tmp_path: Path) -> None:
    with FolderLock(tmp_path / "data"):
        assert (tmp_path / "data").is_dir()


def test_a_holder_that_wrote_no_process_id_is_still_in_the_way(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        (tmp_path / "goqueue.pid").unlink()
        with pytest.raises(FolderInUse, match="in use by another process"):
            FolderLock(tmp_path).__enter__()


def test_a_full_disk_is_no_reason_to_refuse_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_nothing(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write_nothing)

    with FolderLock(tmp_path), pytest.raises(FolderInUse, match="in use by another process"):
        FolderLock(tmp_path).__enter__()


def test_a_folder_that_cannot_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_nothing(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_text", write_nothing)

    for _ in range(2):
        with pytest.raises(OSError, match="Read-only"):
            FolderLock(tmp_path).__enter__()
