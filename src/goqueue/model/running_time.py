"""Running time: what the wall clock said when the broker began, going on at a steady pace from there.

Deadlines are decided by it: whoever sets the wall clock, a lease of three seconds lasts three seconds. What
must outlive the process is journalled in wall time, the only one that goes on meanwhile, and is moved to
running time when it is applied. The two differ by `ahead_ms`, which is 0 until somebody sets the clock.
"""

from goqueue.model.ports import Clock

_STEP_MS = 100
"""A smaller difference is none: the clocks are read one after the other, and NTP bends both alike."""
_US_PER_MS = 1_000
_NS_PER_US = 1_000


class RunningTime:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_us = clock.wall_us()
        self._began_ns = clock.monotonic_ns()
        self._ahead_ms = 0

    def now_ms(self) -> int:
        """Never goes back, and never jumps."""
        passed_us = (self._clock.monotonic_ns() - self._began_ns) // _NS_PER_US
        return (self._began_us + passed_us) // _US_PER_MS

    def ahead_ms(self) -> int:
        """What to add to a wall time to have it in running time."""
        ahead_ms = self.now_ms() - self._clock.wall_ms()
        if abs(ahead_ms - self._ahead_ms) >= _STEP_MS:
            self._ahead_ms = ahead_ms
        return self._ahead_ms

    def ahead_of_ms(self, written_ms: int) -> int:
        """The same for wall times that were written down at `written_ms`.

        If that lies before us, the clock was set back since then: no deadline is further away than it was
        when it was written down.
        """
        return self.ahead_ms() - max(written_ms - self._clock.wall_ms(), 0)
