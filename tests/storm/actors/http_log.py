"""Publishing and reading over HTTP: what was answered with a place is at that place, once, in key order."""

from random import Random
from typing import Any

from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Site, by_places

PARTITIONS = 3
TOPIC = "http"
_KEYS = 7
_BURST_MAX = 20


class HttpPublisher(Actor):
    """Sends nothing twice, so nothing may be there twice."""

    feature = "HTTP publish and read"

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._places: dict[int, tuple[int, int, float]] = {}

    def prepare(self) -> None:
        self.door.create_topic(TOPIC, partitions=PARTITIONS, segment_bytes=65_536)

    def step(self) -> None:
        numbers = range(self._next, self._next + self.chance.randint(1, _BURST_MAX))
        self._next = numbers.stop
        messages = [{"value": str(number), "key": f"k{number % _KEYS}"} for number in numbers]
        results = self.door.publish(TOPIC, messages, acks=self.chance.choice(("all", *self.site.acks_kept)))
        for number, result in zip(numbers, results, strict=True):
            if "error" not in result:
                self._places[number] = (result["partition"], result["offset"], self.record.age_s())
                self.record.count(self.feature)
        if self._places and self.chance.random() < 0.5:
            self._read_back(self.chance.choice(list(self._places)[-100:]))

    def verify(self) -> None:
        found = self.door.read_all(TOPIC, PARTITIONS)
        by_place = by_places(found)
        for number, (partition, offset, at_s) in self._places.items():
            value = by_place.get((partition, offset))
            facts = f"{number} was put at {partition}/{offset} at {at_s:.2f} s; there is {value}"
            self.check(Kind.LOST, value == str(number), facts)
        values = [message["value"] for part in found for message in part]
        self.check(Kind.DOUBLED, len(values) == len(set(values)), f"{len(values) - len(set(values))} twice")
        for part in found:
            self._check_order(part)

    def _read_back(self, number: int) -> None:
        partition, offset, at_s = self._places[number]
        page = self.door.read(TOPIC, partition, offset=offset, limit=1)
        value = page[0]["value"] if page else None
        facts = f"{number} was put at {partition}/{offset} at {at_s:.2f} s; there is {value}"
        self.check(Kind.LOST, value == str(number), facts)

    def _check_order(self, messages: list[Any]) -> None:
        for key in range(_KEYS):
            own = [int(message["value"]) for message in messages if message["key"] == f"k{key}"]
            self.check(Kind.OUT_OF_ORDER, own == sorted(own), f"messages of key k{key}")
