"""What befalls the broker: kill -9 between a write and its answer or while it starts, SIGTERM, SIGSTOP."""

import signal
import time
from glob import glob
from pathlib import Path
from random import Random

from tests.integration.running_broker import RunningBroker
from tests.storm.site import Site

_CALM_S = (0.1, 0.1, 0.3, 0.8, 2.0, 6.0)
"""A long one now and then: members of Kafka groups find each other in it."""
_STAND_STILL_S = (0.1, 1.0, 2.5)
_STARTING_S = 0.6
"""While it starts, a kill comes within this time."""


_BUSY = 8
"""So many logs, those that were written to last, are waited for."""
_WRITE_WITHIN_S = 0.3


class Weather:
    """Misfortunes drawn from a seed, one after the other."""

    def __init__(self, broker: RunningBroker, site: Site, chance: Random) -> None:
        self._site = site
        self._broker = broker
        self._record = site.record
        self._chance = chance

    def strike(self) -> None:
        """A while of calm, and then something that the broker has come back from when this returns."""
        time.sleep(self._chance.choice(_CALM_S) * self._chance.random() * 2)
        kinds = {self._kill: 80, self._stop: 8, self._stand_still: 12}
        (kind,) = self._chance.choices(list(kinds), list(kinds.values()))
        self._site.is_up.clear()
        kind()
        self._site.is_up.set()

    def _kill(self) -> None:
        if self._chance.random() < 0.6:
            self._wait_for_a_write()
        self._record.befall("kill -9")
        self._broker.kill()
        while self._chance.random() < 0.35:
            self._record.befall("kill -9 while starting")
            self._broker.launch()
            time.sleep(self._chance.random() * _STARTING_S)
            self._broker.kill()
        self._broker.start()

    def _wait_for_a_write(self) -> None:
        """Until a busy log has grown: something is written then, and most likely not synced or answered."""
        # Unlike Path.glob it passes over what is deleted meanwhile.
        paths = [Path(path) for path in glob(f"{self._broker.folder}/logs/*/*/*.log")]
        logs = sorted(paths, key=_changed_ns)
        if not logs:
            return
        path = self._chance.choice(logs[-_BUSY:])
        changed_ns = _changed_ns(path)
        give_up_s = time.monotonic() + _WRITE_WITHIN_S
        while _changed_ns(path) == changed_ns and time.monotonic() < give_up_s:
            pass

    def _stop(self) -> None:
        self._record.befall("SIGTERM")
        code = self._broker.stop()
        assert code == 0, f"SIGTERM ended the broker with {code}:\n{self._broker.log[-2_000:]}"
        self._broker.start()

    def _stand_still(self) -> None:
        self._record.befall("SIGSTOP")
        self._broker.send(signal.SIGSTOP)
        time.sleep(self._chance.choice(_STAND_STILL_S))
        if self._chance.random() < 0.3:
            # A process that stands still can be killed, too.
            self._kill()
        else:
            self._broker.send(signal.SIGCONT)


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0  # retention has taken it meanwhile
