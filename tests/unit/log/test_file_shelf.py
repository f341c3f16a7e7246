"""Descriptors do not grow with the log: of sealed segments only some keep their files open."""

import weakref
from pathlib import Path

import pytest

from goqueue.log.file_shelf import FileShelf
from goqueue.model.settings import KiB, TopicSettings
from goqueue.node.disk import DiskFile, FolderDisk
from tests.unit.log.opened import flush, opened, put, values_from

SETTINGS = TopicSettings(segment_bytes=4 * KiB)
VALUE = b"x" * 3_000
SEGMENTS = 20
SHELF = 4


class WatchedDisk(FolderDisk):
    """A disk that knows which of its files are open."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files: weakref.WeakSet[DiskFile] = weakref.WeakSet()

    def open(self, path: str) -> DiskFile:
        file = super().open(path)
        self._files.add(file)
        return file

    def open_existing(self, path: str) -> DiskFile:
        file = super().open_existing(path)
        self._files.add(file)
        return file

    @property
    def open_count(self) -> int:
        return sum(file.is_open for file in self._files)


@pytest.fixture
def disk(tmp_path: Path) -> WatchedDisk:
    return WatchedDisk(tmp_path)


def test_sealed_segments_give_up_their_files_when_they_are_on_the_disk(disk: WatchedDisk) -> None:
    log = opened(disk, SETTINGS, shelf=FileShelf(SHELF)).log
    for _ in range(SEGMENTS):
        put(log, VALUE)
    assert disk.open_count == SEGMENTS, "what was not synced keeps its file, so that no error goes unheard"

    flush(log)

    assert disk.open_count == SHELF + 1
    assert len(values_from(log, 0)) == SEGMENTS
    assert disk.open_count == SHELF + 1


def test_a_log_that_is_opened_again_and_read_through_keeps_few_files_open(disk: WatchedDisk) -> None:
    log = opened(disk, SETTINGS).log
    for _ in range(SEGMENTS):
        put(log, VALUE)
    flush(log, with_snapshot=True)
    log.close()

    again = opened(disk, SETTINGS, shelf=FileShelf(SHELF)).log

    for _ in range(2):
        assert len(values_from(again, 0)) == SEGMENTS
        assert disk.open_count <= SHELF + 1


def test_partitions_share_a_shelf(disk: WatchedDisk) -> None:
    shelf = FileShelf(SHELF)
    logs = [opened(disk, SETTINGS, folder=f"logs/orders/{number}", shelf=shelf).log for number in range(3)]
    for log in logs:
        for _ in range(SEGMENTS):
            put(log, VALUE)
        flush(log)

    assert disk.open_count == SHELF + len(logs)


def test_what_retention_removes_is_closed(disk: WatchedDisk) -> None:
    log = opened(disk, SETTINGS, shelf=FileShelf(SEGMENTS)).log
    for _ in range(SEGMENTS):
        put(log, VALUE)
    values_from(log, 1)
    log.move_start(SEGMENTS - 1)
    flush(log, with_snapshot=True)

    assert disk.open_count == 1
