"""Exactly-once sinks over the nodes of a simulated cluster: each epoch is seen once and whole, or not at all.

Queries write epochs to a sink each, as Spark does: tasks stage, some more than once, and a driver commits
what counts. A driver is given up at any moment, or thought to be dead while it lives; another takes the next
generation then, learns which epoch was the last, and runs the one behind it again with the same rows. What a
driver begins to commit when another has been given the sink is never seen.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks.verbs import abort_stages, commit_epoch, stage, take_generation
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import Busy, GoQueueError, SinkFenced, StageNotFound, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, Message
from goqueue.model.places import Command
from goqueue.model.sinks import AbortStages, CommitEpoch, StageBatches, TakeGeneration
from goqueue.model.topics import CreateTopic
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.cluster_simulation import ClusterSimulation
from goqueue.testing.whole.cluster_transactions import read_whole
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.machine import Tell, replayed

LAKE = TopicName("lake")
PARTITIONS = 3
SETTINGS = {"retention.ms": "-1"}
QUERIES = ("copy", "clean")
ROWS_MAX = 4
TRIES_MAX = 15
ANSWER_S = 20
SETTLE_S = 180
C = TypeVar("C", bound=Command)
T = TypeVar("T")


@dataclass(slots=True)
class Attempt:
    """One try of an epoch by one driver."""

    epoch: int
    number: int
    rows: int
    is_tried: bool = False
    is_fenced: bool = False
    """It was tried when another driver had been given the sink."""

    def values(self, query: str) -> list[bytes]:
        return [f"{query}/{self.epoch}/{row}/{self.number}".encode() for row in range(self.rows)]


@dataclass(slots=True)
class Query:
    name: str
    epoch: int = 0
    """The one that its checkpoint says is next."""
    rows: list[int] = field(default_factory=list)
    """How many each epoch has."""
    attempts: list[Attempt] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    """Epochs of which a driver heard that they are committed, be it from the sink when it began."""
    runs: int = 0
    newest: int = 0
    """The newest generation that a driver was given."""
    drivers: list["asyncio.Task[None]"] = field(default_factory=list)

    def begin(self, epoch: int, chance: Random) -> Attempt:
        while len(self.rows) <= epoch:
            self.rows.append(chance.randrange(1, ROWS_MAX + 1))
        attempt = Attempt(epoch, len(self.attempts), self.rows[epoch])
        self.attempts.append(attempt)
        return attempt


class GivenUp(Exception):
    """A driver goes no further: nobody answers it, or it was told that it may not."""


def simulate_cluster_sinks(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return SinksOfACluster(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=cluster-sinks") from violation


class SinksOfACluster(ClusterSimulation):
    """The same cluster with the same misfortunes; drivers work where groups did."""

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        super().__init__(seed, steps, tell=tell)
        self._groups: Queries = Queries(Random(f"queries {seed}"), self._ready, self.counts)  # type: ignore[assignment]

    async def _create_topic(self) -> None:
        await super()._create_topic()
        node = self._ready()[0]
        command = CreateTopic(name=LAKE, partitions=PARTITIONS, replication=self.copies, settings=SETTINGS)
        while not all(LAKE in ready.broker.topics for ready in self._ready()):
            try:
                await asyncio.wait_for(node.life.begin(create_topic(node.broker, command)), ANSWER_S)
            except (GoQueueError, TimeoutError):
                await asyncio.sleep(1)


class Queries:
    def __init__(self, chance: Random, ready: Callable[[], list[ClusterNode]], counts: Counter[str]) -> None:
        self._chance = chance
        self._ready = ready
        self._counts = counts
        self._queries = {name: Query(name) for name in QUERIES}
        self._seen: set[tuple[str, int]] = set()
        self._looks: set[asyncio.Task[None]] = set()

    def act(self) -> None:
        """Start a driver, take one away, start a second one beside it, or look."""
        loop = asyncio.get_running_loop()
        if self._chance.random() < 0.3:
            self._looks.add(loop.create_task(self._look()))
            return
        query = self._queries[self._chance.choice(QUERIES)]
        luck = self._chance.random()
        if query.drivers and luck < 0.08:
            query.drivers.pop(0).cancel()
            self._counts["drivers given up"] += 1
        elif not query.drivers or luck < 0.12:
            query.runs += 1
            query.drivers.append(loop.create_task(self._drive(query, query.runs)))

    def check(self) -> None:
        """Raise what was found out since."""
        for query in self._queries.values():
            for driver in [driver for driver in query.drivers if driver.done()]:
                query.drivers.remove(driver)
                if not driver.cancelled():
                    driver.result()
        for look in [look for look in self._looks if look.done()]:
            self._looks.discard(look)
            look.result()

    async def rest(self) -> None:
        """Return when nothing is under way."""
        drivers = [driver for query in self._queries.values() for driver in query.drivers]
        if drivers or self._looks:
            await asyncio.wait([*drivers, *self._looks])
        self.check()

    async def finish(self, published: Iterable[object]) -> None:
        """All is mended: nothing stays open, and a driver that starts now finds what is there."""
        await self.rest()
        for query in self._queries.values():
            query.runs += 1
            await self._drive(query, query.runs, is_last=True)
            demand(query.epoch in query.done, f"{query.name} cannot go on, though nothing is wrong")
        loop = asyncio.get_running_loop()
        until_s = loop.time() + SETTLE_S
        while not (found := await read_whole(self._ready(), LAKE, PARTITIONS)):
            demand(loop.time() < until_s, "epochs stay open for ever")
            await asyncio.sleep(1)
        shown = sum(found.values(), Counter[bytes]())
        replaced = [value for value in shown if value.endswith(b"/replaced")]
        demand(not replaced, f"what was replaced before it was committed is there: {replaced}")
        for query in self._queries.values():
            self._check_query(query, shown)

    def _check_query(self, query: Query, shown: Counter[bytes]) -> None:
        for epoch in range(len(query.rows)):
            attempts = [attempt for attempt in query.attempts if attempt.epoch == epoch]
            there = [attempt for attempt in attempts if any(shown[v] for v in attempt.values(query.name))]
            what = f"epoch {epoch} of {query.name}"
            demand(len(there) <= 1, f"{what} is there from several attempts: {there}")
            demand(bool(there) or epoch not in query.done, f"{what} was committed, and is not there")
            for attempt in there:
                times = [shown[value] for value in attempt.values(query.name)]
                demand(set(times) == {1}, f"{what} is not there once and whole: {times}")
                demand(attempt.is_tried, f"{what} is there, and nobody has committed it")
                demand(not attempt.is_fenced, f"{what} is there from a driver that was shut out: {attempt}")
            was_seen = any((query.name, attempt.number) in self._seen for attempt in attempts)
            demand(bool(there) or not was_seen, f"{what} was seen before, and is gone")
            self._counts["epochs there" if there else "epochs not there"] += 1

    # A driver's work.

    async def _drive(self, query: Query, run: int, *, is_last: bool = False) -> None:
        try:
            taken = await self._ask(
                take_generation, TakeGeneration(sink=query.name, run=f"run-{run}", writer=query.name)
            )
            query.newest = max(query.newest, taken.generation)
            last = max(query.done, default=-1)
            demand(last <= taken.last_epoch, f"{query.name}: {last} is committed, {taken.last_epoch} is told")
            query.done.update(range(taken.last_epoch + 1))
            query.epoch = max(query.epoch, taken.last_epoch)
            for _ in range(self._chance.randrange(1, 5)):
                if query.epoch in query.done:
                    query.epoch += 1
                await self._run_epoch(query, taken.generation, may_abort=not is_last)
        except GivenUp:
            self._counts["drivers told off"] += 1

    async def _run_epoch(self, query: Query, generation: int, *, may_abort: bool) -> None:
        epoch = query.epoch
        attempt = query.begin(epoch, self._chance)
        names: list[str] = []
        values = attempt.values(query.name)
        cut = self._chance.randrange(len(values) + 1)
        for task, rows in enumerate(share for share in (values[:cut], values[cut:]) if share):
            # The same names as in other attempts of the epoch: what was staged last is what counts.
            name = f"task-{task}"
            luck = self._chance.random()
            if luck < 0.2:  # an attempt of a task that fails behind its write
                await self._stage(query, epoch, generation, f"{name}-failed", rows)
            elif luck < 0.4:
                await self._stage(query, epoch, generation, name, [f"{query.name}/{epoch}/replaced".encode()])
            await self._stage(query, epoch, generation, name, rows)
            names.append(name)
        if may_abort and self._chance.random() < 0.1:
            command = AbortStages(sink=query.name, generation=generation, epoch=epoch, stage_ids=names)
            await self._ask(abort_stages, command)
            self._counts["aborted"] += 1
            return
        attempt.is_tried, attempt.is_fenced = True, query.newest > generation
        commit = CommitEpoch(sink=query.name, generation=generation, epoch=epoch, stage_ids=names)
        ended = await self._ask(commit_epoch, commit)
        query.done.add(epoch)
        self._counts["committed again" if ended.is_duplicate else "committed"] += 1

    async def _stage(self, query: Query, epoch: int, generation: int, name: str, rows: list[bytes]) -> None:
        entries = b"".join(self._entry(row) for row in rows)
        command = StageBatches(
            sink=query.name,
            generation=generation,
            epoch=epoch,
            stage_id=name,
            entries=memoryview(bytearray(entries)),
        )
        await self._ask(stage, command)

    def _entry(self, row: bytes) -> bytes:
        target = TopicPartition(LAKE, self._chance.randrange(PARTITIONS))
        [(batch, _)] = encode([Message(row)], now_ms=1)
        return encode_entry(target, self._chance.choice((Lane.NORMAL, Lane.LOW)), batch)

    async def _ask(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """Ask any node, until one answers. Raises GivenUp when it is refused."""

        async def ask(broker: Broker) -> T:
            return await at_home(broker, verb, command)

        for _ in range(TRIES_MAX):
            ready = [node for node in self._ready() if LAKE in node.broker.topics]
            if not ready:
                await asyncio.sleep(0.5)
                continue
            node = self._chance.choice(ready)
            asked = node.life.begin(ask(node.broker))
            done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
            if not done:
                continue
            error = asked.exception()
            if error is None:
                return asked.result()
            demand(isinstance(error, GoQueueError), f"{type(command).__name__} failed with {error!r}")
            if isinstance(error, SinkFenced | StageNotFound):
                self._counts[error.code] += 1
                raise GivenUp from error
            demand(isinstance(error, Busy | Unavailable), f"{type(command).__name__} was refused: {error!r}")
            await asyncio.sleep(0.3)
        raise GivenUp

    # Looking.

    async def _look(self) -> None:
        """What some leader shows now to a reader of committed messages was to be committed by then."""
        ready = [node for node in self._ready() if LAKE in node.broker.topics]
        if not ready:
            return
        node, number = self._chance.choice(ready), self._chance.randrange(PARTITIONS)
        command = ReadMessages(source=TopicPartition(LAKE, number), limit=100_000)
        asked = node.life.begin(read_messages(node.broker, command))
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done or asked.exception() is not None:
            return
        for message in asked.result().messages:
            demand(not (message.value or b"").endswith(b"/replaced"), f"{message.value!r} is seen")
            name, _, _, at = (message.value or b"").decode().split("/")
            attempt = self._queries[name].attempts[int(at)]
            demand(attempt.is_tried, f"{name}, {attempt} is seen, and nobody has committed it")
            demand(not attempt.is_fenced, f"{name}, {attempt} is seen, and its driver was shut out")
            self._seen.add((name, attempt.number))
            self._counts["rows seen"] += 1
