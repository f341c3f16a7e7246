"""repair: look through a data folder that no broker works on, tell what is lost, and make the rest usable.

Looking changes nothing. Repairing keeps every good frame under its offset: where bad bytes lie between them,
a segment becomes several, and the log goes on behind every offset it ever had (ADR 25). What is replaced is
kept in `repair/`, unless it is not wanted. Everything here waits for the disk.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from goqueue.broker.delays.checkpoint import load_checkpoint
from goqueue.broker.delays.runs import Runs
from goqueue.broker.storage.data_folder import CHECKPOINT_FILE, DELAYS_FOLDER, LOGS_FOLDER, is_used
from goqueue.broker.storage.journal import JOURNAL_SETTINGS
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.store_journal import EVENTS, METADATA_TOPIC, Keys
from goqueue.core.cluster.metadata import Metadata
from goqueue.log.commit_log import COMMIT_FOLDER, CommitLog
from goqueue.log.commit_rounds import NO_TOPIC
from goqueue.log.damage import of_another, put_aside
from goqueue.log.inspection import GoodRun, Inspected, InspectedSegment, inspect
from goqueue.log.recovery import find_bases
from goqueue.log.redo import redo
from goqueue.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from goqueue.log.snapshot import load_snapshots, owner_of
from goqueue.model.errors import CommitLogDamaged, Corrupt, GoQueueError
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import is_internal
from goqueue.model.ports import Clock, Disk
from goqueue.model.settings import MiB
from goqueue.records.batch import open_batch
from goqueue.records.frame import scan_frames

log = logging.getLogger(__name__)

REPAIR_FOLDER = "repair"
_SALVAGED = re.compile(r"([0-9]{20}\.log)\.salvaged-([0-9]{20})")
"""The segment to be, and the base offset of the one that its frames lie in."""
_COPY_BYTES = 4 * MiB
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NO_STOP = 2**63 - 1


@dataclass(slots=True)
class RepairedPartition:
    """A partition that is not as it should be."""

    partition: str
    is_journal: bool
    problem: str
    lost: list[tuple[int, int]]
    """First and end offset of each run that cannot be read any more."""
    lost_offsets: int
    bad_bytes: int
    torn_bytes: int
    end_offset: int
    is_repaired: bool = False


@dataclass(slots=True)
class Repair:
    """What was found, and what was done."""

    partitions_looked_at: int = 0
    damaged: list[RepairedPartition] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    """Spoilt files that are made anew with the next start."""
    unknown_topics: list[str] = field(default_factory=list)
    """Folders with messages that the metadata does not know: creating the topic makes them readable again."""
    kept_in: str = ""
    """Where what was replaced lies now."""
    commit_log: str = ""
    """What is wrong with the commit log; what is left of it is used all the same."""
    is_commit_log_repaired: bool = False

    @property
    def is_well(self) -> bool:
        is_log_well = self.is_commit_log_repaired or not self.commit_log
        return is_log_well and all(partition.is_repaired for partition in self.damaged)


def repair(disk: Disk, clock: Clock, *, is_applied: bool, kept_in: str | None) -> Repair:
    """Look through a data folder, and with `is_applied` repair it; old files go to `kept_in`, if anywhere."""
    found = Repair(kept_in=kept_in or "")
    repairing = _Repairing(disk, clock, found, kept_in, is_applied=is_applied)
    journal = TopicPartition(METADATA_TOPIC, 0)
    repairing.open_commit_log()
    repairing.look_at(journal, must_exist=is_used(disk))
    known = _read_metadata(disk, journal)
    repairing.topic_ids = {name: topic.topic_id for name, topic in known.topics.items()}
    expected = {TopicPartition(t.name, n) for t in known.topics.values() for n in range(t.partitions)}
    expected |= {_parsed(name) for name in known.journals if name != COMMIT_FOLDER}
    there = set(_partitions_on_disk(disk))
    for source in sorted(expected | {source for source in there if is_internal(source.topic)}):
        if source != journal:
            repairing.look_at(source, must_exist=source in expected)
    strangers = {s.topic for s in there - expected if not is_internal(s.topic)} - known.deleted.keys()
    found.unknown_topics = sorted(strangers)
    _look_at_delays(disk, found)
    repairing.end_commit_log(is_known=COMMIT_FOLDER in known.journals)
    return found


class _Repairing:
    """The work on one partition after the other."""

    def __init__(
        self, disk: Disk, clock: Clock, found: Repair, kept_in: str | None, *, is_applied: bool
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._found = found
        self._kept_in = kept_in
        self._is_applied = is_applied
        self._commit_log = CommitLog(disk, draw_salt=lambda: 0, file_bytes=0, files_max=0)
        self.topic_ids: dict[TopicName, UUID] = {}

    def open_commit_log(self) -> None:
        """Use what the commit log still has. What a lost round held is lost, unless its partition has it."""
        self._is_log_gone = COMMIT_FOLDER not in self._disk.list("")
        try:
            self._commit_log.check()
        except CommitLogDamaged as damaged:
            self._found.commit_log = str(damaged)
        if self._is_applied:
            self._commit_log.open(is_damage_accepted=True)

    def end_commit_log(self, *, is_known: bool) -> None:
        """All that it has is in the partitions. If it is damaged, the next start begins a new one."""
        if is_known and self._is_log_gone:
            self._found.commit_log = "the folder of the commit log was removed"
        if self._is_applied and self._found.commit_log:
            self._commit_log.make_folder()
            for path in self._commit_log.paths:
                self._put_away(*path.rsplit("/", 1))
            self._disk.sync_folder(COMMIT_FOLDER)
            self._found.is_commit_log_repaired = True

    def _redo(self, source: TopicPartition, folder: str) -> None:
        """Put into a partition what the commit log has of it."""
        pieces = self._commit_log.left_of(folder)
        if not pieces:
            return
        self._disk.make_folder(folder)
        redo(self._disk, folder, self._topic_id(source), pieces)
        for base_offset in find_bases(self._disk, folder):
            file = self._disk.open_existing(f"{folder}/{base_offset:020d}{LOG_SUFFIX}")
            try:
                file.sync()
            finally:
                file.close()
        self._disk.sync_folder(folder)

    def look_at(self, source: TopicPartition, *, must_exist: bool) -> None:
        folder = _folder(source)
        owner = owner_of(load_snapshots(self._disk, folder))
        if owner not in (None, self._topic_id(source)):
            self._look_at_another(source, owner)
            return
        if self._is_applied:
            _finish_earlier(self._disk, folder)
            self._redo(source, folder)
        inspected = inspect(self._disk, folder)
        self._found.partitions_looked_at += 1
        problem = _problem(inspected, must_exist=must_exist)
        if not problem:
            return
        told = RepairedPartition(
            partition=str(source),
            is_journal=is_internal(source.topic),
            problem=problem,
            lost=inspected.lost,
            lost_offsets=sum(end - first for first, end in inspected.lost),
            bad_bytes=inspected.bad_bytes,
            torn_bytes=inspected.torn_bytes,
            end_offset=inspected.end_offset,
        )
        self._found.damaged.append(told)
        # Of a partition without anything only groups know how far it had come: a broker at work accepts that.
        if self._is_applied and (told.is_journal or not inspected.is_absent):
            self._disk.make_folder(folder)
            for segment in inspected.segments:
                if segment.is_spoilt:
                    self._salvage(folder, segment)
            self._accept(source, inspected.end_offset)
            told.is_repaired = True

    def _look_at_another(self, source: TopicPartition, owner: UUID) -> None:
        """Another topic's folder lies in the place of a partition: it is put aside as it is."""
        self._found.partitions_looked_at += 1
        told = RepairedPartition(
            partition=str(source),
            is_journal=is_internal(source.topic),
            problem=of_another(owner).reason,
            lost=[],
            lost_offsets=0,
            bad_bytes=0,
            torn_bytes=0,
            end_offset=0,
        )
        self._found.damaged.append(told)
        if not self._is_applied:
            return
        put_aside(self._disk, _folder(source), owner)
        if told.is_journal:
            self._disk.make_folder(_folder(source))
            self._accept(source, 0)
            told.is_repaired = True

    def _topic_id(self, source: TopicPartition) -> UUID:
        return self.topic_ids.get(source.topic, NO_TOPIC)

    def _salvage(self, folder: str, segment: InspectedSegment) -> None:
        """Put the good frames of a segment into segments of their own, and the old file out of the way."""
        path = f"{folder}/{segment.base_offset:020d}"
        for run in segment.runs:
            target = f"{folder}/{run.first_offset:020d}{LOG_SUFFIX}.salvaged-{segment.base_offset:020d}"
            self._copy(path + LOG_SUFFIX, target, run)
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._disk.remove(path + suffix)
        self._put_away(folder, f"{segment.base_offset:020d}{LOG_SUFFIX}")
        _finish_earlier(self._disk, folder)

    def _copy(self, source: str, target: str, run: GoodRun) -> None:
        self._disk.remove(target)
        old, new = self._disk.open_existing(source), self._disk.open(target)
        try:
            for position in range(run.position, run.end_position, _COPY_BYTES):
                new.append([old.read(position, min(_COPY_BYTES, run.end_position - position))])
            new.sync()
        finally:
            old.close()
            new.close()

    def _put_away(self, folder: str, name: str) -> None:
        # The salvaged files are safe before the old one goes: whoever is interrupted here goes on with them.
        self._disk.sync_folder(folder)
        if self._kept_in is None:
            self._disk.remove(f"{folder}/{name}")
            return
        kept = f"{self._kept_in}/{folder}"
        self._disk.make_folder(kept)
        self._disk.rename(f"{folder}/{name}", f"{kept}/{name}")
        self._disk.sync_folder(kept)

    def _accept(self, source: TopicPartition, end_offset: int) -> None:
        """Open what is left as a start would, and accept what is lost."""
        partition = Partition(
            source,
            _folder(source),
            JOURNAL_SETTINGS,
            disk=self._disk,
            clock=self._clock,
            leader_epoch=0,
            on_failure=lambda _: None,
            topic_id=self._topic_id(source),
        )
        partition.open(must_exist=True)
        if partition.damage is not None:
            partition.accept_loss(end_offset)
        partition.close(Corrupt(f"{source} was repaired"))


