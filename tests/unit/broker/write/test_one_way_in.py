"""All messages get into partitions through one step, and one place asks whether they are there already."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import goqueue.broker
from goqueue.broker.appending import (
    LONG_AGO,
    UPWARDS,
    OwnWrites,
    append_once,
    batches_of,
    numbered_batches,
)
from goqueue.broker.broker import Broker
from goqueue.broker.storage.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.errors import OutOfSequence, StorageFailed
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from tests.unit.broker.delays.delayed_world import ORDERS, World

ROOM = Path(goqueue.broker.__file__).parent
PRODUCER = 7
JOURNALS = {"storage/journal.py"}
"""What is written there is no message of a topic: events of the broker's own, and messages that wait."""


def calls(name: str) -> Iterator[tuple[str, str]]:
    """Where a method of that name is called in the broker, and on what."""
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield path.relative_to(ROOM).as_posix(), ast.unparse(node.func.value)


def test_only_the_last_step_appends_to_partitions() -> None:
    writers = {path for path, what in calls("append") if what.endswith(("partition", "quarantine"))}
    assert writers == {"appending.py"} | JOURNALS


def test_only_one_place_asks_whether_a_batch_is_stored_already() -> None:
    assert {path for path, _ in calls("duplicate")} == {"appending.py"}


def numbered(first: int, *values: bytes) -> list[CheckedBatch]:
    messages = [Message(value) for value in values]
    return numbered_batches(messages, producer_id=PRODUCER, producer_epoch=0, first=first, now_ms=1)


def partition_of(broker: Broker) -> Partition:
    return broker.partition(TopicPartition(ORDERS, 0))


def test_what_is_numbered_is_stored_once_and_what_is_not_each_time() -> None:
    async def life(broker: Broker) -> None:
        partition = partition_of(broker)
        assert append_once(partition, numbered(0, b"a", b"b")) == (0, True)
        assert append_once(partition, numbered(0, b"a", b"b")) == (0, False)
        assert append_once(partition, numbered(1, b"b")) == (1, False)
        for offset in (2, 3):
            assert append_once(partition, batches_of([Message(b"c")], now_ms=1)) == (offset, True)
        with pytest.raises(OutOfSequence):
            append_once(partition, numbered(5, b"gap"))
        assert append_once(partition, numbered(5, b"gap"), UPWARDS) == (4, True)

    World().run(life)


def test_what_was_stored_too_long_ago_is_there_and_nobody_knows_where() -> None:
    async def life(broker: Broker) -> None:
        partition = partition_of(broker)
        for number in range(10):
            append_once(partition, numbered(number, b"x"))
        assert append_once(partition, numbered(0, b"x")) == (LONG_AGO, False)

    World().run(life)


def test_a_write_of_the_brokers_own_does_not_count_when_its_partition_was_opened_anew() -> None:
    async def life(broker: Broker) -> None:
        partition = partition_of(broker)
        written = OwnWrites()
        written.append_once(partition, numbered(0, b"a"))
        await written.durable()
        assert partition.log.flushed_offset == 1
        partition.leader_epoch += 1
        with pytest.raises(StorageFailed):
            await written.durable()

    World().run(life)
