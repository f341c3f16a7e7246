"""Simulated misfortunes: a disk that fills up, fails or rots, and a power supply that does not last."""

from random import Random

from goqueue.log.commit_log import COMMIT_FOLDER
from goqueue.model.ids import TopicPartition
from goqueue.records.frame import FRAME_BYTES, Frame, scan_frames
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.whole.partition_history import PartitionHistory, Rot
from goqueue.testing.whole.story import Story
from goqueue.testing.world.disk import SimulatedDisk

LOGS_FOLDER = "logs"
_NO_STOP = 2**62


class Misfortunes:
    """What befalls the disk in one life of a broker. Each method is one step."""

    def __init__(self, story: Story, disk: SimulatedDisk, answers: Answers) -> None:
        self._story = story
        self._random = story.random
        self._disk = disk
        self._answers = answers

    async def fill_disk(self) -> None:
        self._answers.break_something()
        room = self._random.choice((0, 100, 3_000))
        self._story.note("full disk", f"in {room} bytes")
        self._disk.fill_up(after_bytes=room)

    async def fail_sync(self) -> None:
        if partition := self._story.choose_partition():
            self._answers.break_something()
            self._story.note("failing fsync", partition.source)
            partition.is_doubtful = True
            self._disk.faults.fail_syncs(under=folder_of(partition.source))

    async def fail_commit(self) -> None:
        """A file of the commit log fails. Another takes its place, and nobody notices."""
        self._story.note("failing commit log")
        self._disk.faults.fail_syncs(under=f"{COMMIT_FOLDER}/")

    async def fail_reads(self) -> None:
        if partition := self._story.choose_partition():
            self._answers.break_something()
            self._story.note("failing reads", partition.source)
            self._disk.faults.fail_reads(self._random.randint(1, 3), under=folder_of(partition.source))

    async def flip_bit(self) -> None:
        if partition := self._story.choose_partition():
            self._story.note("flipped bit", partition.source)
            rot(self._random, self._disk, partition, before_offset=_NO_STOP, may_be_cut=True)

    async def cut_power(self) -> None:
        """The power goes soon, in the middle of something."""
        change_count = self._random.randrange(30)
        self._story.note("power cut ahead", f"in {change_count} changes")
        self._answers.cut_power(after_changes=change_count)

    async def mend(self) -> None:
        """Somebody makes room on the disk, and what has not failed yet will not."""
        if self._answers.has_power:
            self._story.note("mend")
            self._answers.mend()


def rot(
    random: Random, disk: SimulatedDisk, partition: PartitionHistory, *, before_offset: int, may_be_cut: bool
) -> None:
    """Flip a bit in a frame of the partition whose bytes are synced and whose offsets lie before another."""
    folder = folder_of(partition.source)
    frames: list[tuple[str, Frame]] = []
    for name in disk.list(folder):
        stored = disk.stored(f"{folder}{name}")
        if name.endswith(".log") and stored.is_synced:
            scan = scan_frames(memoryview(bytes(stored.content)), stop_offset=before_offset)
            frames += [(f"{folder}{name}", f) for f in scan.frames if f.end_offset <= before_offset]
    if frames:
        chosen = random.randrange(len(frames))
        path, frame = frames[chosen]
        # Batches written in one step are cut together.
        while chosen > 0 and frames[chosen - 1][1].continues:
            chosen -= 1
        earlier_count = frame.base_offset - frames[chosen][1].base_offset
        position = random.randrange(frame.body_start - FRAME_BYTES, frame.body_end)
        disk.flip_bit(path, position, random.randrange(8))
        partition.rotten.append(Rot(range(frame.base_offset, frame.end_offset), may_be_cut, earlier_count))


def folder_of(source: TopicPartition) -> str:
    """Where a partition's files lie, with the slash behind it."""
    return f"{LOGS_FOLDER}/{source.topic}/{source.partition}/"
