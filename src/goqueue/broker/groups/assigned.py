"""The verbs on groups whose partitions the broker assigns: join, heartbeat, revoke, leave, and who owns what.

Whatever a member is told, it acts on. So a reply that brings news waits until the disk has them: after a
crash no generation is given out a second time with other partitions.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned_views import view_member, view_rebalances, view_reconciliation
from goqueue.broker.groups.coordinator import ActiveGroup
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import admit_group_owner, admit_member, admit_new_group
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.events import HolderKept
from goqueue.core.groups.holder import Holder
from goqueue.core.groups.outcome import Outcome
from goqueue.core.groups.rebalances import summed
from goqueue.model.errors import (
    GoQueueError,
    GroupNotFound,
    Invalid,
    ShuttingDown,
    UnknownMember,
)
from goqueue.model.group_commands import (
    DescribeAssignment,
    DescribeRebalances,
    DescribeSharing,
    HeartbeatAssigned,
    JoinAssigned,
    LeaveAssigned,
    RevokePartitions,
)
from goqueue.model.groups import (
    AssignedMember,
    GroupKind,
    Membership,
    RebalanceStats,
    Reconciliation,
    Sharing,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import checked_group_name, checked_name, member_id_for


async def join_assigned(broker: Broker, command: JoinAssigned) -> AssignedMember:
    """Become a member, or come back as one: what it may read from at once, in which generation.

    A group of another kind or sharing refuses with InconsistentProtocol.
    """
    topics = tuple(dict.fromkeys(map(TopicName, command.topics)))
    if not topics:
        raise Invalid("a member names at least one topic")
    for topic in topics:
        broker.topic(topic)
    active = await enter(broker, command.group)
    is_known = command.member_id in active.membership.members
    member_id = command.member_id if is_known else member_id_for(command.client_id, broker.new_id())
    kept = HolderKept(
        member_id=member_id,
        instance_id=None,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=command.session_timeout_ms,
        rebalance_timeout_ms=command.rebalance_timeout_ms,
        topics=topics,
        pattern=None,
        assignor=command.assignor,
        joined_ms=broker.clock.wall_ms(),
    )
    is_in_order = command.key_order and command.sharing is Sharing.SHARED
    terms = Terms(GroupKind.HTTP, command.sharing, is_in_order)
    active, group, holder = await take_in(broker, command.group, terms, kept, claimed=None)
    joined = view_member(group, holder)
    await active.journal.submit()
    return joined


async def heartbeat_assigned(broker: Broker, command: HeartbeatAssigned) -> Reconciliation:
    """A sign of life. Generation 0 is not checked: so a member learns the one that counts."""
    active, group = at_work(broker, command.who)
    now_ns = broker.coordinator.now_ns()
    broker.coordinator.enact(active, group.heartbeat(command.who, now_ns=now_ns))
    return await tell_alive(broker, active, group, group.member(command.who.member_id), heard_ns=now_ns)


async def revoke_partitions(broker: Broker, command: RevokePartitions) -> Reconciliation:
    """A member has let go of partitions; refused with NotRebalancing when it was not asked to."""
    active, group = at_work(broker, command.who)
    broker.coordinator.enact(
        active, group.release(command.who, command.revoked, now_ns=broker.coordinator.now_ns())
    )
    return await tell(broker, active, group, group.member(command.who.member_id))


async def leave_assigned(broker: Broker, command: LeaveAssigned) -> None:
    """A member goes for good."""
    active, left = at_work(broker, Membership(command.group, command.member_id, 0))
    broker.coordinator.enact(active, left.leave(command.member_id, now_ns=broker.coordinator.now_ns()))
    await active.journal.submit()


def assignment_of(broker: Broker, command: DescribeAssignment) -> AssignedMember:
    """A member and what it may read from now."""
    _, found = at_work(broker, Membership(command.group, command.member_id, 0))
    return view_member(found, found.member(command.member_id))


def owned_partitions(broker: Broker, who: Membership) -> Sequence[TopicPartition]:
    """What a member may lease from now; a sign of life. Generation 0 is not checked.

    Waits for nothing: leases are written to the same journal, behind what they rest upon.
    """
    active, group = at_work(broker, who)
    now_ns = broker.coordinator.now_ns()
    if group.is_reconciling(who.member_id):
        # Members that poll and never heartbeat take what has become free, too.
        broker.coordinator.enact(active, group.heartbeat(who, now_ns=now_ns))
    return group.readable(who, now_ns=now_ns)


def sharing_of(broker: Broker, command: DescribeSharing) -> tuple[Sharing, bool] | None:
    """How members share partitions, and whether in order of keys; None: nobody is assigned anything there."""
    terms = terms_of(broker, command.group)
    return None if terms is None else (terms.sharing, terms.key_order)


def terms_of(broker: Broker, group: str) -> Terms | None:
    """What the members of a group have agreed on; None: nobody is assigned anything there."""
    record = broker.coordinator.journals.record(group)
    if record is None or not isinstance(record.membership, AssignedGroup):
        return None
    return record.membership.terms


def rebalance_stats(broker: Broker, command: DescribeRebalances) -> RebalanceStats:
    """Of one group, or over all there are and were."""
    if command.group is None:
        journals = list(broker.coordinator.journals)
        found = [record.membership for journal in journals for record in journal.groups]
        counts = [one.rebalances for one in found if isinstance(one, AssignedGroup)]
        return view_rebalances(broker, summed([*counts, *(journal.groups.ended for journal in journals)]))
    record = broker.coordinator.journals.record(command.group)
    if record is None:
        raise GroupNotFound(command.group)
    if not isinstance(record.membership, AssignedGroup):
        return RebalanceStats()
    return view_rebalances(broker, record.membership.rebalances)


def admit_group(broker: Broker, group: str) -> None:
    """Refuse requests that cannot be taken, whatever they want of a group."""
    if not broker.is_open:
        raise ShuttingDown
    if not group:
        checked_group_name(group)
    if broker.tenants.accounts:
        admit_group_owner(broker, group)


async def enter(broker: Broker, group: str) -> ActiveGroup:
    """A group at work, which may begin by this."""
    admit_group(broker, group)
    if broker.tenants.accounts:
        admit_new_group(broker, group)
    return await broker.coordinator.active(group)


async def take_in(
    broker: Broker, name: str, terms: Terms, kept: HolderKept, *, claimed: Sequence[TopicPartition] | None
) -> tuple[ActiveGroup, AssignedGroup, Holder]:
    """Let a member in, new or come back, and have it take what is free."""
    async with foreseen(broker, await enter(broker, name), terms, kept):
        active = await enter(broker, name)  # the group may have ended and begun again meanwhile
        coordinator, now_ns = broker.coordinator, broker.coordinator.now_ns()
        try:
            group = active.record.as_assigned()
            check_member_names(kept.member_id, kept.instance_id, kept.client_id)
            if broker.tenants.accounts:
                instances = (holder.kept.instance_id for holder in group.members.values())
                admit_member(broker, name, group.members, instances, (kept.member_id, kept.instance_id))
            coordinator.enact(active, group.follow(broker.topic_counts, now_ns=now_ns))
            coordinator.enact(active, group.join(terms, kept, now_ns=now_ns))
            coordinator.enact(active, group.arrive(kept.member_id, claimed=claimed, now_ns=now_ns))
        except GoQueueError:
            # A group that did not come about leaves nothing behind.
            coordinator.carry_out(active, Outcome())
            raise
        return active, group, group.member(kept.member_id)


@asynccontextmanager
async def foreseen(
    broker: Broker, active: ActiveGroup, terms: Terms, kept: HolderKept
) -> AsyncIterator[None]:
    """What a member that comes or wants something else means for all is worked out in slices before.

    One member of a group after the other: each that comes makes what was foreseen for another worthless.
    Without members there is nobody to take anything from, and nothing to wait for.
    """
    if not isinstance(active.membership, AssignedGroup) or not active.membership.members:
        yield
        return
    async with active.foreseeing:
        if isinstance(active.membership, AssignedGroup):
            await Slices(broker.clock).walk(active.membership.foresee(terms, kept))
        yield


def check_member_names(member_id: str, instance_id: str | None, client_id: str) -> None:
    """Refuse a member under names that cannot be; a classic one has no id before its group gives it one."""
    if member_id:
        checked_name(member_id, "a member id")
    if instance_id is not None:
        checked_name(instance_id, "an instance id")
    if client_id:
        checked_name(client_id, "a client id")


def at_work(broker: Broker, who: Membership) -> tuple[ActiveGroup, AssignedGroup]:
    """A group that has members, up to date with the topics there are."""
    admit_group(broker, who.group)
    active = broker.coordinator.known_active(who.group)
    if active is None:
        if broker.coordinator.journals.record(who.group) is None:
            raise GroupNotFound(who.group)
        raise UnknownMember(who.group, who.member_id)
    group = active.membership
    if not isinstance(group, AssignedGroup):
        raise UnknownMember(who.group, who.member_id)
    broker.coordinator.enact(active, group.follow(broker.topic_counts, now_ns=broker.coordinator.now_ns()))
    return active, group


async def tell(broker: Broker, active: ActiveGroup, group: AssignedGroup, holder: Holder) -> Reconciliation:
    """What a member hears, once the disk has it."""
    is_news = holder.told != (holder.epoch, holder.owned)
    reconciliation = view_reconciliation(broker, group, holder)
    if is_news:
        await active.journal.submit()
    return reconciliation


async def tell_alive(
    broker: Broker, active: ActiveGroup, group: AssignedGroup, holder: Holder, *, heard_ns: int
) -> Reconciliation:
    """The same to a member that has given a sign of life, which is counted once it is answered."""
    told = await tell(broker, active, group, holder)
    broker.counters.group(group.name).beaten((broker.coordinator.now_ns() - heard_ns) / 1e9)
    return told
