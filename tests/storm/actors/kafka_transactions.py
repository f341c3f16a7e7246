"""Transactional Kafka producers: transfers that are whole or absent, and an exact copy of a topic."""

import time
from collections import Counter
from random import Random
from typing import Any

from confluent_kafka import KafkaException, Producer

from tests.integration.transaction_history import History
from tests.integration.transaction_worker import Worker
from tests.storm.actor import Actor
from tests.storm.actors.kafka_logs import patient
from tests.storm.record import Kind
from tests.storm.site import Site

PARTITIONS = 3
ACCOUNTS, SOURCE, TARGET = "transfers", "copy-source", "copy-target"
_PATIENCE_S = 20
_STALLED_S = 15
_DRAIN_S = 90
_ANOMALIES = {
    "aborted read": Kind.RESURRECTED,
    "lost write": Kind.LOST,
    "torn transaction": Kind.LOST,
    "duplicate": Kind.DOUBLED,
    "non-monotonic poll": Kind.OUT_OF_ORDER,
}


class TransferClerk(Actor):
    """Each transfer is two messages in two partitions."""

    feature = "Kafka transactions"

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._history = History(parts_each=2)
        self._next = 0
        self._producer: Any = None

    def prepare(self) -> None:
        self.door.create_topic(ACCOUNTS, partitions=PARTITIONS, segment_bytes=65_536)

    def step(self) -> None:
        try:
            if self._producer is None:
                self._producer = self._new_producer()
            self._transfer()
        except KafkaException:
            # How the transfer ended is not known; whoever takes the id over ends it.
            self._producer = None
            self.site.wait_until_back()

    def come_to_rest(self) -> None:
        self._producer = self._new_producer()

    def verify(self) -> None:
        for partition, messages in enumerate(self.door.read_all(ACCOUNTS, PARTITIONS)):
            for message in messages:
                name, part = message["value"].split()
                self._history.reads.append((partition, message["offset"], name, int(part)))
        anomalies = self._history.anomalies()
        for kind in set(_ANOMALIES.values()):
            self.record.check(kind, True, self.feature, "", count=len(self._history.committed))
        for anomaly in anomalies:
            self.violate(_ANOMALIES[anomaly.partition(":")[0]], anomaly)

    def _new_producer(self) -> Any:
        settings = {"transactional.id": "storm-transfers", "linger.ms": 0, "transaction.timeout.ms": 10_000}
        producer = Producer(patient(self.site.kafka, **settings))
        producer.init_transactions(_PATIENCE_S)
        return producer

    def _transfer(self) -> None:
        name = f"t{self._next}"
        self._next += 1
        self._producer.begin_transaction()
        for part, partition in enumerate(self.chance.sample(range(PARTITIONS), 2)):
            self._producer.produce(ACCOUNTS, f"{name} {part}", partition=partition)
        if self.chance.random() < 0.8:
            self._producer.commit_transaction(_PATIENCE_S)
            self._history.committed.add(name)
        else:
            self._producer.abort_transaction(_PATIENCE_S)
            self._history.aborted.add(name)
        self.record.count(self.feature, 2)


class Copying(Actor):
    """A process that copies a topic, its offsets within its transactions; it is killed now and then, too.

    librdkafka was seen to stay in a transaction for longer than its time-out when a broker was killed,
    without sending anything: whoever runs such a process restarts it then, and so does this.
    """

    feature = "Kafka exact copy"
    pause_s = 0.2

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._next = 0
        self._copier: Worker | None = None
        self._copied = 0
        self._moved_s = time.monotonic()

    def prepare(self) -> None:
        for topic in (SOURCE, TARGET):
            self.door.create_topic(topic, partitions=2)
        self._start_anew()

    def step(self) -> None:
        messages = [{"value": str(self._next + n)} for n in range(self.chance.randint(1, 8))]
        self._next += len(messages)
        self.door.publish(SOURCE, messages)
        self._watch()
        if self.chance.random() < 0.01:
            self.record.befall("a client is killed")
            self._start_anew()

    def verify(self) -> None:
        source = self._values(SOURCE)
        give_up_s = time.monotonic() + _DRAIN_S
        while len(target := self._values(TARGET)) < len(source) and time.monotonic() < give_up_s:
            self._watch()
            time.sleep(0.5)
        counts = Counter(target)
        for value in source:
            self.check(Kind.HIDDEN, counts[value] > 0, f"{value} is not copied after {_DRAIN_S} s")
        for value, count in counts.items():
            self.check(Kind.DOUBLED, count == 1, f"{value} was copied {count} times")
        self.record.count(self.feature, len(target))

    def close(self) -> None:
        super().close()
        if self._copier is not None:
            self._copier.kill()

    def _watch(self) -> None:
        ends = self.door.post("/offsets", {"topics": [TARGET]})["topics"][TARGET]
        copied = sum(partition["end"] for partition in ends.values())
        if copied > self._copied:
            self._copied, self._moved_s = copied, time.monotonic()
        elif time.monotonic() - self._moved_s > _STALLED_S:
            self._start_anew()

    def _start_anew(self) -> None:
        if self._copier is not None:
            self._copier.kill()
        self._copier = Worker("copier", self.site.kafka, SOURCE, TARGET)
        self._moved_s = time.monotonic()

    def _values(self, topic: str) -> list[str]:
        return [message["value"] for part in self.door.read_all(topic, 2) for message in part]
