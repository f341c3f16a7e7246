"""Stages: what the tasks of a sink have written and nobody can see yet, a file each.

A stage is written under a name of its own, synced, and only then put under the name that counts:
`stages/{sink}/{epoch}-{id}.stage`. So a file of that name is whole, or the disk has damaged it, which
its checksum tells. Methods that touch files wait for the disk: call them from threads.
"""

import re
from collections.abc import Iterable
from itertools import count
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from goqueue.broker.storage.data_folder import STAGES_FOLDER
from goqueue.model.errors import Corrupt, StageNotFound
from goqueue.model.ids import TopicPartition
from goqueue.model.names import PLAIN_NAME_PATTERN
from goqueue.model.ports import Buffer, Disk
from goqueue.model.settings import MiB
from goqueue.records.entries import read_entries
from goqueue.records.layout import read_header

_STAGE_SUFFIX = ".stage"
_DRAFT_SUFFIX = ".draft"
_DRAFT = re.compile(r"[0-9]+\.draft")
_PLAIN_NAME = re.compile(PLAIN_NAME_PATTERN)
_MAGIC = b"GQS1"
_HEAD = Struct(">4sIQQ")
"""Magic, CRC-32C of all that follows it, creation time in unix ms, bytes of the entries."""
_CHECKED_FROM = 8
_READ_BYTES = 4 * MiB
"""Files are read and checked in pieces, so that a thread at it lets the loop run in between."""


class StageName(NamedTuple):
    """Which stage: of a sink, for an epoch, by the id that its task chose."""

    sink: str
    epoch: int
    stage_id: str

    @property
    def path(self) -> str:
        return f"{_folder(self.sink)}/{self.epoch}-{self.stage_id}{_STAGE_SUFFIX}"


class Stage(NamedTuple):
    """What is known of a stage without opening it."""

    name: StageName
    created_ms: int
    size_bytes: int
    counts: dict[TopicPartition, int]
    """How many messages go where."""

    @property
    def messages(self) -> int:
        return sum(self.counts.values())


