"""Priorities: a lane comes in the order of the log, and a full queue hands out by its weights."""

import time
from collections import Counter
from random import Random

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Site

TOPIC = "lanes"
GROUP = "sorters"
_LANES = ("critical", "high", "normal", "low", "background")
_VISIBILITY_S = 2
_DRAIN_S = 60
_A_LANE = 60
"""So many messages of each lane make a full queue: more than the weight of any."""
_WEIGHED = 100


class LaneSorter(Actor):
    """One member, one partition: what comes for the first time comes in order."""

    feature = "queue, lanes"
    pause_s = 0.05

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._places: dict[int, tuple[str, str]] = {}
        self._acked: set[int] = set()
        self._doubtful: set[int] = set()
        self._last: dict[str, int] = {}

    def prepare(self) -> None:
        # A lane that has waited for long goes first, which is another rule than the weights'.
        settings: dict[str, str | int] = {"goqueue_retries_max": 1_000, "goqueue_lane_wait_max_ms": 600_000}
        self.door.create_topic(TOPIC, partitions=1, **settings)
        body = {"client_id": "s", "topics": [TOPIC], "mode": "shared", "session_timeout": "30m"}
        self._member = self.door.post(f"/groups/{GROUP}/join", body)["member_id"]

    def step(self) -> None:
        if self.chance.random() < 0.5:
            self._publish([self.chance.choice(_LANES) for _ in range(self.chance.randint(1, 10))])
        else:
            self._take(self.chance.randint(1, 12))

    def verify(self) -> None:
        give_up_s = time.monotonic() + _DRAIN_S
        while self._left() and time.monotonic() < give_up_s:
            self._take(200)
        left = self._left()
        self.check(Kind.HIDDEN, not left, f"{len(left)} messages never came: {sorted(left)[:5]}")
        self._publish([lane for lane in _LANES for _ in range(_A_LANE)])
        lanes = Counter(self._take(_WEIGHED))
        counts = [lanes[lane] for lane in _LANES]
        self.check(Kind.OUT_OF_ORDER, counts == sorted(counts, reverse=True), f"lanes by weight: {counts}")

    def _publish(self, lanes: list[str]) -> None:
        messages = [
            {"value": str(self._next + number), "priority": lane} for number, lane in enumerate(lanes)
        ]
        self._next += len(lanes)
        results = self.door.publish(TOPIC, messages)
        for message, result in zip(messages, results, strict=True):
            if "error" not in result:
                self._places[result["offset"]] = (message["priority"], message["value"])
                self.record.count(self.feature)

    def _take(self, limit: int) -> list[str]:
        query: dict[str, str | int] = {"member_id": self._member, "timeout": "0s", "limit": limit}
        polled = self.door.get(f"/groups/{GROUP}/poll", visibility_timeout=f"{_VISIBILITY_S}s", **query)
        messages = polled["messages"]
        for message in messages:
            offset, lane = message["offset"], message["priority"]
            known = self._places.get(offset, (lane, message["value"]))
            told = (lane, message["value"])
            self.check(Kind.LOST, known == told, f"{known} was put at {offset}; there is {told}")
            self.check(Kind.RESURRECTED, offset not in self._acked, f"{offset} was acknowledged")
            if message["delivery_count"] == 1:
                last = self._last.get(lane, -1)
                self.check(Kind.OUT_OF_ORDER, offset > last, f"{lane}: {offset} comes after {last}")
                self._last[lane] = offset
        receipts = {message["receipt_handle"]: message["offset"] for message in messages}
        if receipts:
            self._doubtful |= set(receipts.values())
            results = self.door.post("/messages/ack", {"receipt_handles": list(receipts)})["results"]
            acked = {receipts[result["receipt_handle"]] for result in results if result["success"]}
            self._acked |= acked
            self._doubtful -= set(receipts.values())
        return [message["priority"] for message in messages]

    def _left(self) -> set[int]:
        return set(self._places) - self._acked - self._doubtful
