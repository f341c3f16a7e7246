"""Groups of a simulated cluster: a work queue and a reader that commits, asked for at any node.

What was settled or committed, and answered so, holds whoever coordinates the group then: a settled message
does not come again, and offsets stand where they were put. While one coordinator stays, a message is out with
one consumer at a time; a lease may be lost with its coordinator, so messages may come early.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.forwarding.route import route
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.groups.journal import OFFSETS_TOPIC
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.storage.journal_set import journal_number
from goqueue.model.delivery import Action, Poll, Receipt, Settle
from goqueue.model.errors import GoQueueError, GroupNotFound, UnknownMember
from goqueue.model.group_commands import CommitOffsets, FetchOffsets, JoinAssigned
from goqueue.model.groups import NO_GENERATION, Membership, Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.places import Command
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.group_clients import commits_of
from goqueue.testing.whole.group_history import GroupHistory
from goqueue.testing.whole.partition_history import Violation, demand

C = TypeVar("C", bound=Command)
T = TypeVar("T")
Place = tuple[int, int]
"""A partition and an offset."""
QUEUE, READERS = "workers", "readers"
JOURNAL = TopicPartition(OFFSETS_TOPIC, journal_number(QUEUE))
CONSUMERS = ("ann", "ben")
ANSWER_S = 30
"""Whoever gets no answer for so long gives up; what was asked for may be done or not."""
SESSION_MS = 1_800_000
VISIBILITY_MS = 3_000
DRAIN_S = 120
TOPIC_SETTINGS = {"goqueue.retries.max": "1000", "goqueue.retry.backoff.ms": "100"}
"""Nothing becomes a dead letter, so that everything must be settled in the end."""


class Unanswered(Exception):
    """Nobody knows whether it was done."""


class ClusterGroups:
    def __init__(
        self,
        topic: TopicName,
        partitions: int,
        chance: Random,
        ready: Callable[[], list[ClusterNode]],
        counts: Counter[str],
        epoch_of: Callable[[TopicPartition], int],
    ) -> None:
        """`ready`: the nodes that can be asked; `epoch_of`: of a partition, by what is agreed."""
        self._topic = topic
        self._partitions = partitions
        self._chance = chance
        self._ready = ready
        self._counts = counts
        self._epoch_of = epoch_of
        self._members: dict[str, str] = {}
        self._busy: set[str] = set()
        self._taken: list[tuple[Place, str]] = []
        """What consumers have and have not settled, with receipts."""
        self._out: dict[Place, tuple[float, int]] = {}
        """Until when a message is out at least, and the journal's epoch when it was asked for."""
        self._settled_s: dict[Place, float] = {}
        """When it was answered that a message is settled."""
        self._doubtful: set[Place] = set()
        """It was to be settled, and nobody answered."""
        self._offsets = GroupHistory(READERS)
        self._tasks: set[asyncio.Task[None]] = set()

    def act(self) -> None:
        """Begin something."""
        steps = {self._take: 5, self._settle: 6, self._commit: 4, self._look: 2}
        (step,) = self._chance.choices(list(steps), list(steps.values()))
        self._begin(step())

    async def rest(self) -> None:
        """Return when nothing is under way."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
            self.check()

    def check(self) -> None:
        """Raise what was found out since."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def finish(self, published: Iterable[Place]) -> None:
        """All is mended: what was published is settled soon, and offsets stand."""
        wanted = set(published)
        until_s = _now_s() + DRAIN_S
        while left := wanted - self._settled_s.keys() - self._doubtful:
            if _now_s() > until_s:
                raise Violation(f"{len(left)} messages are never handed out: {sorted(left)[:5]}")
            await self._take(limit=100)
            await self._settle(is_all=True)
            await asyncio.sleep(0.05)
        until_s = _now_s() + DRAIN_S
        while not await self._look():
            demand(_now_s() < until_s, "offsets of a group are never told")
            await asyncio.sleep(0.1)

    # The work queue.

    async def _take(self, limit: int = 5) -> None:
        name = self._chance.choice(CONSUMERS)
        if name in self._busy:
            return
        self._busy.add(name)
        try:
            await self._take_as(name, limit)
        finally:
            self._busy.discard(name)

    async def _take_as(self, name: str, limit: int) -> None:
        try:
            if name not in self._members:
                command = JoinAssigned(
                    group=QUEUE,
                    client_id=name,
                    topics=[self._topic],
                    sharing=Sharing.SHARED,
                    session_timeout_ms=SESSION_MS,
                )
                self._members[name] = (await self._ask(join_assigned, command)).member_id
            sent_s, epoch = _now_s(), self._epoch_of(JOURNAL)
            polled = await self._ask(
                poll,
                Poll(
                    group=QUEUE,
                    member_id=self._members[name],
                    limit=limit,
                    wait_ms=self._chance.choice((0, 0, 500)),
                    visibility_ms=VISIBILITY_MS,
                ),
            )
        except (UnknownMember, GroupNotFound):
            self._members.pop(
                name, None
            )  # it joined, and its coordinator died before that was known to others
            return
        except (Unanswered, GoQueueError):
            self._counts["polls refused"] += 1
            return
        for (topic, partition), nonce, messages, counts in polled.parts:
            for message in messages:
                place = (partition, message.offset)
                settled_s = self._settled_s.get(place)
                demand(
                    settled_s is None or settled_s > sent_s,
                    f"{place} was settled at {settled_s}, and came to who asked at {sent_s}",
                )
                self._check_lease(place, sent_s, epoch)
                receipt = Receipt(topic, partition, message.offset, counts.get(message.offset, 1), nonce)
                self._taken.append((place, str(receipt)))
                self._counts["polled"] += 1

    def _check_lease(self, place: Place, sent_s: float, epoch: int) -> None:
        until_s, before = self._out.get(place, (0.0, 0))
        is_same = before == self._epoch_of(JOURNAL) > 0
        demand(not is_same or _now_s() >= until_s, f"{place} is out until {until_s}, and came once more")
        self._out[place] = (sent_s + VISIBILITY_MS / 1_000, epoch)

    async def _settle(self, *, is_all: bool = False) -> None:
        count = len(self._taken) if is_all else self._chance.randint(1, 4)
        chosen, self._taken = self._taken[:count], self._taken[count:]
        if not chosen:
            return
        action = Action.ACK if is_all or self._chance.random() < 0.8 else Action.NACK
        command = Settle(action=action, receipts=[receipt for _, receipt in chosen])
        places = [place for place, _ in chosen]
        for place in places:
            self._out.pop(place, None)
        try:
            outcome = await self._ask(settle, command)
        except (Unanswered, GoQueueError):
            self._doubtful |= set(places) if action is Action.ACK else set()
            return
        for number, place in enumerate(places):
            if action is not Action.ACK:
                continue
            refusal = outcome.refusals.get(number)
            if refusal is None:
                self._settled_s.setdefault(place, _now_s())
                self._counts["settled"] += 1
            elif refusal.code == "already_settled":
                self._doubtful.add(place)
            elif refusal.code not in ("lease_lost", "receipt_not_found"):
                self._doubtful.add(place)  # a part of the request was not answered

    # Committed offsets.

    async def _commit(self) -> None:
        if self._offsets.is_busy:
            return
        with self._offsets.busy():
            number = self._chance.randrange(self._partitions)
            at = TopicPartition(self._topic, number)
            offsets = {at: self._offsets.certain.get(at, 0) + self._chance.randint(0, 3)}
            command = CommitOffsets(Membership(READERS, "", NO_GENERATION), commits_of(offsets))
            self._offsets.ask(offsets)
            try:
                refusals = await self._ask_coordinator(commit_offsets, command)
            except (Unanswered, GoQueueError):
                return
            if not refusals:
                self._offsets.acknowledge(offsets)
                self._counts["commits"] += 1

    async def _look(self) -> bool:
        """Whether it was told where the group stands."""
        if self._offsets.is_busy:
            return False
        with self._offsets.busy():
            try:
                found = await self._ask(fetch_offsets, FetchOffsets(group=READERS, wanted=None))
            except (Unanswered, GoQueueError):
                return False
            rows = {TopicPartition(commit.topic, row[0]): row[1] for commit in found for row in commit.rows}
            self._offsets.check(rows, in_doubt=set(), is_alone=False)
        return True

    # Asking.

    async def _ask(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """What any node answers. Raises Unanswered, and what the verb raises."""
        ready = self._ready()
        if not ready:
            raise Unanswered
        return await self._run(self._chance.choice(ready), verb, command)

    async def _ask_coordinator(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """The same of who some node believes to answer: what Kafka's clients do."""
        ready = {node.node: node for node in self._ready()}
        if not ready:
            raise Unanswered
        known_by = self._chance.choice(list(ready.values()))
        [home] = route(command.place, known_by.broker.metadata, known_by.node)
        if home not in ready:
            raise Unanswered
        return await self._run(ready[home], verb, command)

    async def _run(self, node: ClusterNode, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        async def run() -> T:
            return await at_home(node.broker, verb, command)

        asked = node.life.begin(run())
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done or asked.cancelled():
            raise Unanswered
        error = asked.exception()
        if error is not None and not isinstance(error, GoQueueError):
            raise Violation(f"{type(command).__name__} failed with {error!r}") from error
        return asked.result()

    def _begin(self, work: Awaitable[object]) -> None:
        async def do() -> None:
            await work

        self._tasks.add(asyncio.get_running_loop().create_task(do()))


def _now_s() -> float:
    return asyncio.get_running_loop().time()
