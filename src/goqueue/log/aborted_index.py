"""Aborted transactions of a partition: what readers of committed messages must pass over.

They are held in memory and kept beside the segments: `.txnindex` has those whose abort marker stands in
that segment, and goes with it. The files are written before each recovery point, which vouches for them
with a checksum over all: they may lead it but never lag. When one is lost, the batches themselves tell
everything once more.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable
from operator import itemgetter
from struct import Struct

from crc32c import crc32c

from goqueue.log.sparse_index import Checksum
from goqueue.model.ports import Disk
from goqueue.model.transactions import AbortedTransaction

ABORTED_INDEX_SUFFIX = ".txnindex"
_ENTRY = Struct(">qqqq")
_CHECKSUM = Struct(">I")
_NOTHING = 2**63 - 1
_last_offset = itemgetter(AbortedTransaction._fields.index("last_offset"))


class AbortedIndex:
    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._entries: list[AbortedTransaction] = []
        """Rising by their markers."""
        self._digest = 0
        """The checksums of all entries laid over each other, so that one can come and go at little cost."""
        self._unsaved_from: int | None = None
        self._is_shorter = False
        """Any file may have entries that are dropped, or lie in another segment now."""
        self._stale: set[int] = set()
        """Segments whose files have entries that a crash has taken back."""

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, aborted: AbortedTransaction) -> None:
        """An abort marker was appended, or found by recovery."""
        self._entries.append(aborted)
        self._digest ^= _digest_of(aborted)
        if self._unsaved_from is None:
            self._unsaved_from = aborted.last_offset

    def between(self, first_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of those with messages in a range, by their first offsets."""
        found = []
        entries = self._entries
        for at in range(bisect_left(entries, first_offset, key=_last_offset), len(entries)):
            producer_id, aborted_from, _, last_stable_offset = entries[at]
            if aborted_from < end_offset:
                found.append((producer_id, aborted_from))
            if last_stable_offset >= end_offset:
                break  # all that was aborted later begins behind it
        found.sort(key=itemgetter(1))
        return found

    def runs(self, first_offset: int) -> list[tuple[int, int]]:
        """First and end offset of those that end behind an offset; what else lies between may be well."""
        begin = bisect_left(self._entries, first_offset, key=_last_offset)
        return [(entry.first_offset, entry.last_offset) for entry in self._entries[begin:]]

    def drop_before(self, start_offset: int) -> None:
        """The log begins later now."""
        end = bisect_left(self._entries, start_offset, key=_last_offset)
        for entry in self._entries[:end]:
            self._digest ^= _digest_of(entry)
        del self._entries[:end]

    def all(self) -> list[AbortedTransaction]:
        """Rising by their markers."""
        return [*self._entries]

    def forget(self, gone: Container[tuple[int, int]]) -> bool:
        """Drop those, by producer and marker, of which only the marker is left; whether there were any."""
        dropped = [entry for entry in self._entries if (entry.producer_id, entry.last_offset) in gone]
        for entry in dropped:
            self._digest ^= _digest_of(entry)
        if dropped:
            self._entries = [entry for entry in self._entries if entry not in dropped]
            self._is_shorter = True
        return bool(dropped)

    def move(self) -> None:
        """Segments have become one: the next recovery point writes all entries anew."""
        self._is_shorter |= bool(self._entries)

    def load(self, bases: Iterable[int], *, start_offset: int, end_offset: int, vouched: Checksum) -> bool:
        """Read the files of these segments, as far as a recovery point speaks of them; False: some are lost.

        Then nothing is loaded: `rebuild` from the batches.
        """
        self._clear()
        self._stale.clear()
        for base in bases:
            for entry in self._read(base):
                if entry.last_offset >= end_offset:
                    self._stale.add(base)
                elif entry.last_offset >= start_offset:
                    self.add(entry)
        self._unsaved_from = None
        if self.checksum() == vouched:
            return True
        self._clear()
        return False

    def rebuild(self, entries: Iterable[AbortedTransaction]) -> None:
        """Put what a walk over the batches before the recovery point has found before the rest."""
        rest = self._entries
        self._clear()
        for entry in (*entries, *rest):
            self.add(entry)

    def checksum(self) -> Checksum:
        """What tells later whether everything there is now has reached the files."""
        return Checksum(len(self._entries), self._digest)

    def unsaved(self, bases: list[int]) -> dict[str, bytes]:
        """The files that lack something, by their paths, as they should be. Takes them to be saved now."""
        stale = self._stale.union(bases if self._is_shorter else ())
        files: dict[int, list[AbortedTransaction]] = {base: [] for base in bases if base in stale}
        unsaved_from = min(files, default=_NOTHING)
        if self._unsaved_from is not None:
            unsaved_from = min(unsaved_from, self._unsaved_from)
        at = len(bases) - 1
        for entry in reversed(self._entries):
            while at > 0 and bases[at] > entry.last_offset:
                at -= 1
            if entry.last_offset < unsaved_from and bases[at] not in files:
                break
            files.setdefault(bases[at], []).append(entry)
        self._unsaved_from = None
        self._stale.clear()
        self._is_shorter = False
        return {aborted_index_path(self._folder, base): _file_of(files[base][::-1]) for base in files}

    def note_unsaved(self) -> None:
        """What was to be saved did not reach the disk: the next recovery point writes it all anew."""
        self._is_shorter |= bool(self._entries)
        self._unsaved_from = self._entries[0].last_offset if self._entries else None

    def _clear(self) -> None:
        self._entries, self._digest, self._unsaved_from = [], 0, None

    def _read(self, base_offset: int) -> list[AbortedTransaction]:
        data = self._disk.read_whole(aborted_index_path(self._folder, base_offset)) or b""
        body = data[_CHECKSUM.size :]
        if len(body) % _ENTRY.size or _CHECKSUM.pack(crc32c(body)) != data[: _CHECKSUM.size]:
            return []
        return [AbortedTransaction(*fields) for fields in _ENTRY.iter_unpack(body)]


def aborted_index_path(folder: str, base_offset: int) -> str:
    return f"{folder}/{base_offset:020d}{ABORTED_INDEX_SUFFIX}"


def _file_of(entries: Iterable[AbortedTransaction]) -> bytes:
    body = b"".join(_ENTRY.pack(*entry) for entry in entries)
    return _CHECKSUM.pack(crc32c(body)) + body


def _digest_of(entry: AbortedTransaction) -> int:
    return crc32c(_ENTRY.pack(*entry))
