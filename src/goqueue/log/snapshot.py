"""A recovery point: up to which offset and byte a partition is known to be good and on the disk.

Written after an fsync, never before, so it can lag but not lead. It also keeps what a scan of the
tail alone could not tell: where the log starts, where each leader epoch began, and the state of the
producers at that offset. And it says whose the folder is: a topic that was deleted and made anew has the
same folder and another id, and people copy folders. The two newest are kept; one that fails its checksum is
passed over, but its name still says up to which offset the log once was good.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from uuid import UUID

import msgspec
from crc32c import crc32c

from goqueue.log.sparse_index import Checksum
from goqueue.model.ports import Disk

SUFFIX = ".snapshot"
KEPT_COUNT = 2
_NAME = re.compile(r"[0-9]{20}\.snapshot")
"""What else lies in a folder is not ours."""
_CHECKSUM = Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    end_offset: int
    """Everything before it is on the disk."""
    segment_base: int
    position: int
    """Where `end_offset` begins in that segment."""
    start_offset: int
    epochs: Sequence[tuple[int, int]]
    """(leader epoch, first offset), rising."""
    max_timestamp_ms: int
    """The largest in that segment so far."""
    indexes: tuple[Checksum, Checksum]
    """What that segment's indexes held. They are not fsynced with it: a power failure may tear them."""
    aborted: Checksum
    """What the indexes of aborted transactions held, all together."""
    producers: object
    """State of the producers' machines, in plain JSON values; opaque here."""
    gaps: Sequence[tuple[int, int]] = ()
    """Runs of offsets, first and end, that are lost and whose loss was accepted: segments lie around them."""
    topic_id: UUID | None = None
    """Whose partition it is; None: it was written before that was told."""


def save_snapshot(disk: Disk, folder: str, snapshot: Snapshot) -> None:
    """Write a recovery point and forget those before the last two."""
    put_snapshot(disk, folder, snapshot)
    for name in _names(disk, folder)[:-KEPT_COUNT]:
        disk.remove(f"{folder}/{name}")


def put_snapshot(disk: Disk, folder: str, snapshot: Snapshot) -> None:
    """Write a recovery point beside those there are."""
    body = msgspec.json.encode(
        {
            "end_offset": snapshot.end_offset,
            "segment_base": snapshot.segment_base,
            "position": snapshot.position,
            "start_offset": snapshot.start_offset,
            "epochs": list(snapshot.epochs),
            "max_timestamp_ms": snapshot.max_timestamp_ms,
            "indexes": list(snapshot.indexes),
            "aborted": list(snapshot.aborted),
            "producers": snapshot.producers,
            "gaps": list(snapshot.gaps),
            "topic_id": snapshot.topic_id,
        }
    )
    disk.replace(f"{folder}/{snapshot.end_offset:020d}{SUFFIX}", _CHECKSUM.pack(crc32c(body)) + body)


def begin_at(disk: Disk, folder: str, offset: int, *, topic_id: UUID | None = None) -> None:
    """Let a partition that is still to be opened for the first time begin at an offset, without messages."""
    save_snapshot(disk, folder, nothing_before(offset, start_offset=offset, topic_id=topic_id))


def nothing_before(
    segment_base: int, *, start_offset: int, topic_id: UUID | None, gaps: Sequence[tuple[int, int]] = ()
) -> Snapshot:
    """A recovery point that knows nothing: all is told by the batches from the start of a segment on."""
    return Snapshot(
        end_offset=segment_base,
        segment_base=segment_base,
        position=0,
        start_offset=start_offset,
        epochs=(),
        max_timestamp_ms=-1,
        indexes=(Checksum(0, 0), Checksum(0, 0)),
        aborted=Checksum(0, 0),
        producers=None,
        gaps=gaps,
        topic_id=topic_id,
    )


def load_snapshots(disk: Disk, folder: str, names: Iterable[str] | None = None) -> list[Snapshot]:
    """The recovery points that can be read, newest first; `names`: what lies in the folder, where known."""
    paths = [f"{folder}/{name}" for name in reversed(_names(disk, folder, names))]
    found = [_parse(disk.read_whole(path) or b"") for path in paths]
    return [snapshot for snapshot in found if snapshot is not None]


def owner_of(snapshots: Iterable[Snapshot]) -> UUID | None:
    """Whose a folder is, by its recovery points, the newest first; None: none of them tells."""
    return next((snapshot.topic_id for snapshot in snapshots if snapshot.topic_id is not None), None)


def vouched_offset(disk: Disk, folder: str, names: Iterable[str] | None = None) -> int | None:
    """The highest offset that any recovery point speaks of, be it readable or not; None: there is none."""
    return max((int(name.removesuffix(SUFFIX)) for name in _names(disk, folder, names)), default=None)


def remove_snapshot(disk: Disk, folder: str, end_offset: int) -> None:
    """Forget one recovery point."""
    disk.remove(f"{folder}/{end_offset:020d}{SUFFIX}")


def remove_snapshots_after(disk: Disk, folder: str, end_offset: int) -> None:
    """Forget recovery points that speak of offsets which have been cut off."""
    for name in _names(disk, folder):
        if int(name.removesuffix(SUFFIX)) > end_offset:
            disk.remove(f"{folder}/{name}")


def _names(disk: Disk, folder: str, names: Iterable[str] | None = None) -> list[str]:
    return [name for name in (disk.list(folder) if names is None else names) if _NAME.fullmatch(name)]


def _parse(data: bytes) -> Snapshot | None:
    body = data[_CHECKSUM.size :]
    if not body or _CHECKSUM.pack(crc32c(body)) != data[: _CHECKSUM.size]:
        return None
    fields = msgspec.json.decode(body)
    return Snapshot(
        end_offset=fields["end_offset"],
        segment_base=fields["segment_base"],
        position=fields["position"],
        start_offset=fields["start_offset"],
        epochs=[(epoch, offset) for epoch, offset in fields["epochs"]],
        max_timestamp_ms=fields["max_timestamp_ms"],
        indexes=(Checksum(*fields["indexes"][0]), Checksum(*fields["indexes"][1])),
        aborted=Checksum(*fields.get("aborted", (0, 0))),
        producers=fields["producers"],
        gaps=[(first, end) for first, end in fields.get("gaps", ())],
        topic_id=None if (topic_id := fields.get("topic_id")) is None else UUID(topic_id),
    )
