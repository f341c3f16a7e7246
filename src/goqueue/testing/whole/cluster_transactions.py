"""Transactions over the nodes of a simulated cluster: each is seen whole or not at all, on all partitions.

Clerks hold a transactional id each, and write a message to some partitions and an offset of a group in every
transaction. They ask whoever some node believes to lead or to coordinate, again and again, and are sometimes
given up halfway: another clerk takes the id over then. Some do not wait for what they have sent, and abort;
what arrives late must not come to count with a later transaction. Some messages are to come later: they come
if the transaction counts, and never else.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.route import route
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
from goqueue.broker.write.append import append_when_checked
from goqueue.model.commands import Append, ReadMessages
from goqueue.model.delays import DELAY_HEADER
from goqueue.model.errors import Busy, GoQueueError, Unavailable
from goqueue.model.group_commands import FetchOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.places import Command
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
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.cluster_simulation import ClusterSimulation
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.machine import Tell, replayed

LEDGER = TopicName("ledger")
PARTITIONS = 3
IDS = ("clerk-0", "clerk-1")
TIMEOUT_MS = 20_000
ANSWER_S = 10
TRIES_MAX = 12
SETTLE_S = 120
DELAYS_MS = (1, 300, 5_000)
SETTINGS = {"retention.ms": "-1"}
C = TypeVar("C", bound=Command)
T = TypeVar("T")


@dataclass(slots=True)
class Entry:
    """One transaction of a clerk."""

    number: int
    places: list[int]
    delays_ms: dict[int, int] = field(default_factory=dict)
    """Of places where its message is to come later."""
    is_commit_tried: bool = False
    is_committed: bool = False
    has_offset: bool = False

    def value(self, clerk: str) -> bytes:
        return f"{clerk}/{self.number}".encode()


@dataclass(slots=True)
class Clerk:
    name: str
    entries: list[Entry] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


class GivenUp(Exception):
    """A clerk goes no further: nobody answers it, or it was told that it may not."""


def simulate_cluster_transactions(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return TransactionsOfACluster(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=cluster-transactions") from violation


class TransactionsOfACluster(ClusterSimulation):
    """The same cluster with the same misfortunes; clerks work where groups did."""

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        super().__init__(seed, steps, tell=tell)
        self._groups: Clerks = Clerks(Random(f"clerks {seed}"), self._ready, self.counts)  # type: ignore[assignment]

    async def _create_topic(self) -> None:
        await super()._create_topic()
        node = self._ready()[0]
        command = CreateTopic(name=LEDGER, partitions=PARTITIONS, replication=self.copies, settings=SETTINGS)
        while not all(LEDGER in ready.broker.topics for ready in self._ready()):
            try:
                await asyncio.wait_for(node.life.begin(create_topic(node.broker, command)), ANSWER_S)
            except (GoQueueError, TimeoutError):
                await asyncio.sleep(1)


class Clerks:
    def __init__(self, chance: Random, ready: Callable[[], list[ClusterNode]], counts: Counter[str]) -> None:
        self._chance = chance
        self._ready = ready
        self._counts = counts
        self._clerks = [Clerk(name) for name in IDS]
        self._seen: set[tuple[str, int]] = set()
        self._looks: set[asyncio.Task[None]] = set()

    def act(self) -> None:
        """Put a clerk to work, or take one away from it, or look."""
        if self._chance.random() < 0.3:
            self._looks.add(asyncio.get_running_loop().create_task(self._look()))
            return
        clerk = self._chance.choice(self._clerks)
        if clerk.task is None:
            clerk.task = asyncio.get_running_loop().create_task(self._work(clerk))
        elif self._chance.random() < 0.1:
            clerk.task.cancel()
            clerk.task = None
            self._counts["clerks given up"] += 1

    def check(self) -> None:
        """Raise what was found out since."""
        for clerk in self._clerks:
            if clerk.task is not None and clerk.task.done():
                task, clerk.task = clerk.task, None
                if not task.cancelled():
                    task.result()
        for look in [look for look in self._looks if look.done()]:
            self._looks.discard(look)
            look.result()

    async def rest(self) -> None:
        """Return when nothing is under way."""
        tasks = [clerk.task for clerk in self._clerks if clerk.task is not None]
        if tasks or self._looks:
            await asyncio.wait([*tasks, *self._looks])
        self.check()

    async def finish(self, published: Iterable[object]) -> None:
        """All is mended: whatever is open is decided soon, and everything is whole."""
        await self.rest()
        loop = asyncio.get_running_loop()
        until_s = loop.time() + SETTLE_S
        while not (found := await read_whole(self._ready(), LEDGER, PARTITIONS)) or not self._have_come(
            found
        ):
            demand(loop.time() < until_s, "transactions stay open for ever, or what they delayed never comes")
            await asyncio.sleep(1)
        await asyncio.sleep(max(DELAYS_MS) / 1_000)  # what should not come, or comes twice, may do so yet
        while not (found := await read_whole(self._ready(), LEDGER, PARTITIONS)):
            demand(loop.time() < until_s, "transactions stay open for ever")
            await asyncio.sleep(1)
        for clerk in self._clerks:
            for entry in clerk.entries:
                self._check_entry(clerk, entry, found)
            await self._check_offset(clerk, found)

    def _have_come(self, found: dict[int, Counter[bytes]]) -> bool:
        """Whether all is there that was delayed by transactions that count."""
        for clerk in self._clerks:
            for entry in clerk.entries:
                there = [found[place][entry.value(clerk.name)] for place in entry.places]
                if (entry.is_committed or any(there)) and not all(there):
                    return False
        return True

    def _check_entry(self, clerk: Clerk, entry: Entry, found: dict[int, Counter[bytes]]) -> None:
        value = entry.value(clerk.name)
        times = [found[place][value] for place in range(PARTITIONS)]
        what = f"transaction {value.decode()} over {entry.places}"
        demand(max(times) <= 1, f"{what} is there more than once: {times}")
        elsewhere = [place for place in range(PARTITIONS) if times[place] and place not in entry.places]
        demand(not elsewhere, f"{what} is in partitions {elsewhere}")
        is_seen = any(times)
        is_whole = all(times[place] for place in entry.places)
        demand(is_seen == is_whole, f"{what} is seen in part: {times}")
        demand(is_whole or not entry.is_committed, f"{what} was committed, and is gone")
        demand(not is_seen or entry.is_commit_tried, f"{what} was never committed, and is seen")
        was_seen = (clerk.name, entry.number) in self._seen
        demand(is_seen or not was_seen, f"{what} was seen before, and is gone")
        self._counts["whole" if is_whole else "none"] += 1

    async def _check_offset(self, clerk: Clerk, found: dict[int, Counter[bytes]]) -> None:
        """The group stands where the last transaction that counts has put it."""
        wanted = max(
            (e.number for e in clerk.entries if e.has_offset and found[e.places[0]][e.value(clerk.name)]),
            default=-1,
        )
        command = FetchOffsets(group=_group(clerk), wanted=[(LEDGER, [0])])
        [told] = await self._ask(fetch_offsets, command)
        demand(told.rows[0][1] == wanted, f"{_group(clerk)} stands at {told.rows[0][1]}, not {wanted}")

    # A clerk's work.

    async def _work(self, clerk: Clerk) -> None:
        try:
            command = InitProducer(transactional_id=clerk.name, timeout_ms=TIMEOUT_MS)
            producer = await self._ask(init_transactional, command)
            sequences: Counter[int] = Counter()
            for _ in range(self._chance.randrange(1, 5)):
                after = await self._transaction(clerk, producer, sequences)
                if after != producer:
                    producer, sequences = after, Counter()
        except GivenUp:
            self._counts["clerks told off"] += 1

    async def _transaction(
        self, clerk: Clerk, producer: ProducerEpoch, sequences: Counter[int]
    ) -> ProducerEpoch:
        places = sorted(self._chance.sample(range(PARTITIONS), self._chance.randrange(1, PARTITIONS + 1)))
        delays_ms = {place: self._chance.choice(DELAYS_MS) for place in places if self._chance.random() < 0.2}
        entry = Entry(len(clerk.entries), places, delays_ms)
        clerk.entries.append(entry)
        is_second = self._chance.random() < 0.5
        if not is_second:
            targets = [TopicPartition(LEDGER, place) for place in places]
            command = AddPartitionsToTransaction(
                transactional_id=clerk.name, producer=producer, targets=targets
            )
            await self._ask(add_partitions, command)
        if self._chance.random() < 0.15:
            # What is sent and not waited for: it may arrive behind the abort, or never.
            task = asyncio.get_running_loop().create_task(
                self._put(clerk, entry, places[0], producer, sequences[places[0]], may_join=is_second)
            )
            await asyncio.sleep(self._chance.choice((0, 0.001, 0.01)))
            task.add_done_callback(_swallow)
            await self._end(clerk, producer, Marker.ABORT, is_second=is_second)
            self._counts["aborted in haste"] += 1
            raise GivenUp
        for place in places:
            await self._put(clerk, entry, place, producer, sequences[place], may_join=is_second)
            sequences[place] += 1
        if self._chance.random() < 0.4:
            await self._pend(clerk, entry, producer, is_second=is_second)
        marker = Marker.COMMIT if self._chance.random() < 0.7 else Marker.ABORT
        entry.is_commit_tried = marker is Marker.COMMIT
        after = await self._end(clerk, producer, marker, is_second=is_second)
        entry.is_committed = marker is Marker.COMMIT
        self._counts["committed" if entry.is_committed else "aborted"] += 1
        return after

    async def _put(
        self,
        clerk: Clerk,
        entry: Entry,
        place: int,
        producer: ProducerEpoch,
        sequence: int,
        *,
        may_join: bool,
    ) -> None:
        async def put(broker: Broker, command: Append) -> None:
            appended = await append_when_checked(broker, command)
            if appended.committed is not None:
                await appended.committed

        for _ in range(TRIES_MAX):
            delay_ms = entry.delays_ms.get(place)
            headers = () if delay_ms is None else ((DELAY_HEADER, b"%d" % delay_ms),)
            [(body, _)] = encode([Message(entry.value(clerk.name), headers=headers)], now_ms=1)
            stamp_producer(
                body,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=sequence,
                is_transactional=True,
            )
            command = Append(TopicPartition(LEDGER, place), body, Acks.ALL, may_join, clerk.name)
            if await self._tried(put, command, command.target):
                self._counts["delayed"] += delay_ms is not None
                return
        raise GivenUp

    async def _pend(self, clerk: Clerk, entry: Entry, producer: ProducerEpoch, *, is_second: bool) -> None:
        group = _group(clerk)
        if not is_second:
            command = AddGroupToTransaction(transactional_id=clerk.name, producer=producer, group=group)
            await self._ask(add_group, command)
        commit = TopicCommit(LEDGER, [(0, entry.number, -1, "")])
        refused = await self._ask(
            pend_offsets,
            PendOffsets(
                transactional_id=clerk.name,
                producer=producer,
                who=Membership(group, "", NO_GENERATION),
                commits=[commit],
                may_join=is_second,
            ),
        )
        demand(not refused, f"offsets were refused: {refused}")
        entry.has_offset = True

    async def _end(
        self, clerk: Clerk, producer: ProducerEpoch, marker: Marker, *, is_second: bool
    ) -> ProducerEpoch:
        if is_second:
            bumped = EndAndBump(transactional_id=clerk.name, producer=producer, marker=marker)
            return await self._ask(end_and_bump, bumped)
        command = EndTransaction(transactional_id=clerk.name, producer=producer, marker=marker)
        await self._ask(end_transaction, command)
        return producer

    # Asking.

    async def _ask(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """Ask whoever is believed to answer, until somebody does."""
        answers: list[T] = []

        async def kept(broker: Broker, command: C) -> None:
            answers.append(await verb(broker, command))

        for _ in range(TRIES_MAX):
            if await self._tried(kept, command, command.place):
                return answers[-1]
        raise GivenUp

    async def _tried(
        self, verb: Callable[[Broker, C], Coroutine[object, object, None]], command: C, place: object
    ) -> bool:
        """Whether a verb was run at whoever answers for a place. Raises GivenUp when it was refused."""
        ready = [node for node in self._ready() if LEDGER in node.broker.topics]
        try:
            looked = self._chance.choice(ready)
            [leader] = route(place, looked.broker.metadata, looked.node)  # type: ignore[arg-type]
            node = next(node for node in ready if node.node == leader)
        except (IndexError, StopIteration, GoQueueError):
            await asyncio.sleep(0.3)
            return False
        asked = node.life.begin(verb(node.broker, command))
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done:
            return False
        error = asked.exception()
        if error is None:
            return True
        demand(isinstance(error, GoQueueError), f"{type(command).__name__} failed with {error!r}")
        if not isinstance(error, Busy | Unavailable):
            raise GivenUp from error
        await asyncio.sleep(0.1)
        return False

    # Looking.

    async def _look(self) -> None:
        """What some leader shows now to a reader of committed messages was to be committed by then."""
        ready = [node for node in self._ready() if LEDGER in node.broker.topics]
        if not ready:
            return
        node, number = self._chance.choice(ready), self._chance.randrange(PARTITIONS)
        command = ReadMessages(source=TopicPartition(LEDGER, number), limit=100_000)
        asked = node.life.begin(read_messages(node.broker, command))
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done or asked.exception() is not None:
            return
        for message in asked.result().messages:
            name, _, at = (message.value or b"").decode().partition("/")
            [clerk] = [clerk for clerk in self._clerks if clerk.name == name]
            entry = clerk.entries[int(at)]
            demand(entry.is_commit_tried, f"{name}/{at} is seen, and nobody has committed it")
            self._seen.add((name, entry.number))
            self._counts["seen"] += 1


async def read_whole(nodes: list[ClusterNode], topic: TopicName, count: int) -> dict[int, Counter[bytes]]:
    """All that is committed, by partition; nothing while something is open, or a leader is missing."""
    found: dict[int, Counter[bytes]] = {}
    for number in range(count):
        values = await _read_partition(nodes, TopicPartition(topic, number))
        if values is None:
            return {}
        found[number] = values
    return found


async def _read_partition(nodes: list[ClusterNode], source: TopicPartition) -> Counter[bytes] | None:
    for node in nodes:
        partition = node.broker.topics[source.topic].partitions[source.partition]
        if not partition.is_here or not partition.is_leader or partition.transactions:
            continue
        if partition.last_stable_offset != partition.log.end_offset:
            return None
        command = ReadMessages(source=source, limit=100_000)
        read = await node.life.begin(read_messages(node.broker, command))
        return Counter(message.value or b"" for message in read.messages)
    return None


def _group(clerk: Clerk) -> str:
    return f"of-{clerk.name}"


def _swallow(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()
