"""Commands are carried to where they are at home, and those that come from other nodes are run here.

A command that another node sends is run here or refused, and never sent on: who sent it looks at its image
again. It is sent once more when it was not run, be it that nobody was reached, or that who was does not
lead the place; one that only looks also when its answer was lost.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, cast

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.hints import note_answer
from goqueue.broker.forwarding.route import MAYBE_RUN, NOT_RUN, route
from goqueue.broker.forwarding.table import PASSED_ON, Passed
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.errors import NotLeader, NotSupported, PartitionNotFound, TopicNotFound
from goqueue.model.ids import TopicName
from goqueue.model.places import Command
from goqueue.model.ports import Peers
from goqueue.model.topics import CatchUp

C = TypeVar("C", bound=Command)
T = TypeVar("T")

PATIENCE_MS = 5_000
"""So long a place without a leader is waited for."""
ANSWER_MS = 30_000
"""So long an answer is waited for, beyond what the command itself says."""
TELL_MS = 1_000
"""So long a change waits at most until all nodes know of it."""
_PAUSE_S = 0.1
"""Before another look: the node that was asked may have an older image than this one."""


class Forwarding:
    """How one of several nodes runs commands."""

    def __init__(self, broker: Broker, peers: Peers) -> None:
        self._broker = broker
        self._peers = peers
        self.me = NodeId(broker.config.node_id)
        self._leaders: dict[TopicName, tuple[int, Sequence[NodeId | None]]] = {}
        """Of topics that were published to, and the revision of the image that tells so."""
        self._changed = asyncio.Event()
        broker.agreement.listeners.append(self._changed.set)

    async def run(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T:
        """What a verb gives for a command, wherever that is at home."""
        passed = PASSED_ON.get(type(command))
        if passed is None:
            return await verb(self._broker, command)
        if passed.is_patient:
            return cast(T, await self._run_once(passed, command))
        patience = self.patience()
        while True:
            try:
                reply = cast(T, await self._run_once(passed, command))
                break
            except (*NOT_RUN, *MAYBE_RUN) as error:
                is_done = isinstance(error, MAYBE_RUN) and passed.is_asked_once
                if is_done or not await patience.is_worth_another_try():
                    raise
        if passed.afterwards is not None:
            await passed.afterwards(self._broker)
        return reply

    async def _run_once(self, passed: Passed, command: Command) -> object:
        if passed.gather is not None:
            return await passed.gather(self._broker, command, self)
        [node] = route(command.place, self._broker.metadata, self.me)
        return await self.run_at(node, command)

    async def run_at(self, node: NodeId, command: Command, *, answer_ms: int = ANSWER_MS) -> object:
        """What a verb gives at one node, or the error that it raises there."""
        if node == self.me:
            return await self._run_here(PASSED_ON[type(command)], command)
        wait_ms = answer_ms + getattr(command, "wait_ms", 0)
        try:
            answered = await self._peers.call(node, command, wait_ms=wait_ms)
        except (TopicNotFound, PartitionNotFound) as error:
            number = error.partition if isinstance(error, PartitionNotFound) else 0
            known = self._broker.metadata.topics.get(TopicName(str(error.topic)))
            if known is None or number >= known.partitions:
                raise
            raise NotLeader(known.name, number) from error  # it will hear of what this node knows already
        note_answer(self._broker.metadata, node)
        return answered.reply

    async def answer(self, command: Command) -> object:
        """What another node wants to know."""
        passed = PASSED_ON.get(type(command))
        if passed is None:
            raise NotSupported(f"{type(command).__name__} cannot be asked of another node")
        return await self._run_here(passed, command)

    async def _run_here(self, passed: Passed, command: Command) -> object:
        given = passed.verb(self._broker, command)
        reply = await given if inspect.isawaitable(given) else given
        if passed.is_told_to_all:
            await self._tell_all()
        return reply

    async def _tell_all(self) -> None:
        """Return when all other nodes have heard of what is agreed by now, or take too long to."""
        news = CatchUp(revision=self._broker.metadata.revision, wait_ms=TELL_MS)
        others = [node for node in self._broker.metadata.nodes if node != self.me]
        telling = [asyncio.ensure_future(self._peers.call(node, news, wait_ms=TELL_MS)) for node in others]
        if telling:
            _, late = await asyncio.wait(telling, timeout=TELL_MS / 1_000)
            for call in late:
                call.cancel()
            # Who was not reached, or takes long, hears of it by itself: nothing rests on this.
            await asyncio.gather(*telling, return_exceptions=True)

    def leaders(self, topic: Topic) -> Sequence[NodeId | None]:
        """Who leads each partition of a topic."""
        image = self._broker.metadata
        revision, leaders = self._leaders.get(topic.name, (-1, ()))
        if revision != image.revision:
            leaders = [image.record(topic, number).leader for number in range(topic.partitions)]
            self._leaders = {name: told for name, told in self._leaders.items() if told[0] == image.revision}
            self._leaders[topic.name] = image.revision, leaders
        return leaders

    def patience(self) -> "Patience":
        return Patience(self._broker, self._changed)


class Patience:
    """For one request: how long it waits for the image to tell of somebody who answers."""

    def __init__(self, broker: Broker, changed: asyncio.Event) -> None:
        self._clock = broker.clock
        self._changed = changed
        self._end_ns: int | None = None

    async def is_worth_another_try(self) -> bool:
        """Wait until something may be different; False: it has taken too long."""
        now_ns = self._clock.monotonic_ns()
        if self._end_ns is None:  # it is the first trouble: what was waited for before does not count
            self._end_ns = now_ns + PATIENCE_MS * 1_000_000
        if now_ns >= self._end_ns:
            return False
        self._changed.clear()
        try:
            async with asyncio.timeout(_PAUSE_S):
                await self._changed.wait()
        except TimeoutError:
            pass
        return True
