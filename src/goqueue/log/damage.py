"""Damage: what a recovery point vouches for is not there. No crash does that; a disk or a person did.

A partition that is damaged is not written to, or offsets would be given out a second time. What is there can
be read; what is lost is told to whoever asks for it, until an operator accepts the loss.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    reason: str
    lost: tuple[tuple[int, int], ...] = ()
    """Runs of offsets that were stored and cannot be read: first, and end. Empty: nothing tells how many."""

    @property
    def lost_count(self) -> int:
        return sum(end - first for first, end in self.lost)

    def __str__(self) -> str:
        if not self.lost:
            return self.reason
        runs = ", ".join(f"{first} to {end - 1}" for first, end in self.lost)
        return f"{self.reason}; lost are the offsets {runs}"
