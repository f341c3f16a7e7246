"""Transactional clients in processes of their own, to be killed: bank clerks, and a copier of messages.

A clerk moves amounts between accounts, each transfer one transaction of two messages in two partitions,
and tells on standard output what it is about to do and how that ended. A copier reads one topic and
writes another, its offsets within the same transactions.
"""

import asyncio
import subprocess
import sys
import threading
from random import Random
from typing import IO, Any

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

ACCOUNTS = "accounts"
PARTITIONS = 3
PATIENCE_S = 20


class Worker:
    """A process that runs one of the roles below, and the lines it prints."""

    def __init__(self, role: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "tests.integration.transaction_worker", role, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lines: list[str] = []
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End the process; all that it has printed is in `lines` then."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self, lines: IO[str]) -> None:
        # A line that a kill has cut short tells nothing.
        self.lines.extend(line.strip() for line in lines if line.endswith("\n"))


def transfer_of(chance: Random, name: str, number: int) -> tuple[str, list[tuple[int, bytes]], bool]:
    """The next transfer: its name, its two messages by partition, and whether it is to be committed."""
    transfer = f"{name}-{number}"
    source, target = chance.sample(range(PARTITIONS), 2)
    amount = chance.randint(1, 100)
    messages = [(source, f"{transfer} 0 {-amount}".encode()), (target, f"{transfer} 1 {amount}".encode())]
    return transfer, messages, chance.random() < 0.8


def clerk_of_confluent(kafka: str, transactional_id: str, seed: str) -> None:
    chance = Random(seed)
    producer = new_producer(kafka, transactional_id)
    for number in range(1_000_000):
        transfer, messages, is_committed = transfer_of(chance, f"{transactional_id}-{seed}", number)
        say("begin", transfer)
        producer.begin_transaction()
        for partition, value in messages:
            producer.produce(ACCOUNTS, value, partition=partition)
        producer.flush(PATIENCE_S)
        if is_committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
        say("committed" if is_committed else "aborted", transfer)


async def clerk_of_aiokafka(kafka: str, transactional_id: str, seed: str) -> None:
    chance = Random(seed)
    producer = AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=transactional_id)
    await producer.start()
    for number in range(1_000_000):
        transfer, messages, is_committed = transfer_of(chance, f"{transactional_id}-{seed}", number)
        say("begin", transfer)
        await producer.begin_transaction()
        for partition, value in messages:
            await producer.send_and_wait(ACCOUNTS, value, partition=partition)
        if is_committed:
            await producer.commit_transaction()
        else:
            await producer.abort_transaction()
        say("committed" if is_committed else "aborted", transfer)


def copier(kafka: str, source: str, target: str) -> None:
    """Copy for ever; whatever goes wrong, begin anew from what was committed."""
    while True:
        consumer: Any = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": "copiers",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 200,
                "reconnect.backoff.max.ms": 200,
            }
        )
        try:
            producer = new_producer(kafka, "copier")
            consumer.subscribe([source])
            while True:
                copy_some(consumer, producer, target)
        except KafkaException as error:
            say("again", str(error))
        finally:
            consumer.close()


def copy_some(consumer: Any, producer: Any, target: str) -> None:
    messages = [m for m in consumer.consume(20, timeout=0.3) if m.error() is None]
    if not messages:
        return
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        ends = {(m.topic(), m.partition()): m.offset() + 1 for m in messages}
        offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
        producer.commit_transaction(PATIENCE_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(PATIENCE_S)
        raise


def new_producer(kafka: str, transactional_id: str) -> Any:
    producer = Producer(
        {
            "bootstrap.servers": kafka,
            "transactional.id": transactional_id,
            "linger.ms": 0,
            "reconnect.backoff.max.ms": 200,
        }
    )
    producer.init_transactions(PATIENCE_S)
    return producer


def say(*words: str) -> None:
    print(*words, flush=True)


def main() -> None:
    role, *arguments = sys.argv[1:]
    if role == "aiokafka":
        asyncio.run(clerk_of_aiokafka(*arguments))
    else:
        {"confluent": clerk_of_confluent, "copier": copier}[role](*arguments)


if __name__ == "__main__":
    main()
