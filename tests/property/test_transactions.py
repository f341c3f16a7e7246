"""Random producers, transactions and crashes against a naive model of what readers may see."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.broker.broker import Broker
from goqueue.broker.read.read import read
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.model.commands import BatchesRead, PartitionRead, Publish, Read
from goqueue.model.errors import InvalidTransactionState, ProducerFenced
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.topics import CreateTopic
from goqueue.model.transactions import Isolation
from goqueue.records.batch import open_batch
from goqueue.records.control import is_control
from tests.unit.broker.lives import Lives
from tests.unit.broker.running import ORDERS
from tests.unit.broker.transactions.transaction_steps import (
    MINUTE_MS,
    Writer,
    committed_offset,
    new_writer,
    values,
)

WRITERS = ("a", "b")
PARTITIONS = (0, 1)
Kind = Literal["put", "plain", "read up to", "commit", "abort", "take over", "time out"]
Step = tuple[Kind, str, int]
KINDS: tuple[Kind, ...] = (
    "put",
    "put",
    "put",
    "plain",
    "read up to",
    "commit",
    "abort",
    "take over",
    "time out",
)


@dataclass
class Model:
    """What should be: every message with its transaction, and what became of that."""

    log: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: {0: [], 1: []})
    """By partition: (value, number of its transaction; 0: none)."""
    is_committed: dict[int, bool] = field(default_factory=lambda: {0: True})
    """By number of transaction; those that are open are missing."""
    open: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    group_offset: int = -1
    transactions: int = 0
    values: int = 0

    def transaction_of(self, writer: str) -> int:
        if writer not in self.open:
            self.transactions += 1
            self.open[writer] = self.transactions
        return self.open[writer]

    def end(self, writer: str, *, is_committed: bool) -> None:
        if writer in self.open:
            self.is_committed[self.open.pop(writer)] = is_committed
        offset = self.pending.pop(writer, None)
        if is_committed and offset is not None:
            self.group_offset = offset

    def seen(self, partition: int) -> list[str]:
        found = []
        for value, transaction in self.log[partition]:
            if transaction not in self.is_committed:
                break
            if self.is_committed[transaction]:
                found.append(value)
        return found


class Play:
    """Carries steps out on a broker and on the model. Writers go on in the next life as if nothing was."""

    def __init__(self) -> None:
        self.model = Model()
        self.writers: dict[str, Writer] = {}

    async def begin(self, broker: Broker) -> None:
        settings = {"retention.ms": "-1"}  # the batches of these writers are as old as can be
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=len(PARTITIONS), settings=settings))
        for name in WRITERS:
            self.writers[name] = await new_writer(broker, name)

    async def live(self, steps: Sequence[Step], broker: Broker) -> None:
        for writer in self.writers.values():
            writer.broker = broker
        await self.check(broker)
        for step in steps:
            await self.carry_out(broker, *step)
            await self.check(broker)

    async def carry_out(self, broker: Broker, kind: Kind, name: str, partition: int) -> None:
        model, writer = self.model, self.writers[name]
        match kind:
            case "put":
                model.values += 1
                await writer.add(partition)
                await writer.put(partition, str(model.values))
                model.log[partition].append((str(model.values), model.transaction_of(name)))
            case "plain":
                model.values += 1
                message = Message(str(model.values).encode(), partition=partition)
                await publish(broker, Publish(topic=ORDERS, messages=[message]))
                model.log[partition].append((str(model.values), 0))
            case "read up to":
                model.values += 1
                await writer.read_up_to(model.values)
                model.transaction_of(name)
                model.pending[name] = model.values
            case "commit" | "abort":
                had_one = name in model.open
                model.end(name, is_committed=kind == "commit")
                try:
                    await (writer.commit() if kind == "commit" else writer.abort())
                except InvalidTransactionState:
                    assert not had_one
            case "take over":
                zombie = writer
                self.writers[name] = await new_writer(broker, name)
                model.end(name, is_committed=False)
                await _is_fenced(zombie)
            case "time out":
                await asyncio.sleep((MINUTE_MS + 100) / 1_000)
                for other in WRITERS:
                    if other in model.open:
                        model.end(other, is_committed=False)
                        await _is_fenced(self.writers[other])
                        self.writers[other] = await new_writer(broker, other)

    async def check(self, broker: Broker) -> None:
        for partition in PARTITIONS:
            assert await values(broker, partition) == self.model.seen(partition)
            assert await everything(broker, partition) == [value for value, _ in self.model.log[partition]]
        assert await committed_offset(broker) == self.model.group_offset


async def _is_fenced(zombie: Writer) -> None:
    for attempt in (zombie.commit, zombie.abort):
        try:
            await attempt()
        except ProducerFenced:
            continue
        raise AssertionError("a zombie was let in")


async def everything(broker: Broker, partition: int) -> list[str]:
    """What a reader of all messages sees."""
    part = PartitionRead(TopicPartition(ORDERS, partition), 0)
    [found] = await read(broker, Read(partitions=[part], isolation=Isolation.UNCOMMITTED))
    assert isinstance(found, BatchesRead)
    return [
        (message.value or b"").decode()
        for body in found.batches
        if not is_control(body)
        for message in open_batch(body, 2)
    ]


steps = st.tuples(st.sampled_from(KINDS), st.sampled_from(WRITERS), st.sampled_from(PARTITIONS))


@settings(max_examples=12, deadline=None)
@given(lives=st.lists(st.lists(steps, max_size=8), min_size=1, max_size=3), is_killed=st.booleans())
def test_readers_see_what_the_model_says_whatever_crashes(lives: list[list[Step]], is_killed: bool) -> None:
    disk = Lives(7)
    play = Play()
    disk.live(play.begin)

    for life in lives:
        disk.live(partial(play.live, life), is_killed=is_killed)
