"""Names on a simulated disk: a tree of folders whose changes a power cut may undo until they are synced.

Names of one folder become durable in the order they were changed, as on a journalling file system: what a
power cut leaves of the changes since the last `sync` is the first so many of them.
"""

from collections.abc import Iterator
from random import Random

from goqueue.testing.world.stored_bytes import StoredBytes

_Change = dict[str, "Entry | None"]
"""Names and what each stands for afterwards; a rename changes two at once."""


class Folder:
    """Entries as the OS shows them, and as a power cut would leave them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._durable: dict[str, Entry] = {}
        self._pending: list[_Change] = []

    def put(self, name: str, entry: "Entry") -> None:
        self._change({name: entry})

    def drop(self, name: str) -> None:
        self._change({name: None})

    def rename(self, source: str, target: str) -> None:
        self._change({source: None, target: self.entries[source]})

    def sync(self) -> None:
        self._durable = dict(self.entries)
        self._pending.clear()

    def is_synced(self, name: str) -> bool:
        """Whether a power cut would leave this name as it is now, the bytes behind it aside."""
        return name in self.entries and not any(name in change for change in self._pending)

    def after_power_loss(self, random: Random) -> "Folder":
        left = dict(self._durable)
        for change in self._pending[: random.randint(0, len(self._pending))]:
            _apply(left, change)
        folder = Folder()
        for name in sorted(left):
            entry = left[name]
            folder.entries[name] = (
                entry.after_power_loss(random)
                if isinstance(entry, Folder)
                else StoredBytes(bytes(entry.after_power_loss(random)))
            )
        folder.sync()
        return folder

    def files(self) -> Iterator[tuple[str, StoredBytes]]:
        """Every file below this folder, by its path from here, in order."""
        for name in sorted(self.entries):
            entry = self.entries[name]
            if isinstance(entry, Folder):
                yield from ((f"{name}/{path}", stored) for path, stored in entry.files())
            else:
                yield name, entry

    def _change(self, change: _Change) -> None:
        self._pending.append(change)
        _apply(self.entries, change)


Entry = Folder | StoredBytes


def _apply(entries: dict[str, Entry], change: _Change) -> None:
    for name, entry in change.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry
