"""A member of a consumer group in a process of its own, so that it can be killed.

It prints each value it has read on a line, and commits afterwards: what was read but not committed when
it died is read again by somebody else.
"""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

GROUP = "workers"
SESSION_MS = 2_000
HEARTBEAT_MS = 200
_PROGRAM = (
    "import sys; from tests.integration.group_member import PROGRAMS; PROGRAMS[sys.argv[1]](*sys.argv[2:])"
)


class GroupMember:
    """The process, and what it has told of."""

    def __init__(self, client: str, bootstrap: str, topic: str) -> None:
        self.values: list[int] = []
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, client, bootstrap, topic],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def has_read(self) -> bool:
        return bool(self.values)

    def kill(self) -> None:
        """As `kill -9` does: the group hears nothing of it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _follow(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                # A process that dies can leave half a line behind.
                if line.endswith(".\n"):
                    self.values.append(int(line[:-2]))


def _tell(values: list[bytes]) -> None:
    sys.stdout.write("".join(f"{value.decode()}.\n" for value in values))
    sys.stdout.flush()


def _with_confluent_kafka(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": "range",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
    )
    consumer.subscribe([topic])
    while True:
        messages = consumer.consume(100, 0.1)
        good = [message for message in messages if message.error() is None]
        if good:
            _tell([message.value() or b"" for message in good])
            # By name: without, librdkafka commits what it has handed out by the time it comes to it, which
            # may be the next messages, not told yet.
            ends = {message.partition() or 0: (message.offset() or 0) + 1 for message in good}
            offsets = [TopicPartition(topic, partition, end) for partition, end in ends.items()]
            consumer.commit(offsets=offsets, asynchronous=True)


def _with_consumer_protocol(bootstrap: str, topic: str) -> None:
    """The broker assigns, by Kafka's newer protocol."""
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.subscribe([topic])
    while True:
        messages = consumer.consume(100, 0.1)
        values = [message.value() or b"" for message in messages if message.error() is None]
        if values:
            _tell(values)
            with suppress(KafkaException):  # the partitions have another owner, who reads this again
                consumer.commit(asynchronous=False)


def _with_kafka_python(bootstrap: str, topic: str) -> None:
    import kafka
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import CommitFailedError

    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    while True:
        found = consumer.poll(timeout_ms=100, max_records=100)
        if found:
            _tell([record.value for records in found.values() for record in records])
            with suppress(CommitFailedError):  # the partitions have another owner, who reads this again
                consumer.commit()


def _with_aiokafka(bootstrap: str, topic: str) -> None:
    asyncio.run(_with_aiokafka_forever(bootstrap, topic))


async def _with_aiokafka_forever(bootstrap: str, topic: str) -> None:
    import aiokafka
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.errors import CommitFailedError

    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    async with consumer:
        while True:
            found = await consumer.getmany(timeout_ms=100, max_records=100)
            if found:
                _tell([record.value for records in found.values() for record in records])
                with suppress(CommitFailedError):
                    await consumer.commit()


CLIENTS: dict[str, Callable[[str, str], None]] = {
    "confluent-kafka": _with_confluent_kafka,
    "kafka-python": _with_kafka_python,
    "aiokafka": _with_aiokafka,
}
"""Members of Kafka's classic protocol, by client."""
CONSUMER_PROTOCOL = "consumer-protocol"
PROGRAMS = {**CLIENTS, CONSUMER_PROTOCOL: _with_consumer_protocol}
