"""What a group of a work queue was handed out and has settled, place by place: the model of a queue.

A place is a partition and an offset. It is settled when the broker has said so; it is in doubt when a
settlement was sent and no answer came. Times are those of the storm's own clock: a lease begins at the
earliest when the poll was sent, so it cannot have ended before `sent_s + visibility`.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.storm.record import Kind, Record

Place = tuple[int, int]


class State(Enum):
    OPEN = "open"
    ACKED = "acked"
    REJECTED = "rejected"


@dataclass(slots=True)
class Held:
    """A message that is out, as far as its member knows."""

    place: Place
    receipt: str
    member: str
    until_s: float
    """It is out at least so long, unless it is settled."""
    latest_s: float
    """It is out at most so long."""
    message: Any


@dataclass(slots=True)
class Known:
    key: str
    value: str
    state: State = State.OPEN
    is_doubtful: bool = False
    """A settlement was sent whose answer did not come."""
    deliveries: int = 0
    history: list[str] = field(default_factory=list)


class QueueBook:
    def __init__(
        self, feature: str, record: Record, *, is_key_ordered: bool, keeps_leases: bool = True
    ) -> None:
        """Where leases may be lost, messages may come early; what was settled must not come even then."""
        self.known: dict[Place, Known] = {}
        self.held: dict[Place, Held] = {}
        self._feature = feature
        self._record = record
        self._is_key_ordered = is_key_ordered and keeps_leases
        self._keeps_leases = keeps_leases
        self._open: set[Place] = set()
        self._open_by_key: dict[str, set[Place]] = {}
        self._lost_polls: dict[str, float] = {}
        self._lasts: dict[int, int] = {}

    def published(self, place: Place, key: str, value: str) -> None:
        self._learn(place, key, value).history.append(f"published {self._now()}")

    def poll_lost(self, member: str, *, latest_s: float) -> None:
        """A poll was not answered: the member may have messages that it does not know of, until then."""
        self._lost_polls[member] = latest_s

    def delivered(self, batch: list[Held], *, sent_s: float, received_s: float) -> None:
        """A poll was answered. Checks each message of it."""
        places = {held.place for held in batch}
        for held in batch:
            known = self._learn(held.place, held.message["key"], held.message["value"])
            known.deliveries += 1
            known.history.append(f"to {held.member[-4:]} {self._now()}")
            self._check(
                Kind.RESURRECTED, known.state is State.OPEN, held.place, f"was {known.state.value}, and comes"
            )
            before = self.held.get(held.place)
            self._check(
                Kind.DOUBLED,
                not self._keeps_leases or before is None or known.is_doubtful or received_s >= before.until_s,
                held.place,
                "is handed out while it is out",
            )
            told = held.message["delivery_count"]
            self._check(
                Kind.UNEXPLAINED,
                not self._keeps_leases or told >= known.deliveries,
                held.place,
                f"is delivered as number {told}",
            )
            if self._is_key_ordered and sent_s >= self._lost_polls.get(held.member, 0):
                self._check_key_order(held, places, sent_s)
        for held in batch:
            self.held[held.place] = held

    def settled(self, held: Held, state: State) -> None:
        known = self.known[held.place]
        known.state = state
        known.history.append(f"{state.value} {self._now()}")
        self._forget(held.place)
        self._close(held.place)

    def given_back(self, held: Held) -> None:
        self.known[held.place].history.append(f"given back {self._now()}")
        self._forget(held.place)

    def doubt(self, held: Held, what: str) -> None:
        """A settlement was sent, and nobody knows what became of it."""
        known = self.known[held.place]
        known.is_doubtful = True
        known.history.append(f"{what}? {self._now()}")
        self._close(held.place)

    def refused(self, held: Held, code: str, *, received_s: float) -> None:
        """A settlement was refused: that is right when the lease was over, or in doubt."""
        known = self.known[held.place]
        known.history.append(f"{code} {self._now()}")
        self._check(
            Kind.UNEXPLAINED,
            not self._keeps_leases or known.is_doubtful or received_s >= held.until_s,
            held.place,
            f"{code}, {held.until_s - received_s:.2f} s before the lease could end",
        )
        if code == "already_settled":
            known.is_doubtful = True
            self._close(held.place)
        self._forget(held.place)

    def open_places(self) -> list[Place]:
        """Those that must still come: published, and neither settled nor in doubt."""
        return sorted(self._open)

    @property
    def open_count(self) -> int:
        return len(self._open)

    @property
    def reach(self) -> int:
        """How far, in one partition, from the first place that is open to the last one that is known."""
        firsts: dict[int, int] = {}
        for partition, offset in self._open:
            firsts[partition] = min(firsts.get(partition, offset), offset)
        return max((self._lasts[partition] - first for partition, first in firsts.items()), default=0)

    def story(self, place: Place) -> str:
        known = self.known[place]
        return f"{place} {known.value!r} of key {known.key!r}: {', '.join(known.history[-8:])}"

    def _learn(self, place: Place, key: str, value: str) -> Known:
        known = self.known.get(place)
        if known is None:
            known = self.known[place] = Known(key, value)
            self._open.add(place)
            partition, offset = place
            self._lasts[partition] = max(self._lasts.get(partition, 0), offset)
            self._open_by_key.setdefault(key, set()).add(place)
        if known.value != value:
            self._check(Kind.LOST, False, place, f"{value!r} stands where {known.value!r} was put")
        return known

    def _check_key_order(self, held: Held, batch: set[Place], sent_s: float) -> None:
        """Nothing of a key goes out while an earlier one of it is unsettled and not with the same member."""
        partition, offset = held.place
        earlier = [
            place
            for place in self._open_by_key.get(held.message["key"], ())
            if place[0] == partition and place[1] < offset and place not in batch
            if not self._is_with(held.member, place, sent_s)
        ]
        facts = f"comes before {self.story(min(earlier))}" if earlier else ""
        self._check(Kind.OUT_OF_ORDER, not earlier, held.place, facts)

    def _is_with(self, member: str, place: Place, at_s: float) -> bool:
        held = self.held.get(place)
        return held is not None and held.member == member and at_s < held.latest_s

    def _close(self, place: Place) -> None:
        """It need not come any more."""
        self._open.discard(place)
        self._open_by_key[self.known[place].key].discard(place)

    def _forget(self, place: Place) -> None:
        self.held.pop(place, None)

    def _check(self, kind: Kind, is_so: bool, place: Place, what: str) -> None:
        if is_so:
            self._record.check(kind, True, self._feature, "")
        else:
            self._record.check(kind, False, self._feature, f"{what}: {self.story(place)}")

    def _now(self) -> str:
        return f"{self._record.age_s():.2f}"
