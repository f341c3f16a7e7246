"""A producer with an epoch for each transaction outlives power cuts of its broker: nothing is lost or torn.

It does what Kafka's clients do: a request that was not answered is sent again as it was, and a transaction of
which a batch was refused is aborted and written anew.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import end_and_bump, pend_offsets
from goqueue.broker.write.append import append
from goqueue.model.commands import Append
from goqueue.model.errors import InvalidTransactionState, ProducerFenced, ProducerNotFound
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import EndAndBump, PendOffsets
from goqueue.model.transactions import EPOCH_MAX, Marker, ProducerEpoch
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.running import ORDERS
from tests.unit.broker.transactions.transaction_steps import (
    GROUP,
    WRITER,
    committed_offset,
    new_writer,
    transactional_batch,
    values,
)

TRANSACTIONS = 3
BATCHES = ((0, "a"), (1, "b"), (0, "c"))


async def near_the_last_epoch(broker: Broker) -> ProducerEpoch:
    """As if there had been a great many transactions: the producer id changes on the way."""
    journal = await broker.transactions.ensure(WRITER)
    known = journal.transactions.get(WRITER)
    assert known is not None
    near = replace(known, epoch=max(known.epoch, EPOCH_MAX - 1))
    await journal.submit(near)
    return near.producer


class Survivor:
    """A producer that goes on in the next life where it was."""

    def __init__(self) -> None:
        self.producer: ProducerEpoch | None = None
        self.sequences: Counter[int] = Counter()
        self.number = 0
        self.batches_sent = 0
        self.are_offsets_sent = False
        self.is_undoing = False
        self.undone = 0

    async def __call__(self, broker: Broker) -> None:
        if self.producer is None:
            await new_writer(broker)
            self.producer = await near_the_last_epoch(broker)
        while self.number < TRANSACTIONS:
            try:
                if not self.is_undoing:
                    await self._write(broker, self.producer)
                await self._end(broker, self.producer)
            except (ProducerFenced, ProducerNotFound, InvalidTransactionState):
                if self.is_undoing:  # the broker has undone it alone, and is owed a new beginning
                    self._begin((await new_writer(broker)).producer)
                self.is_undoing = not self.is_undoing
                self.undone += self.is_undoing

    async def _write(self, broker: Broker, producer: ProducerEpoch) -> None:
        for partition, name in BATCHES[self.batches_sent :]:
            body = transactional_batch(producer, f"{self.number} {name}", self.sequences[partition])
            target = TopicPartition(ORDERS, partition)
            committed = append(broker, Append(target, body, Acks.ALL, may_join=True)).committed
            if committed is not None:
                await committed
            self.sequences[partition] += 1
            self.batches_sent += 1
        if not self.are_offsets_sent:
            who = Membership(GROUP, "", NO_GENERATION)
            commit = TopicCommit(ORDERS, [(0, self.number + 1, -1, "")])
            await pend_offsets(
                broker,
                PendOffsets(
                    transactional_id=WRITER, producer=producer, who=who, commits=[commit], may_join=True
                ),
            )
            self.are_offsets_sent = True

    async def _end(self, broker: Broker, producer: ProducerEpoch) -> None:
        marker = Marker.ABORT if self.is_undoing else Marker.COMMIT
        self._begin(
            await end_and_bump(broker, EndAndBump(transactional_id=WRITER, producer=producer, marker=marker))
        )
        self.number += not self.is_undoing
        self.is_undoing = False

    def _begin(self, producer: ProducerEpoch) -> None:
        self.producer = producer
        self.sequences.clear()
        self.batches_sent = 0
        self.are_offsets_sent = False


async def prepare(broker: Broker) -> None:
    await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))


async def look(broker: Broker) -> tuple[list[str], list[str], int]:
    for partition in broker.topic(ORDERS).partitions:
        assert partition.last_stable_offset == partition.commit_mark
    return await values(broker, 0), await values(broker, 1), await committed_offset(broker)


SEEDS = (12_000, 2_000, 7_000, 17_000, 22_000)
"""What a cut takes is a matter of chance, and another one whenever the code writes otherwise."""


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # the power was cut
@pytest.mark.parametrize("is_killed", [False, True], ids=["power", "kill"])
@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_each_transaction_is_there_once_and_whole_wherever_the_power_is_cut(
    stride: int, is_killed: bool
) -> None:
    undone = 0
    for seed in SEEDS:
        undone += cut_everywhere(seed, stride, is_killed=is_killed)
        # A kill takes nothing that was written, so the broker has nothing to undo behind it.
        if is_killed or stride > 1 or undone:
            return
    raise AssertionError("no cut has lost what would have had to be undone")


def cut_everywhere(seed: int, stride: int, *, is_killed: bool) -> int:
    """Cut the power behind each change of the disk; returns how often the broker undid a transaction."""
    undone = 0
    for cut_after in range(0, NEVER, stride):
        lives = Lives(seed + cut_after)
        lives.live(prepare)
        survivor = Survivor()
        was_cut = True
        with suppress(PowerLost):
            lives.live(survivor, cut_after=cut_after, is_killed=is_killed)
            was_cut = False
        with suppress(PowerLost):
            lives.live(survivor, cut_after=cut_after % 23, is_killed=is_killed)
        lives.live(survivor)

        numbers = range(TRANSACTIONS)
        first = [f"{number} {name}" for number in numbers for name in "ac"]
        second = [f"{number} b" for number in numbers]
        assert lives.live(look) == (first, second, TRANSACTIONS), cut_after
        assert survivor.producer is not None
        assert survivor.producer.epoch < EPOCH_MAX - 1, cut_after
        undone += survivor.undone
        if not was_cut:
            break
    return undone
