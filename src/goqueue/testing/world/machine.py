"""The machine that simulations share: a disk, a clock, threads and chance, which outlive the broker on it.

A simulation is a row of lives. Each opens the broker on what the last one left of the disk, looks whether
what was promised is there, acts, and ends in a power cut, a kill or an orderly close. The same seed takes the
same steps, so what fails once fails again.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from random import Random

from goqueue.broker.backup.whole.bringing_back import bring_back
from goqueue.broker.backup.whole.catalogue import Catalogue
from goqueue.broker.backup.whole.copying import Copying
from goqueue.broker.backup.whole.disk_objects import WHOLE_FOLDER, DiskObjects
from goqueue.broker.backup.whole.verbs import take_cut
from goqueue.broker.broker import Broker
from goqueue.broker.opening import open_broker
from goqueue.model.errors import GoQueueError
from goqueue.model.ports import Disk
from goqueue.model.settings import BrokerConfig, CommitLogConfig, KiB
from goqueue.testing.rooms.answers import PowerLost
from goqueue.testing.whole.partition_history import Violation
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.faults import PowerCut
from goqueue.testing.world.loop import SimulatedLoop, Stalled
from goqueue.testing.world.threads import SimulatedThreads
from goqueue.testing.world.workshop import WorkshopAtHand

_BACKUP_SHARE = 0.3
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
        self._backup_chance = Random(f"backups {seed}")
        self.disk = SimulatedDisk(Random(f"disk {seed}"))
        self.clock = SimulatedClock()
        self._broker: Broker | None = None
        self.brought_back = 0
        """How often a backup took the place of what a power cut would have left."""

    async def open(self, config: BrokerConfig) -> Broker:
        """A broker on what the disk holds. Each has the commit log it happens to have."""
        commit_log = self._settings_chance.choice(_COMMIT_LOGS)
        self._broker = None
        self._broker = await open_broker(
            config=replace(config, commit_log=commit_log),
            disk=self.disk,
            clock=self.clock,
            threads=self._threads,
            workshop=WorkshopAtHand(),
            chance=self._chance,
        )
        return self._broker

    def live(self, life: Callable[[SimulatedLoop], Coroutine[object, object, bool]]) -> bool:
        """Live once, to an end that says whether the power was lost, or may as well have been."""
        loop = SimulatedLoop(self.clock)
        has_lost_power = True
        has_ended = False
        try:
            has_lost_power = loop.run(life(loop))
            has_ended = True
        except PowerLost:
            pass
        except Stalled as stalled:
            raise Violation(f"the broker waits for what never comes: {stalled}") from stalled
        finally:
            # The disk dies first: whatever the tasks do in their last moment must change nothing.
            backup = self._backed_up() if has_lost_power and has_ended else None
            left = self.disk.crash() if has_lost_power else self.disk.kill()
            self.disk = left if backup is None else backup
            loop.abandon()
        return has_lost_power

    def _backed_up(self) -> SimulatedDisk | None:
        """Now and then a backup of this moment, brought back: no less than a power cut would leave."""
        broker = self._broker
        if broker is None or not broker.is_open or self._backup_chance.random() > _BACKUP_SHARE:
            return None
        target = SimulatedDisk(self.disk.random)
        try:
            copy_whole(broker, target)
        except (OSError, GoQueueError, PowerCut):
            return None  # the disk has failed or is full, which no backup mends; or the power was lost now
        self.brought_back += 1
        return target


def copy_whole(broker: Broker, target: Disk) -> None:
    """All that a broker holds at this moment, as its whole backup brings it back elsewhere."""
    for partition in broker.all_partitions():
        partition.admit_read()
    catalogue = Catalogue(DiskObjects(broker.disk, WHOLE_FOLDER), None)
    copying = Copying(broker.disk, catalogue, take_cut(broker, "backup"))
    for _ in copying.steps():
        pass
    assert copying.manifest is not None, "all steps were taken"
    bring_back(catalogue, copying.manifest, target, lambda _: None)


def replayed(violation: Violation, seed: int, steps: int, *more: str) -> Violation:
    """The same with the command that leads to it again."""
    words = " ".join(["make sim", f"SEED={seed}", f"STEPS={steps}", *more])
    return Violation(f"{violation}\nreplay: {words}")
