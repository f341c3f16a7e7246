"""Delayed messages on a simulated machine, through crashes: each delivered once, none early, none cancelled.

A row of lives, as in the simulation of the whole broker. What was answered must hold; what was under way
when the power went may have happened or not, but not by half. In the end all disks are well, time passes,
and every message must be where it belongs.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import cancel_delayed, delay_stats, move_delayed
from goqueue.broker.read.read import read_messages
from goqueue.broker.storage.data_folder import DELAYS_FOLDER
from goqueue.broker.topics.verbs import create_topic, delete_records
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish, ReadMessages
from goqueue.model.delays import CancelDelayed, CountDelayed, MoveDelayed, Postponed
from goqueue.model.errors import Corrupt, GoQueueError, NotFound, ShuttingDown, TopicExists, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Lane, Message
from goqueue.model.settings import BrokerConfig, DelayConfig
from goqueue.model.topics import CreateTopic, DeleteRecords
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.rooms.room_simulation import Habits, RoomLife, RoomSimulation
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.machine import Tell

TOPIC = TopicName("later")
PARTITIONS = 2
LATENESS_MS_MAX = 1_500
"""In a life without faults; threads here take up to 40 ms, and a new target waits for a checkpoint."""
_DELAYS_MS = (1, 5, 5, 40, 40, 300, 2_000, 2_000, 30_000, 90_000)
_TAKEN_OVER_SHARE = 0.1
_WAITS_MS = (0, 0, 1, 10, 100, 700, 5_000)


class Place(NamedTuple):
    partition: int
    number: int


@dataclass(slots=True)
class Given:
    """What is known of one message."""

    value: bytes
    due_times: set[int]
    """When it may be due: more than one while a move is unanswered."""
    place: Place | None = None
    is_stored: bool = False
    """The broker said that it is safe."""
    moves: int = 0
    """How many moves may have happened or not."""
    cancels: int = 0
    """How often somebody has tried to cancel it, and may have done so."""
    is_cancelled: bool = False
    may_be_deleted: bool = False
    """Its partition was emptied at a time when it may have been there."""
    is_seen: bool = False
    is_deleted: bool = False
    """It was delivered, and deleted from its partition since: it must not come again."""


@dataclass(slots=True)
class _State:
    """What outlives the broker's lives."""

    messages: dict[bytes, Given] = field(default_factory=dict)
    wall_ms_max: int = 0


class DelaySimulation(RoomSimulation):
    what = "delays"
    habits = Habits(opening_changes=25, end_share=0.04, close_share=0.4, down_ms=(0, 50, 3_000, 60_000))

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._state = _State()
        super().__init__(seed, steps, tell=tell)

    def choose_config(self) -> BrokerConfig:
        return BrokerConfig(
            flush_interval_ms=self.random.choice((50, 1_000)),
            upkeep_interval_ms=self.random.choice((300, 5_000)),
            delays=DelayConfig(
                fresh_max=self.random.choice((3, 20, 1_000)),
                runs_max=self.random.choice((1, 3)),
                wasted_entries_max=self.random.choice((2, 1_000)),
                wasted_bytes_max=self.random.choice((3_000, 1_000_000)),
                round_max=self.random.choice((1, 3, 2_000)),
            ),
        )

    def new_life(self, broker: Broker, answers: Answers) -> RoomLife:
        return _Life(self, broker, answers, self._state)

    def pass_time(self, *, is_last: bool) -> None:
        super().pass_time(is_last=is_last)
        if self.random.random() < _TAKEN_OVER_SHARE:
            # As by a node that has copies of the logs: what lies beside the journal follows from it.
            self.note("taken over")
            self.machine.disk.remove_tree(DELAYS_FOLDER)
        if self.random.random() < 0.15 and not is_last:
            self.note("clock set back")
            clock = self.machine.clock
            self._state.wall_ms_max = max(self._state.wall_ms_max, clock.wall_ms())
            clock.step_wall_ms(-self.random.randrange(5_000))


