"""Delayed messages: once, never before their time, never when cancelled, in the order they fall due."""

import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from random import Random

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Away, Refused, Site

PARTITIONS = 2
TOPIC = "later"
_DELAYS_MS = (100, 500, 1_500, 4_000, 9_000)
_DRAIN_S = 45


@dataclass(slots=True)
class Waiting:
    place: tuple[int, int]
    """Its partition and its number among the delayed ones."""
    due_ms: int
    answered_ms: float
    """By then the broker knew of it, with this due time."""
    is_doubtful: bool = False
    """A cancel or a move was sent, and no answer came."""


class DelayedMessages(Actor):
    feature = "delays"
    pause_s = 0.05

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._waiting: dict[int, Waiting] = {}
        self._cancelled: set[int] = set()
        self._unanswered: set[int] = set()
        self._seen: dict[int, int] = {}
        self._ends = [0] * PARTITIONS

    def prepare(self) -> None:
        self.door.create_topic(TOPIC, partitions=PARTITIONS, segment_bytes=65_536)

    def step(self) -> None:
        kinds = {self._publish: 5, self._look: 4, self._cancel: 1, self._move: 1}
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        kind()

    def verify(self) -> None:
        give_up_s = time.monotonic() + _DRAIN_S
        while (left := self._missing()) and time.monotonic() < give_up_s:
            self._look()
            time.sleep(0.1)
        for number in left:
            self.violate(Kind.HIDDEN, f"{number} was due at {self._waiting[number].due_ms}")
        found = self.door.read_all(TOPIC, PARTITIONS)
        counts = Counter(int(message["value"]) for part in found for message in part)
        for number, count in counts.items():
            self.check(Kind.DOUBLED, count == 1, f"{number} is there {count} times")
            self.check(Kind.RESURRECTED, number not in self._cancelled, f"{number} was cancelled")
        for part in found:
            self._check_order([int(message["value"]) for message in part])

    def _check_order(self, numbers: list[int]) -> None:
        """In the order of their due times, but for one that was stored when the next was due already."""
        for first, second in pairwise(numbers):
            before, behind = self._waiting.get(first), self._waiting.get(second)
            if before is None or behind is None or before.is_doubtful or behind.is_doubtful:
                continue
            is_right = before.due_ms <= behind.due_ms or behind.answered_ms >= before.due_ms
            facts = f"{second}, due at {behind.due_ms}, comes behind {first}, due at {before.due_ms}"
            self.check(Kind.OUT_OF_ORDER, is_right, facts)

    def _publish(self) -> None:
        count = self.chance.randint(1, 8)
        numbers = range(self._next, self._next + count)
        self._next = numbers.stop
        messages = [
            {"value": str(number), "delay": f"{self.chance.choice(_DELAYS_MS)}ms"} for number in numbers
        ]
        try:
            results = self.door.publish(TOPIC, messages)
        except Away:
            self._unanswered |= set(numbers)
            raise
        for number, result in zip(numbers, results, strict=True):
            if "error" in result:
                self._unanswered.add(number)
                continue
            place = (result["partition"], result["offset"])
            due_ms = _milliseconds(result["deliverAt"])
            self._waiting[number] = Waiting(place, due_ms, time.time() * 1_000)
            self.record.count(self.feature)

    def _look(self) -> None:
        """Read what has come, and see that none of it is early."""
        for partition in range(PARTITIONS):
            for message in self.door.read(TOPIC, partition, offset=self._ends[partition]):
                self._ends[partition] = message["offset"] + 1
                self._see(int(message["value"]))

    def _see(self, number: int) -> None:
        now_ms = time.time() * 1_000
        self._seen[number] = self._seen.get(number, 0) + 1
        waiting = self._waiting.get(number)
        self.check(Kind.DOUBLED, self._seen[number] == 1, f"{number} has come {self._seen[number]} times")
        self.check(Kind.RESURRECTED, number not in self._cancelled, f"{number} was cancelled")
        if waiting is not None and not waiting.is_doubtful:
            early_ms = waiting.due_ms - now_ms
            self.check(Kind.EARLY, early_ms <= 1, f"{number} has come {early_ms:.0f} ms before it was due")

    def _cancel(self) -> None:
        if (chosen := self._choose()) is None:
            return
        number, waiting = chosen
        partition, offset = waiting.place
        try:
            self.door.ask("DELETE", f"/topics/{TOPIC}/delayed/{partition}/{offset}")
        except Away:
            waiting.is_doubtful = True
            raise
        except Refused as refused:
            assert refused.status == 404, refused
        else:
            self._cancelled.add(number)

    def _move(self) -> None:
        if (chosen := self._choose()) is None:
            return
        _, waiting = chosen
        partition, offset = waiting.place
        body = {"delay": f"{self.chance.choice(_DELAYS_MS)}ms"}
        try:
            moved = self.door.post(f"/topics/{TOPIC}/delayed/{partition}/{offset}/move", body)
        except Away:
            waiting.is_doubtful = True
            raise
        except Refused as refused:
            assert refused.status == 404, refused
        else:
            waiting.due_ms = _milliseconds(moved["deliver_at"])
            waiting.answered_ms = time.time() * 1_000

    def _choose(self) -> tuple[int, Waiting] | None:
        left = [n for n in list(self._waiting)[-200:] if n not in self._seen and n not in self._cancelled]
        if not left:
            return None
        number = self.chance.choice(left)
        return number, self._waiting[number]

    def _missing(self) -> list[int]:
        """Those that must come: whoever was asked to cancel one may have done so."""
        return [
            number
            for number, waiting in self._waiting.items()
            if number not in self._seen and number not in self._cancelled and not waiting.is_doubtful
        ]


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)
