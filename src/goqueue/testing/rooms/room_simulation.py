"""A simulation of one room of the broker: lives of a few steps each, and one more that looks at all of it."""

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.opening import close_broker
from goqueue.log.commit_log import COMMIT_FOLDER
from goqueue.model.errors import GoQueueError
from goqueue.model.settings import BrokerConfig
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.machine import Machine, Tell, replayed

CRASH_WHILE_OPENING_SHARE = 0.2
POWER_CUT = "power cut"
"""As the counts call the end of a life that lost its power."""
POWER_CUT_SHARE = 0.5
"""How often a life that could have ended well loses its power all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How lives of a room come and go."""

    opening_changes: int
    """While it opens, the power may go within so many changes of the disk."""
    end_share: float
    close_share: float
    down_ms: tuple[int, ...]


class RoomSimulation(ABC):
    """What outlives the lives of the broker. A room adds what it remembers, and how it lives."""

    what: str
    """As the command line calls it."""
    habits: Habits

    @classmethod
    def simulate(cls, seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
        """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
        try:
            return cls(seed, steps, tell=tell).run()
        except Violation as violation:
            raise replayed(violation, seed, steps, f"WHAT={cls.what}") from violation

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self.random = Random(seed)
        self.machine = Machine(seed)
        self.counts: Counter[str] = Counter()
        self.has_lost_power = False
        """Whether the last life ended so: what was written and not waited for may be gone."""
        self._steps_left = steps
        self._tell = tell
        self._config = self.choose_config()

    @abstractmethod
    def choose_config(self) -> BrokerConfig:
        """The broker's settings, which are a matter of chance, too."""

    @abstractmethod
    def new_life(self, broker: Broker, answers: Answers) -> "RoomLife": ...

    def pass_time(self, *, is_last: bool) -> None:
        """Between two lives."""
        self.machine.clock.advance_ms(self.random.choice(self.habits.down_ms))

    def note(self, what: str, count: int = 1) -> None:
        self.counts[what] += count
        if self._tell is not None:
            self._tell(what)

    def run(self) -> Counter[str]:
        """Live until the steps are used up, and once more to see what is left."""
        while self._steps_left > 0:
            self._live_once(is_last=False)
        self._live_once(is_last=True)
        return self.counts

    def _live_once(self, *, is_last: bool) -> None:
        self.has_lost_power = self.machine.live(lambda loop: self._live(loop, is_last=is_last))
        if self.has_lost_power:
            self.note(POWER_CUT)
        self.pass_time(is_last=is_last)

    async def _live(self, loop: SimulatedLoop, *, is_last: bool) -> bool:
        answers = Answers(loop, self.machine.disk)
        if not is_last and self.random.random() < CRASH_WHILE_OPENING_SHARE:
            answers.cut_power(after_changes=self.random.randrange(self.habits.opening_changes))
        try:
            broker = await answers.wait_for(self.machine.open(self._config))
        except GoQueueError as error:
            raise Violation(f"the broker does not start: {error!r}") from error
        life = self.new_life(broker, answers)
        await life.begin()
        if is_last:
            await life.finish()
            return False
        while self._steps_left > 0 and answers.has_power and not broker.failure.done():
            self._steps_left -= 1
            if self.random.random() < self.habits.end_share:
                break
            await life.step()
        if answers.has_power and not broker.failure.done() and self.random.random() < self.habits.close_share:
            self.note("closed")
            answers.is_closing = True
            await answers.wait_for(close_broker(broker))
            await answers.drain()
        return life.is_doubtful or not answers.has_power or self.random.random() < POWER_CUT_SHARE


class RoomLife(ABC):
    """One life of the broker, and what the room does in it."""

    def __init__(self, simulation: "RoomSimulation", broker: Broker, answers: Answers) -> None:
        self.random = simulation.random
        self.disk = simulation.machine.disk
        self.note = simulation.note
        self._clock = simulation.machine.clock
        self.broker = broker
        self.answers = answers
        self.is_doubtful = False
        """After a failed fsync only a power cut tells the truth about what the disk holds."""

    @abstractmethod
    async def begin(self) -> None:
        """Look at what the lives before have left."""

    @abstractmethod
    async def step(self) -> None:
        """Do something, or let something happen."""

    async def finish(self) -> None:
        """There are no more steps: see that everything is as it must be, where `begin` has not done so."""
        return

    def cut_power(self, *, within_changes: int) -> None:
        self.note("power cut ahead")
        self.answers.cut_power(after_changes=self.random.randrange(within_changes))

    def fail_syncs(self, topic: str, partitions: int) -> None:
        self.note("failing fsync")
        self.answers.break_something()
        self.is_doubtful = True
        self.disk.faults.fail_syncs(under=f"logs/{topic}/{self.random.randrange(partitions)}/")
        # One file of the commit log: another takes its place.
        self.disk.faults.fail_syncs(under=f"{COMMIT_FOLDER}/")

    def fail_reads(self, under: str) -> None:
        """The next reads of some files fail; what they hold is unharmed."""
        self.note("failing reads")
        self.answers.break_something()
        self.disk.faults.fail_reads(self.random.randint(1, 3), under=under)

    def set_clock(self, *steps_ms: int) -> None:
        """Somebody sets the wall clock, forward or back."""
        self.note("clock set")
        self._clock.step_wall_ms(self.random.choice(steps_ms))

    def stand_still(self, *durations_ms: int) -> None:
        """The process is stopped for a while, as by SIGSTOP: time passes, and every timer is late."""
        self.note("stand still")
        self._clock.advance_ms(self.random.choice(durations_ms))

    def fill_disk(self, *rooms_bytes: int) -> None:
        self.note("full disk")
        self.answers.break_something()
        self.disk.fill_up(after_bytes=self.random.choice(rooms_bytes))

    def mend(self) -> None:
        if self.answers.has_power:
            self.note("mend")
            self.answers.mend()
