"""What a storm has seen: misfortunes, messages, checks, and what the broker did against its word.

A violation is one of a few kinds, and tells the facts: what the client had been told, what it found, and the
misfortunes of the seconds before.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

_RECENT = 6
_TOLD_MAX = 5
"""Violations of one kind and feature: more of them are counted."""


class Kind(StrEnum):
    LOST = "lost"
    DOUBLED = "doubled"
    EARLY = "early"
    HIDDEN = "hidden"
    RESURRECTED = "resurrected"
    OUT_OF_ORDER = "out of order"
    OVERRUN = "quota overrun"
    RESTORED_WRONG = "restored wrong"
    UNEXPLAINED = "unexplained"
    """An answer or an end that no misfortune explains."""


@dataclass(frozen=True, slots=True)
class Violation:
    kind: Kind
    feature: str
    facts: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.feature}: {self.facts}"


class Record:
    """Shared by all threads of a storm."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.violation_count = 0
        self.messages: Counter[str] = Counter()
        self.checks: Counter[Kind] = Counter()
        self.misfortunes: Counter[str] = Counter()
        self._told: Counter[tuple[Kind, str]] = Counter()
        self._recent: list[tuple[float, str]] = []
        self._begun_s = time.monotonic()
        self._lock = threading.Lock()

    def befall(self, what: str, *, count: int = 1) -> None:
        """A misfortune strikes now."""
        with self._lock:
            self.misfortunes[what] += count
            self._recent = [*self._recent[1 - _RECENT :], (self.age_s(), what)]

    def count(self, feature: str, messages: int = 1) -> None:
        with self._lock:
            self.messages[feature] += messages

    def check(self, kind: Kind, is_so: bool, feature: str, facts: str, *, count: int = 1) -> bool:
        """Look whether the broker has kept its word; facts tell what a reader needs to see why not."""
        with self._lock:
            self.checks[kind] += count
        if not is_so:
            self.violate(kind, feature, facts)
        return is_so

    def violate(self, kind: Kind, feature: str, facts: str) -> None:
        with self._lock:
            self.violation_count += 1
            before = ", ".join(f"{what} at {at_s:.2f} s" for at_s, what in self._recent)
            told = f"{facts} (at {self.age_s():.2f} s; before: {before or 'nothing'})"
            self._told[kind, feature] += 1
            if self._told[kind, feature] <= _TOLD_MAX:
                self.violations.append(Violation(kind, feature, told))

    def age_s(self) -> float:
        return time.monotonic() - self._begun_s
