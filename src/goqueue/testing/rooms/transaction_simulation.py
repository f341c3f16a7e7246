"""Transactions on a simulated machine, through crashes and failing disks: each whole or absent.

A row of lives, as in the simulation of the whole broker. Clerks write transactions over several partitions
and move a group's offset with each, some by the first version of Kafka's protocol and some by the second;
power, disks and clocks fail. When a life begins, every id is taken over,
which ends what was open, and then the books are read: what was answered must hold, what was under way may
have happened or not, but not by half.
"""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import fetch_offsets
from goqueue.broker.read.read import read_messages
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import (
    add_group,
    add_partitions,
    end_and_bump,
    end_transaction,
    init_transactional,
    pend_offsets,
)
from goqueue.broker.write.append import append
from goqueue.model.commands import Append, ReadMessages
from goqueue.model.errors import GoQueueError, ShuttingDown, TopicExists
from goqueue.model.group_commands import FetchOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import (
    AddGroupToTransaction,
    AddPartitionsToTransaction,
    EndAndBump,
    EndTransaction,
    InitProducer,
    PendOffsets,
)
from goqueue.model.transactions import Marker, ProducerEpoch
from goqueue.records.batch import encode
from goqueue.records.layout import stamp_producer
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.rooms.room_simulation import Habits, RoomLife, RoomSimulation
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.world.machine import Tell

TOPIC = TopicName("ledger")
PARTITIONS = 3
CLERKS = ("ada", "bob", "eve")
_TIMEOUTS_MS = (500, 60_000)
_WAITS_MS = (0, 0, 1, 10, 100, 700, 6_000)


@dataclass(slots=True)
class Transfer:
    """One transaction: what it wrote, and what was heard of its end."""

    number: int
    group: str
    parts: list[tuple[int, str]] = field(default_factory=list)
    """(partition, value) of each message that was sent."""
    is_committed: bool | None = None
    """None: nobody knows."""
    may_commit: bool = False
    """Somebody has asked for the commit."""
    is_seen: bool = False
    """Somebody has read of it: it is committed for good, answered or not."""


class TransactionSimulation(RoomSimulation):
    what = "transactions"
    habits = Habits(opening_changes=30, end_share=0.05, close_share=0.3, down_ms=(0, 50, 60_000))

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        self._transfers: list[Transfer] = []
        super().__init__(seed, steps, tell=tell)

    def choose_config(self) -> BrokerConfig:
        return BrokerConfig(upkeep_interval_ms=self.random.choice((100, 5_000)))

    def new_life(self, broker: Broker, answers: Answers) -> RoomLife:
        return _Life(self, broker, answers, self._transfers)


class _Clerk:
    """A producer that holds a transactional id in one life."""

    def __init__(self, name: str, producer: ProducerEpoch, *, has_epochs: bool) -> None:
        self.name = name
        self.producer = producer
        self.has_epochs = has_epochs
        """One for each transaction, which partitions join by their batches: the second version."""
        self.sequences: Counter[int] = Counter()
        self.is_busy = False


