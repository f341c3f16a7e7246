"""A work queue in key order: poll, ack, nack, reject, extend, let run out; dead letters and their return."""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tests.storm.actor import Actor
from tests.storm.actors.queue_book import Held, QueueBook, State
from tests.storm.record import Kind
from tests.storm.site import Away, Refused, Site, by_places

PARTITIONS = 2
TOPIC = "work"
GROUP = "workers"
_MEMBERS = 3
_KEYS = 12
_VISIBILITY_S = 3
_EXTENSION_S = 5
_DRAIN_S = 90
_OPEN_MAX = 400
_REACH_MAX = 80
"""Where topics keep little, nobody publishes so far ahead of what is open that retention would take that."""


class QueueWorkers(Actor):
    feature = "queue, key order"

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._book = QueueBook(self.feature, self.record, is_key_ordered=True, keeps_leases=site.keeps_leases)
        self._next = 0
        self._members: list[str] = []

    def prepare(self) -> None:
        settings: dict[str, str | int] = {"goqueue_retries_max": 1_000, "goqueue_retry_backoff_ms": 200}
        self.door.create_topic(TOPIC, partitions=PARTITIONS, segment_bytes=65_536, **settings)
        for number in range(_MEMBERS):
            body = {"client_id": f"w{number}", "topics": [TOPIC], "mode": "shared", "key_order": True}
            joined = self.door.post(f"/groups/{GROUP}/join", body | {"session_timeout": "30m"})
            self._members.append(joined["member_id"])

    def step(self) -> None:
        kinds: dict[Callable[[], object], float] = {
            self._publish: 4,
            self._poll: 5,
            self._settle: 8,
            self._redrive: 0.1,
        }
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        kind()

    def verify(self) -> None:
        self._redrive_all()
        give_up_s = time.monotonic() + _DRAIN_S
        while self._lag() and time.monotonic() < give_up_s:
            for member in self._members:
                self.until_answered(partial(self._poll, member, limit=100))
                self.until_answered(lambda: self._settle_all("ack", list(self._book.held.values())))
        left = self._book.open_places()
        stories = "; ".join(self._book.story(place) for place in left[:3])
        self.check(Kind.HIDDEN, not left, f"{len(left)} messages never came in {_DRAIN_S} s: {stories}")
        self.check(Kind.HIDDEN, self._lag() == 0, f"the group's lag is {self._lag()} when all is settled")
        self._check_log()

    def _publish(self) -> None:
        is_ahead = bool(self.site.topic_settings) and self._book.reach > _REACH_MAX
        if self._book.open_count > _OPEN_MAX or is_ahead:
            return
        numbers = range(self._next, self._next + self.chance.randint(1, 10))
        self._next = numbers.stop
        keys = {number: f"k{self.chance.randrange(_KEYS)}" for number in numbers}
        messages = [{"value": str(number), "key": keys[number]} for number in numbers]
        results = self.door.publish(TOPIC, messages, acks=self.chance.choice(self.site.acks_kept))
        for number, result in zip(numbers, results, strict=True):
            if "error" not in result:
                place = (result["partition"], result["offset"])
                self._book.published(place, keys[number], str(number))
                self.record.count(self.feature)

    def _poll(self, member: str | None = None, *, limit: int = 0) -> None:
        member = member or self.chance.choice(self._members)
        query: dict[str, str | int] = {
            "member_id": member,
            "timeout": self.chance.choice(("0s", "0s", "100ms")),
            "visibility_timeout": f"{_VISIBILITY_S}s",
            "limit": limit or self.chance.randint(1, 15),
        }
        sent_s = time.monotonic()
        try:
            messages = self.door.get(f"/groups/{GROUP}/poll", **query)["messages"]
        except Away:
            self._book.poll_lost(member, latest_s=time.monotonic() + _VISIBILITY_S)
            raise
        received_s = time.monotonic()
        until_s, latest_s = sent_s + _VISIBILITY_S, received_s + _VISIBILITY_S
        batch = [
            Held((m["partition"], m["offset"]), m["receipt_handle"], member, until_s, latest_s, m)
            for m in messages
        ]
        self._book.delivered(batch, sent_s=sent_s, received_s=received_s)

    def _settle(self) -> None:
        if not self._book.held:
            return
        held = list(self._book.held.values())
        chosen = self.chance.sample(held, min(len(held), self.chance.randint(1, 8)))
        reject = 4 if self.site.has_dead_letters else 0
        kinds = {"ack": 70, "nack": 12, "reject": reject, "visibility": 8, "": 6}
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        if kind == "":
            return  # its consumer has died, and the leases run out
        self._settle_all(kind, chosen)

    def _settle_all(self, kind: str, chosen: list[Held]) -> None:
        if not chosen:
            return
        body: dict[str, Any] = {"receipt_handles": [held.receipt for held in chosen]}
        body |= {
            "nack": {"delay": self.chance.choice(("0s", "300ms", "2s"))},
            "visibility": {"timeout": f"{_EXTENSION_S}s"},
        }.get(kind, {})
        sent_s = time.monotonic()
        try:
            results = self.door.post(f"/messages/{kind}", body)["results"]
        except Away:
            for held in chosen:
                self._book.doubt(held, kind)
            raise
        received_s = time.monotonic()
        for held, result in zip(chosen, results, strict=True):
            self._note(kind, held, result, sent_s, received_s)

    def _note(self, kind: str, held: Held, result: Any, sent_s: float, received_s: float) -> None:
        if not result.get("success", "error" not in result):
            code = str(result.get("code"))
            if code in ("lease_lost", "already_settled", "receipt_not_found"):
                self._book.refused(held, code, received_s=received_s)
            else:
                self._book.doubt(held, f"{kind} ({code})")
        elif kind == "visibility":
            held.until_s, held.latest_s = sent_s + _EXTENSION_S, received_s + _EXTENSION_S
        elif kind == "nack":
            self._book.given_back(held)
        else:
            self._book.settled(held, State.ACKED if kind == "ack" else State.REJECTED)

    def _redrive(self, limit: int = 3) -> bool:
        """Send some dead letters back; whether all have been."""
        if not self.site.has_dead_letters:
            return True
        try:
            return bool(self.door.post(f"/topics/{TOPIC}/dlq/redrive", {"limit": limit})["complete"])
        except Refused as refused:
            assert refused.status == 404, refused
            return True  # there are no dead letters yet

    def _redrive_all(self) -> None:
        while not self.until_answered(partial(self._redrive, 1_000)):
            pass

    def _lag(self) -> int:
        return int(self.until_answered(lambda: self.door.get(f"/groups/{GROUP}/lag"))["total"])

    def _check_log(self) -> None:
        """Each message stands where it was put; each dead letter is there once, and came back once."""
        found = self.door.read_all(TOPIC, PARTITIONS)
        by_place = by_places(found)
        for place, known in self._book.known.items():
            facts = f"there is {by_place.get(place)}: {self._book.story(place)}"
            self.check(Kind.LOST, by_place.get(place) == known.value, facts)
        dead = self.door.dead_letters(TOPIC, PARTITIONS)
        for place, count in dead.items():
            self.check(Kind.DOUBLED, count == 1, f"{count} dead letters of {self._book.story(place)}")
            known = self._book.known[place]
            is_right = known.state is State.REJECTED or known.is_doubtful
            self.check(Kind.RESURRECTED, is_right, f"a dead letter: {self._book.story(place)}")
        for place, known in self._book.known.items():
            is_there = known.state is not State.REJECTED or place in dead
            self.check(Kind.LOST, is_there, f"no dead letter of {self._book.story(place)}")
        times = Counter(m["value"] for part in found for m in part)
        again = Counter(self._book.known[place].value for place in dead)
        for value, count in times.items():
            is_right = count == 1 + again[value]
            facts = f"{value} was dead {again[value]} times, and is in the log {count} times"
            self.check(Kind.DOUBLED, is_right, facts)
