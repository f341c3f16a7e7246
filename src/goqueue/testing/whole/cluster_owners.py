"""Members of a cooperative group in a simulated cluster: no partition has two owners, whoever coordinates.

Members join, heartbeat, let go of what they are told to, and leave; they ask any node, and may not hear what
came of it. Each believes what it was told last. Sessions are long, so nobody is put out.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.groups.assigned import (
    heartbeat_assigned,
    join_assigned,
    leave_assigned,
    revoke_partitions,
)
from goqueue.model.errors import GoQueueError, GroupNotFound, IllegalGeneration, UnknownMember
from goqueue.model.group_commands import HeartbeatAssigned, JoinAssigned, LeaveAssigned, RevokePartitions
from goqueue.model.groups import Membership, Reconciliation, Sharing
from goqueue.model.ids import TopicName
from goqueue.model.places import Command
from goqueue.testing.whole.cluster_node import ClusterNode
from goqueue.testing.whole.member_history import MemberGroup, SimulatedMember
from goqueue.testing.whole.partition_history import demand

C = TypeVar("C", bound=Command)
T = TypeVar("T")
GROUP = "owners"
MEMBERS_MAX = 3
ANSWER_S = 30
LONG_MS = 1_800_000


class ClusterOwners:
    def __init__(
        self,
        topic: TopicName,
        chance: Random,
        ready: Callable[[], list[ClusterNode]],
        counts: Counter[str],
    ) -> None:
        """`ready`: the nodes that can be asked."""
        self._topic = topic
        self._chance = chance
        self._ready = ready
        self._counts = counts
        self._group = MemberGroup(GROUP, Sharing.COOPERATIVE)
        self._tasks: set[asyncio.Task[None]] = set()

    def act(self) -> None:
        """Have one member do something, if it does not wait for an answer."""
        group = self._group
        if len(group.members) < MEMBERS_MAX and self._chance.random() < 0.2:
            group.member_count += 1
            group.members.append(SimulatedMember(f"m{group.member_count}", [self._topic]))
        if not group.members:
            return
        member = self._chance.choice(group.members)
        if not member.is_busy and self._ready():
            member.is_busy = True  # from now on, and not only when its task has its turn
            self._tasks.add(asyncio.get_running_loop().create_task(self._step(member)))

    def check(self) -> None:
        """Raise what was found out since."""
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()
        self._group.check_owners({member.member_id for member in self._group.members}, wall_ms=0)

    async def rest(self) -> None:
        """Return when nobody waits for an answer."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
            self.check()

    async def _step(self, member: SimulatedMember) -> None:
        try:
            if not member.member_id:
                await self._join(member)
            elif self._chance.random() < 0.05:
                await self._leave(member)
            elif member.to_revoke and self._chance.random() < 0.7:
                await self._let_go(member)
            else:
                who = Membership(GROUP, member.member_id, member.generation)
                self._hear(member, await self._ask(heartbeat_assigned, HeartbeatAssigned(who)))
        finally:
            member.is_busy = False

    async def _join(self, member: SimulatedMember) -> None:
        command = JoinAssigned(
            group=GROUP,
            client_id=member.name,
            topics=[self._topic],
            sharing=Sharing.COOPERATIVE,
            session_timeout_ms=LONG_MS,
            rebalance_timeout_ms=LONG_MS,
        )
        joined = await self._ask(join_assigned, command)
        if joined is not None and not isinstance(joined, GoQueueError):
            member.member_id, member.generation = joined.member_id, joined.generation
            member.owned = frozenset(joined.partitions)
            self._counts["members"] += 1

    async def _let_go(self, member: SimulatedMember) -> None:
        """Stop reading first, and say so then."""
        revoked = sorted(member.to_revoke)
        member.owned -= member.to_revoke
        member.to_revoke = frozenset()
        who = Membership(GROUP, member.member_id, member.generation)
        self._hear(member, await self._ask(revoke_partitions, RevokePartitions(who=who, revoked=revoked)))

    async def _leave(self, member: SimulatedMember) -> None:
        self._group.members.remove(member)
        await self._ask(leave_assigned, LeaveAssigned(group=GROUP, member_id=member.member_id))

    def _hear(self, member: SimulatedMember, told: Reconciliation | GoQueueError | None) -> None:
        if isinstance(told, UnknownMember | GroupNotFound):
            member.end_session()
        elif isinstance(told, IllegalGeneration):
            member.lose_everything()
        elif isinstance(told, Reconciliation):
            member.generation = told.generation
            member.to_revoke = frozenset(told.to_revoke)
            member.owned = frozenset(told.assigned) | member.to_revoke
            self._counts["heartbeats"] += 1

    async def _ask(self, verb: Callable[[Broker, C], Awaitable[T]], command: C) -> T | GoQueueError | None:
        """What any node answers, or the error that it raises; None: nobody answers."""
        ready = self._ready()
        if not ready:
            return None
        node = self._chance.choice(ready)

        async def run() -> T:
            return await at_home(node.broker, verb, command)

        asked = node.life.begin(run())
        done, _ = await asyncio.wait({asked}, timeout=ANSWER_S)
        if not done or asked.cancelled():
            return None
        if (error := asked.exception()) is not None:
            demand(isinstance(error, GoQueueError), f"{type(command).__name__} failed with {error!r}")
            assert isinstance(error, GoQueueError)
            return error
        return asked.result()
