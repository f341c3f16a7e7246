"""How often a group was assigned anew, why, and how long it took. Counted since the broker began."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Rebalances:
    """A rebalance begins with a generation and ends when everybody has what it is to have in it.

    One that is overtaken by the next ends with it.
    """

    total: int = 0
    successful: int = 0
    failed: int = 0
    partitions_revoked: int = 0
    partitions_assigned: int = 0
    revocation_timeouts: int = 0
    duration_ns: int = 0
    last_duration_ns: int = 0
    last_ns: int | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    _under_way: int = 0
    _begun_ns: int = 0
    _is_forced: bool = False

    def begin(self, reason: str, now_ns: int) -> None:
        self.total += 1
        self.reasons[reason] += 1
        self.last_ns = now_ns
        if not self._under_way:
            self._begun_ns, self._is_forced = now_ns, False
        self._under_way += 1

    def force(self) -> None:
        """A member had to be made to let go."""
        self.revocation_timeouts += 1
        self._is_forced = True

    def finish(self, now_ns: int) -> None:
        """Everybody has what it is to have."""
        if not self._under_way:
            return
        if self._is_forced:
            self.failed += self._under_way
        else:
            self.successful += self._under_way
        self.last_duration_ns = now_ns - self._begun_ns
        self.duration_ns += self.last_duration_ns * self._under_way
        self._under_way = 0

    @property
    def last_duration_ms(self) -> int:
        return self.last_duration_ns // _NS_PER_MS

    @property
    def average_duration_ms(self) -> float:
        finished = self.successful + self.failed
        return self.duration_ns / finished / _NS_PER_MS if finished else 0.0


def summed(all_of_them: Iterable[Rebalances]) -> Rebalances:
    """The counts of several groups in one."""
    total = Rebalances()
    for one in all_of_them:
        total.total += one.total
        total.successful += one.successful
        total.failed += one.failed
        total.partitions_revoked += one.partitions_revoked
        total.partitions_assigned += one.partitions_assigned
        total.revocation_timeouts += one.revocation_timeouts
        total.duration_ns += one.duration_ns
        total.reasons += one.reasons
        if one.last_ns is not None and (total.last_ns is None or one.last_ns >= total.last_ns):
            total.last_ns, total.last_duration_ns = one.last_ns, one.last_duration_ns
    return total
