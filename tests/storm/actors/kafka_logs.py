"""Kafka producers of numbered messages: idempotent ones, and plain ones with acks of all or of the leader.

A process that is killed takes nothing with it that the operating system has, so acks=1 loses nothing either.
"""

from collections import defaultdict
from random import Random
from typing import Any, ClassVar

from confluent_kafka import KafkaError, Message, Producer

from tests.integration.clients import read_all
from tests.storm.actor import Actor
from tests.storm.record import Kind
from tests.storm.site import Site

PARTITIONS = 3
_FLUSH_S = 90
_BURST_MAX = 20
_CODECS = ("none", "none", "gzip", "snappy", "lz4", "zstd")


def patient(kafka: str, **settings: Any) -> dict[str, Any]:
    """Settings of a client that tries again, soon and for long."""
    return {
        "bootstrap.servers": kafka,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 50,
        "log_level": 0,
        **settings,
    }


class KafkaProducer(Actor):
    """Publishes 0, 1, 2 … over the partitions of a topic of its own."""

    topic: ClassVar[str]
    settings: ClassVar[dict[str, Any]]
    is_once: ClassVar[bool] = False

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._acked: dict[int, float] = {}
        self._refused: dict[int, str] = {}

    def prepare(self) -> None:
        self.door.create_topic(self.topic, partitions=PARTITIONS, segment_bytes=65_536)
        self._producer = Producer(
            patient(
                self.site.kafka,
                **{
                    "linger.ms": 5,
                    "message.timeout.ms": 0,  # it never gives up: on a busy machine a start takes a minute
                    "compression.type": self.chance.choice(_CODECS),
                    "max.in.flight.requests.per.connection": 5 if self.is_once else 1,
                },
                **self.settings,
            )
        )

    def step(self) -> None:
        for _ in range(self.chance.randint(1, _BURST_MAX)):
            try:
                self._producer.produce(
                    self.topic,
                    b"%d" % self._next,
                    partition=self._next % PARTITIONS,
                    on_delivery=self._delivered,
                )
                self._next += 1
            except BufferError:
                break
        self._producer.poll(0.02)

    def come_to_rest(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        self.check(Kind.LOST, left == 0, f"{left} messages were never answered")

    def verify(self) -> None:
        found = read_all(self.site.kafka, self.topic, partitions=PARTITIONS)
        seen: dict[int, int] = defaultdict(int)
        for partition, values in found.items():
            numbers = [int(value) for value in values]
            for number in numbers:
                seen[number] += 1
            firsts = list(dict.fromkeys(numbers))
            self.check(Kind.OUT_OF_ORDER, firsts == sorted(firsts), f"{self.topic}/{partition}")
        for number, at_s in self._acked.items():
            self.check(Kind.LOST, number in seen, f"{number} was acknowledged at {at_s:.2f} s")
        for number, count in seen.items():
            self.check(Kind.DOUBLED, not self.is_once or count == 1, f"{number} is there {count} times")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        number = int(message.value() or b"")
        if error is None:
            self._acked[number] = self.record.age_s()
            self.record.count(self.feature)
        else:
            self._refused[number] = str(error)
            self.check(Kind.UNEXPLAINED, not self.is_once, f"{number} was refused: {error}")


class IdempotentProducer(KafkaProducer):
    feature = "Kafka, idempotent"
    topic = "idempotent"
    settings: ClassVar[dict[str, Any]] = {"enable.idempotence": True}
    is_once = True


class PlainProducer(KafkaProducer):
    feature = "Kafka, acks=all"
    topic = "plain"
    settings: ClassVar[dict[str, Any]] = {"acks": "all"}


class LeaderProducer(KafkaProducer):
    feature = "Kafka, acks=1"
    topic = "leader"
    settings: ClassVar[dict[str, Any]] = {"acks": "1"}
