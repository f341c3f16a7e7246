"""How far a partition was compacted, in a small file. Without it a round begins at the log's start."""

import msgspec

from goqueue.model.ports import Disk

CLEAN_MARK = "cleaned"


class StoredMark(msgspec.Struct, frozen=True):
    end_offset: int = 0
    horizon_ms: int | None = None


_decoder = msgspec.json.Decoder(StoredMark)


def load_clean_mark(disk: Disk, folder: str) -> StoredMark:
    """What the last round has left. Waits for the disk."""
    data = disk.read_whole(f"{folder}/{CLEAN_MARK}")
    try:
        return _decoder.decode(data or b"{}")
    except msgspec.DecodeError:
        return StoredMark()


def save_clean_mark(disk: Disk, folder: str, mark: StoredMark) -> None:
    """Waits for the disk; raises OSError."""
    disk.replace(f"{folder}/{CLEAN_MARK}", msgspec.json.encode(mark))


def lower_clean_mark(disk: Disk, folder: str, end_offset: int) -> None:
    """The log is cut: what comes behind an offset was never compacted."""
    mark = load_clean_mark(disk, folder)
    if mark.end_offset > end_offset:
        save_clean_mark(disk, folder, StoredMark(end_offset, mark.horizon_ms))
