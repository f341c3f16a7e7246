"""The disk of the machine, where it is not as generous as usual."""

import os
from pathlib import Path

import pytest

from goqueue.node.disk import FolderDisk


def test_a_file_is_replaced_whole_also_when_the_disk_takes_it_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    disk = FolderDisk(tmp_path)

    disk.replace("letter", b"all of it")

    assert disk.read_whole("letter") == b"all of it"


def test_a_file_that_was_closed_cannot_be_flushed_and_says_so_like_any_disk_error(tmp_path: Path) -> None:
    file = FolderDisk(tmp_path).open("log")
    file.close()

    with pytest.raises(OSError, match="closed"):
        file.sync()
