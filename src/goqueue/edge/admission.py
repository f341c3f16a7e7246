"""How many connections a door has open, in all and from one address.

Each takes a descriptor and memory, and without a bound one client that forgets to close its own keeps
all others out. Whoever is too much is hung up on at once and counted.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from goqueue.model.settings import require


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    connections_max: int = 10_000
    per_address_max: int = 5_000
    """Half of all: one address cannot keep the others out."""

    def __post_init__(self) -> None:
        require(self.connections_max > 0, "a door must have room for a connection")
        require(self.per_address_max > 0, "an address must have room for a connection")


STRANGERS_PER_ADDRESS_MAX = 500
"""Connections of one address that have not said who they are: each may take its time, so they are few."""


class Refusal(Enum):
    FULL = "full"
    ADDRESS_FULL = "address_full"
    STRANGERS_FULL = "strangers_full"
    """Too many of the address have not said yet who they are."""


class Admission:
    """The connections of one door, by address."""

    def __init__(self, limits: ConnectionLimits, door: str, refused: Counter[tuple[str, str]]) -> None:
        self._limits = limits
        self._door = door
        self._refused = refused
        for refusal in Refusal:
            refused[door, refusal.value] += 0  # what has not happened yet is told, too
        self._open: Counter[str] = Counter()
        self._strangers: Counter[str] = Counter()
        self.count = 0

    def enter(self, address: str, *, is_stranger: bool = False) -> Refusal | None:
        """Let one more in; what stands against it, if something does. A stranger is one until `know`."""
        if self.count >= self._limits.connections_max:
            return self._refuse(Refusal.FULL)
        if self._open[address] >= self._limits.per_address_max:
            return self._refuse(Refusal.ADDRESS_FULL)
        if is_stranger:
            if self._strangers[address] >= STRANGERS_PER_ADDRESS_MAX:
                return self._refuse(Refusal.STRANGERS_FULL)
            self._strangers[address] += 1
        self._open[address] += 1
        self.count += 1
        return None

    def know(self, address: str) -> None:
        """A stranger that was let in has said who it is, or is gone."""
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]

    def leave(self, address: str) -> None:
        """One that was let in is gone."""
        self.count -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def _refuse(self, refusal: Refusal) -> Refusal:
        self._refused[self._door, refusal.value] += 1
        return refusal
