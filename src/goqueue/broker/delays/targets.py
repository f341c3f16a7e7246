"""The partitions that delayed messages go to, and what each has got of them."""

from dataclasses import dataclass, field
from uuid import UUID

from goqueue.core.delays.delivered import Delivered


@dataclass(slots=True)
class Target:
    """A partition that delayed messages go to."""

    index: int
    topic_id: UUID
    partition: int
    delivered: Delivered = field(default_factory=Delivered)
    """Appended to the partition's log."""
    confirmed: Delivered = field(default_factory=Delivered)
    """Safe in the partition's log."""
    scan_offset: int = 0
    """Every delivery before this offset of that log is confirmed."""
    noted_offset: int | None = None
    """The scan offset that the last checkpoint tells; None: no checkpoint speaks of this target yet."""
    told_offset: int = 0
    """The scan offset that the journal tells, which is enough without a checkpoint."""
    pending: int = 0
    is_gone: bool = False
    """The topic was deleted."""
    is_blocked: bool = False
    """Its log has failed or is full: what is delivered is to be looked up anew."""
    blocked_until_ns: int = 0
    holds: int = 0
    """How many wait for it to stand still."""


class Targets:
    """All targets. An entry of a delayed message names its target by its place in the list."""

    def __init__(self) -> None:
        self.all: list[Target] = []
        self._by_place: dict[tuple[UUID, int], Target] = {}

    def at(self, topic_id: UUID, partition: int) -> Target:
        """The target of that place, noted now if it is new."""
        target = self._by_place.get((topic_id, partition))
        if target is None:
            target = Target(len(self.all), topic_id, partition)
            self.all.append(target)
            self._by_place[topic_id, partition] = target
        return target

    def find(self, topic_id: UUID, partition: int) -> Target | None:
        return self._by_place.get((topic_id, partition))

    @property
    def pending(self) -> int:
        """How many messages wait, for all of them together."""
        return sum(target.pending for target in self.all)
