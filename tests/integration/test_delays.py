"""Delayed messages and a real process that is killed, again and again, while they fall due."""

import time

import httpx
import pytest

from tests.integration.clients import create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ROUNDS = 3
MESSAGES_A_ROUND = 400
PARTITIONS = 2


def test_kill_9_while_messages_fall_due_loses_none_and_doubles_none(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "later", partitions=PARTITIONS)
    stored: list[str] = []
    for round_ in range(ROUNDS):
        messages = [
            {"value": f"{round_}-{n}", "partition": n % PARTITIONS, "delay": f"{n * 5}ms"}
            for n in range(1, MESSAGES_A_ROUND + 1)
        ]
        reply = httpx.post(f"{broker.http}/topics/later/messages", json={"messages": messages}, timeout=20)
        assert all("error" not in result for result in reply.json()["results"])
        stored += [str(message["value"]) for message in messages]
        _until(broker, len(stored) - MESSAGES_A_ROUND // 2)
        broker.kill()
        broker.start()

    _until(broker, len(stored))

    found = read_all(broker.kafka, "later", partitions=PARTITIONS)
    delivered = [value for values in found.values() for value in values]
    assert sorted(bytes(value).decode() for value in delivered) == sorted(stored)
    assert httpx.get(f"{broker.http}/delay/stats").json()["total_pending"] == 0


def _until(broker: RunningBroker, count: int) -> None:
    """Return when so many messages have been delivered."""
    deadline = time.monotonic() + 60
    while True:
        topic = httpx.get(f"{broker.http}/topics/later", timeout=20).json()
        if topic["total_messages"] >= count:
            return
        assert time.monotonic() < deadline, f"{topic['total_messages']} of {count} were delivered"
