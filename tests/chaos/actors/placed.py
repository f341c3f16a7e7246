"""An idempotent producer of keyed messages, and a group of two that commits: places and keys are kept."""

import contextlib
import threading
import time
from collections import Counter, defaultdict
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.storm.actor import Actor
from tests.storm.actors.kafka_logs import patient
from tests.storm.record import Kind
from tests.storm.site import Site

PARTITIONS = 6
_KEYS = 40
_PATIENCE_S = 120
Place = tuple[int, int]


class PlacedMessages(Actor):
    """What is acknowledged stands at the offset that was told; nothing before a commit comes again."""

    feature = "Kafka, placed"
    topic = "placed"
    pause_s = 0.002

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._acked: dict[bytes, Place] = {}
        self._count: Counter[int] = Counter()
        self._seen: Counter[bytes] = Counter()
        self._committed: dict[int, int] = {}
        self._consumers: list[threading.Thread] = []
        self._sent_s: float | None = None
        """When all that was sent had been answered."""
        self._lock = threading.Lock()

    def prepare(self) -> None:
        self.door.create_topic(self.topic, partitions=PARTITIONS)
        settings = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": 0}
        self._producer = Producer(patient(self.site.kafka, **settings))
        self._consumers = [threading.Thread(target=self._consume, daemon=True) for _ in range(2)]
        for consumer in self._consumers:
            consumer.start()

    def step(self) -> None:
        key = self.chance.randrange(_KEYS)
        self._count[key] += 1
        value = b"%d:%d" % (key, self._count[key])
        self._producer.produce(self.topic, value, b"%d" % key, on_delivery=self._told)
        self._producer.poll(0)

    def come_to_rest(self) -> None:
        left = self._producer.flush(_PATIENCE_S)
        self._sent_s = time.monotonic()
        self.check(Kind.LOST, left == 0, f"{left} messages were neither stored nor refused")
        for consumer in self._consumers:
            consumer.join()

    def verify(self) -> None:
        found = self.door.read_all(self.topic, PARTITIONS)
        at = {
            (number, row["offset"]): row["value"].encode()
            for number, rows in enumerate(found)
            for row in rows
        }
        for value, place in self._acked.items():
            told = f"{value!r} was acknowledged at {place}, where {at.get(place)!r} stands"
            self.check(Kind.LOST, at.get(place) == value, told)
        for value, count in Counter(at.values()).items():
            self.check(Kind.DOUBLED, count == 1, f"{value!r} is there {count} times")
            self.check(Kind.HIDDEN, value in self._seen, f"{value!r} was never delivered")
        for rows in found:
            self._check_order(rows)

    def _check_order(self, rows: list[Any]) -> None:
        last: defaultdict[str, int] = defaultdict(int)
        for row in rows:
            key, _, number = row["value"].partition(":")
            facts = f"{row['value']} at {row['offset']} behind {last[key]}"
            self.check(Kind.OUT_OF_ORDER, int(number) > last[key], facts)
            last[key] = int(number)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if self.check(Kind.UNEXPLAINED, error is None, f"{value!r} was refused: {error}"):
            assert value is not None and partition is not None and offset is not None
            self._acked[value] = (partition, offset)
            self.record.count(self.feature)

    def _consume(self) -> None:
        settings = {
            "group.id": "placed-group",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
        }
        consumer = Consumer(patient(self.site.kafka, **settings))
        floors: dict[int, int] = {}
        """What lies below was committed before this member was told to read, or by itself: it must not come.

        What another commits later is none of its matter: whoever was put out may not know of it yet, and goes
        through what it has fetched.
        """

        def begin(_: object, assigned: list[TopicPartition]) -> None:
            with self._lock:
                floors.update({one.partition: self._committed.get(one.partition, 0) for one in assigned})

        consumer.subscribe([self.topic], on_assign=begin)
        while not self._is_done():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            self._hear(message, floors)
            if self.chance.random() < 0.02:
                with contextlib.suppress(KafkaException):
                    self._note(consumer.commit(asynchronous=False), floors)
        consumer.close()

    def _is_done(self) -> bool:
        """When no more is sent, what is left is read to its end."""
        if self._sent_s is None:
            return False
        return time.monotonic() > self._sent_s + _PATIENCE_S or self._acked.keys() <= self._seen.keys()

    def _hear(self, message: Message, floors: dict[int, int]) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        with self._lock:
            self._seen[message.value() or b""] += 1
        floor = floors.get(partition, 0)
        facts = f"offset {offset} of {partition} came behind {floor}"
        self.check(Kind.RESURRECTED, offset >= floor, facts)

    def _note(self, committed: list[TopicPartition] | None, floors: dict[int, int]) -> None:
        with self._lock:
            for place in committed or ():
                if place.error is None:
                    number, offset = place.partition, place.offset
                    self._committed[number] = max(self._committed.get(number, 0), offset)
                    floors[number] = max(floors.get(number, 0), offset)
