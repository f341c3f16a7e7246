"""A client in a storm: it works, remembers what it was told, and in the end looks whether that is true."""

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import TypeVar

from tests.storm.record import Kind
from tests.storm.site import Away, Door, Site

T = TypeVar("T")
_ANSWERED_WITHIN_S = 30
"""In fine weather."""


class Actor(ABC):
    """One thread of work. A step is short, and may end in `Away` at any point."""

    feature: str
    """As the table of the storm calls it."""
    pause_s = 0.02
    """Between two steps: how hard it works."""

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        self.site = site
        self.record = site.record
        self.chance = chance
        self.door = Door(site, self.feature)
        self._pause_s = self.pause_s * pace

    @abstractmethod
    def prepare(self) -> None:
        """Make what it needs, while the weather is still fine."""

    @abstractmethod
    def step(self) -> None: ...

    def come_to_rest(self) -> None:
        """The weather is fine again: finish what is under way, so that others can look at it."""
        return

    @abstractmethod
    def verify(self) -> None:
        """All have come to rest: bring everything to its end, and check it."""

    def run(self) -> None:
        """Work until the storm is over."""
        while not self.site.is_over.is_set():
            self.guarded(self.step)
            time.sleep(self._pause_s)

    def rest(self) -> None:
        self.guarded(self.come_to_rest)

    def finish(self) -> None:
        self.guarded(self.verify)

    def end(self) -> None:
        self.guarded(self.close)

    def close(self) -> None:
        self.door.close()

    def guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Away as away:
            if self.site.is_over.is_set():
                self.violate(Kind.UNEXPLAINED, f"no answer in fine weather: {away}")
            self.site.wait_until_back()
        except Exception:
            self.violate(Kind.UNEXPLAINED, traceback.format_exc(limit=-6))
            time.sleep(1)

    def until_answered(self, work: Callable[[], T]) -> T:
        """What comes of something that may be done twice; for fine weather.

        The last of several nodes may still come back to their places then, so that nobody knows whether it
        was done: it is asked for again, and not for long.
        """
        give_up_s = time.monotonic() + _ANSWERED_WITHIN_S
        while True:
            try:
                return work()
            except Away:
                if time.monotonic() > give_up_s:
                    raise
                time.sleep(0.2)

    def check(self, kind: Kind, is_so: bool, facts: str) -> bool:
        return self.record.check(kind, is_so, self.feature, facts)

    def violate(self, kind: Kind, facts: str) -> None:
        self.record.violate(kind, self.feature, facts)
