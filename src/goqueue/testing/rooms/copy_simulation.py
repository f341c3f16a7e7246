"""Replicas on a simulated machine: frames are taken in, logs are cut and begun anew, whatever the disk does.

A few partitions share a commit log, as on a node. Each is written to as a leader does and as a follower does,
cut to any offset, begun anew at one, and given other messages of a later epoch in the place of those cut.
After each crash a log must be what `CopyHistory` allows.
"""

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from random import Random
from uuid import UUID

from goqueue.broker.storage.cutting import Cutter
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.log.commit_log import COMMIT_FOLDER, CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.errors import GoQueueError, ShuttingDown, StorageFailed, StorageFull, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.settings import KiB, TopicSettings
from goqueue.model.transactions import Marker
from goqueue.records.batch import encode
from goqueue.records.control import encode_marker
from goqueue.records.frame import encode_frame
from goqueue.records.layout import patch, read_header, stamp_producer
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.rooms.copy_history import CopyHistory
from goqueue.testing.rooms.room_simulation import POWER_CUT, POWER_CUT_SHARE
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.machine import Machine, Tell, replayed
from goqueue.testing.world.threads import SimulatedThreads

TOPIC = TopicName("copies")
TOPIC_ID = UUID(int=7)
PARTITIONS = 3
_PRODUCERS = 3
_SIZES = (5, 40, 300, 2_000, 40_000)
_WAITS_MS = (0, 1, 30, 700)
_COMMIT_LOGS = ((4 * KiB, 0), (4 * KiB, 2), (16 * KiB, 4), (64 * KiB, 4))
"""Size of a file, and how many: none, one that is always full, some that are now and then."""
_CUT = Unavailable("it is being cut")


class CopySimulation:
    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self.random = Random(seed)
        self.machine = Machine(seed)
        self.counts: Counter[str] = Counter()
        self.copies = [CopyHistory() for _ in range(PARTITIONS)]
        self.are_made = False
        self.settings = TopicSettings(segment_bytes=self.random.choice((4 * KiB, 100 * KiB)))
        self.steps_left = steps
        self.sequences = Counter[int]()
        self._tell = tell

    def note(self, what: str) -> None:
        self.counts[what] += 1
        if self._tell is not None:
            self._tell(what)

    def run(self) -> Counter[str]:
        while self.steps_left > 0:
            self._live_once(is_last=False)
        self._live_once(is_last=True)
        return self.counts

    def _live_once(self, *, is_last: bool) -> None:
        if self.machine.live(lambda loop: _Life(self, loop).live(is_last=is_last)):
            self.note(POWER_CUT)


