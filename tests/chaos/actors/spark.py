"""A Spark stream in chaos: it copies one topic to another, each row once, whoever dies, its driver too.

Spark runs in a process of its own, as `make soak-spark` has it. A driver that has given up on nodes that were
away for too long is started again on its checkpoint, as whoever runs one does; the table tells how often.
"""

import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from confluent_kafka import KafkaError, Message, Producer

from tests.integration.spark.soak import PARTITIONS, SOURCE, TARGET, Driver
from tests.storm.actor import Actor
from tests.storm.actors.kafka_logs import patient
from tests.storm.record import Kind
from tests.storm.site import Site

_ROWS_AN_EPOCH = 500
_BURST = 20
_DRIVER_LIVES_S = (15.0, 45.0)
"""So long a driver is left alone, before it is killed like a node."""
_PATIENCE_S = 90
"""So long no row at all may be copied in fine weather: on a busy machine Spark starts for half a minute."""


class SparkStream(Actor):
    """What was acknowledged to the source is in the target once; nothing else is."""

    feature = "Spark stream"
    pause_s = 0.1

    def __init__(self, site: Site, chance: Random, *, pace: float = 1.0) -> None:
        super().__init__(site, chance, pace=pace)
        self._folder = Path(tempfile.mkdtemp(prefix="goqueue-chaos-spark-"))
        self._sent = 0
        self._acked: set[int] = set()
        self._driver: Driver | None = None
        self._kill_s = 0.0

    def prepare(self) -> None:
        for topic in (SOURCE, TARGET):
            self.door.create_topic(topic, partitions=PARTITIONS)
        settings = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": 0}
        self._producer = Producer(patient(self.site.kafka, **settings))
        self._start()

    def step(self) -> None:
        for number in range(self._sent, self._sent + _BURST):
            value = str(number).encode()
            self._producer.produce(SOURCE, value, partition=number % PARTITIONS, on_delivery=self._told)
        self._sent += _BURST
        self._producer.poll(0)
        if time.monotonic() > self._kill_s:
            self.record.befall("Spark's driver killed")
            self._start()
        self._keep_up()

    def come_to_rest(self) -> None:
        left = self._producer.flush(_PATIENCE_S)
        self.check(Kind.LOST, left == 0, f"{left} rows were neither stored nor refused")
        give_up_s, most = time.monotonic() + _PATIENCE_S, -1
        while (copied := self._copied()) < len(self._acked) and time.monotonic() < give_up_s:
            if copied > most:
                give_up_s, most = time.monotonic() + _PATIENCE_S, copied
            self._keep_up()
            time.sleep(0.5)

    def verify(self) -> None:
        found = self.door.read_all(TARGET, PARTITIONS)
        counts = Counter(int(row["value"]) for rows in found for row in rows)
        for number in sorted(self._acked):
            self.check(Kind.LOST, counts[number] > 0, f"row {number} was not copied")
        for number, count in counts.items():
            self.check(Kind.DOUBLED, count == 1, f"row {number} is there {count} times")
            self.check(Kind.UNEXPLAINED, number < self._sent, f"row {number} was never sent")

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()
        super().close()
        if self.record.violations:
            print(f"chaos: the log of Spark's drivers: {self._folder}", flush=True)
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _copied(self) -> int:
        return int(self.until_answered(lambda: self.door.get(f"/topics/{TARGET}"))["total_messages"])

    def _start(self) -> None:
        if self._driver is not None:
            self._driver.kill()
        bootstrap = ",".join(url.removeprefix("http://") for url in self.site.http)
        log = self._folder / "driver.log"
        self._driver = Driver(bootstrap, self._folder / "checkpoint", _ROWS_AN_EPOCH, log)
        self._kill_s = time.monotonic() + self.chance.uniform(*_DRIVER_LIVES_S)

    def _keep_up(self) -> None:
        if self._driver is not None and self._driver.has_ended:
            self.record.befall("Spark's driver gave up")
            self._start()

    def _told(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        if self.check(Kind.UNEXPLAINED, error is None, f"{value!r} was refused: {error}"):
            assert value is not None
            self._acked.add(int(value))
            self.record.count(self.feature)
