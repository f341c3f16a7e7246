"""Clients at work while nodes die, each with a memory of what it was told."""

import contextlib
import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from random import Random

import httpx
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.storm.record import Kind, Record

PARTITIONS = 6
COPIES = 3
_KEYS = 40
_PATIENCE_S = 120
Place = tuple[int, int]


class Site:
    """Where the doors are, and what has been seen."""

    def __init__(self, kafka: str, http: list[str], record: Record, seed: int) -> None:
        self.kafka = kafka
        self.http = http
        self.record = record
        self.seed = seed
        self.is_over = threading.Event()
        self._admin = AdminClient({"bootstrap.servers": kafka})

    def create(self, topic: str) -> None:
        for made in self._admin.create_topics([NewTopic(topic, PARTITIONS, COPIES)]).values():
            made.result(30)

    def is_whole(self, topics: list[str]) -> bool:
        """Whether every partition has a leader and all its copies in sync."""
        try:
            known = self._admin.list_topics(timeout=5).topics
        except KafkaException:
            return False
        partitions = [partition for topic in topics for partition in known[topic].partitions.values()]
        return all(len(partition.isrs) == COPIES and partition.leader >= 0 for partition in partitions)

    def read_all(self, topic: str) -> dict[int, list[tuple[int, bytes]]]:
        """All that a topic holds, by partition: offset and value."""
        settings = {"bootstrap.servers": self.kafka, "group.id": "auditor", "enable.auto.commit": False}
        found: dict[int, list[tuple[int, bytes]]] = {}
        for number in range(PARTITIONS):
            consumer = Consumer({**settings, "auto.offset.reset": "error"})
            start, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
            consumer.assign([TopicPartition(topic, number, start)])
            rows = found.setdefault(number, [])
            deadline_s = time.monotonic() + _PATIENCE_S
            while (rows[-1][0] + 1 if rows else start) < end:
                assert time.monotonic() < deadline_s, f"{topic}/{number} cannot be read to its end"
                message = consumer.poll(1)
                if message is not None and message.error() is None:
                    offset = message.offset()
                    assert offset is not None
                    rows.append((offset, message.value() or b""))
            consumer.close()
        return found


