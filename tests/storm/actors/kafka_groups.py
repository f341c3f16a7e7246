"""Two members of a Kafka consumer group, of either protocol: commits stay, and nothing is skipped."""

import time
from collections import defaultdict
from random import Random
from typing import Any, ClassVar

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.storm.actor import Actor
from tests.storm.actors.kafka_logs import PARTITIONS, IdempotentProducer, patient
from tests.storm.record import Kind
from tests.storm.site import Site

_STALLED_S = 45
"""When nothing has come for so long, nothing will: the sessions of members that are gone end much sooner."""


class KafkaGroup(Actor):
    """Reads what the idempotent producer writes."""

    protocol: ClassVar[dict[str, Any]]
    pause_s = 0.05
    topic = IdempotentProducer.topic

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._group = self.feature.replace(" ", "-")
        self._committed: dict[int, int] = defaultdict(int)
        self._seen: dict[int, set[int]] = defaultdict(set)
        self._members: list[Any] = []

    def prepare(self) -> None:
        self._members += [self._member() for _ in range(2)]

    def step(self) -> None:
        for number, member in enumerate(self._members):
            self._take(member)
            if self.chance.random() < 0.1:
                self._commit(member)
            if self.chance.random() < 0.005:
                member.close()
                self._members[number] = self._member()

    def verify(self) -> None:
        missing = self._missing()
        moved_s = time.monotonic()
        while any(missing) and time.monotonic() - moved_s < _STALLED_S:
            before = missing
            for member in self._members:
                self._take(member)
            missing = self._missing()
            moved_s = moved_s if missing == before else time.monotonic()
        self.check(Kind.HIDDEN, not any(missing), f"{missing} messages by partition were never delivered")
        for member in self._members:
            self._commit(member)

    def close(self) -> None:
        super().close()
        for member in self._members:
            member.close()

    def _member(self) -> Any:
        settings = {
            "group.id": self._group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "topic.metadata.refresh.interval.ms": 5_000,
        }
        member: Any = Consumer(patient(self.site.kafka, **settings, **self.protocol))
        member.subscribe([self.topic])
        return member

    def _take(self, member: Any) -> None:
        for message in member.consume(1_000, timeout=0.1):
            if message.error() is None:
                self._seen[message.partition()].add(message.offset())
                self.record.count(self.feature)

    def _commit(self, member: Any) -> None:
        """Commit, and see that what was committed before still stands."""
        try:
            for place in member.commit(asynchronous=False) or ():
                if place.error is None:
                    self.record.count(f"{self.feature}, commits")
                    self._committed[place.partition] = max(self._committed[place.partition], place.offset)
            places = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
            found = member.committed(places, timeout=5)
        except KafkaException:
            return  # Away, nothing to commit, or a rebalance: the next commit tells.
        for place in found:
            stood = self._committed[place.partition]
            self.check(
                Kind.LOST,
                place.error is not None or place.offset >= stood or stood == 0,
                f"offset {stood} of partition {place.partition} was committed, and now it is {place.offset}",
            )

    def _missing(self) -> list[int]:
        """How many messages of each partition nobody was given."""
        member = self._members[0]
        places = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        ends = [int(member.get_watermark_offsets(place, timeout=10)[1]) for place in places]
        return [end - len(self._seen[partition]) for partition, end in enumerate(ends)]


class ClassicGroup(KafkaGroup):
    feature = "Kafka group, classic"
    protocol: ClassVar[dict[str, Any]] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}


class ConsumerGroup(KafkaGroup):
    feature = "Kafka group, consumer"
    protocol: ClassVar[dict[str, Any]] = {"group.protocol": "consumer"}
