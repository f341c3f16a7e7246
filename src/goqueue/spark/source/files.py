"""Frames straight from the data folder of a node: segments read as files, without a request.

Files alone do not say what may be read. So they are read only up to offsets that the node told when the
read was planned, and a window with transactions in it is left to the node, which knows those that
were taken back. Whatever the files do not hold, or not any more, is left to it as well.
"""

import os
from bisect import bisect_right
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from goqueue.client.log import Window
from goqueue.records.frame import FRAME_BYTES, Frame, FrameScan, scan_frames
from goqueue.records.layout import TRANSACTIONAL, read_header

_INDEX_ENTRY = Struct(">qq")
_UNKNOWN = -1


class _Spot(NamedTuple):
    """Where in which segment the next window begins, and with which offset."""

    offset: int
    base_offset: int
    position: int


class SegmentFiles:
    """The segments of one partition. Windows are asked for in rising order, as one task reads them."""

    def __init__(self, data_path: Path, topic: str, partition: int) -> None:
        self._folder = data_path / "logs" / topic / str(partition)
        self._next: _Spot | None = None

    def window(self, offset: int, *, end_offset: int, max_bytes: int) -> Window | None:
        """Whole frames from the one that holds an offset on; None where the node has to be asked."""
        try:
            spot = self._spot(offset)
            if spot is None:
                return None
            data, scan = self._read(spot, end_offset, max_bytes)
        except OSError:
            return None  # Retention, or a topic that was deleted: the node says which.
        frames = [frame for frame in scan.frames if frame.end_offset > offset]
        if not frames or frames[0].base_offset > offset or _has_transactions(data, frames):
            return None
        last = frames[-1]
        self._next = spot._replace(offset=last.end_offset, position=spot.position + last.body_end)
        view = data[frames[0].body_start - FRAME_BYTES : last.body_end]
        return Window(view, last.end_offset, _UNKNOWN, _UNKNOWN)

    def _spot(self, offset: int) -> _Spot | None:
        """Where to begin to look for an offset."""
        known = self._next if self._next is not None and self._next.offset == offset else None
        if known is not None and known.position < self._log(known.base_offset).stat().st_size:
            return known
        bases = sorted(int(path.stem) for path in self._folder.glob("*.log") if path.stem.isdigit())
        at = bisect_right(bases, offset) - 1
        if at < 0 or (known is not None and known.base_offset == bases[at]):
            return None
        return _Spot(offset, bases[at], self._position(bases[at], offset))

    def _position(self, base_offset: int, offset: int) -> int:
        """A position not behind that of an offset; the index is sparse, and of a segment in use it lags."""
        try:
            index = self._log(base_offset).with_suffix(".index").read_bytes()
        except FileNotFoundError:
            return 0
        entries = list(_INDEX_ENTRY.iter_unpack(index[: len(index) // _INDEX_ENTRY.size * _INDEX_ENTRY.size]))
        at = bisect_right(entries, offset, key=lambda entry: entry[0]) - 1
        return entries[at][1] if at >= 0 else 0

    def _read(self, spot: _Spot, end_offset: int, max_bytes: int) -> tuple[memoryview, FrameScan]:
        """A piece of a segment and the frames in it; as large as its first frame at least."""
        with self._log(spot.base_offset).open("rb", buffering=0) as file:
            while True:
                data = memoryview(os.pread(file.fileno(), max_bytes, spot.position))
                scan = scan_frames(data, stop_offset=end_offset)
                if scan.frames or len(data) < max_bytes or scan.wanted_bytes <= max_bytes:
                    return data, scan
                max_bytes = scan.wanted_bytes

    def _log(self, base_offset: int) -> Path:
        return self._folder / f"{base_offset:020d}.log"


def _has_transactions(data: memoryview, frames: list[Frame]) -> bool:
    return any(read_header(data, frame.body_start).attributes & TRANSACTIONAL for frame in frames)
