"""Kafka's share consumers: accept, release, reject; what was accepted never comes again, all else does."""

import time
from random import Random
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

from tests.integration.clients import set_for_group
from tests.storm.actor import Actor
from tests.storm.actors.kafka_logs import patient
from tests.storm.record import Kind
from tests.storm.site import Site

PARTITIONS = 2
TOPIC = "shared"
GROUP = "sharers"
_VISIBILITY_MS = 3_000
_DRAIN_S = 90
Place = tuple[int, int]


class ShareMember(Actor):
    feature = "share consumers"
    pause_s = 0.05

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._published: dict[Place, str] = {}
        self._settled: dict[Place, float] = {}
        self._doubtful: set[Place] = set()
        self._rejected: set[Place] = set()
        self._consumer: Any = None

    def prepare(self) -> None:
        self.door.create_topic(TOPIC, partitions=PARTITIONS, goqueue_visibility_ms=_VISIBILITY_MS)
        settings = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "1000"}
        set_for_group(self.site.kafka, GROUP, settings)

    def step(self) -> None:
        if self.chance.random() < 0.5 and len(self._left()) < 200:
            self._publish()
        self._take(0.2)
        if self.chance.random() < 0.02:
            self._let_go()

    def verify(self) -> None:
        give_up_s = time.monotonic() + _DRAIN_S
        while self._left() and time.monotonic() < give_up_s:
            self._take(0.5, is_final=True)
        left = self._left()
        self.check(Kind.HIDDEN, not left, f"{len(left)} messages never came: {sorted(left)[:5]}")
        self._let_go()
        dead = self.door.dead_letters(TOPIC, PARTITIONS)
        for place in self._rejected:
            self.check(Kind.LOST, dead[place] > 0, f"{place} was rejected, and is no dead letter")
        for place, count in dead.items():
            self.check(Kind.DOUBLED, count == 1, f"{place} is a dead letter {count} times")

    def close(self) -> None:
        super().close()
        self._let_go()

    def _publish(self) -> None:
        values = [str(self._next + number) for number in range(self.chance.randint(1, 10))]
        self._next += len(values)
        results = self.door.publish(TOPIC, [{"value": value} for value in values])
        for value, result in zip(values, results, strict=True):
            if "error" not in result:
                self._published[result["partition"], result["offset"]] = value
                self.record.count(self.feature)

    def _take(self, timeout_s: float, *, is_final: bool = False) -> None:
        try:
            messages = [m for m in self._member().poll(timeout_s) if m.error() is None]
            fates = {(m.partition(), m.offset()): self._fate(m, is_final) for m in messages}
            # From here on the broker may hear of it.
            self._doubtful |= {place for place, fate in fates.items() if fate is not AcknowledgeType.RELEASE}
            for message in messages:
                self._member().acknowledge(message, fates[message.partition(), message.offset()])
            errors = self._member().commit_sync(10) if messages else {}
        except KafkaException:
            self._let_go()
            self.site.wait_until_back()
            return
        if any(error is not None for error in errors.values()):
            return
        for place, fate in fates.items():
            if fate is not AcknowledgeType.RELEASE:
                self._settled[place] = self.record.age_s()
                self._doubtful.discard(place)
            if fate is AcknowledgeType.REJECT:
                self._rejected.add(place)

    def _fate(self, message: Any, is_final: bool) -> Any:
        place = (message.partition(), message.offset())
        value = (message.value() or b"").decode()
        told = self._published.get(place, value)
        self.check(Kind.LOST, told == value, f"{told} was put at {place}; there is {value}")
        at_s = self._settled.get(place, 0)
        self.check(Kind.RESURRECTED, place not in self._settled, f"{place} was settled at {at_s:.2f} s")
        kinds = {AcknowledgeType.ACCEPT: 80, AcknowledgeType.RELEASE: 15, AcknowledgeType.REJECT: 5}
        (kind,) = self.chance.choices(list(kinds), list(kinds.values()))
        return AcknowledgeType.ACCEPT if is_final else kind

    def _member(self) -> Any:
        if self._consumer is None:
            mode = {"group.id": GROUP, "share.acknowledgement.mode": "explicit"}
            self._consumer = ShareConsumer(patient(self.site.kafka, **mode))
            self._consumer.subscribe([TOPIC])
        return self._consumer

    def _let_go(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            try:
                consumer.close()
            except KafkaException:
                return

    def _left(self) -> set[Place]:
        return set(self._published) - set(self._settled) - self._doubtful