class _Life:
    """From one opening of the partitions to their end."""

    def __init__(self, simulation: CopySimulation, loop: SimulatedLoop) -> None:
        self._simulation = simulation
        self._random = simulation.random
        self._note = simulation.note
        self._disk, self._clock = simulation.machine.disk, simulation.machine.clock
        self._answers = Answers(loop, self._disk)
        self._threads = SimulatedThreads(Random(simulation.random.random()))
        file_bytes, files_max = simulation.random.choice(_COMMIT_LOGS)
        self._commit_log = CommitLog(
            self._disk,
            draw_salt=partial(self._random.getrandbits, 64),
            file_bytes=file_bytes,
            files_max=files_max,
        )
        self._flusher = Flusher(self._threads, self._clock, self._commit_log, interval_ms=50)
        self._cutter = Cutter(self._flusher, self._threads)
        self._partitions = [self._new_partition(number) for number in range(PARTITIONS)]
        self._is_doubtful = False

    async def live(self, *, is_last: bool) -> bool:
        if not is_last and self._random.random() < 0.2:
            self._answers.cut_power(after_changes=self._random.randrange(40))
        await self._answers.wait_for(self._open())
        for partition, copy in zip(self._partitions, self._simulation.copies, strict=True):
            copy.check(partition)
            copy.confirmed_end, copy.confirmed_start = copy.end_offset, copy.start_offset
        while not is_last and self._simulation.steps_left > 0 and self._answers.has_power:
            self._simulation.steps_left -= 1
            if self._random.random() < 0.04:
                break
            await self._step()
        is_cut = self._is_doubtful or not self._answers.has_power or self._random.random() < POWER_CUT_SHARE
        if not is_cut and self._random.random() < 0.5:
            await self._answers.wait_for(self._close())
        return is_cut

    async def _open(self) -> None:
        await self._threads.run(self._commit_log.open)
        await self._threads.run(self._commit_log.make_folder)
        for partition in self._partitions:
            await self._threads.run(self._disk.make_folder, partition.folder)
            try:
                await self._threads.run(partial(partition.open, must_exist=self._simulation.are_made))
            except OSError as error:
                raise Violation(f"{partition.source} does not open: {error!r}") from error
        self._simulation.are_made = True
        self._flusher.end_start([])

    async def _close(self) -> None:
        self._note("closed")
        for partition in self._partitions:
            if not partition.is_failed:
                self._flusher.request_snapshot(partition)
        await self._flusher.drain()
        for partition in self._partitions:
            partition.close(ShuttingDown())
        await self._flusher.close()

    def _new_partition(self, number: int) -> Partition:
        partition = Partition(
            TopicPartition(TOPIC, number),
            f"logs/{TOPIC}/{number}",
            self._simulation.settings,
            disk=self._disk,
            clock=self._clock,
            leader_epoch=1,
            on_failure=self._reopen_later,
            topic_id=TOPIC_ID,
            commit_log=self._commit_log,
        )
        partition.flusher = self._flusher
        return partition

    async def _step(self) -> None:
        number = self._random.randrange(PARTITIONS)
        partition, copy = self._partitions[number], self._simulation.copies[number]
        actions = {
            self._take_frames: 30,
            self._append: 8,
            self._commit: 10,
            self._cut: 10,
            self._begin: 3,
            self._move_start: 3,
            self._save_point: 4,
            self._look: 6,
            self._wait: 8,
            self._misfortune: 3,
        }
        (action,) = self._random.choices(list(actions), list(actions.values()))
        try:
            await self._answers.wait_for(action(partition, copy))
        except GoQueueError as error:
            self._note(f"refused: {error.code}")
            demand(self._is_explained(error), f"no fault explains {error!r}")
        self._answers.raise_problems()

    def _is_explained(self, error: GoQueueError) -> bool:
        return isinstance(error, (StorageFailed, StorageFull)) and self._answers.is_in_trouble

    async def _take_frames(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("frames")
        epoch = copy.last_epoch + self._random.choice((0, 0, 0, 1))
        data, offset = bytearray(), copy.end_offset
        # A full disk may keep the first of several steps though all were refused, which is no harm: the
        # leader has them. To know what must be there, one comes at a time then.
        for _ in range(1 if self._answers.is_in_trouble else self._random.randint(1, 4)):
            batches = self._batches()
            for at, (header, body, lane) in enumerate(batches):
                patch(body, base_offset=offset, leader_epoch=max(epoch, 1))
                continues = at < len(batches) - 1
                data += encode_frame(header, body, base_offset=offset, lane=lane, continues=continues)
                data += body
                offset += header.last_offset_delta + 1
        partition.append_frames(memoryview(data))
        copy.add(bytes(data))

    async def _append(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("append")
        partition.leader_epoch = max(copy.last_epoch + self._random.choice((0, 1)), 1)
        base_offset = partition.append(self._batches())
        with suppress(OSError):
            [data] = partition.log.read_steps(base_offset, 1, read_bytes=from_disk).batches
            copy.add(bytes(data))

    def _batches(self) -> list[CheckedBatch]:
        """What is written in one step: of a producer, of its transaction, the end of one, or of nobody."""
        producer_id = self._random.randrange(_PRODUCERS)
        if self._random.random() < 0.15:
            marker = self._random.choice(list(Marker))
            body = encode_marker(
                marker, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1, timestamp_ms=1
            )
            return [CheckedBatch(read_header(body), body, Lane.NORMAL)]
        kind = self._random.randrange(3)
        batches = []
        for _ in range(self._random.choice((1, 1, 2, 3))):
            value = self._random.randbytes(self._random.choice(_SIZES))
            for body, lane in encode(
                [Message(value)] * self._random.randint(1, 2), now_ms=self._clock.wall_ms()
            ):
                if kind:
                    sequence = self._simulation.sequences[producer_id]
                    self._simulation.sequences[producer_id] += 2
                    stamp_producer(
                        body,
                        producer_id=producer_id,
                        producer_epoch=0,
                        base_sequence=sequence,
                        is_transactional=kind == 2,
                    )
                batches.append(CheckedBatch(read_header(body), body, lane))
        return batches

    async def _commit(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("commit")
        end_offset = copy.end_offset
        if (waiter := partition.committed(end_offset)) is not None:
            await waiter
        copy.confirmed_end = max(copy.confirmed_end, end_offset)

    async def _cut(self, partition: Partition, copy: CopyHistory) -> None:
        log = partition.log
        if copy.start_offset < copy.end_offset:
            self._note("cut")
            copy.cutting_to = self._random.randint(log.first_offset, log.end_offset - 1)
            if self._random.random() < 0.4:
                self._fail_soon()
            await self._cutter.cut_to(partition, copy.cutting_to, why=_CUT)
            copy.note_cut()
            copy.check(partition)

    async def _begin(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("begin")
        log = partition.log
        # At the start itself nobody could tell one that was begun anew from one that was cut to nothing.
        copy.cutting_to = self._random.randint(log.start_offset + 1, log.end_offset + 20)
        copy.is_beginning = True
        if self._random.random() < 0.4:
            self._fail_soon()
        await self._cutter.begin_at(partition, copy.cutting_to, why=_CUT)
        copy.note_cut()
        copy.check(partition)

    def _fail_soon(self) -> None:
        """A power cut within the cut, or a sync that fails in it."""
        if self._random.random() < 0.7:
            self._answers.cut_power(after_changes=self._random.randrange(25))
        else:
            self._fail_syncs()

    async def _move_start(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("move start")
        if partition.commit_mark > copy.start_offset:
            copy.start_offset = self._random.randint(copy.start_offset, partition.commit_mark)
            partition.log.move_start(copy.start_offset)

    async def _save_point(self, partition: Partition, copy: CopyHistory) -> None:
        self._note("save point")
        start_offset, end_offset = copy.start_offset, copy.end_offset
        await partition.save_recovery_point()
        copy.confirmed_end = max(copy.confirmed_end, end_offset)
        copy.confirmed_start = max(copy.confirmed_start, start_offset)

    async def _look(self, partition: Partition, copy: CopyHistory) -> None:
        if not self._is_doubtful:
            self._note("look")
            copy.check(partition)

    async def _wait(self, partition: Partition, copy: CopyHistory) -> None:
        await self._answers.sleep(self._random.choice(_WAITS_MS))

    async def _misfortune(self, partition: Partition, copy: CopyHistory) -> None:
        match self._random.randrange(5):
            case 0 | 1:
                self._note("power cut ahead")
                self._answers.cut_power(after_changes=self._random.randrange(30))
            case 2:
                self._fail_syncs()
            case 3:
                self._note("full disk")
                self._answers.break_something()
                self._disk.fill_up(after_bytes=self._random.choice((0, 500, 5_000)))
            case _:
                self._answers.mend()

    def _fail_syncs(self) -> None:
        self._note("failing fsync")
        self._answers.break_something()
        self._is_doubtful = True
        under = f"logs/{TOPIC}/{self._random.randrange(PARTITIONS)}/"
        self._disk.faults.fail_syncs(under=self._random.choice((under, f"{COMMIT_FOLDER}/")))

    def _reopen_later(self, partition: Partition) -> None:
        self._answers.start(self._reopen(partition))

    async def _reopen(self, partition: Partition) -> None:
        while partition.is_failed and self._answers.has_power:
            await self._flusher.wait_under_way()
            try:
                await self._flusher.seal()
                await self._threads.run(partition.reopen)
            except OSError:
                await asyncio.sleep(1)
                continue
            if partition.is_failed:
                partition.resume(leader_epoch=1)
                self._note("reopened")
                self._simulation.copies[partition.source.partition].check(partition)


def simulate_copies(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return CopySimulation(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=copies") from violation