def _problem(inspected: Inspected, *, must_exist: bool) -> str:
    if inspected.is_absent:
        return "its folder is gone, or holds nothing of it" if must_exist else ""
    if inspected.bad_bytes:
        return "bytes have gone bad"
    return "bytes that a recovery point vouches for are gone" if inspected.lost else ""


def _finish_earlier(disk: Disk, folder: str) -> None:
    """Give salvaged segments their names: those of this repair, or of one that was interrupted.

    They are ready when the old segment is out of its place. The one that takes its place comes last.
    """
    names = disk.list(folder)
    salvaged = [match for name in reversed(names) if (match := _SALVAGED.fullmatch(name))]
    for match in salvaged:
        if f"{match[2]}{LOG_SUFFIX}" in names:
            disk.remove(f"{folder}/{match[0]}")
        else:
            disk.rename(f"{folder}/{match[0]}", f"{folder}/{match[1]}")
    if salvaged:
        disk.sync_folder(folder)


def _read_metadata(disk: Disk, journal: TopicPartition) -> Metadata:
    """What the good frames of the metadata journal say."""
    metadata, machine = Metadata(), Keys()
    folder = _folder(journal)
    inspected = inspect(disk, folder)
    for segment in inspected.segments:
        file = disk.open_existing(f"{folder}/{segment.base_offset:020d}{LOG_SUFFIX}")
        try:
            for run in segment.runs:
                data = memoryview(file.read(run.position, run.end_position - run.position))
                for frame in scan_frames(data, stop_offset=_NO_STOP).frames:
                    for message in open_batch(data[frame.body_start : frame.body_end], frame.lane):
                        if message.offset >= inspected.start_offset:
                            _apply(machine, message.value or b"")
        finally:
            file.close()
    metadata.load(machine.loaded())
    return metadata


