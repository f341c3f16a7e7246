"""Transactions of real clients that are killed, against a real broker that is killed too."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.integration.clients import create_topic
from tests.integration.running_broker import RunningBroker
from tests.integration.transaction_history import History
from tests.integration.transaction_worker import ACCOUNTS, PARTITIONS, Worker

PATIENCE_S = 60
TRANSFERS_A_LIFE = 8
KILLED_CLERKS = 4
BROKER_KILLS = int(os.environ.get("BROKER_KILLS", "3"))
"""More for a longer trial: BROKER_KILLS=20 pytest tests/integration/test_transactions.py --timeout 900"""
STALLED_S = 12
MESSAGES = 60 * (BROKER_KILLS + 2)

Employ = Callable[..., Worker]


@pytest.fixture
def employ() -> Iterator[Employ]:
    """Starts workers; none of them outlives its test."""
    workers: list[Worker] = []

    def start(role: str, *arguments: str) -> Worker:
        workers.append(Worker(role, *arguments))
        return workers[-1]

    yield start
    for worker in workers:
        if worker.process.poll() is None:
            worker.kill()


class Reader:
    """Reads committed messages of a topic from the start, a poll at a time."""

    def __init__(self, kafka: str, topic: str, partitions: int) -> None:
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "auditors",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )
        self._partitions = partitions
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._ended: set[int] = set()

    def poll(self) -> Any:
        """The next message; None when all partitions are read to their ends."""
        deadline_s = time.monotonic() + PATIENCE_S
        while len(self._ended) < self._partitions:
            assert time.monotonic() < deadline_s, "the ends of the partitions did not come"
            message = self._consumer.poll(1)
            if message is not None and message.error() is None:
                self._ended.discard(message.partition())
                return message
            if message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                self._ended.add(message.partition())
        return None

    def close(self) -> None:
        self._consumer.close()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not come true"
        time.sleep(0.01)


def committed_by(worker: Worker) -> int:
    return sum(line.startswith("committed") for line in worker.lines)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_transfers_of_killed_clerks_are_whole_and_sum_to_nothing(
    broker: RunningBroker, employ: Employ
) -> None:
    create_topic(broker.kafka, ACCOUNTS, partitions=PARTITIONS)
    history, chance, seeds = History(parts_each=2), Random(5), count()
    roles = {"first": "confluent", "second": "aiokafka"}
    clerks = {name: employ(role, broker.kafka, name, str(next(seeds))) for name, role in roles.items()}
    dead: list[Worker] = []
    for _ in range(KILLED_CLERKS):
        wait_for(
            lambda: all(committed_by(c) >= TRANSFERS_A_LIFE for c in clerks.values()), "enough transfers"
        )
        name = chance.choice(list(roles))
        clerks[name].kill()
        dead.append(clerks[name])
        clerks[name] = employ(roles[name], broker.kafka, name, str(next(seeds)))
    for clerk in clerks.values():
        clerk.kill()
    # Whoever takes their ids over ends what they have left open.
    for name in roles:
        settle = Producer({"bootstrap.servers": broker.kafka, "transactional.id": name})
        settle.init_transactions(PATIENCE_S)
    for clerk in (*dead, *clerks.values()):
        history.note_writer(clerk.lines)

    reader, total = Reader(broker.kafka, ACCOUNTS, PARTITIONS), 0
    while (message := reader.poll()) is not None:
        name, part, amount = message.value().decode().split()
        history.reads.append((message.partition(), message.offset(), name, int(part)))
        total += int(amount)
    reader.close()

    assert history.anomalies() == []
    assert (total, len(history.committed) >= KILLED_CLERKS * TRANSFERS_A_LIFE) == (0, True)


@pytest.mark.slow
@pytest.mark.timeout(120 + 30 * BROKER_KILLS)
def test_a_copy_is_exact_over_kills_of_the_broker_and_of_the_copier(
    broker: RunningBroker, employ: Employ
) -> None:
    for topic in ("source", "target"):
        create_topic(broker.kafka, topic, partitions=2)
    producer = Producer({"bootstrap.servers": broker.kafka, "enable.idempotence": True})
    for number in range(MESSAGES):
        producer.produce("source", b"%d" % number, partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    copying = Copying(broker.kafka, employ)

    for kill in range(BROKER_KILLS):
        copying.wait_for(MESSAGES * (kill + 1) // (BROKER_KILLS + 2))
        broker.kill()
        if kill == 1:
            copying.start_anew()
        broker.start()
    copying.wait_for(MESSAGES)
    copying.copier.kill()

    assert sorted(copying.copied()) == list(range(MESSAGES))


class Copying:
    """A copier, and another one in its place when nothing comes of it any more.

    After a kill of the broker librdkafka was seen to stay between AddOffsetsToTxn and TxnOffsetCommit for
    much longer than its time-out, without sending anything. Whoever runs such a process restarts it then.
    """

    def __init__(self, kafka: str, employ: Employ) -> None:
        self._kafka = kafka
        self._employ = employ
        self.copier = employ("copier", kafka, "source", "target")

    def start_anew(self) -> None:
        self.copier.kill()
        self.copier = self._employ("copier", self._kafka, "source", "target")

    def copied(self) -> list[int]:
        reader, found = Reader(self._kafka, "target", 2), []
        while (message := reader.poll()) is not None:
            found.append(int(message.value()))
        reader.close()
        return found

    def wait_for(self, least: int) -> None:
        count, moved_s = len(self.copied()), time.monotonic()
        deadline_s = moved_s + PATIENCE_S
        while count < least:
            assert time.monotonic() < deadline_s, f"{count} copies came, and not {least}"
            if time.monotonic() - moved_s > STALLED_S:
                self.start_anew()
                moved_s = time.monotonic()
            newest = len(self.copied())
            if newest > count:
                count, moved_s = newest, time.monotonic()


def test_the_checker_finds_what_is_wrong() -> None:
    good = History(2, committed={"a"}, reads=[(0, 1, "a", 0), (1, 1, "a", 1)])
    bad = History(
        2,
        committed={"lost"},
        aborted={"undone"},
        reads=[(0, 5, "undone", 0), (0, 4, "undone", 1), (1, 1, "twice", 0), (1, 2, "twice", 0)],
    )

    assert good.anomalies() == []
    assert bad.anomalies() == [
        "aborted read: undone",
        "lost write: lost",
        "torn transaction: twice",
        "duplicate: twice/0",
        "non-monotonic poll: 0 @4",
    ]