class _Life(RoomLife):
    def __init__(self, simulation: RoomSimulation, broker: Broker, answers: Answers, state: _State) -> None:
        super().__init__(simulation, broker, answers)
        self._state = state

    async def begin(self) -> None:
        for given in self._state.messages.values():
            if not given.is_stored:
                given.place = None  # it may be lost, and its number another's now
        with suppress(TopicExists):
            await self.answers.wait_for(
                create_topic(self.broker, CreateTopic(name=TOPIC, partitions=PARTITIONS))
            )
        await self.answers.wait_for(self._look())

    async def step(self) -> None:
        actions = {
            self._publish: 30,
            self._cancel: 8,
            self._move: 8,
            self._wait: 30,
            self._look_now: 10,
            self._delete_records: 2,
            self._misfortune: 3,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        await action()
        self.answers.raise_problems()

    async def finish(self) -> None:
        """Let everything fall due, and see that all is as it must be."""
        await self.answers.drain()
        latest_ms = max((max(given.due_times) for given in self._state.messages.values()), default=0)
        await self.answers.sleep(max(latest_ms - self.broker.clock.wall_ms(), 0) + LATENESS_MS_MAX)
        await self.answers.wait_for(self._look())
        for given in self._state.messages.values():
            if given.is_stored and not given.cancels and not given.may_be_deleted:
                where = f"{given.place}, due {given.due_times}"
                demand(given.is_seen, f"{given.value[:8]!r} at {where}, was never delivered")
        left = delay_stats(self.broker, CountDelayed()).pending
        demand(left == 0, f"{left} messages are said to be pending, and none is")

    async def _publish(self) -> None:
        now_ms = self._wall_ms
        messages = []
        for _ in range(self.random.choice((1, 1, 2, 6))):
            value = b"%d:" % len(self._state.messages) + b"x" * self.random.choice((0, 10, 3_000))
            delay_ms = self.random.choice(_DELAYS_MS)
            due_ms = now_ms + delay_ms
            self._state.messages[value] = Given(value, {due_ms})
            lane = self.random.choice((Lane.NORMAL, Lane.NORMAL, Lane.HIGH))
            messages.append(Message(value, lane=lane, due_ms=due_ms))
        acks = self.random.choice((Acks.ALL, Acks.ALL, Acks.LEADER))
        self.note("publish")
        self.answers.start(self._publish_and_note(messages, acks))

    async def _publish_and_note(self, messages: list[Message], acks: Acks) -> None:
        replies = await publish(self.broker, Publish(topic=TOPIC, messages=messages, acks=acks))
        if not self.answers.has_power:
            return
        for message, reply in zip(messages, replies, strict=True):
            given = self._state.messages[message.value or b""]
            if isinstance(reply, Postponed):
                given.place = Place(reply.partition, reply.number)
                given.is_stored = acks is Acks.ALL
            elif isinstance(reply, GoQueueError):
                self._permit(reply)

    async def _cancel(self) -> None:
        if given := self._choose():
            self.note("cancel")
            self.answers.start(self._cancel_and_note(given))

    async def _cancel_and_note(self, given: Given) -> None:
        assert given.place is not None
        partition, number = given.place
        given.cancels += 1
        try:
            await cancel_delayed(self.broker, CancelDelayed(topic=TOPIC, partition=partition, number=number))
        except NotFound:
            if self.answers.has_power and given.cancels == 1:
                given.cancels = 0
            return  # delivered; or cancelled, by somebody who did not hear so
        except GoQueueError as error:
            self._permit(error)
            return
        if self.answers.has_power:
            self.note("cancelled")
            given.is_cancelled = True

    async def _move(self) -> None:
        if (given := self._choose()) and not given.cancels:
            self.note("move")
            due_ms = self._wall_ms + self.random.choice(_DELAYS_MS)
            self.answers.start(self._move_and_note(given, due_ms))

    async def _move_and_note(self, given: Given, due_ms: int) -> None:
        assert given.place is not None
        given.due_times.add(due_ms)
        partition, number = given.place
        given.moves += 1
        try:
            await move_delayed(
                self.broker, MoveDelayed(topic=TOPIC, partition=partition, number=number, due_ms=due_ms)
            )
        except NotFound:
            return
        except GoQueueError as error:
            self._permit(error)
            return
        if self.answers.has_power:
            self.note("moved")
            if given.moves == 1:
                given.moves, given.due_times = 0, {due_ms}

    async def _wait(self) -> None:
        self.note("wait")
        await self.answers.sleep(self.random.choice(_WAITS_MS))

    async def _look_now(self) -> None:
        try:
            await self.answers.wait_for(self._look())
        except GoQueueError as error:
            self._permit(error)

    async def _delete_records(self) -> None:
        partition = self.random.randrange(PARTITIONS)
        self.note("delete records")
        try:
            await self.answers.wait_for(self._look())
            await self.answers.wait_for(
                delete_records(
                    self.broker, DeleteRecords(target=TopicPartition(TOPIC, partition), before_offset=-1)
                )
            )
            if self.disk.faults.capacity_bytes is None:  # on a full disk that cannot be promised
                for given in self._state.messages.values():
                    is_there = given.place is not None and given.place.partition == partition
                    given.is_deleted = given.is_deleted or (is_there and given.is_seen)
        except GoQueueError as error:
            self._permit(error)
        # What was appended between the two was seen by nobody; it may count as delivered.
        for given in self._state.messages.values():
            if given.place is None or given.place.partition == partition:
                is_due = min(given.due_times) <= max(self._wall_ms, self._state.wall_ms_max)
                given.may_be_deleted |= is_due and not given.is_seen

    async def _misfortune(self) -> None:
        which = self.random.randrange(5)
        if which == 0:
            self.cut_power(within_changes=30)
        elif which == 1:
            self.fail_syncs(TOPIC, PARTITIONS)
        elif which == 2:
            self.fill_disk(0, 500, 5_000)
        elif which == 3:
            self.note("clock set")
            self._state.wall_ms_max = max(self._state.wall_ms_max, self._wall_ms)
            self.broker.clock.step_wall_ms(self.random.choice((-3_000, -50, 2_000)))  # type: ignore[attr-defined]  # it is a simulated one
        else:
            self.mend()

    async def _look(self) -> None:
        """Read everything: nothing twice, nothing early, nothing that was cancelled."""
        self._state.wall_ms_max = max(self._state.wall_ms_max, self._wall_ms)
        shown: list[bytes] = []
        for partition in range(PARTITIONS):
            source = TopicPartition(TOPIC, partition)
            log = self.broker.partition(source).log
            offset = log.start_offset
            while offset < log.end_offset:
                found = await read_messages(
                    self.broker, ReadMessages(source=source, offset=offset, limit=1_000)
                )
                shown += [message.value or b"" for message in found.messages]
                if found.next_offset == offset:
                    break
                offset = found.next_offset
        self._state.wall_ms_max = max(self._state.wall_ms_max, self._wall_ms)
        twice = [value[:8] for value, count in Counter(shown).items() if count > 1]
        demand(not twice, f"delivered twice: {twice}")
        for value in shown:
            given = self._state.messages.get(value)
            if given is None:
                raise Violation(f"{value!r} is shown, which nobody has written")
            demand(not given.is_cancelled or given.is_seen, f"{value[:8]!r} was cancelled, and delivered")
            demand(not given.is_deleted, f"{value[:8]!r} was deleted, and is delivered again")
            early_ms = min(given.due_times) - self._state.wall_ms_max
            demand(early_ms <= 0, f"{value[:8]!r} is delivered {early_ms} ms early")
            given.is_seen = True

    def _choose(self) -> Given | None:
        """A message that may still be pending."""
        placed = [
            g for g in self._state.messages.values() if g.place and not g.is_seen and not g.is_cancelled
        ]
        return self.random.choice(placed) if placed else None

    def _permit(self, error: GoQueueError) -> None:
        if self.broker.failure.done() and isinstance(error, (ShuttingDown, Unavailable)):
            return
        if isinstance(error, Corrupt) and self.is_doubtful:
            return  # what an fsync that failed has left of a frame
        self.answers.permit(error)

    @property
    def _wall_ms(self) -> int:
        return self.broker.clock.wall_ms()


simulate_delays = DelaySimulation.simulate
