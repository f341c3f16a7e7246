"""Simulated members of groups: they join, heartbeat, commit, stand still, come back as zombies, die.

Whatever happens to them and to the broker, no partition has two owners, zombies are refused, and when
everybody is well again every partition finds an owner.
"""

from collections.abc import Awaitable, Callable, Coroutine

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import (
    heartbeat_assigned,
    join_assigned,
    leave_assigned,
    revoke_partitions,
)
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.verbs import describe_group
from goqueue.model.errors import (
    GoQueueError,
    GroupNotFound,
    IllegalGeneration,
    NotPartitionOwner,
    NotRebalancing,
    TopicNotFound,
    UnknownMember,
)
from goqueue.model.group_commands import (
    CommitOffsets,
    DescribeGroup,
    HeartbeatAssigned,
    JoinAssigned,
    LeaveAssigned,
    RevokePartitions,
)
from goqueue.model.groups import Membership, Reconciliation
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.testing.rooms.answers import Answers
from goqueue.testing.whole.group_clients import commits_of, permit_absence
from goqueue.testing.whole.member_history import MemberGroup, SimulatedMember
from goqueue.testing.whole.partition_history import demand
from goqueue.testing.whole.story import Story

STEP_SHARE = 0.5
MEMBERS_MAX = 4
ROUNDS_MAX = 70
"""Rounds of heartbeats in which a group must find its peace: longer than a session and a revocation."""
_ROUND_MS = 2_000
_PAUSES_MS = (5_000, 20_000, 40_000, 100_000)
_NS_PER_MS = 1_000_000


