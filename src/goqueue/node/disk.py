"""The disk of the machine: files below one folder."""

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from goqueue.model.ports import Buffer, DiskSpace
from goqueue.node.kept_files import KeptFiles

_BUFFERS_MAX = os.sysconf("SC_IOV_MAX")
_FILE_MODE = 0o600
_FOLDER_MODE = 0o750
# Linux can say "not in the page cache" instead of waiting; where it cannot, every read goes to a thread.
_NO_WAIT = getattr(os, "RWF_NOWAIT", None)
_sync_data = getattr(os, "fdatasync", os.fsync)
_allocate = getattr(os, "posix_fallocate", None)


class OpenFile:
    """What can be done with any open file. The descriptor is closed with the last reference."""

    def __init__(self, path: Path, flags: int) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, _FILE_MODE)

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        while len(data) < size:
            more = os.pread(self._descriptor, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def sync(self) -> None:
        if not self.is_open:  # its topic was deleted before the flusher came to it
            raise OSError(errno.EBADF, "the file is closed")
        _sync_data(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        if self.is_open:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            self.close()


class DiskPlacedFile(OpenFile):
    """A file that is written at places."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_CREAT)

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def allocate(self, size: int) -> None:
        if _allocate is None:
            have = self.size()
            self.write(have, bytes(max(size - have, 0)))
        else:
            _allocate(self._descriptor, 0, size)

    def write(self, position: int, data: Buffer) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._descriptor, rest, position)
            rest, position = rest[written:], position + written


class DiskFile(OpenFile):
    """A file that grows at its end. A reader that holds it outlives its removal."""

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(path, os.O_APPEND | (os.O_CREAT if create else 0))

    def append(self, buffers: Sequence[Buffer]) -> None:
        rest: Sequence[Buffer] = buffers
        while rest:
            now = rest[:_BUFFERS_MAX]
            written = os.writev(self._descriptor, now)
            rest = _behind(now, written) + list(rest[_BUFFERS_MAX:])

    def read_cached(self, position: int, size: int) -> bytearray | None:
        if _NO_WAIT is None:
            return None
        buffer = bytearray(size)
        try:
            if os.preadv(self._descriptor, [buffer], position, _NO_WAIT) < size:
                return None
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EOPNOTSUPP):
                return None
            raise
        return buffer

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)


class FolderDisk:
    """Files below a root folder, which is created when absent."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root)
        self._root_path = str(self._root)
        self._root.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
        self._kept: KeptFiles | None = None

    def open(self, path: str) -> DiskFile:
        return DiskFile(self._root / path, create=True)

    def open_existing(self, path: str) -> DiskFile:
        return DiskFile(self._root / path, create=False)

    def open_placed(self, path: str) -> DiskPlacedFile:
        return DiskPlacedFile(self._root / path)

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(folder)))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_folder(self, folder: str) -> None:
        parent = folder.rpartition("/")[0]
        try:
            os.mkdir(self._path(folder), _FOLDER_MODE)  # noqa: PTH102
        except FileExistsError:
            return  # as are its parents, then
        except FileNotFoundError:
            if not parent:
                raise
            self.make_folder(parent)
            self.make_folder(folder)
            return
        self.sync_folder(parent)

    def sync_folder(self, folder: str) -> None:
        _sync_folder(self._path(folder))

    def replace(self, path: str, data: bytes) -> None:
        target = self._root / path
        draft = target.with_name(target.name + ".draft")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
        try:
            rest = memoryview(data)
            while rest:
                # A disk that is nearly full takes a part of it, and says so only the next time.
                rest = rest[os.write(descriptor, rest) :]
            _sync_data(descriptor)
        finally:
            os.close(descriptor)
        if self._kept is not None:
            self._kept.keep(path)
        draft.replace(target)
        _sync_folder(target.parent)

    def read_whole(self, path: str) -> bytes | None:
        try:
            with open(self._path(path), "rb", buffering=0) as file:
                return file.readall()
        except FileNotFoundError:
            return None

    def fingerprint(self, path: str) -> str:
        facts = os.stat(self._path(path))  # noqa: PTH116
        return f"{facts.st_dev}-{facts.st_ino}-{facts.st_size}-{facts.st_mtime_ns}"

    def rename(self, source: str, target: str) -> None:
        if self._kept is not None:
            self._kept.keep_tree(source)
            self._kept.keep(target)
        (self._root / source).rename(self._root / target)

    def remove(self, path: str) -> None:
        if self._kept is not None:
            self._kept.keep(path)
        (self._root / path).unlink(missing_ok=True)

    def remove_tree(self, folder: str) -> None:
        path = self._root / folder
        if path.is_dir():
            if self._kept is not None:
                self._kept.keep_tree(folder)
            shutil.rmtree(path, ignore_errors=False)

    def _path(self, path: str) -> str:
        """Where it lies, for what is done to each of very many partitions: a `Path` takes longer to make."""
        return f"{self._root_path}/{path}"

    def keep_removed(self, folder: str) -> None:
        self.remove_tree(folder)
        self.make_folder(folder)
        self._kept = KeptFiles(self._root, folder)

    def removed(self) -> dict[str, str]:
        return {} if self._kept is None else self._kept.names()

    def forget_removed(self) -> None:
        if self._kept is not None:
            folder, self._kept = self._kept.folder, None
            self.remove_tree(folder)

    def space(self) -> DiskSpace:
        # As `df` counts: what is kept for root is neither used nor free.
        facts = os.statvfs(self._root)
        used = facts.f_blocks - facts.f_bfree
        return DiskSpace((used + facts.f_bavail) * facts.f_frsize, facts.f_bavail * facts.f_frsize)


def _behind(buffers: Sequence[Buffer], written: int) -> list[Buffer]:
    """What is left of the buffers when the first `written` bytes are through."""
    for at, buffer in enumerate(buffers):
        if written < len(buffer):
            return [memoryview(buffer)[written:], *buffers[at + 1 :]]
        written -= len(buffer)
    return []


def _sync_folder(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
