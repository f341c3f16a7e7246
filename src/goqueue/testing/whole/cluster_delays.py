"""Delayed messages in a simulated cluster: each comes once and not early, whoever keeps it and dies.

Senders ask any node to delay a message, and sometimes to cancel one. What was acknowledged comes once; what
was refused, or never answered, at most once; what was cancelled, and answered so, never. Clocks of nodes are
off, so a message may be early by as much, and by no more.

Some senders are producers that number their messages, as Kafka's do: a batch has messages for now and for
later, and is sent to whoever leads until somebody has taken it, and now and then once more.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import cancel_delayed
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.forwarding.route import route
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.append import append_when_checked
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Append, Publish
from goqueue.model.delays import DELIVER_AT_HEADER, CancelDelayed, Postponed
from goqueue.model.errors import Busy, DelayedNotFound, GoQueueError, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.places import Command
from goqueue.model.topics import CreateTopic
from goqueue.records.batch import encode
from goqueue.records.layout import stamp_producer
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.cluster_simulation import SKEWS_MS, ClusterSimulation, messages_of
from goqueue.testing.whole.partition_history import Violation, demand
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.machine import Tell, replayed

LATER = TopicName("later")
PARTITIONS = 3
SETTINGS = {"retention.ms": "-1"}
DELAYS_MS = (1, 50, 500, 3_000, 20_000)
ANSWER_S = 30
SETTLE_S = 180
TRY_S = 8
"""So long a producer waits for an answer before it sends a batch again."""
TRIES_MAX = 8
C = TypeVar("C", bound=Command)
T = TypeVar("T")


@dataclass(slots=True)
class Sent:
    """A message as its sender knows it."""

    partition: int
    due_ms: int
    number: int | None = None
    """By which it is known; None: nobody has answered."""
    is_cancelled: bool = False
    is_doubtful: bool = False
    """It was to be cancelled, and nobody knows whether it is."""
    is_taken: bool = False
    """A batch with it was answered."""


@dataclass(slots=True)
class Counting:
    """A producer that numbers its messages to one partition."""

    producer_id: int
    partition: int
    next_sequence: int = 0
    is_busy: bool = False


def simulate_cluster_delays(seed: int, steps: int, *, tell: Tell | None = None) -> Counter[str]:
    """Run one seed; counts what happened, or raises Violation with the command that repeats it."""
    try:
        return DelaysOfACluster(seed, steps, tell=tell).run()
    except Violation as violation:
        raise replayed(violation, seed, steps, "WHAT=cluster-delays") from violation


class DelaysOfACluster(ClusterSimulation):
    """The same cluster with the same misfortunes; senders work where groups did."""

    def __init__(self, seed: int, steps: int, *, tell: Tell | None = None) -> None:
        super().__init__(seed, steps, tell=tell)
        senders = Senders(Random(f"senders {seed}"), self._ready, self._clock, self.counts)
        self._groups: Senders = senders  # type: ignore[assignment]

    async def _create_topic(self) -> None:
        await super()._create_topic()
        node = self._ready()[0]
        command = CreateTopic(name=LATER, partitions=PARTITIONS, replication=self.copies, settings=SETTINGS)
        while not all(LATER in ready.broker.topics for ready in self._ready()):
            try:
                await asyncio.wait_for(node.life.begin(create_topic(node.broker, command)), ANSWER_S)
            except (GoQueueError, TimeoutError):
                await asyncio.sleep(1)


class Senders:
    def __init__(
        self,
        chance: Random,
        ready: Callable[[], list[ClusterNode]],
        clock: SimulatedClock,
        counts: Counter[str],
    ) -> None:
        """`clock`: the time that all others are off from."""
        self._chance = chance
        self._ready = ready
        self._clock = clock
        self._counts = counts
        self._sent: dict[bytes, Sent] = {}
        self._seen: dict[tuple[int, int], bytes] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._counting = [Counting(100 + number, number) for number in range(PARTITIONS)]

    def act(self) -> None:
        """Begin something."""
        steps = {self._send: 4, self._send_numbered: 4, self._cancel: 2, self._look: 3}
        (step,) = self._chance.choices(list(steps), list(steps.values()))
        self._tasks.add(asyncio.get_running_loop().create_task(step()))

    def check(self) -> None:
        """Raise what was found out since."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def rest(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
            self.check()

    async def finish(self, _: Iterable[object]) -> None:
        """All is mended: what was acknowledged comes, once."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + SETTLE_S
        while missing := self._wanted() - set(self._seen.values()):
            demand(loop.time() < until_s, f"{len(missing)} never came, such as {min(missing)!r}")
            await asyncio.sleep(0.5)
            await self._look()
        await asyncio.sleep(max(DELAYS_MS) / 1_000)  # what comes twice may do so a little later
        await self._look()
        times = Counter(self._seen.values())
        for value, sent in self._sent.items():
            demand(times[value] <= 1, f"{value!r} came {times[value]} times")
            demand(not sent.is_cancelled or not times[value], f"{value!r} was cancelled, and came")
        self._counts["delayed"] += len(self._wanted())
        self._counts["cancelled"] += sum(sent.is_cancelled for sent in self._sent.values())

    def _wanted(self) -> set[bytes]:
        return {
            value
            for value, sent in self._sent.items()
            if (sent.number is not None or sent.is_taken) and not sent.is_cancelled and not sent.is_doubtful
        }

    async def _send_numbered(self) -> None:
        """A batch of which some messages come later, as often as it takes and perhaps once more."""
        idle = [each for each in self._counting if not each.is_busy]
        if not idle:
            return
        counting = self._chance.choice(idle)
        counting.is_busy = True
        messages: list[Message] = []
        for _ in range(self._chance.randrange(1, 4)):
            value, now_ms = b"later %d" % len(self._sent), self._clock.wall_ms()
            is_later = self._chance.random() < 0.6
            due_ms = now_ms + self._chance.choice(DELAYS_MS) if is_later else now_ms
            self._sent[value] = Sent(counting.partition, due_ms)
            headers = ((DELIVER_AT_HEADER, b"%d" % due_ms),) if is_later else ()
            messages.append(Message(value, headers=headers))
        is_taken = await self._is_taken(counting, messages)
        if is_taken and self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.choice(DELAYS_MS) / 1_000)
            await self._is_taken(counting, messages)
            self._counts["sent once more"] += 1
        if is_taken:
            counting.next_sequence += len(messages)
            for message in messages:
                self._sent[message.value or b""].is_taken = True
            self._counts["numbered"] += len(messages)
        else:  # what has become of it nobody knows: it goes on as another
            counting.producer_id += 100
            counting.next_sequence = 0
            self._counts["numbered and given up"] += 1
        counting.is_busy = False

    async def _is_taken(self, counting: Counting, messages: list[Message]) -> bool:
        target = TopicPartition(LATER, counting.partition)
        for _ in range(TRIES_MAX):
            ready = [node for node in self._ready() if LATER in node.broker.topics]
            try:
                looked = self._chance.choice(ready)
                [leader] = route(target, looked.broker.metadata, looked.node)
                node = next(node for node in ready if node.node == leader)
            except (IndexError, StopIteration, GoQueueError):
                await asyncio.sleep(0.3)
                continue
            asked = node.life.begin(_put(node.broker, target, counting, messages))
            done, _ = await asyncio.wait({asked}, timeout=TRY_S)
            if done and (error := asked.exception()) is None:
                return True
            if done:
                demand(isinstance(error, Busy | Unavailable), f"a batch was refused with {error!r}")
            await asyncio.sleep(0.1)
        return False

    async def _send(self) -> None:
        value = b"later %d" % len(self._sent)
        sent = Sent(
            self._chance.randrange(PARTITIONS), self._clock.wall_ms() + self._chance.choice(DELAYS_MS)
        )
        self._sent[value] = sent
        message = Message(value, partition=sent.partition, due_ms=sent.due_ms)
        answer = await self._ask(publish, Publish(topic=LATER, messages=[message]))
        if isinstance(answer, list) and isinstance(answer[0], Postponed):
            sent.number = answer[0].number
        else:
            self._counts["delays refused"] += 1

    async def _cancel(self) -> None:
        chosen = [
            sent
            for sent in self._sent.values()
            if sent.number is not None and not sent.is_cancelled and not sent.is_doubtful
        ]
        if not chosen:
            return
        sent = self._chance.choice(chosen[-10:])
        assert sent.number is not None
        sent.is_doubtful = True
        command = CancelDelayed(topic=LATER, partition=sent.partition, number=sent.number)
        answer = await self._ask(cancel_delayed, command)
        if answer is None:
            sent.is_cancelled = True
        elif isinstance(answer, DelayedNotFound):
            sent.is_doubtful = False  # it has come, or comes any moment

    async def _look(self) -> None:
        """Whatever a leader shows has come."""
        now_ms = self._clock.wall_ms()
        for node in self._ready():
            topic = node.broker.topics.get(LATER)
            for partition in () if topic is None else topic.partitions:
                try:
                    if not partition.is_leader:
                        continue
                    shown = messages_of(partition, partition.commit_mark)
                except GoQueueError:
                    continue
                for offset, value in shown:
                    self._see(partition.source.partition, offset, value, now_ms)

    def _see(self, partition: int, offset: int, value: bytes, now_ms: int) -> None:
        before = self._seen.setdefault((partition, offset), value)
        demand(before == value, f"{before!r} and {value!r} were at {partition} @{offset}")
        early_ms = self._sent[value].due_ms - now_ms
        demand(early_ms <= max(SKEWS_MS), f"{value!r} came {early_ms} ms early")

    async def _ask(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T | object:
        """What any node answers, or the error that it raises."""
        ready = self._ready()
        if not ready:
            return ValueError("nobody is there")
        node = self._chance.choice(ready)

        async def run() -> T:
            return await at_home(node.broker, verb, command)

        asked = node.life.begin(run())
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done:
            return TimeoutError()
        if (error := asked.exception()) is not None:
            demand(isinstance(error, GoQueueError), f"{type(command).__name__} failed with {error!r}")
            return error
        return asked.result()


async def _put(broker: Broker, target: TopicPartition, counting: Counting, messages: list[Message]) -> None:
    [(body, _)] = encode(messages, now_ms=1)
    stamp_producer(
        body,
        producer_id=counting.producer_id,
        producer_epoch=0,
        base_sequence=counting.next_sequence,
    )
    appended = await append_when_checked(broker, Append(target, body, Acks.ALL))
    if appended.committed is not None:
        await appended.committed