class MemberClients:
    """What members do in one life of a broker."""

    def __init__(self, story: Story, broker: Broker, answers: Answers) -> None:
        self._story = story
        self._random = story.group_random
        self._broker = broker
        self._answers = answers

    async def act(self) -> None:
        """One step of one member, if it is not waiting for an answer."""
        if not self._story.member_groups or self._random.random() >= STEP_SHARE:
            return
        group = self._random.choice(self._story.member_groups)
        self._check_owners(group)
        if self._random.random() < 0.02:
            await self._find_peace(group)
        elif len(group.members) < MEMBERS_MAX and self._random.random() < 0.15:
            self._begin(group)
        elif group.members:
            await self._step(group, self._random.choice(group.members))

    async def _step(self, group: MemberGroup, member: SimulatedMember) -> None:
        if member.is_busy or self._is_paused(member):
            return
        if not member.member_id:
            self._start(member, self._join(group, member))
            return
        steps: dict[Callable[[MemberGroup, SimulatedMember], Coroutine[object, object, None]], int] = {
            self._heartbeat: 12,
            self._commit: 6,
            self._pause: 1,
            self._leave: 1,
            self._die: 1,
        }
        (step,) = self._random.choices(list(steps), list(steps.values()))
        self._start(member, step(group, member))

    def _start(self, member: SimulatedMember, step: Coroutine[object, object, None]) -> None:
        """A member does one thing after the other."""

        async def alone() -> None:
            try:
                await step
            finally:
                member.is_busy = False

        member.is_busy = True
        self._answers.start(alone())

    def _begin(self, group: MemberGroup) -> None:
        topics = [t.name for t in self._story.topics.values() if t.partitions and None not in t.shapes]
        if topics:
            group.member_count += 1
            chosen = self._random.sample(sorted(topics), self._random.randint(1, len(topics)))
            group.members.append(SimulatedMember(f"{group.name}-{group.member_count}", chosen))

    async def _join(self, group: MemberGroup, member: SimulatedMember) -> None:
        self._story.note("join group", member.name)
        command = JoinAssigned(
            group=group.name, client_id=member.name, topics=member.topics, sharing=group.sharing
        )
        try:
            joined = await join_assigned(self._broker, command)
            if self._answers.has_power:
                member.member_id, member.generation = joined.member_id, joined.generation
                member.owned = frozenset(joined.partitions)
        except TopicNotFound as error:
            # Its topic was deleted; it would ask for ever.
            if all(topic in self._story.topics for topic in member.topics):
                permit_absence(self._story, self._answers, str(error.topic), error)
            group.members.remove(member)
        self._check_owners(group)

    async def _heartbeat(self, group: MemberGroup, member: SimulatedMember) -> None:
        self._story.note("heartbeat", member.name)
        who = Membership(group.name, member.member_id, member.generation)
        await self._hear(group, member, heartbeat_assigned(self._broker, HeartbeatAssigned(who)))
        if member.to_revoke and self._random.random() < 0.7:
            await self._let_go(group, member)

    async def _let_go(self, group: MemberGroup, member: SimulatedMember) -> None:
        """Stop reading first, and say so then."""
        self._story.note("let go", f"{member.name} {len(member.to_revoke)}")
        revoked = sorted(member.to_revoke)
        member.owned -= member.to_revoke
        member.to_revoke, member.revocation_ms = frozenset(), None
        who = Membership(group.name, member.member_id, member.generation)
        await self._hear(
            group, member, revoke_partitions(self._broker, RevokePartitions(who=who, revoked=revoked))
        )

    async def _commit(self, group: MemberGroup, member: SimulatedMember) -> None:
        """Commit a little further for what it believes to own; a zombie is refused."""
        # What it is to let go of may be of a topic that is gone.
        owned = member.believes(wall_ms=self._broker.clock.wall_ms())
        there = {partition.source for partition in self._story.partitions()}
        believed = sorted(owned & there)
        if group.is_busy or not believed:
            return
        offsets = {at: group.certain.get(at, 0) + self._random.randint(0, 5) for at in believed}
        self._story.note("commit as member", f"{member.name} {len(offsets)} partitions")
        who = Membership(group.name, member.member_id, member.generation)
        fresh = group.ask(offsets)
        try:
            with group.busy():
                was_member = member.member_id in self._known_ids(group)
                refusals = await commit_offsets(self._broker, CommitOffsets(who, commits_of(offsets)))
                if self._answers.has_power:
                    demand(was_member, f"{member.name} is no member of {group.name}, yet it could commit")
                    for target, refusal in refusals.items():
                        permit_absence(self._story, self._answers, target.topic, refusal)
                    group.acknowledge({at: o for at, o in offsets.items() if at not in refusals})
        except (UnknownMember, GroupNotFound):
            group.withdraw(fresh)
            self._check_was_silent(group, member)
            member.end_session()
        except NotPartitionOwner:
            group.withdraw(fresh)

    async def _pause(self, group: MemberGroup, member: SimulatedMember) -> None:
        duration_ms = self._random.choice(_PAUSES_MS)
        self._story.note("pause member", f"{member.name} {duration_ms} ms")
        member.paused_until_ns = self._broker.clock.monotonic_ns() + duration_ms * _NS_PER_MS

    async def _leave(self, group: MemberGroup, member: SimulatedMember) -> None:
        self._story.note("leave group", member.name)
        group.members.remove(member)
        try:
            await leave_assigned(self._broker, LeaveAssigned(group=group.name, member_id=member.member_id))
        except (UnknownMember, GroupNotFound):
            return

    async def _die(self, group: MemberGroup, member: SimulatedMember) -> None:
        self._story.note("member dies", member.name)
        group.members.remove(member)

    async def _hear(
        self, group: MemberGroup, member: SimulatedMember, request: Awaitable[Reconciliation]
    ) -> None:
        """What the broker says of where a member stands."""
        try:
            told = await request
            if self._answers.has_power:
                member.generation = told.generation
                member.to_revoke = frozenset(told.to_revoke)
                member.owned = frozenset(told.assigned) | member.to_revoke
                member.revocation_ms = told.revocation_deadline_ms
        except (UnknownMember, GroupNotFound):
            member.end_session()
        except IllegalGeneration:
            member.lose_everything()
        except NotRebalancing:
            pass  # it was taken away meanwhile
        self._check_owners(group)

    async def _find_peace(self, group: MemberGroup) -> None:
        """Let everybody wake up and heartbeat: in a while each partition has an owner."""
        if self._answers.is_in_trouble:
            return
        await self._answers.drain()
        self._story.note("find peace", group.name)
        for member in group.members:
            member.paused_until_ns = 0
        for _ in range(ROUNDS_MAX):
            for member in tuple(group.members):
                step = self._heartbeat if member.member_id else self._join
                await self._answers.wait_for(step(group, member))
            if self._is_at_peace(group):
                return
            await self._answers.sleep(_ROUND_MS)
        owned = {member.name: sorted(member.owned) for member in group.members}
        demand(False, f"group {group.name} does not come to rest: {owned} of {self._wanted(group)}")

    def _is_at_peace(self, group: MemberGroup) -> bool:
        wanted = self._wanted(group)
        if wanted is None or not group.members:
            return True
        is_at_rest = all(member.member_id and not member.to_revoke for member in group.members)
        owned = [at for member in group.members for at in member.owned]
        return is_at_rest and sorted(owned) == sorted(wanted)

    def _wanted(self, group: MemberGroup) -> set[TopicPartition] | None:
        """All partitions that members subscribe to; None when a change that failed leaves a doubt."""
        wanted: set[TopicPartition] = set()
        for topic in {topic for member in group.members for topic in member.topics}:
            known = self._story.topics.get(TopicName(topic))
            if known is None:
                continue
            if len(known.shapes) != 1:
                return None
            wanted |= {partition.source for partition in known.partitions}
        return wanted

    def _check_owners(self, group: MemberGroup) -> None:
        if self._answers.has_power:
            group.check_owners(self._known_ids(group), wall_ms=self._broker.clock.wall_ms())

    def _check_was_silent(self, group: MemberGroup, member: SimulatedMember) -> None:
        demand(
            member.member_id not in self._known_ids(group),
            f"{member.name} is a member of {group.name}, yet it is said to be none",
        )

    def _known_ids(self, group: MemberGroup) -> set[str]:
        """Whom the broker counts as members."""
        try:
            return {
                member.member_id
                for member in describe_group(self._broker, DescribeGroup(group=group.name)).members
            }
        except GoQueueError:
            return set()

    def _is_paused(self, member: SimulatedMember) -> bool:
        return self._broker.clock.monotonic_ns() < member.paused_until_ns
