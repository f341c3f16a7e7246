"""A whole broker on a simulated machine, driven from a seed through crashes, and held to its word.

Each life checks that everything promised is there and nothing else, lets clients and misfortunes act, and
ends in a power cut, a kill or an orderly close.
"""

from collections import Counter

from goqueue.log.snapshot import load_snapshots
from goqueue.model.errors import GoQueueError
from goqueue.model.settings import BrokerConfig
from goqueue.testing.rooms.answers import Answers, PowerLost
from goqueue.testing.whole.group_clients import check_groups
from goqueue.testing.whole.life import Fate, Life
from goqueue.testing.whole.misfortunes import folder_of, rot
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.whole.story import Story
from goqueue.testing.whole.witness import check_restart
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.machine import Machine, Tell, replayed

CRASH_WHILE_OPENING_SHARE = 0.2
ROT_SHARE = 0.1
_DOWN_MS = (0, 10, 1_000, 60_000)


def simulate(seed: int, steps: int, *, has_groups: bool = True, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    simulation = Simulation(seed, steps, has_groups=has_groups, tell=tell)
    try:
        return simulation.run()
    except Violation as violation:
        raise replayed(violation, seed, steps, *([] if has_groups else ["ARGS=--no-groups"])) from violation


class Simulation:
    """What outlives the broker's lives: the machine, and the story of what was promised."""

    def __init__(
        self,
        seed: int,
        steps: int,
        *,
        has_groups: bool = True,
        tell: Tell | None = None,
    ) -> None:
        self.story = Story(seed, steps, has_groups=has_groups, tell=tell)
        self._random = self.story.random
        self._machine = Machine(seed)
        self._config = BrokerConfig(
            flush_interval_ms=self._random.choice((50, 200, 1_000)),
            upkeep_interval_ms=self._random.choice((300, 5_000)),
            default_partitions=2,
        )

    def run(self) -> Counter[str]:
        """Live until the steps are used up, and once more to see what is left."""
        while self.story.steps_left > 0:
            self._live_once()
        self._live_once()
        return self.story.counts

    @property
    def disk(self) -> SimulatedDisk:
        return self._machine.disk

    def _live_once(self) -> None:
        ends: list[Fate] = []

        async def live(loop: SimulatedLoop) -> bool:
            ends.append(await self._live(loop))
            return self._loses_power(ends[0])

        has_lost_power = self._machine.live(live)
        [fate] = ends
        self.story.note(fate.value)
        self.story.note_restart(has_lost_power=has_lost_power)
        self._pass_time(fate)
        if self.story.is_chosen(ROT_SHARE):
            self._rot_what_is_vouched_for()

    async def _live(self, loop: SimulatedLoop) -> Fate:
        answers = Answers(loop, self.disk)
        if self.story.is_chosen(CRASH_WHILE_OPENING_SHARE):
            answers.cut_power(after_changes=self._random.randrange(12))
        try:
            broker = await answers.wait_for(self._machine.open(self._config))
            self.disk.faults.heal()
            await answers.wait_for(check_restart(broker, self.story))
            await answers.wait_for(check_groups(broker, self.story))
        except PowerLost:
            return Fate.POWER_CUT
        except GoQueueError as error:
            raise Violation(f"the broker does not start: {error!r}") from error
        life = Life(self.story, broker, self.disk, loop)
        fate = await life.live()
        if fate is Fate.CLOSED:
            fate = await life.close()
        life.note_promises(fate)
        return fate

    def _loses_power(self, fate: Fate) -> bool:
        # After a failed fsync the OS shows bytes that the disk does not hold, and says nothing about it: no
        # process can find out, so only a power cut, which tells the truth, is a fair end.
        is_doubtful = any(partition.is_doubtful for partition in self.story.partitions())
        return fate is Fate.POWER_CUT or is_doubtful or (fate is Fate.CLOSED and self.story.is_chosen(0.5))

    def _pass_time(self, fate: Fate) -> None:
        self._machine.clock.advance_ms(self._random.choice(_DOWN_MS))
        if fate is Fate.POWER_CUT:
            monotonic_ns = self._random.randrange(10**12)
            wall_ms = self._machine.clock.wall_ms()
            self._machine.clock = SimulatedClock(wall_ms=wall_ms, monotonic_ns=monotonic_ns)
        if self.story.is_chosen(0.1):
            self._machine.clock.step_wall_ms(-self._random.randrange(10_000))

    def _rot_what_is_vouched_for(self) -> None:
        """Spoil a frame that a recovery point covers: it must stay, be named when read, and cost no other."""
        partition = self.story.choose_partition()
        if partition is None:
            return
        folder = folder_of(partition.source)
        snapshots = load_snapshots(self.disk, folder.rstrip("/"))
        if not snapshots:
            return
        newest = snapshots[0]
        data = self.disk.read_whole(f"{folder}{newest.segment_base:020d}.log")
        if data is not None and len(data) >= newest.position:
            self.story.note("flipped bit", f"{partition.source} before {newest.end_offset}")
            rot(self._random, self.disk, partition, before_offset=newest.end_offset, may_be_cut=False)
