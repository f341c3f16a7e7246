"""Log lines about clients, no more of them than a person reads.

What a client does wrong it may do ten thousand times a second. Of each event the first lines are
written, then one every so often; how many were not is told with the next that is, or when the door
looks whether it owes that.
"""

import logging
import time
from collections.abc import Callable, Mapping

LINES_AT_ONCE = 20
"""Of one event, before it is limited."""
SECONDS_A_LINE = 1.0
"""How long an event waits for the right to one more line."""


class _Allowance:
    """What is left of an event's lines: a bucket that fills by itself."""

    __slots__ = ("left", "seen_s", "suppressed")

    def __init__(self, now_s: float) -> None:
        self.left = float(LINES_AT_ONCE)
        self.seen_s = now_s
        self.suppressed = 0

    def take(self, now_s: float) -> bool:
        self.left = min(self.left + (now_s - self.seen_s) / SECONDS_A_LINE, LINES_AT_ONCE)
        self.seen_s = now_s
        if self.left < 1:
            self.suppressed += 1
            return False
        self.left -= 1
        return True


class LimitedLog:
    """A logger for events that clients cause. Events are few and named by us, so their number is bounded."""

    def __init__(self, logger: logging.Logger, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._now_s = now_s
        self._allowances: dict[str, _Allowance] = {}

    def write(
        self,
        level: int,
        event: str,
        fields: Mapping[str, object],
        *,
        error: BaseException | None = None,
    ) -> None:
        """One line, if the event has one left."""
        now_s = self._now_s()
        allowance = self._allowances.get(event)
        if allowance is None:
            allowance = self._allowances[event] = _Allowance(now_s)
        if not allowance.take(now_s):
            return
        told = {**fields, "suppressed": allowance.suppressed} if allowance.suppressed else fields
        allowance.suppressed = 0
        self._logger.log(level, event, exc_info=error, extra=dict(told))

    def tell_suppressed(self) -> None:
        """Tell of lines that were not written and had none behind them."""
        for event, allowance in self._allowances.items():
            if allowance.suppressed:
                fields = {"event": event, "suppressed": allowance.suppressed}
                self._logger.warning("log_lines_suppressed", extra=fields)
                allowance.suppressed = 0