class Stages:
    """All stages on the disk. The map is the loop's; the files belong to whoever was handed their stage."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._drafts = count()
        self._stages: dict[str, dict[StageName, Stage]] = {}
        """By sink."""

    def open(self) -> list[StageName]:
        """Find the stages that a process before this one has left; returns those that are damaged."""
        damaged = []
        for sink in self._disk.list(STAGES_FOLDER):
            for file_name in self._disk.list(_folder(sink)):
                name = _parse(sink, file_name)
                if name is None:
                    if _DRAFT.fullmatch(file_name):
                        self._disk.remove(f"{_folder(sink)}/{file_name}")
                    continue
                try:
                    created_ms, entries = self._read(name)
                except Corrupt:
                    damaged.append(name)
                    continue
                self.note(stage_of(name, created_ms, entries))
        return damaged

    def of_sink(self, sink: str) -> list[Stage]:
        """A sink's stages, by epoch and id."""
        return sorted(self._stages.get(sink, {}).values(), key=_by_name)

    def named(self, sink: str, epoch: int, stage_ids: Iterable[str]) -> list[Stage]:
        """Those stages, each once, in the order given; refuses when one is not there."""
        known = self._stages.get(sink, {})
        stages = []
        for stage_id in dict.fromkeys(stage_ids):
            stage = known.get(StageName(sink, epoch, stage_id))
            if stage is None:
                raise StageNotFound(sink, epoch, stage_id)
            stages.append(stage)
        return stages

    def existing(self, sink: str, epoch: int, stage_ids: Iterable[str]) -> list[Stage]:
        """Those of the stages that are there."""
        known = self._stages.get(sink, {})
        names = (StageName(sink, epoch, stage_id) for stage_id in dict.fromkeys(stage_ids))
        return [known[name] for name in names if name in known]

    def created_before(self, time_ms: int) -> dict[str, list[Stage]]:
        """Stages that are older than that, by sink."""
        old = {
            sink: [stage for stage in stages.values() if stage.created_ms < time_ms]
            for sink, stages in self._stages.items()
        }
        return {sink: stages for sink, stages in old.items() if stages}

    def draft(self, stage: Stage, entries: memoryview) -> str:
        """Write a stage to the disk under a name that does not count yet; returns that name."""
        folder = _folder(stage.name.sink)
        self._disk.make_folder(folder)
        path = f"{folder}/{next(self._drafts)}{_DRAFT_SUFFIX}"
        head = _HEAD.pack(_MAGIC, 0, stage.created_ms, len(entries))[_CHECKED_FROM:]
        checksum = checksum_of(entries, crc32c(head))
        file = self._disk.open(path)
        try:
            buffers: list[Buffer] = [_HEAD.pack(_MAGIC, checksum, stage.created_ms, len(entries)), entries]
            file.append(buffers)
            file.sync()
        except OSError:
            self._disk.remove(path)
            raise
        finally:
            file.close()
        return path

    def publish(self, draft: str, stage: Stage) -> None:
        """Put a draft under the name that counts, in the place of one of the same name."""
        self._disk.rename(draft, stage.name.path)
        self._disk.sync_folder(_folder(stage.name.sink))

    def drop_draft(self, draft: str) -> None:
        self._disk.remove(draft)

    def note(self, stage: Stage) -> None:
        """A stage is on the disk."""
        self._stages.setdefault(stage.name.sink, {})[stage.name] = stage

    def forget(self, stages: Iterable[Stage]) -> None:
        """These stages are of no use any more; remove their files next."""
        for stage in stages:
            known = self._stages.get(stage.name.sink, {})
            known.pop(stage.name, None)
            if not known:
                self._stages.pop(stage.name.sink, None)

    def remove(self, names: Iterable[StageName]) -> None:
        """Remove files. Should some come back after a power failure, the next start removes them."""
        for name in names:
            self._disk.remove(name.path)

    def remove_sink(self, sink: str) -> None:
        """Remove all that a sink has left. What others have put beside it stays."""
        if sink not in self._disk.list(STAGES_FOLDER):
            return
        foreign = False
        for file_name in self._disk.list(_folder(sink)):
            if _DRAFT.fullmatch(file_name) or _parse(sink, file_name) is not None:
                self._disk.remove(f"{_folder(sink)}/{file_name}")
            else:
                foreign = True
        if not foreign:
            self._disk.remove_tree(_folder(sink))

    def sinks_on_disk(self) -> list[str]:
        """The sinks that have a folder: a name that no sink can have is somebody else's."""
        return [name for name in self._disk.list(STAGES_FOLDER) if _PLAIN_NAME.fullmatch(name)]

    def check(self, stages: Iterable[Stage]) -> None:
        """Read stages from the disk; Corrupt when one is not what was written."""
        for stage in stages:
            self._read(stage.name)

    def read(self, stage: Stage) -> memoryview:
        """The entries of a stage, in a buffer that may be written to."""
        return self._read(stage.name)[1]

    def _read(self, name: StageName) -> tuple[int, memoryview]:
        try:
            file = self._disk.open_existing(name.path)
        except FileNotFoundError as error:
            raise Corrupt(f"{name.path} is gone") from error
        try:
            data = memoryview(bytearray(file.size()))
            for position in range(0, len(data), _READ_BYTES):
                piece = file.read(position, _READ_BYTES)
                data[position : position + len(piece)] = piece
        finally:
            file.close()
        if len(data) < _HEAD.size:
            raise Corrupt(f"{name.path} is cut short")
        magic, checksum, created_ms, size = _HEAD.unpack_from(data)
        entries = data[_HEAD.size :]
        if magic != _MAGIC or size != len(entries) or checksum_of(data[_CHECKED_FROM:]) != checksum:
            raise Corrupt(f"{name.path} does not match its checksum")
        return created_ms, entries


def stage_of(name: StageName, created_ms: int, entries: memoryview) -> Stage:
    """The stage that holds these entries, which have been checked."""
    counts: dict[TopicPartition, int] = {}
    size = 0
    for target, _, body in read_entries(entries):
        counts[target] = counts.get(target, 0) + read_header(body).record_count
        size += len(body)
    return Stage(name, created_ms, size, counts)


def _folder(sink: str) -> str:
    return f"{STAGES_FOLDER}/{sink}"


def _by_name(stage: Stage) -> StageName:
    return stage.name


def _parse(sink: str, file_name: str) -> StageName | None:
    """The stage that a file name speaks of; None for a draft."""
    stem = file_name.removesuffix(_STAGE_SUFFIX)
    epoch, dash, stage_id = stem.partition("-")
    if stem == file_name or not dash or not epoch.isdigit():
        return None
    return StageName(sink, int(epoch), stage_id)


def checksum_of(data: memoryview, checksum: int = 0) -> int:
    """CRC-32C, in pieces."""
    for position in range(0, len(data), _READ_BYTES):
        checksum = crc32c(data[position : position + _READ_BYTES], checksum)
    return checksum