class _Life(RoomLife):
    def __init__(
        self, simulation: RoomSimulation, broker: Broker, answers: Answers, transfers: list[Transfer]
    ) -> None:
        super().__init__(simulation, broker, answers)
        self._transfers = transfers
        self._clerks: dict[str, _Clerk] = {}

    async def begin(self) -> None:
        """End what earlier lives have left open, and look at the books."""
        with suppress(TopicExists):
            await self.answers.wait_for(
                create_topic(self.broker, CreateTopic(name=TOPIC, partitions=PARTITIONS))
            )
        for name in CLERKS:
            self._clerks[name] = await self.answers.wait_for(self._take_over(name))
        await self.answers.wait_for(self._check_books())

    async def step(self) -> None:
        actions = {
            self._transfer: 30,
            self._look: 6,
            self._replace: 3,
            self._wait: 15,
            self._misfortune: 2,
        }
        (action,) = self.random.choices(list(actions), list(actions.values()))
        await action()
        self.answers.raise_problems()

    async def _take_over(self, name: str) -> _Clerk:
        command = InitProducer(transactional_id=name, timeout_ms=self.random.choice(_TIMEOUTS_MS))
        has_epochs = self.random.random() < 0.5
        return _Clerk(name, await init_transactional(self.broker, command), has_epochs=has_epochs)

    async def _transfer(self) -> None:
        clerk = self._clerks[self.random.choice(CLERKS)]
        if not clerk.is_busy:
            clerk.is_busy = True
            transfer = Transfer(len(self._transfers) + 1, f"group of {clerk.name}")
            self._transfers.append(transfer)
            self.answers.start(self._carry_out(clerk, transfer, Random(self.random.random())))

    async def _carry_out(self, clerk: _Clerk, transfer: Transfer, random: Random) -> None:
        marker = Marker.COMMIT if random.random() < 0.7 else Marker.ABORT
        self.note(marker.name.lower())
        try:
            await self._write(clerk, transfer, random)
            transfer.may_commit = marker is Marker.COMMIT
            await self._end(clerk, marker)
        except GoQueueError as error:
            self.note(f"refused: {error.code}")
            if isinstance(error, ShuttingDown) or not self.answers.has_power:
                return
            # It was fenced, or the disk has failed it: begin anew, which undoes what was not decided.
            await self._renew(clerk)
            return
        if self.answers.has_power:
            transfer.is_committed = marker is Marker.COMMIT
            clerk.is_busy = False

    async def _write(self, clerk: _Clerk, transfer: Transfer, random: Random) -> None:
        broker = self.broker
        partitions = random.sample(range(PARTITIONS), random.choice((1, 2, 3)))
        for partition in partitions:
            target = TopicPartition(TOPIC, partition)
            if not clerk.has_epochs:
                await add_partitions(
                    broker,
                    AddPartitionsToTransaction(
                        transactional_id=clerk.name, producer=clerk.producer, targets=[target]
                    ),
                )
            for _ in range(random.choice((1, 1, 2))):
                value = f"{transfer.number} {len(transfer.parts)}"
                transfer.parts.append((partition, value))
                batch = _batch_of(clerk, partition, value, now_ms=broker.clock.wall_ms())
                committed = append(broker, Append(target, batch, Acks.ALL, clerk.has_epochs)).committed
                clerk.sequences[partition] += 1
                if committed is not None:
                    await committed
        if not clerk.has_epochs:
            await add_group(
                broker,
                AddGroupToTransaction(
                    transactional_id=clerk.name, producer=clerk.producer, group=transfer.group
                ),
            )
        who = Membership(transfer.group, "", NO_GENERATION)
        commit = TopicCommit(TOPIC, [(0, transfer.number, -1, "")])
        await pend_offsets(
            broker,
            PendOffsets(
                transactional_id=clerk.name,
                producer=clerk.producer,
                who=who,
                commits=[commit],
                may_join=clerk.has_epochs,
            ),
        )

    async def _end(self, clerk: _Clerk, marker: Marker) -> None:
        if not clerk.has_epochs:
            await end_transaction(
                self.broker,
                EndTransaction(transactional_id=clerk.name, producer=clerk.producer, marker=marker),
            )
            return
        before = clerk.producer
        clerk.producer = await end_and_bump(
            self.broker, EndAndBump(transactional_id=clerk.name, producer=before, marker=marker)
        )
        clerk.sequences.clear()
        again = await end_and_bump(
            self.broker, EndAndBump(transactional_id=clerk.name, producer=before, marker=marker)
        )
        demand(again == clerk.producer, f"{clerk.name} was told {clerk.producer} and then {again}")
        self.note("bumped")

    async def _renew(self, clerk: _Clerk) -> None:
        with suppress(GoQueueError):
            self._clerks[clerk.name] = await self._take_over(clerk.name)

    async def _replace(self) -> None:
        """Another process takes an id over while the first is at work: a zombie from here on."""
        self.note("taken over")
        clerk = self._clerks[self.random.choice(CLERKS)]
        self.answers.start(self._renew(clerk))

    async def _look(self) -> None:
        """Read at any moment, also while clerks are at work."""
        source = TopicPartition(TOPIC, self.random.randrange(PARTITIONS))
        try:
            found = await self.answers.wait_for(
                read_messages(self.broker, ReadMessages(source=source, limit=100_000))
            )
        except GoQueueError as error:
            self.answers.permit(error)
            return
        for message in found.messages:
            number = int((message.value or b"").split()[0])
            self._transfers[number - 1].is_seen = True

    async def _wait(self) -> None:
        await self.answers.sleep(self.random.choice(_WAITS_MS))

    async def _misfortune(self) -> None:
        which = self.random.randrange(7)
        if which == 0:
            self.cut_power(within_changes=40)
        elif which == 1:
            self.fail_syncs(TOPIC, PARTITIONS)
        elif which == 2:
            self.fill_disk(0, 300, 3_000)
        elif which == 3:
            self.fail_reads(f"logs/{TOPIC}/")
        elif which == 4:
            self.set_clock(-3_000, -50, 2_000)
        elif which == 5:
            self.stand_still(100, 5_000, 40_000)
        else:
            self.mend()

    async def _check_books(self) -> None:
        """Everything is decided now: what is there must be whole, and what was answered must hold."""
        shown: Counter[tuple[int, str]] = Counter()
        for number in range(PARTITIONS):
            source = TopicPartition(TOPIC, number)
            partition = self.broker.partition(source)
            demand(
                partition.last_stable_offset == partition.commit_mark,
                f"{source} is held back by {partition.transactions.all()}",
            )
            found = await read_messages(self.broker, ReadMessages(source=source, limit=100_000))
            shown.update((number, (message.value or b"").decode()) for message in found.messages)
        newest: dict[str, int] = {}
        for transfer in self._transfers:
            counts = {shown.pop(part, 0) for part in transfer.parts}
            what = f"transfer {transfer.number}, of which {transfer.parts} was sent, is there {counts} times"
            if transfer.is_committed is None and counts:
                transfer.is_committed = transfer.may_commit and counts == {1}
            demand(counts <= {1 if transfer.is_committed else 0}, what)
            demand(counts == {1} or not transfer.is_seen, f"{what}, and somebody has read of it")
            if transfer.is_committed:
                newest[transfer.group] = transfer.number
        demand(not shown, f"nobody has written {dict(shown)}")
        for group, number in newest.items():
            [kept] = await fetch_offsets(self.broker, FetchOffsets(group=group, wanted=[(TOPIC, [0])]))
            demand(kept.rows[0][1] == number, f"{group} stands at {kept.rows[0][1]}, not {number}")


def _batch_of(clerk: _Clerk, partition: int, value: str, *, now_ms: int) -> memoryview:
    [(body, _)] = encode([Message(value.encode())], now_ms=now_ms)
    stamp_producer(
        body,
        producer_id=clerk.producer.producer_id,
        producer_epoch=clerk.producer.epoch,
        base_sequence=clerk.sequences[partition],
        is_transactional=True,
    )
    return body


simulate_transactions = TransactionSimulation.simulate
