"""The keeper of the delays: reads ahead what falls due, and appends it to its partition when it does.

Three tasks share the work. One fires: it appends what is due, at most every 10 ms, and waits for no disk.
One stocks: it brings entries from the disk into the near future, and messages from the log to where the
first finds them. One keeps up: runs, checkpoints, space.

A delivery is told by the partition's own log: its batches bear the keeper's mark as their producer, the last
due time as their largest timestamp, and as sequence number how far the log of `__delayed` was looked at.
Whatever crashes, reading that log from the last checkpoint on tells what has been delivered.

With several nodes the keeper is whoever leads the journal, and asks the leaders of the partitions to append,
a round at a time (`broker/delays/reaching.py`). All else is the same.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from goqueue.broker.delays.arming import keep_up_schedules
from goqueue.broker.delays.deliveries import DELAYED_TOPIC, JOURNAL, Received, note_deliveries
from goqueue.broker.delays.journal import DelayJournal
from goqueue.broker.delays.landings import Landings
from goqueue.broker.delays.reaching import forwarding_of
from goqueue.broker.delays.records import Record, Waiting
from goqueue.broker.delays.rounds import Rounds
from goqueue.broker.delays.stock import FETCH_AHEAD_MS, LOAD_AHEAD_MS, Ready, Stock
from goqueue.broker.delays.store import DelayStore
from goqueue.broker.delays.targets import Target
from goqueue.broker.delays.turns import Turns
from goqueue.broker.delays.upkeep import DelayUpkeep
from goqueue.broker.storage.journal import Journal, Submitted
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.broker.to_the_end import to_the_end
from goqueue.core.delays.near import BEGINNING
from goqueue.model.delays import NoteDeliveries
from goqueue.model.errors import CoordinatorLoading, GoQueueError, StorageFailed, StorageFull
from goqueue.model.ids import TopicName, TopicPartition

if TYPE_CHECKING:  # the broker opens and keeps its delays through this module
    from goqueue.broker.broker import Broker
    from goqueue.broker.storage.partition import Partition

log = logging.getLogger(__name__)

TICK_MS = 10
"""What falls due within so much time is appended together."""
IDLE_MS = 1_000
"""Look at the wall clock at least so often: it may be set forward."""
REST_MS = 3_600_000
ROUND_BYTES = 4 * 1024 * 1024
"""So many bytes are appended before others get their turn on the loop."""
_CHECKPOINT_MS = 5_000
_ANEW_MAX = 5_000
_CLOSE_ENTRIES = 1_000
"""So many entries are read back in no time: not worth a run."""


class Change(NamedTuple):
    """A message that is being cancelled or moved: where it was to go, and when."""

    target: int
    due_ms: int


class DelayKeeper:
    def __init__(
        self,
        broker: "Broker",
        *,
        new_partition: "Callable[[TopicName, int], Partition]",
        open_journal: Callable[[Journal[Record]], Awaitable[None]],
    ) -> None:
        self._broker = broker
        self.journals = JournalSet(
            DELAYED_TOPIC,
            self._new_journal,
            new_partition=new_partition,
            open_journal=open_journal,
            resume=self._resume,
        )
        self._store: DelayStore | None = None
        self.stock: Stock
        self.landings: Landings
        self._rounds: Rounds
        self._upkeep: DelayUpkeep
        self.turns = Turns()
        self.received: dict[TopicPartition, Received] = {}
        """What partitions that this node leads have got, when another node is the keeper."""
        self.changing: dict[int, tuple[Change, asyncio.Future[None]]] = {}
        """Records that are being cancelled or moved: until the disk has it, their target stands still."""
        self._fire_wanted = asyncio.Event()
        self._stock_wanted = asyncio.Event()
        self._upkeep_wanted = asyncio.Event()
        self._next_fire_ms = BEGINNING
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def store(self) -> DelayStore:
        """What is pending. Raises NotCoordinator where another node keeps it."""
        if self._store is None:
            self.journals.numbered(JOURNAL)
            raise CoordinatorLoading("the delayed messages are being read back")
        return self._store

    @property
    def is_here(self) -> bool:
        """Whether this node keeps what is delayed."""
        return self._store is not None

    def _new_journal(self, partition: "Partition") -> DelayJournal[DelayStore]:
        broker = self._broker
        store = DelayStore(
            partition,
            broker.config.delays,
            disk=broker.disk,
            threads=broker.threads,
            is_shared=broker.is_one_of_several,
        )
        return store.journal

    def _resume(self, journal: DelayJournal[DelayStore]) -> None:
        self._store = journal.machine
        self.stock = Stock(journal.machine)
        self.landings = Landings(self._broker, journal.machine, self.stock)
        self._upkeep = DelayUpkeep(journal.machine)
        self._rounds = Rounds(self._broker, journal.machine, self.landings, self._fire_wanted.set)
        self._next_fire_ms = BEGINNING
        if self._broker.is_one_of_several:
            for target in journal.machine.targets.all:
                # Until its leader has told what it got from the keeper before.
                target.is_blocked = target.noted_offset is not None

    async def take_over(
        self, partition: "Partition", read_back: Callable[[Journal[Any]], Awaitable[None]]
    ) -> None:
        """This node is the keeper from now on."""
        self.let_go(partition.source.partition)
        if await self.journals.take_over(partition, read_back) is not None:
            await self.start()

    def let_go(self, number: int) -> None:
        """Another node is, or nobody. What was appended and not answered, the next keeper finds."""
        self.journals.let_go(number)
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if self._store is not None:
            self._rounds.cancel()
        self._store = None
        self.turns.forget_heard()
        self.changing.clear()

    async def start(self) -> None:
        """After a start: learn what has been delivered since the last checkpoint, then begin."""
        store = self.store
        if self._broker.is_one_of_several:
            targets = store.targets.all
            learnt = await asyncio.gather(*map(self.landings.try_to_learn, targets))
            for target, is_learnt in zip(targets, learnt, strict=False):
                target.is_blocked = not is_learnt
        else:
            for target in store.targets.all:
                await self.landings.try_to_learn(target)
        parts = store.parts()
        counts = await self._broker.threads.run(store.count_pending, parts)
        for target, pending in zip(store.targets.all, counts, strict=False):
            target.pending = pending
        if self._store is not store:
            return
        for work in (self._fire_on, self._stock_on, self._keep_up_on):
            task = asyncio.get_running_loop().create_task(work())
            self._broker.keep(task)
            self._tasks.append(task)

    async def rest(self) -> None:
        """Deliver nothing any more."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Spare the next start from reading back entries, and from looking for deliveries."""
        if self._broker.is_one_of_several:
            return  # the next keeper is another node
        await self.store.drain()
        if self.store.is_changed and not self.store.journal.partition.is_failed:
            try:
                if len(self.store.fresh) > _CLOSE_ENTRIES:
                    await self._upkeep.write_run()
                else:
                    await self.store.checkpoint()
            except GoQueueError as error:
                log.warning("delay_checkpoint_failed reason=%s", error)

    @property
    def _is_unused(self) -> bool:
        """There has never been a delayed message: nothing to look after."""
        return not self.store.targets.all

    def submit(self, *records: Record) -> Submitted:
        """Submit records to the journal, and take the messages among them into care."""
        if self._is_unused:
            for event in (self._fire_wanted, self._stock_wanted, self._upkeep_wanted):
                event.set()
        submitted = self.store.journal.submit(*records)
        for offset, record in enumerate(records, submitted.base_offset):
            if isinstance(record, Waiting):
                self._take_in(record, offset)
        self.store.is_changed = True
        return submitted

    def change(
        self, changed: Mapping[int, Change], records: Sequence[Record]
    ) -> "asyncio.Future[None] | None":
        """Submit what cancels or moves messages, by their offsets; the future is done when it is committed.

        Until then their targets stand still. Were something delivered that is due later, and the change lost,
        the message would seem to be delivered too.
        """
        committed = self.submit(*records).committed()
        if committed is not None:
            for offset, change in changed.items():
                self.changing[offset] = (change, committed)
            committed.add_done_callback(lambda _: self._changed(changed))
        return committed

    def stop_and_change(
        self, offset: int, target: Target, records: Sequence[Record]
    ) -> "asyncio.Future[None] | None":
        """The same for one message whose due time is not known."""
        return self.change({offset: Change(target.index, BEGINNING)}, records)

    def _changed(self, changed: Mapping[int, Change]) -> None:
        for offset in changed:
            self.changing.pop(offset, None)

    def _standing(self) -> dict[int, int]:
        """Targets of which something is being changed, and from which due time on they stand still."""
        standing: dict[int, int] = {}
        for change, _ in self.changing.values():
            standing[change.target] = min(change.due_ms, standing.get(change.target, change.due_ms))
        return standing

    def _take_in(self, record: Waiting, offset: int) -> None:
        target = self.store.targets.at(record.topic_id, record.partition)
        if target.noted_offset is None:
            partition = None if self._broker.is_one_of_several else self.landings.partition_of(target)
            if target.scan_offset == 0 and partition is not None and not partition.is_failed:
                # Nothing is delivered there before a checkpoint says so: no use in looking before its end.
                target.scan_offset = partition.log.flushed_offset
            self._stock_wanted.set()
        if self.stock.add(record, offset, target.index) and record.due_ms < self._next_fire_ms:
            self._fire_wanted.set()

    @asynccontextmanager
    async def noted(self, source: TopicPartition) -> AsyncIterator[None]:
        """A partition stands still meanwhile, and all that was delivered to it is in the journal.

        Whoever shortens a partition's log needs this: the log would tell of its deliveries no more. Where
        there are several nodes it stands still for nobody, so what is to go must be chosen before.
        """
        if self._store is None:
            if self._broker.is_one_of_several:
                await self._noted_elsewhere(source)
            yield
            return
        topic = self._broker.metadata.topics.get(source.topic)
        target = self.store.targets.find(topic.topic_id, source.partition) if topic is not None else None
        if target is None or target.noted_offset is None:
            yield
            return
        target.holds += 1
        try:
            partition = self.landings.partition_of(target)
            if partition is not None:
                if self._broker.is_one_of_several:
                    await self._answered(target)
                elif target.is_blocked:
                    # What it has got is known by its log alone.
                    await self.landings.unblock(target)
                else:
                    committed = partition.committed(partition.log.end_offset)
                    if committed is not None:
                        await committed
                if target.told_offset != target.scan_offset:
                    await self._note_if_there_is_room(target)
            yield
        finally:
            target.holds -= 1

    async def _noted_elsewhere(self, source: TopicPartition) -> None:
        await forwarding_of(self._broker, source).run(note_deliveries, NoteDeliveries(target=source))

    async def landed(self, offset: int, target: Target) -> bool:
        """Whether it is known if a message was delivered; if it was on its way, that is waited for first.

        Raises CoordinatorLoading where its partition has not told yet.
        """
        if self._rounds.has_out(offset):
            await self._rounds.over()
            return False
        if target.is_blocked and self._broker.is_one_of_several:
            raise CoordinatorLoading("it is not known yet whether the message was delivered")
        return True

    async def _answered(self, target: Target) -> None:
        """Return when it is known what a partition of another node has got, which gets no more meanwhile."""
        store, landings = self.store, self.landings
        await self._rounds.over()
        if target.is_blocked:
            await landings.unblock_all([target])
        if target.is_blocked or self._store is not store:
            raise CoordinatorLoading("it is not known yet what was delivered")

    async def _note_if_there_is_room(self, target: Target) -> None:
        """On a full disk shortening a log is what helps. A crash may then deliver again what is gone."""
        noted = self.store.note(target)
        try:
            await self.store.journal.submit(noted)
        except StorageFull as error:
            log.warning("deliveries_not_noted reason=%s", error)
        else:
            target.told_offset = noted.scan_offset

    # Firing.

    async def _fire_on(self) -> None:
        while True:
            try:
                wait_ms = self.fire()
            except StorageFailed:
                return  # the journal of the delays is lost: the broker stops
            except GoQueueError as error:
                log.warning("delays_not_fired reason=%s", error)  # another node is the keeper any moment
                wait_ms = IDLE_MS
            await _pause(self._fire_wanted, REST_MS if self._is_unused else wait_ms)

    def fire(self) -> int:
        """Append what is due; returns in how many milliseconds to look again.

        A partition tells by steps what it has got: everything due by a time, of what lay before an offset of
        `__delayed`. What is taken here must fit such a step, which is why some messages are put back.
        """
        if self._rounds.is_under_way:
            return IDLE_MS  # its end is told
        now_ms = self._broker.clock.wall_ms()
        store, stock = self.store, self.stock
        commit_mark = store.journal.commit_mark
        taken: dict[int, list[Ready]] = {}
        later: list[Ready] = []
        standing, is_shared = self._standing(), self._broker.is_one_of_several
        count, size, parted_ms = 0, 0, None
        while (item := stock.take(now_ms)) is not None:
            if count >= self._broker.config.delays.round_max or size >= ROUND_BYTES:
                # The loop is held no longer. Others of this due time may have been taken already: a step that
                # names it would vouch for this one too, so they get a step of their own (`Rounds`).
                parted_ms = item.due_ms
                later.append(item)
                break
            target = store.targets.all[item.target]
            if target.is_gone or target.is_blocked:
                continue
            if is_shared and target.delivered.covers(item.due_ms, item.offset):
                continue  # brought from the disk once more while it was on its way
            if (
                self._stands_still(target)
                # Somebody moves or cancels a message there: what is due from then on waits for the outcome.
                or item.due_ms >= standing.get(item.target, item.due_ms + 1)
                # Not on the disk yet: a power failure could take it back, and its number would be another's.
                or item.offset >= commit_mark
            ):
                later.append(item)
            elif not store.is_dead(item.offset):
                taken.setdefault(item.target, []).append(item)
                count += 1
                size += len(item.waiting.message.value or b"")
        for item in later:
            stock.put_back(item)
        self._rounds.begin(taken, parted_ms, commit_mark)
        if any(item.offset >= commit_mark for item in later):
            self._hurry()
        is_busy = bool(count or later)
        next_ms = stock.next_ready_ms
        wait_ms = IDLE_MS if next_ms is None else min(next_ms - now_ms, IDLE_MS)
        wait_ms = max(wait_ms, TICK_MS if is_busy else 1)
        self._next_fire_ms = BEGINNING if is_busy else now_ms + wait_ms
        return wait_ms

    def _stands_still(self, target: Target) -> bool:
        """Whether nothing may be delivered there just now; no delivery comes before the first checkpoint."""
        return target.holds > 0 or target.noted_offset is None

    def _hurry(self) -> None:
        """What is due waits for the disk: have it committed, however its publisher wanted that."""
        committed = self.store.journal.submit().committed()
        if committed is not None:
            committed.add_done_callback(lambda _: self._fire_wanted.set())

    # Stocking.

    async def _stock_on(self) -> None:
        while True:
            try:
                await self._stock()
            except (OSError, GoQueueError) as error:
                log.warning("delays_not_stocked reason=%s", error)
            await _pause(self._stock_wanted, REST_MS if self._is_unused else self._stock_wait_ms())

    def _stock_wait_ms(self) -> int:
        """Until something has to be fetched or loaded."""
        next_ms = self.stock.next_near_ms
        if next_ms is None:
            return IDLE_MS // 4
        ahead_ms = next_ms - self._broker.clock.wall_ms() - FETCH_AHEAD_MS // 2
        return min(max(ahead_ms, TICK_MS), IDLE_MS // 4)

    async def _stock(self) -> None:
        store, now_ms = self.store, self._broker.clock.wall_ms()
        now_ns = self._broker.clock.monotonic_ns()
        blocked = [each for each in store.targets.all if each.is_blocked and now_ns >= each.blocked_until_ns]
        if blocked and self._broker.is_one_of_several:
            await self.landings.unblock_all(blocked)
        else:
            for target in blocked:
                await self.landings.unblock(target)
        for target in store.targets.all:
            if not target.is_blocked and not target.is_gone and self.landings.partition_of(target) is None:
                self.landings.forget(target)
        await self.stock.load(now_ms)
        await self.stock.fetch(now_ms)
        self._fire_wanted.set()
        if any(target.noted_offset is None for target in store.targets.all):
            if self._broker.is_one_of_several:
                await self.landings.meet_new()
            else:
                await store.checkpoint()
            self._fire_wanted.set()
        keep_up_schedules(self._broker)

    # Keeping up.

    async def _keep_up_on(self) -> None:
        checkpoint_ns = self._broker.clock.monotonic_ns()
        while True:
            await _pause(self._upkeep_wanted, REST_MS if self._is_unused else IDLE_MS)
            store, upkeep = self.store, self._upkeep
            try:
                if upkeep.is_full:
                    await upkeep.write_run()
                    await upkeep.merge_runs()
                expiry_ms = self._broker.config.producer_expiry_ms
                store.marks.expire(before_ms=self._broker.clock.wall_ms() - expiry_ms)
                is_written_anew = upkeep.is_sparse() and await self._write_anew()
                if is_written_anew or upkeep.is_wasteful():
                    await upkeep.reclaim()
                now_ns = self._broker.clock.monotonic_ns()
                if store.is_changed and now_ns - checkpoint_ns >= _CHECKPOINT_MS * 1_000_000:
                    checkpoint_ns = now_ns
                    await store.checkpoint()
            except (OSError, GoQueueError) as error:
                log.warning("delay_upkeep_failed reason=%s", error)

    async def _write_anew(self) -> bool:
        """Bring far-off messages from the beginning of the log to its end, so that what is between can go."""
        store = self.store
        soon_ms = self._broker.clock.wall_ms() + LOAD_AHEAD_MS
        offsets = await self._broker.threads.run(self._upkeep.lowest, store.parts(), _ANEW_MAX)
        found = await self._broker.threads.run(store.read, offsets)
        chosen = {
            offset: waiting
            for offset, waiting in found.items()
            if waiting.due_ms > soon_ms
            and offset not in self.changing
            and store.is_pending(
                store.targets.at(waiting.topic_id, waiting.partition), waiting.due_ms, offset
            )
        }
        if chosen:
            changed = {
                offset: Change(store.targets.at(waiting.topic_id, waiting.partition).index, waiting.due_ms)
                for offset, waiting in chosen.items()
            }
            committed = self.change(changed, list(chosen.values()))
            if committed is not None:
                await to_the_end(committed)
        return bool(chosen)


async def _pause(event: asyncio.Event, wait_ms: int) -> None:
    """Wait so long, or until somebody asks for more."""
    try:
        async with asyncio.timeout(wait_ms / 1000):
            await event.wait()
    except TimeoutError:
        pass
    event.clear()
