"""Objects as files of a disk: for backups that go to a folder."""

from collections.abc import Iterator

from goqueue.model.ports import Buffer, Disk

WHOLE_FOLDER = "backups/whole"
_DRAFT = ".draft"


class DiskObjects:
    """A file an object, in a folder or on a disk of their own. What was being written does not count."""

    def __init__(self, disk: Disk, folder: str = "") -> None:
        self._disk = disk
        self._root = f"{folder}/" if folder else ""

    def put(self, name: str, data: Buffer) -> None:
        path = self._root + name
        self._disk.make_folder(path.rpartition("/")[0])
        self._disk.replace(path, bytes(data))

    def get(self, name: str) -> bytes | None:
        return self._disk.read_whole(self._root + name)

    def names(self) -> list[str]:
        found = self._below(self._root.rstrip("/"))
        return sorted(path.removeprefix(self._root) for path in found if not path.endswith(_DRAFT))

    def remove(self, name: str) -> None:
        path = self._root + name
        self._disk.remove(path)
        folder = path.rpartition("/")[0]
        if not self._disk.list(folder):
            self._disk.remove_tree(folder)

    def _below(self, folder: str) -> Iterator[str]:
        """Objects lie one folder deep."""
        for below in self._disk.list(folder):
            path = f"{folder}/{below}" if folder else below
            yield from (f"{path}/{name}" for name in self._disk.list(path))
