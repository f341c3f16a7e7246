"""Exactly-once sinks on a simulated machine, through crashes and failing disks: an epoch once or not at all.

A row of lives, as in the simulation of the whole broker. A writer stages rows, replaces stages, commits and
aborts; another run takes its place when a life begins. What was answered must hold. An epoch whose commit
was not answered may be there or not, but not by half, and the sink itself says which.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks.verbs import abort_stages, commit_epoch, stage, take_generation
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import Corrupt, GoQueueError, ShuttingDown, TopicExists, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.sinks import AbortStages, CommitEpoch, StageBatches, TakeGeneration
from goqueue.model.topics import CreateTopic
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.rooms.room_simulation import Habits, RoomLife, RoomSimulation
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.world.machine import Tell

Ending = TypeVar("Ending", CommitEpoch, AbortStages)

TOPIC = TopicName("lake")
SINK = "copy"
PARTITIONS = 3
_WAITS_MS = (0, 1, 50, 700, 6_000)


@dataclass(slots=True)
class _State:
    """What outlives the broker's lives."""

    epoch: int = 0
    """The one under way."""
    staged: dict[str, set[str]] = field(default_factory=dict)
    """Its rows by stage, those that were answered."""
    may_be_committed: bool = False
    """A commit of it was asked for, and not answered with a yes."""
    committed: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    row_count: int = 0

    def rows(self) -> set[str]:
        return set().union(*self.staged.values())

    def begin_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.staged = {}
        self.may_be_committed = False


class SinkSimulation(RoomSimulation):
    what = "sinks"
    habits = Habits(opening_changes=40, end_share=0.06, close_share=0.3, down_ms=(0, 50, 3_000))

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._state = _State()
        super().__init__(seed, steps, tell=tell)

    def choose_config(self) -> BrokerConfig:
        return BrokerConfig(
            flush_interval_ms=self.random.choice((50, 1_000)),
            upkeep_interval_ms=self.random.choice((300, 5_000)),
        )

    def new_life(self, broker: Broker, answers: Answers) -> RoomLife:
        return _Life(self, broker, answers, self._state)


class _Life(RoomLife):
    def __init__(self, simulation: RoomSimulation, broker: Broker, answers: Answers, state: _State) -> None:
        super().__init__(simulation, broker, answers)
        self._state = state
        self._generation = 0

    async def begin(self) -> None:
        with suppress(TopicExists):
            creation = CreateTopic(name=TOPIC, partitions=PARTITIONS)
            await self.answers.wait_for(create_topic(self.broker, creation))
        await self._take_over()
        await self._check_rows()

    async def step(self) -> None:
        actions = {self._stage: 30, self._commit: 25, self._abort: 6, self._wait: 10, self._misfortune: 4}
        (action,) = self.random.choices(list(actions), list(actions.values()))
        try:
            await action()
        except GoQueueError as error:
            self.note(f"refused: {error.code}")
            self._permit(error)
        self.answers.raise_problems()

    async def _take_over(self) -> None:
        """Another run: it learns what became of the epoch under way, and what is staged of it is dropped."""
        state = self._state
        view = await self.answers.wait_for(take_generation(self.broker, TakeGeneration(sink=SINK)))
        self._generation = view.generation
        is_committed = view.last_epoch == state.epoch
        demand(is_committed or view.last_epoch == state.epoch - 1, f"epoch {view.last_epoch} is the last one")
        demand(state.may_be_committed or not is_committed, f"epoch {state.epoch} was committed by nobody")
        if is_committed:
            state.committed |= state.rows()
        else:
            state.dropped |= state.rows()
        state.begin_epoch(view.last_epoch + 1)

    async def _stage(self) -> None:
        state = self._state
        if state.may_be_committed:
            return
        self.note("stage")
        stage_id = f"task-{self.random.randrange(3)}"
        first = state.row_count
        state.row_count += self.random.randrange(1, 6)
        rows = [str(number) for number in range(first, state.row_count)]
        # What it replaces may or may not be there until this is answered, so nobody commits it meanwhile.
        replaced = state.staged.pop(stage_id, set())
        state.dropped |= replaced | set(rows)
        command = StageBatches(
            sink=SINK,
            generation=self._generation,
            epoch=state.epoch,
            stage_id=stage_id,
            entries=memoryview(bytearray(b"".join(self._entry(row) for row in rows))),
        )
        await self.answers.wait_for(stage(self.broker, command))
        state.dropped -= set(rows)
        state.staged[stage_id] = set(rows)

    def _entry(self, row: str) -> bytes:
        target = TopicPartition(TOPIC, int(row) % PARTITIONS)
        [(batch, _)] = encode([Message(row.encode())], now_ms=self.broker.clock.wall_ms())
        return encode_entry(target, self.random.choice((Lane.NORMAL, Lane.LOW)), batch)

    async def _commit(self) -> None:
        state = self._state
        if not state.staged:
            return
        self.note("commit")
        was_asked, state.may_be_committed = state.may_be_committed, True
        ended = await self.answers.wait_for(commit_epoch(self.broker, self._ending(CommitEpoch)))
        demand(was_asked or not ended.is_duplicate, f"epoch {state.epoch} is told as a duplicate")
        state.committed |= state.rows()
        state.begin_epoch(state.epoch + 1)

    async def _abort(self) -> None:
        state = self._state
        if state.may_be_committed or not state.staged:
            return
        self.note("abort")
        command = self._ending(AbortStages)
        # Answered or not, nobody asks for these stages any more.
        state.dropped |= state.rows()
        state.staged = {}
        await self.answers.wait_for(abort_stages(self.broker, command))

    def _ending(self, kind: type[Ending]) -> Ending:
        state = self._state
        return kind(
            sink=SINK, generation=self._generation, epoch=state.epoch, stage_ids=tuple(sorted(state.staged))
        )

    async def _wait(self) -> None:
        await self.answers.sleep(self.random.choice(_WAITS_MS))

    async def _misfortune(self) -> None:
        match self.random.randrange(8):
            case 0 | 1:
                self.cut_power(within_changes=40)
            case 2:
                self.fail_syncs(TOPIC, PARTITIONS)
            case 3:
                self.fill_disk(0, 300, 3_000)
            case 4:
                self.fail_reads(self.random.choice(("stages/", f"logs/{TOPIC}/")))
            case 5:
                self.set_clock(-3_000, -50, 2_000)
            case 6:
                self.stand_still(100, 5_000, 40_000)
            case _:
                self.mend()

    async def _check_rows(self) -> None:
        """Each committed row is there once, and no other; rows of the epoch under way are seen by nobody."""
        shown: Counter[str] = Counter()
        for number in range(PARTITIONS):
            command = ReadMessages(source=TopicPartition(TOPIC, number), limit=100_000)
            found = await self.answers.wait_for(read_messages(self.broker, command))
            shown.update((message.value or b"").decode() for message in found.messages)
        self.note("rows checked", len(shown))
        lost = self._state.committed - shown.keys()
        demand(not lost, f"rows {sorted(lost)} were committed, and are not there")
        twice = [row for row, count in shown.items() if count > 1]
        demand(not twice, f"rows {sorted(twice)} are there more than once")
        back = shown.keys() & self._state.dropped
        demand(not back, f"rows {sorted(back)} were aborted or replaced, and are there")

    def _permit(self, error: GoQueueError) -> None:
        if self.broker.failure.done() and isinstance(error, (ShuttingDown, Unavailable)):
            return
        if isinstance(error, Corrupt) and self.is_doubtful:
            return  # what an fsync that failed has left of a frame
        self.answers.permit(error)


simulate_sinks = SinkSimulation.simulate
