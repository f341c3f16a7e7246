"""Spans as lines of JSON in files: `traces/traces-00000001.jsonl` and so on in the data folder.

A file is closed and the next begun at a size; when there are more than are kept, the oldest goes. A batch is
in its file whole or not at all: what a full disk cut short is taken back. Nothing is fsynced: a crash of the
machine may lose the last spans, the log has the messages.
"""

import re
from collections.abc import Sequence

from goqueue.model.ports import Disk, File
from goqueue.node.tracing.outgoing import Outgoing, line_of

FOLDER = "traces"
_NAME = re.compile(r"traces-(\d{8,})\.jsonl")


class JsonFiles:
    """The target `file`."""

    def __init__(self, disk: Disk, *, file_bytes: int, files_max: int) -> None:
        self._disk = disk
        self._file_bytes = file_bytes
        self._files_max = files_max
        self._file: File | None = None

    def send(self, spans: Sequence[Outgoing]) -> None:
        text = b"".join(map(line_of, spans))
        file = self._file_with_room(len(text))
        size = file.size()
        try:
            file.append([text])
        except OSError:
            file.truncate(size)
            raise

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _file_with_room(self, wanted: int) -> File:
        file = self._file or self._open(max(self._numbers(), default=1))
        if file.size() and file.size() + wanted > self._file_bytes:
            self.close()
            file = self._open(max(self._numbers(), default=0) + 1)
        return file

    def _open(self, number: int) -> File:
        self._disk.make_folder(FOLDER)
        others = [old for old in self._numbers() if old != number]
        for old in others[: max(len(others) - self._files_max + 1, 0)]:
            self._disk.remove(_path(old))
        self._file = file = self._disk.open(_path(number))
        size = file.size()
        if size and file.read(size - 1, 1) != b"\n":
            file.append([b"\n"])  # a crash has left half a line: the next stands on its own
        return file

    def _numbers(self) -> list[int]:
        return sorted(int(match[1]) for name in self._disk.list(FOLDER) if (match := _NAME.fullmatch(name)))


def _path(number: int) -> str:
    return f"{FOLDER}/traces-{number:08d}.jsonl"
