"""Steps of a sink's writer, for tests: batches in the form of a stage, and the verbs with defaults."""

from collections.abc import Sequence
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks.verbs import commit_epoch, stage
from goqueue.model.commands import ReadMessages
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.sinks import AbortStages, CommitEpoch, EpochEnded, StageBatches, Staged
from goqueue.node.clock import SystemClock
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.unit.broker.running import ORDERS

Ending = TypeVar("Ending", CommitEpoch, AbortStages)

SINK = "lake"


def entries(rows: Sequence[tuple[int, str]]) -> memoryview:
    """A batch of its own for each row, in one lane after the other: the partition, and the value."""
    parts = (
        encode_entry(TopicPartition(ORDERS, partition), number % len(Lane), batch_of(value))
        for number, (partition, value) in enumerate(rows)
    )
    return memoryview(bytearray(b"".join(parts)))


def batch_of(value: str) -> memoryview:
    # Of now: retention takes what is old at the first upkeep.
    [(body, _)] = encode([Message(value.encode())], now_ms=SystemClock().wall_ms())
    return body


async def put_stage(
    broker: Broker, epoch: int, stage_id: str, rows: Sequence[tuple[int, str]], generation: int = 1
) -> Staged:
    return await stage(
        broker,
        StageBatches(sink=SINK, generation=generation, epoch=epoch, stage_id=stage_id, entries=entries(rows)),
    )


async def commit(broker: Broker, epoch: int, *stage_ids: str, generation: int = 1) -> EpochEnded:
    return await commit_epoch(broker, ending(CommitEpoch, epoch, *stage_ids, generation=generation))


def ending(kind: type[Ending], epoch: int, *stage_ids: str, generation: int = 1) -> Ending:
    return kind(sink=SINK, generation=generation, epoch=epoch, stage_ids=stage_ids)


async def values(broker: Broker, partition: int) -> list[str]:
    """All that a reader of a partition sees, in order."""
    source = TopicPartition(ORDERS, partition)
    found = await read_messages(broker, ReadMessages(source=source, limit=100_000))
    return [(message.value or b"").decode() for message in found.messages]