class Client(ABC):
    """One who works in a thread of its own until the site is over, and is then asked what it knows."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.record = site.record
        self.chance = Random(f"{site.seed} {self.name}")
        self.topic = f"chaos-{self.name}"
        self._thread = threading.Thread(target=self._run, name=self.name)
        self._failure: BaseException | None = None

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def begin(self) -> None:
        self.site.create(self.topic)
        self._thread.start()

    def end(self) -> None:
        self._thread.join()
        if self._failure is not None:
            self.record.violate(Kind.UNEXPLAINED, self.name, repr(self._failure))

    @abstractmethod
    def work(self) -> None: ...

    @abstractmethod
    def check(self) -> None:
        """The cluster is whole again: has it kept its word?"""

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self._failure = error

    def check_places(self, acked: dict[bytes, Place], found: dict[int, list[tuple[int, bytes]]]) -> None:
        """What was acknowledged is there, at the offset that was told."""
        at = {(number, offset): value for number, rows in found.items() for offset, value in rows}
        for value, place in acked.items():
            told = f"{value!r} was acknowledged at {place}, where {at.get(place)!r} stands"
            self.record.check(Kind.LOST, at.get(place) == value, self.name, told)


class Kafka(Client):
    """An idempotent producer, and a group of two consumers that commit what they have read."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._acked: dict[bytes, Place] = {}
        self._refused = 0
        self._seen: Counter[bytes] = Counter()
        self._committed: dict[int, int] = {}
        self._again: list[str] = []
        self._sent_s: float | None = None
        """When all that was sent had been answered."""
        self._lock = threading.Lock()

    def work(self) -> None:
        consumers = [threading.Thread(target=self._consume) for _ in range(2)]
        for consumer in consumers:
            consumer.start()
        producer = Producer(
            {
                "bootstrap.servers": self.site.kafka,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": 300_000,
                "retry.backoff.ms": 50,
            }
        )
        count: Counter[int] = Counter()
        while not self.site.is_over.is_set():
            key = self.chance.randrange(_KEYS)
            count[key] += 1
            producer.produce(self.topic, b"%d:%d" % (key, count[key]), b"%d" % key, on_delivery=self._told)
            producer.poll(0.002)
        left = producer.flush(_PATIENCE_S)
        self._sent_s = time.monotonic()
        for consumer in consumers:
            consumer.join()
        assert left == 0, f"{left} messages were neither stored nor refused"

    def check(self) -> None:
        found = self.site.read_all(self.topic)
        self.check_places(self._acked, found)
        values = Counter(value for rows in found.values() for _, value in rows)
        for value, count in values.items():
            self.record.check(Kind.DOUBLED, count == 1, self.name, f"{value!r} is there {count} times")
        for rows in found.values():
            last: defaultdict[bytes, int] = defaultdict(int)
            for offset, value in rows:
                key, _, number = value.partition(b":")
                is_next = int(number) > last[key]
                self.record.check(Kind.OUT_OF_ORDER, is_next, self.name, f"{value!r} at {offset}")
                last[key] = int(number)
        for value in values:
            self.record.check(Kind.HIDDEN, value in self._seen, self.name, f"{value!r} was never delivered")
        for facts in self._again:
            self.record.violate(Kind.RESURRECTED, self.name, facts)
        self.record.check(Kind.UNEXPLAINED, not self._refused, self.name, f"{self._refused} were refused")

    def _told(self, error: KafkaError | None, message: Message) -> None:
        value, partition, offset = message.value(), message.partition(), message.offset()
        if error is not None:
            self._refused += 1
        elif value is not None and partition is not None and offset is not None:
            self._acked[value] = (partition, offset)
            self.record.count(self.name)

    def _consume(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.site.kafka,
                "group.id": f"{self.topic}-group",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
            }
        )
        consumer.subscribe([self.topic])
        while not self._is_done():
            message = consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            self._hear(message)
            if self.chance.random() < 0.02:
                with contextlib.suppress(KafkaException):
                    self._note(consumer.commit(asynchronous=False))
        consumer.close()

    def _is_done(self) -> bool:
        """When no more is sent, what is left is read to its end."""
        if self._sent_s is None:
            return False
        return time.monotonic() > self._sent_s + _PATIENCE_S or self._acked.keys() <= self._seen.keys()

    def _hear(self, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        with self._lock:
            self._seen[message.value() or b""] += 1
            if offset < self._committed.get(partition, 0):
                self._again.append(f"offset {offset} of {partition} came behind {self._committed[partition]}")

    def _note(self, committed: list[TopicPartition] | None) -> None:
        with self._lock:
            for place in committed or ():
                if place.error is None:
                    before = self._committed.get(place.partition, 0)
                    self._committed[place.partition] = max(before, place.offset)


class Http(Client):
    """A publisher that asks any node, and takes a yes at its word."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._acked: dict[bytes, Place] = {}

    def work(self) -> None:
        number = 0
        with httpx.Client(timeout=20) as client:
            while not self.site.is_over.is_set():
                number += 1
                values = [f"http-{number}-{at}" for at in range(3)]
                body = json.dumps({"messages": [{"value": value, "key": value} for value in values]})
                url = f"{self.chance.choice(self.site.http)}/topics/{self.topic}/messages"
                try:
                    reply = client.post(url, content=body)
                except httpx.HTTPError:
                    continue  # a node has gone: it may have been stored, or not
                if reply.status_code == httpx.codes.OK:
                    for value, result in zip(values, reply.json()["results"], strict=True):
                        if not result.get("error"):
                            self._acked[value.encode()] = (result["partition"], result["offset"])
                            self.record.count(self.name)
                time.sleep(0.005)

    def check(self) -> None:
        self.check_places(self._acked, self.site.read_all(self.topic))


CLIENTS: tuple[type[Client], ...] = (Kafka, Http)
