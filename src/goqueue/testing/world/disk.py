"""A disk in memory that does what real ones do when the power fails, space runs out or a sector goes bad.

What was synced stays. What was not may vanish, arrive in part, or arrive out of order; names that were
made, moved or removed without `sync_folder` may be as before. After a crash the disk is dead, with every
file that was open on it, and `crash` and `kill` return the one that the next process will find.
"""

import builtins
import errno
from collections.abc import Sequence
from random import Random

from crc32c import crc32c

from goqueue.model.ports import Buffer, Disk, DiskSpace, File, PlacedFile
from goqueue.testing.world.faults import Faults, failure
from goqueue.testing.world.folder import Folder
from goqueue.testing.world.stored_bytes import StoredBytes

COLD_SHARE = 0.3
"""How often a read finds that the OS has not cached what it wants."""
_LARGE_BYTES = 2**40


class SimulatedDisk(Disk):
    """A folder tree with faults on demand. The same calls and the same random give the same bytes."""

    def __init__(self, random: Random, root: Folder | None = None) -> None:
        self.random = random
        self.root = root or Folder()
        self.is_dead = False
        self.faults = Faults()
        self._keeping = ""
        """The folder in which what is removed stays; empty: it goes."""
        self._kept: dict[str, str] = {}

    # What the log and the broker call.

    def open(self, path: str) -> File:
        return SimulatedFile(self, path, self._made(path))

    def open_existing(self, path: str) -> File:
        self.check_alive()
        if self._find(path) is None:
            raise failure(errno.ENOENT, path)
        return self.open(path)

    def open_placed(self, path: str) -> PlacedFile:
        return SimulatedPlacedFile(self, path, self._made(path))

    def list(self, folder: str) -> builtins.list[str]:
        self.check_alive()
        found = self._find(folder)
        return sorted(found.entries) if isinstance(found, Folder) else []

    def make_folder(self, folder: str) -> None:
        self.check_alive()
        place = self.root
        for name in _parts(folder):
            entry = place.entries.get(name)
            if entry is None:
                self.faults.meet_change()
                entry = Folder()
                place.put(name, entry)
                place.sync()
            if not isinstance(entry, Folder):
                raise failure(errno.ENOTDIR, folder)
            place = entry

    def sync_folder(self, folder: str) -> None:
        self.check_alive()
        found = self._find(folder)
        if not isinstance(found, Folder):
            raise failure(errno.ENOENT, folder)
        self.faults.meet_change()
        found.sync()

    def replace(self, path: str, data: bytes) -> None:
        # A new file, synced, then put under the old name: a power cut in between leaves the old bytes.
        folder, name = self._folder_of(path)
        self.faults.meet_change()
        stored = StoredBytes()
        if not stored.append([data], room=self.room()):
            raise failure(errno.ENOSPC, path)
        stored.sync()
        self._keep(path)
        folder.put(name, stored)
        self.faults.meet_change()
        folder.sync()

    def read_whole(self, path: str) -> bytes | None:
        self.check_alive()
        self.faults.meet_read(path)
        found = self._find(path)
        return bytes(found.content) if isinstance(found, StoredBytes) else None

    def fingerprint(self, path: str) -> str:
        self.check_alive()
        content = self.stored(path).content
        return f"{len(content)}-{crc32c(content)}"

    def rename(self, source: str, target: str) -> None:
        folder, source_name = self._folder_of(source)
        target_folder, target_name = self._folder_of(target)
        if folder is not target_folder:
            raise failure(errno.EXDEV, target)
        if source_name not in folder.entries:
            raise failure(errno.ENOENT, source)
        self.faults.meet_change()
        for path in (*self._files_below(source), target):
            self._keep(path)
        folder.rename(source_name, target_name)

    def remove(self, path: str) -> None:
        self.check_alive()
        if isinstance(self._find(path), StoredBytes):
            folder, name = self._folder_of(path)
            self.faults.meet_change()
            self._keep(path)
            folder.drop(name)

    def remove_tree(self, folder: str) -> None:
        self.check_alive()
        if not isinstance(self._find(folder), Folder):
            return
        parent, name = self._folder_of(folder)
        self.faults.meet_change()
        for path in self._files_below(folder):
            self._keep(path)
        _empty(parent.entries[name])
        parent.drop(name)
        self.faults.forget(folder)

    def keep_removed(self, folder: str) -> None:
        self.remove_tree(folder)
        self.make_folder(folder)
        self._keeping, self._kept = folder, {}

    def removed(self) -> dict[str, str]:
        self.check_alive()
        return dict(self._kept)

    def forget_removed(self) -> None:
        folder, self._keeping = self._keeping, ""
        if folder:
            self.remove_tree(folder)

    def space(self) -> DiskSpace:
        self.check_alive()
        capacity_bytes = self.faults.capacity_bytes
        if capacity_bytes is None:
            capacity_bytes = _LARGE_BYTES
        return DiskSpace(capacity_bytes, max(0, capacity_bytes - self._used_bytes()))

    # What can go wrong, and when.

    def crash(self) -> "SimulatedDisk":
        """The power fails. The disk as it is found afterwards; this one and its files are dead."""
        return self._succeed(self.root.after_power_loss(self.random))

    def kill(self) -> "SimulatedDisk":
        """The process dies, the OS does not: every byte written is there, synced or not as before."""
        return self._succeed(self.root)

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Turn one bit of a file, in the cache as on the platter."""
        self.stored(path).flip_bit(position, bit)

    def fill_up(self, *, after_bytes: int) -> None:
        """Let so many more bytes be written, and then no more until the faults heal or files shrink."""
        self.faults.capacity_bytes = self._used_bytes() + after_bytes

    def stored(self, path: str) -> StoredBytes:
        """The bytes behind a path, for tests that look at them or spoil them."""
        found = self._find(path)
        if not isinstance(found, StoredBytes):
            raise failure(errno.ENOENT, path)
        return found

    def check_alive(self) -> None:
        if self.is_dead:
            raise failure(errno.EBADF, "a disk from before the crash")

    def room(self) -> int | None:
        """Bytes that can still be written; None without bound."""
        capacity_bytes = self.faults.capacity_bytes
        return None if capacity_bytes is None else max(0, capacity_bytes - self._used_bytes())

    def _keep(self, path: str) -> None:
        """It goes from this path: give it another one, if somebody wants it."""
        found = self._find(path)
        is_wanted = self._keeping and path not in self._kept and not path.startswith(f"{self._keeping}/")
        if is_wanted and isinstance(found, StoredBytes):
            self._kept[path] = f"{self._keeping}/{len(self._kept):06}"
            folder, name = self._folder_of(self._kept[path])
            folder.put(name, found)

    def _files_below(self, path: str) -> builtins.list[str]:
        found = self._find(path)
        return [f"{path}/{name}" for name, _ in found.files()] if isinstance(found, Folder) else [path]

    def _succeed(self, root: Folder) -> "SimulatedDisk":
        self.check_alive()
        self.is_dead = True
        return SimulatedDisk(self.random, root)

    def _used_bytes(self) -> int:
        return sum(len(stored.content) for _, stored in self.root.files())

    def _find(self, path: str) -> Folder | StoredBytes | None:
        place: Folder | StoredBytes | None = self.root
        for name in _parts(path):
            if not isinstance(place, Folder):
                return None
            place = place.entries.get(name)
        return place

    def _made(self, path: str) -> StoredBytes:
        """What a path holds, made now if there is nothing."""
        folder, name = self._folder_of(path)
        entry = folder.entries.get(name)
        if isinstance(entry, Folder):
            raise failure(errno.EISDIR, path)
        if entry is None:
            self.faults.meet_change()
            entry = StoredBytes()
            folder.put(name, entry)
        return entry

    def _folder_of(self, path: str) -> tuple[Folder, str]:
        self.check_alive()
        *parents, name = _parts(path)
        folder = self._find("/".join(parents))
        if not isinstance(folder, Folder):
            raise failure(errno.ENOENT, path)
        return folder, name


class OpenFile:
    """An open file. It dies with its disk, and when closed."""

    def __init__(self, disk: SimulatedDisk, path: str, stored: StoredBytes) -> None:
        self._disk = disk
        self._path = path
        self._stored = stored
        self._is_closed = False

    def read(self, position: int, size: int) -> bytes:
        self._check_usable()
        self._disk.faults.meet_read(self._path)
        return bytes(self._stored.content[position : position + size])

    def sync(self) -> None:
        self._check_usable()
        self._disk.faults.meet_change()
        try:
            self._disk.faults.meet_sync(self._path)
        except OSError:
            self._stored.fail_to_sync(self._disk.random)
            raise
        self._stored.sync()

    def size(self) -> int:
        self._check_usable()
        return len(self._stored.content)

    def close(self) -> None:
        self._is_closed = True

    def _check_usable(self) -> None:
        self._disk.check_alive()
        if self._is_closed:
            raise failure(errno.EBADF, self._path)


class SimulatedPlacedFile(OpenFile, PlacedFile):
    """A file that is written at places."""

    def allocate(self, size: int) -> None:
        self._check_usable()
        missing = size - len(self._stored.content)
        if missing > 0:
            self.write(len(self._stored.content), bytes(missing))

    def write(self, position: int, data: Buffer) -> None:
        self._check_usable()
        self._disk.faults.meet_change()
        if not self._stored.write(position, bytes(data), room=self._disk.room()):
            raise failure(errno.ENOSPC, self._path)


class SimulatedFile(OpenFile, File):
    """A file that grows at its end."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._check_usable()
        self._disk.faults.meet_change()
        if not self._stored.append(buffers, room=self._disk.room()):
            raise failure(errno.ENOSPC, self._path)

    def read_cached(self, position: int, size: int) -> bytes | None:
        self._check_usable()
        if self._disk.random.random() < COLD_SHARE:
            return None
        return bytes(self._stored.content[position : position + size])

    def truncate(self, size: int) -> None:
        self._check_usable()
        self._disk.faults.meet_change()
        self._stored.truncate(size)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _empty(entry: Folder | StoredBytes) -> None:
    """Remove what lies below a folder, piece by piece: a power cut may come in the middle."""
    if isinstance(entry, Folder):
        for name in sorted(entry.entries):
            _empty(entry.entries[name])
            entry.drop(name)
