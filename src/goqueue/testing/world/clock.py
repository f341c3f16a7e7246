"""A clock that moves only when told to."""

from goqueue.model.ports import Clock

NS_PER_MS = 1_000_000
SOME_DAY_MS = 1_750_000_000_000


class SimulatedClock(Clock):
    """Wall and monotonic time that advance together; only the wall can be set back, as by an operator."""

    def __init__(self, *, wall_ms: int = SOME_DAY_MS, monotonic_ns: int = 0) -> None:
        self._wall_ns = wall_ms * NS_PER_MS
        self._monotonic_ns = monotonic_ns

    def wall_ms(self) -> int:
        return self._wall_ns // NS_PER_MS

    def wall_us(self) -> int:
        return self._wall_ns // 1_000

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def cpu_ns(self) -> int:
        return self._monotonic_ns

    def advance_ns(self, duration_ns: int) -> None:
        """Let time pass. A loop with timers should do this itself, so that none is passed over."""
        assert duration_ns >= 0, "time does not run backwards"
        self._wall_ns += duration_ns
        self._monotonic_ns += duration_ns

    def advance_ms(self, duration_ms: int) -> None:
        self.advance_ns(duration_ms * NS_PER_MS)

    def step_wall_ms(self, step_ms: int) -> None:
        """Set the wall clock forward or back, as NTP or a person would; monotonic time does not notice."""
        self._wall_ns += step_ms * NS_PER_MS


class SkewedClock(Clock):
    """One of several clocks: time passes alike for all, but this one's wall shows another hour."""

    def __init__(self, clock: Clock, *, skew_ms: int) -> None:
        self._clock = clock
        self._skew_ms = skew_ms

    def wall_ms(self) -> int:
        return self._clock.wall_ms() + self._skew_ms

    def wall_us(self) -> int:
        return self._clock.wall_us() + self._skew_ms * 1_000

    def monotonic_ns(self) -> int:
        return self._clock.monotonic_ns()

    def cpu_ns(self) -> int:
        return self._clock.cpu_ns()
