"""When a query runs: all the time, once over what is there, or every so often."""

import re
from dataclasses import dataclass

from goqueue.model.errors import Invalid

_EVERY = re.compile(r"(?:every\s+)?(\d+)\s*(ms|s|m|h|d)", re.ASCII)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Trigger:
    """When micro-batches are begun."""

    is_bounded: bool
    """What is there at the start is all that is read; then the query is done."""
    every_ms: int = 0
    """The time between two beginnings; 0: the next one right behind the last."""

    def __str__(self) -> str:
        if self.is_bounded:
            return "availableNow"
        return f"every {self.every_ms} ms" if self.every_ms else "continuous"


CONTINUOUS = Trigger(is_bounded=False)
AVAILABLE_NOW = Trigger(is_bounded=True)


def parse_trigger(text: str) -> Trigger:
    """A trigger as people write it: continuous, availableNow, every 5m, or just 60s."""
    if text == "continuous":
        return CONTINUOUS
    if text.lower() == "availablenow":
        return AVAILABLE_NOW
    match = _EVERY.fullmatch(text)
    if match is None or not int(match[1]):
        raise Invalid(f"{text!r} is not a trigger: write continuous, availableNow, or a time like every 5m")
    return Trigger(is_bounded=False, every_ms=int(match[1]) * _UNIT_MS[match[2]])
