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

from goqueue.broker.append import append
from goqueue.broker.broker import Broker, close_broker, open_broker
from goqueue.broker.group_offsets import fetch_offsets
from goqueue.broker.read import read_messages
from goqueue.broker.topics import create_topic
from goqueue.broker.transactions import (
    add_group,
    add_partitions,
    end_and_bump,
    end_transaction,
    init_transactional,
    pend_offsets,
)
from goqueue.model.commands import Append, CreateTopic, ReadMessages
from goqueue.model.errors import GoQueueError, ShuttingDown, TopicExists
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.transactions import InitProducer, ProducerEpoch
from goqueue.records.batch import encode
from goqueue.records.control import Marker
from goqueue.records.layout import stamp_producer
from goqueue.testing.answers import Answers, PowerLost
from goqueue.testing.clock import SimulatedClock
from goqueue.testing.disk import SimulatedDisk
from goqueue.testing.loop import SimulatedLoop, Stalled
from goqueue.testing.partition_history import Violation, demand
from goqueue.testing.threads import SimulatedThreads

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


@dataclass(slots=True)
class _State:
    """What outlives the broker's lives."""

    transfers: list[Transfer] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def simulate_transactions(seed: int, steps: int) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation."""
    return TransactionSimulation(seed, steps).run()


class TransactionSimulation:
    def __init__(self, seed: int, steps: int) -> None:
        self._random = Random(seed)
        self._threads = SimulatedThreads(Random(f"threads {seed}"))
        self._chance = Random(f"broker {seed}")
        self._disk = SimulatedDisk(Random(f"disk {seed}"))
        self._clock = SimulatedClock()
        self._state = _State()
        self._steps_left = steps
        self._config = BrokerConfig(upkeep_interval_ms=self._random.choice((100, 5_000)))

    def run(self) -> Counter[str]:
        while self._steps_left > 0:
            self._live_once(is_last=False)
        self._live_once(is_last=True)
        return self._state.counts

    def _live_once(self, *, is_last: bool) -> None:
        loop = SimulatedLoop(self._clock)
        answers = Answers(loop, self._disk)
        has_lost_power = True
        try:
            has_lost_power = loop.run(self._live(answers, is_last=is_last))
        except PowerLost:
            pass
        except Stalled as stalled:
            raise Violation(f"the broker waits for what never comes: {stalled}") from stalled
        finally:
            self._disk = self._disk.crash() if has_lost_power else self._disk.kill()
            loop.abandon()
        self._clock.advance_ms(self._random.choice((0, 50, 60_000)))

    async def _live(self, answers: Answers, *, is_last: bool) -> bool:
        """Whether the power went, or may as well have."""
        if not is_last and self._random.random() < 0.2:
            answers.cut_power(after_changes=self._random.randrange(30))
        broker = await answers.wait_for(
            open_broker(
                config=self._config,
                disk=self._disk,
                clock=self._clock,
                threads=self._threads,
                chance=self._chance,
            )
        )
        life = _Life(self._random, broker, answers, self._disk, self._state)
        await life.begin()
        while self._steps_left > 0 and answers.has_power and not broker.failure.done():
            self._steps_left -= 1
            if self._random.random() < 0.05:
                break
            await life.step()
        if answers.has_power and not broker.failure.done() and self._random.random() < 0.3:
            self._state.counts["closed"] += 1
            answers.is_closing = True
            await answers.wait_for(close_broker(broker))
            await answers.settle()
        # After a failed fsync only a power cut tells the truth about what the disk holds.
        return life.is_doubtful or not answers.has_power or self._random.random() < 0.5


class _Clerk:
    """A producer that holds a transactional id in one life."""

    def __init__(self, name: str, producer: ProducerEpoch, *, has_epochs: bool) -> None:
        self.name = name
        self.producer = producer
        self.has_epochs = has_epochs
        """One for each transaction, which partitions join by their batches: the second version."""
        self.sequences: Counter[int] = Counter()
        self.is_busy = False


class _Life:
    def __init__(
        self, random: Random, broker: Broker, answers: Answers, disk: SimulatedDisk, state: _State
    ) -> None:
        self._random = random
        self._broker = broker
        self._answers = answers
        self._disk = disk
        self._state = state
        self._clerks: dict[str, _Clerk] = {}
        self.is_doubtful = False

    async def begin(self) -> None:
        """End what earlier lives have left open, and look at the books."""
        with suppress(TopicExists):
            await self._answers.wait_for(
                create_topic(self._broker, CreateTopic(name=TOPIC, partitions=PARTITIONS))
            )
        for name in CLERKS:
            self._clerks[name] = await self._answers.wait_for(self._take_over(name))
        await self._answers.wait_for(self._check_books())

    async def step(self) -> None:
        actions = {self._transfer: 30, self._replace: 3, self._wait: 15, self._misfortune: 2}
        (action,) = self._random.choices(list(actions), list(actions.values()))
        await action()
        self._answers.raise_problems()

    async def _take_over(self, name: str) -> _Clerk:
        command = InitProducer(transactional_id=name, timeout_ms=self._random.choice(_TIMEOUTS_MS))
        has_epochs = self._random.random() < 0.5
        return _Clerk(name, await init_transactional(self._broker, command), has_epochs=has_epochs)

    async def _transfer(self) -> None:
        clerk = self._clerks[self._random.choice(CLERKS)]
        if not clerk.is_busy:
            clerk.is_busy = True
            transfer = Transfer(len(self._state.transfers) + 1, f"group of {clerk.name}")
            self._state.transfers.append(transfer)
            self._answers.start(self._carry_out(clerk, transfer, Random(self._random.random())))

    async def _carry_out(self, clerk: _Clerk, transfer: Transfer, random: Random) -> None:
        marker = Marker.COMMIT if random.random() < 0.7 else Marker.ABORT
        self._note(marker.name.lower())
        try:
            await self._write(clerk, transfer, random)
            transfer.may_commit = marker is Marker.COMMIT
            await self._end(clerk, marker)
        except GoQueueError as error:
            self._note(f"refused: {error.code}")
            if isinstance(error, ShuttingDown) or not self._answers.has_power:
                return
            # It was fenced, or the disk has failed it: begin anew, which undoes what was not decided.
            await self._renew(clerk)
            return
        if self._answers.has_power:
            transfer.is_committed = marker is Marker.COMMIT
            clerk.is_busy = False

    async def _write(self, clerk: _Clerk, transfer: Transfer, random: Random) -> None:
        broker = self._broker
        partitions = random.sample(range(PARTITIONS), random.choice((1, 2, 3)))
        for partition in partitions:
            target = TopicPartition(TOPIC, partition)
            if not clerk.has_epochs:
                await add_partitions(broker, clerk.name, clerk.producer, [target])
            for _ in range(random.choice((1, 1, 2))):
                value = f"{transfer.number} {len(transfer.parts)}"
                transfer.parts.append((partition, value))
                batch = _batch_of(clerk, partition, value, now_ms=broker.clock.wall_ms())
                committed = append(broker, Append(target, batch, Acks.ALL, clerk.has_epochs)).committed
                clerk.sequences[partition] += 1
                if committed is not None:
                    await committed
        if not clerk.has_epochs:
            await add_group(broker, clerk.name, clerk.producer, transfer.group)
        who = Membership(transfer.group, "", NO_GENERATION)
        commit = TopicCommit(TOPIC, [(0, transfer.number, -1, "")])
        await pend_offsets(broker, clerk.name, clerk.producer, who, [commit], may_join=clerk.has_epochs)

    async def _end(self, clerk: _Clerk, marker: Marker) -> None:
        if not clerk.has_epochs:
            await end_transaction(self._broker, clerk.name, clerk.producer, marker)
            return
        before = clerk.producer
        clerk.producer = await end_and_bump(self._broker, clerk.name, before, marker)
        clerk.sequences.clear()
        again = await end_and_bump(self._broker, clerk.name, before, marker)
        demand(again == clerk.producer, f"{clerk.name} was told {clerk.producer} and then {again}")
        self._note("bumped")

    async def _renew(self, clerk: _Clerk) -> None:
        with suppress(GoQueueError):
            self._clerks[clerk.name] = await self._take_over(clerk.name)

    async def _replace(self) -> None:
        """Another process takes an id over while the first is at work: a zombie from here on."""
        self._note("taken over")
        clerk = self._clerks[self._random.choice(CLERKS)]
        self._answers.start(self._renew(clerk))

    async def _wait(self) -> None:
        await self._answers.sleep(self._random.choice(_WAITS_MS))

    async def _misfortune(self) -> None:
        which = self._random.randrange(4)
        if which == 0:
            self._note("power cut ahead")
            self._answers.cut_power(after_changes=self._random.randrange(40))
        elif which == 1:
            self._note("failing fsync")
            self._answers.break_something()
            self.is_doubtful = True
            self._disk.faults.fail_syncs(under=f"logs/{TOPIC}/{self._random.randrange(PARTITIONS)}/")
        elif which == 2:
            self._note("full disk")
            self._answers.break_something()
            self._disk.fill_up(after_bytes=self._random.choice((0, 300, 3_000)))
        elif self._answers.has_power:
            self._note("mend")
            self._answers.mend()

    async def _check_books(self) -> None:
        """Everything is decided now: what is there must be whole, and what was answered must hold."""
        shown: Counter[tuple[int, str]] = Counter()
        for number in range(PARTITIONS):
            source = TopicPartition(TOPIC, number)
            partition = self._broker.partition(source)
            demand(
                partition.last_stable_offset == partition.high_watermark,
                f"{source} is held back by {partition.transactions.all()}",
            )
            found = await read_messages(self._broker, ReadMessages(source=source, limit=100_000))
            shown.update((number, (message.value or b"").decode()) for message in found.messages)
        newest: dict[str, int] = {}
        for transfer in self._state.transfers:
            counts = {shown.pop(part, 0) for part in transfer.parts}
            what = f"transfer {transfer.number}, of which {transfer.parts} was sent, is there {counts} times"
            if transfer.is_committed is None and counts:
                transfer.is_committed = transfer.may_commit and counts == {1}
            demand(counts <= {1 if transfer.is_committed else 0}, what)
            if transfer.is_committed:
                newest[transfer.group] = transfer.number
        demand(not shown, f"nobody has written {dict(shown)}")
        for group, number in newest.items():
            [kept] = await fetch_offsets(self._broker, group, [(TOPIC, [0])])
            demand(kept.rows[0][1] == number, f"{group} stands at {kept.rows[0][1]}, not {number}")

    def _note(self, what: str) -> None:
        self._state.counts[what] += 1


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