def _apply(machine: Keys, event: bytes) -> None:
    try:
        machine.apply(EVENTS.decode(event))
    except (LookupError, ValueError, msgspec.MsgspecError) as error:
        log.warning("event_skipped reason=%r", error)  # what it built upon is lost


def _partitions_on_disk(disk: Disk) -> Iterator[TopicPartition]:
    for topic in disk.list(LOGS_FOLDER):
        for number in disk.list(f"{LOGS_FOLDER}/{topic}"):
            if _NUMBER.fullmatch(number) and disk.list(f"{LOGS_FOLDER}/{topic}/{number}"):
                yield TopicPartition(TopicName(topic), int(number))


def _look_at_delays(disk: Disk, found: Repair) -> None:
    """What the delays keep beside their log. A start makes it anew by itself: here it is only told."""
    if CHECKPOINT_FILE not in disk.list(DELAYS_FOLDER):
        return
    try:
        checkpoint = load_checkpoint(disk)
    except (Corrupt, msgspec.MsgspecError):
        found.derived.append(f"{DELAYS_FOLDER}/{CHECKPOINT_FILE}")
        return
    for name in checkpoint.runs:
        try:
            Runs(disk, DELAYS_FOLDER).check(name)
        except GoQueueError as error:
            found.derived.append(str(error).partition(" ")[0])


def _folder(source: TopicPartition) -> str:
    return f"{LOGS_FOLDER}/{source.topic}/{source.partition}"


def _parsed(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("/")
    return TopicPartition(TopicName(topic), int(number))
