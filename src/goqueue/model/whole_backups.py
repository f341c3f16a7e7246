"""Whole backups: all that a node holds as of one moment, messages and all.

A manifest says which bytes of which objects make up each file. Objects are never changed: a backup refers to
those of earlier ones for what has stayed the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from goqueue.model.places import Place, Seat

VERSION = 1


class Extent(NamedTuple):
    """Bytes of a file, as they lie in an object."""

    object_name: str
    at: int
    size: int
    checksum: int
    """CRC-32C, of the bytes as they were before they were encrypted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    path: str
    fingerprint: str
    """Of the file that was read: while it is the same, so are its bytes."""
    extents: Sequence[Extent]

    @property
    def size(self) -> int:
        return sum(extent.size for extent in self.extents)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCut:
    """Where a partition was at that moment. Its files may hold more: that is cut off when they come back."""

    folder: str
    topic_id: str
    start_offset: int
    end_offset: int
    gaps: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    version: int
    backup_id: str
    taken_ms: int
    """The moment, as unix time."""
    node_id: str
    cluster_id: str
    partitions: Sequence[PartitionCut]
    files: Sequence[CopiedFile]
    new_bytes: int
    """What had to be written for it, beyond what earlier backups had."""

    @property
    def size_bytes(self) -> int:
        return sum(file.size for file in self.files)


class WholeState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeListing:
    """A whole backup in a list, or how far it is."""

    backup_id: str
    state: WholeState
    taken_ms: int
    partition_count: int
    size_bytes: int
    """Of the files; while it runs, how much of that is done."""
    new_bytes: int
    total_bytes: int = 0
    """While it runs: how much there is to do."""
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginWholeBackup:
    """Begin to copy all that this node holds."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListWholeBackups:
    """All of them, the newest first, with the one under way."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWholeBackup:
    """Delete one, and what no other refers to."""

    backup_id: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE
