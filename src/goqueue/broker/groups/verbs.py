"""The verbs on consumer groups: join, sync, heartbeat, leave, describe, list, delete, disband."""

from contextlib import suppress
from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import admit_group, check_member_names, leave_assigned
from goqueue.broker.groups.assigned_views import view_assigned
from goqueue.broker.slices import Slices
from goqueue.broker.tenants.quotas import admit_member, admit_new_group
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.consumer_assignment import assigned_partitions
from goqueue.core.groups.group import Group
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.groups.members import CONSUMER, Member, subscribed_topics
from goqueue.core.groups.outcome import Outcome
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import (
    GoQueueError,
    GroupNotFound,
    ShuttingDown,
    UnknownMember,
)
from goqueue.model.group_commands import (
    DeleteGroup,
    DescribeGroup,
    DescribeGroups,
    DisbandGroup,
    Heartbeat,
    JoinGroup,
    LeaveAssigned,
    LeaveGroup,
    ListGroups,
    SyncGroup,
)
from goqueue.model.groups import (
    GroupKind,
    GroupListing,
    GroupState,
    GroupView,
    Joined,
    MemberView,
    Synced,
)
from goqueue.model.names import member_id_for


async def join_group(broker: Broker, command: JoinGroup) -> Joined:
    """Take part in the group's next generation; returns when it begins."""
    admit_group(broker, command.group)
    coordinator = broker.coordinator
    if broker.tenants.accounts:
        admit_new_group(broker, command.group)
    active = await coordinator.active(command.group)
    fresh_id = member_id_for(command.client_id, broker.new_id())
    member_id = command.member_id or fresh_id
    try:
        check_member_names(command.member_id, command.instance_id, command.client_id)
        if broker.tenants.accounts:
            members = active.group.members
            instances = (member.instance_id for member in members.values())
            newcomer = (command.member_id, command.instance_id)
            admit_member(broker, command.group, members, instances, newcomer)
        outcome = active.group.join(command, fresh_id=fresh_id, now_ns=coordinator.now_ns())
    except GoQueueError:
        # A refusal can change something too: a new member has an id now, and a while to come back with it.
        coordinator.carry_out(active, Outcome())
        raise
    waiter = coordinator.expect(active, member_id)
    coordinator.carry_out(active, outcome)
    return await coordinator.answer(active, member_id, waiter, Joined)


async def sync_group(broker: Broker, command: SyncGroup) -> Synced:
    """Learn one's assignment: at once when there is one, else when the leader has brought it."""
    admit_group(broker, command.group)
    coordinator = broker.coordinator
    active = coordinator.known_active(command.group)
    if active is None:
        raise UnknownMember(command.group, command.member_id)
    changed = active.group.sync(command, now_ns=coordinator.now_ns())
    try:
        if changed is not None:
            active.journal.submit(changed)
    except GoQueueError:
        coordinator.carry_out(active, active.group.abandon(command.member_id, now_ns=coordinator.now_ns()))
        raise
    waiter = coordinator.expect(active, command.member_id)
    coordinator.carry_out(active, active.group.answer_syncs(now_ns=coordinator.now_ns()))
    synced = await coordinator.answer(active, command.member_id, waiter, Synced)
    # An assignment that somebody acts on is one that a restart remembers.
    await active.journal.submit()
    return synced


def heartbeat(broker: Broker, command: Heartbeat) -> None:
    """A sign of life; raises what the member has to do if all is not well."""
    who = command.who
    admit_group(broker, who.group)
    record = broker.coordinator.journals.record(who.group)
    if record is None or isinstance(record.membership, AssignedGroup):
        raise UnknownMember(who.group, who.member_id)
    now_ns = broker.coordinator.now_ns()
    record.membership.heartbeat(who, now_ns=now_ns)
    broker.counters.group(who.group).beaten((broker.coordinator.now_ns() - now_ns) / 1e9)


async def leave_group(broker: Broker, command: LeaveGroup) -> list[GoQueueError | None]:
    """Members go; for each of them what was wrong, or None."""
    admit_group(broker, command.group)
    coordinator = broker.coordinator
    slices = Slices(broker.clock)
    outcomes: list[GoQueueError | None] = []
    for leaver in command.leavers:
        try:
            active = coordinator.known_active(command.group)
            if active is None:
                raise UnknownMember(command.group, leaver.member_id)
            membership, now_ns = active.membership, coordinator.now_ns()
            if isinstance(membership, AssignedGroup):
                coordinator.enact(active, membership.leave(*leaver, now_ns=now_ns))
            else:
                coordinator.carry_out(active, membership.leave(leaver, now_ns=now_ns))
            outcomes.append(None)
        except GoQueueError as error:
            outcomes.append(error)
        await slices.pause()
    return outcomes


async def delete_group(broker: Broker, command: DeleteGroup) -> None:
    """Forget a group without members, its offsets included."""
    admit_group(broker, command.group)
    journal = broker.coordinator.journals.find(command.group)
    if journal is None:
        raise GroupNotFound(command.group)
    await journal.submit(journal.groups.delete_group(command.group))


async def disband_group(broker: Broker, command: DisbandGroup) -> None:
    """Send its HTTP members away, and forget the group with its offsets. Kafka clients are not sent away."""
    view = describe_group(broker, DescribeGroup(group=command.group))
    if view.kind is GroupKind.HTTP:
        for member in view.members:
            with suppress(GroupNotFound, UnknownMember):  # it may go by itself meanwhile
                await leave_assigned(broker, LeaveAssigned(group=command.group, member_id=member.member_id))
    try:
        await delete_group(broker, DeleteGroup(group=command.group))
    except GroupNotFound:
        # With its last member a group ends by itself when it has no offsets.
        if not view.members:
            raise


def describe_group(broker: Broker, command: DescribeGroup) -> GroupView:
    """A group as it is now."""
    admit_group(broker, command.group)
    record = broker.coordinator.journals.record(command.group)
    if record is None:
        raise GroupNotFound(command.group)
    membership = record.membership
    committed = tuple(
        topic for topic, topic_id, *_ in record.offsets.topics() if topic_id in broker.metadata.names
    )
    if isinstance(membership, AssignedGroup):
        view = view_assigned(broker, membership)
        return replace(view, seen_ms=record.seen_ms, committed_topics=committed)
    is_stable = membership.state is GroupState.STABLE
    return GroupView(
        name=membership.name,
        kind=GroupKind.CLASSIC,
        state=membership.state,
        generation=membership.generation,
        protocol_type=membership.protocol_type,
        protocol=membership.protocol if is_stable else "",
        members=tuple(_classic_view(membership, member) for member in membership.members.values()),
        seen_ms=record.seen_ms,
        committed_topics=committed,
    )


async def describe_groups(broker: Broker, command: DescribeGroups) -> list[GroupView]:
    """Several groups, in the order given; what is not there, or has gone meanwhile, is left out."""
    slices = Slices(broker.clock)
    views = []
    for group in command.groups:
        with suppress(GroupNotFound):
            views.append(describe_group(broker, DescribeGroup(group=group)))
        await slices.pause()
    return views


def _classic_view(group: Group, member: Member) -> MemberView:
    """A member as its leader knows it; of consumers, who speak of topics and partitions, those as well."""
    is_stable = group.state is GroupState.STABLE
    metadata = member.metadata(group.protocol) if is_stable else b""
    assignment = member.assignment if is_stable else b""
    is_consumer = group.protocol_type == CONSUMER
    return MemberView(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        metadata=metadata,
        assignment=assignment,
        topics=tuple(sorted(subscribed_topics(metadata) or ())) if is_consumer else (),
        partitions=assigned_partitions(assignment) if is_consumer else (),
    )


def list_groups(broker: Broker, command: ListGroups) -> list[GroupListing]:
    """All groups, by name; with the broker's own, in whose names it sends dead letters back, if wanted."""
    if not broker.is_open:
        raise ShuttingDown
    journals = broker.coordinator.journals
    asked = journals if command.journals is None else map(journals.numbered, command.journals)
    found = [record for journal in asked if journal is not None for record in journal.groups]
    listings = map(_listing, found)
    shown = [one for one in listings if command.with_own or not one.name.startswith(REDRIVE_GROUP_PREFIX)]
    return sorted(shown, key=lambda listing: listing.name)


def _listing(record: GroupRecord) -> GroupListing:
    membership = record.membership
    protocol_type = membership.protocol_type if isinstance(membership, Group) else CONSUMER
    return GroupListing(membership.name, membership.state, protocol_type, record.kind)
