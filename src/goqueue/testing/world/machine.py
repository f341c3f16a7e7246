"""The machine that simulations share: a disk, a clock, threads and chance, which outlive the broker on it.

A simulation is a row of lives. Each opens the broker on what the last one left of the disk, looks whether
what was promised is there, acts, and ends in a power cut, a kill or an orderly close. The same seed takes the
same steps, so what fails once fails again.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.opening import open_broker
from goqueue.model.settings import BrokerConfig, CommitLogConfig, KiB
from goqueue.testing.rooms.answers import PowerLost
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop, Stalled
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

Tell = Callable[[str], None]
_COMMIT_LOGS = (
    CommitLogConfig(files_max=0),
    CommitLogConfig(file_bytes=4 * KiB, files_max=2),
    CommitLogConfig(file_bytes=16 * KiB, files_max=4),
)
"""None, one that is always full, and one that is now and then."""


class Machine:
    def __init__(self, seed: int) -> None:
        # Chances of their own, so that one call more in the broker does not change what the clients do.
        self._threads = SimulatedThreads(Random(f"threads {seed}"))
        self._chance = Random(f"broker {seed}")
        self._settings_chance = Random(f"settings {seed}")
        self.disk = SimulatedDisk(Random(f"disk {seed}"))
        self.clock = SimulatedClock()

    def open(self, config: BrokerConfig) -> Coroutine[object, object, Broker]:
        """A broker on what the disk holds. Each has the commit log it happens to have."""
        commit_log = self._settings_chance.choice(_COMMIT_LOGS)
        return open_broker(
            config=replace(config, commit_log=commit_log),
            disk=self.disk,
            clock=self.clock,
            threads=self._threads,
            workshop=WorkshopAtHand(),
            chance=self._chance,
        )

    def live(self, life: Callable[[SimulatedLoop], Coroutine[object, object, bool]]) -> bool:
        """Live once, to an end that says whether the power was lost, or may as well have been."""
        loop = SimulatedLoop(self.clock)
        has_lost_power = True
        try:
            has_lost_power = loop.run(life(loop))
        except PowerLost:
            pass
        except Stalled as stalled:
            raise Violation(f"the broker waits for what never comes: {stalled}") from stalled
        finally:
            # The disk dies first: whatever the tasks do in their last moment must change nothing.
            self.disk = self.disk.crash() if has_lost_power else self.disk.kill()
            loop.abandon()
        return has_lost_power


def replayed(violation: Violation, seed: int, steps: int, *more: str) -> Violation:
    """The same with the command that leads to it again."""
    words = " ".join(["make sim", f"SEED={seed}", f"STEPS={steps}", *more])
    return Violation(f"{violation}\nreplay: {words}")
