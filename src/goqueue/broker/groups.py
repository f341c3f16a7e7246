"""The verbs on consumer groups: join, sync, heartbeat, leave, describe, list, delete."""

from collections.abc import Sequence

from goqueue.broker.broker import Broker
from goqueue.core.groups.group import Outcome
from goqueue.core.groups.groups import GroupRecord
from goqueue.model.errors import (
    GoQueueError,
    GroupNotFound,
    InvalidGroupName,
    ShuttingDown,
    UnknownMember,
)
from goqueue.model.groups import (
    GroupListing,
    GroupState,
    GroupView,
    Joined,
    JoinGroup,
    Leaver,
    Membership,
    MemberView,
    PartitionLag,
    Synced,
    SyncGroup,
)
from goqueue.model.ids import TopicName, TopicPartition


async def join_group(broker: Broker, command: JoinGroup) -> Joined:
    """Take part in the group's next generation; returns when it begins."""
    _admit(broker, command.group)
    coordinator = broker.coordinator
    room = await coordinator.room(command.group)
    fresh_id = f"{command.client_id or 'member'}-{broker.new_id()}"
    member_id = command.member_id or fresh_id
    try:
        outcome = room.group.join(command, fresh_id=fresh_id, now_ns=coordinator.now_ns())
    except GoQueueError:
        # A refusal can change something too: a new member has an id now, and a while to come back with it.
        coordinator.carry_out(room, Outcome())
        raise
    waiter = coordinator.expect(room, member_id)
    coordinator.carry_out(room, outcome)
    return await coordinator.answer(room, member_id, waiter, Joined)


async def sync_group(broker: Broker, command: SyncGroup) -> Synced:
    """Learn one's assignment: at once when there is one, else when the leader has brought it."""
    _admit(broker, command.group)
    coordinator = broker.coordinator
    room = coordinator.known_room(command.group)
    if room is None:
        raise UnknownMember(command.group, command.member_id)
    changed = room.group.sync(command, now_ns=coordinator.now_ns())
    try:
        if changed is not None:
            room.journal.write(changed)
    except GoQueueError:
        coordinator.carry_out(room, room.group.abandon(command.member_id, now_ns=coordinator.now_ns()))
        raise
    waiter = coordinator.expect(room, command.member_id)
    coordinator.carry_out(room, room.group.answer_syncs(now_ns=coordinator.now_ns()))
    synced = await coordinator.answer(room, command.member_id, waiter, Synced)
    # An assignment that somebody acts on is one that a restart remembers.
    await room.journal.settled()
    return synced


def heartbeat(broker: Broker, who: Membership) -> None:
    """A sign of life; raises what the member has to do if all is not well."""
    _admit(broker, who.group)
    record = broker.coordinator.journals.record(who.group)
    if record is None:
        raise UnknownMember(who.group, who.member_id)
    record.membership.heartbeat(who, now_ns=broker.coordinator.now_ns())


def leave_group(broker: Broker, group: str, leavers: Sequence[Leaver]) -> list[GoQueueError | None]:
    """Members go; for each of them what was wrong, or None."""
    _admit(broker, group)
    coordinator = broker.coordinator
    outcomes: list[GoQueueError | None] = []
    for leaver in leavers:
        try:
            room = coordinator.known_room(group)
            if room is None:
                raise UnknownMember(group, leaver.member_id)
            coordinator.carry_out(room, room.group.leave(leaver, now_ns=coordinator.now_ns()))
            outcomes.append(None)
        except GoQueueError as error:
            outcomes.append(error)
    return outcomes


async def delete_group(broker: Broker, group: str) -> None:
    """Forget a group without members, its offsets included."""
    _admit(broker, group)
    journal = broker.coordinator.journals.find(group)
    if journal is None:
        raise GroupNotFound(group)
    await journal.commit(journal.groups.delete_group(group))


def describe_group(broker: Broker, group: str) -> GroupView:
    """A group as it is now, with how far it is behind in each partition it has committed for."""
    _admit(broker, group)
    record = broker.coordinator.journals.record(group)
    if record is None:
        raise GroupNotFound(group)
    membership = record.membership
    is_stable = membership.state is GroupState.STABLE
    return GroupView(
        name=membership.name,
        state=membership.state,
        generation=membership.generation,
        protocol_type=membership.protocol_type,
        protocol=membership.protocol if is_stable else "",
        members=tuple(
            MemberView(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.metadata(membership.protocol) if is_stable else b"",
                assignment=member.assignment if is_stable else b"",
            )
            for member in membership.members.values()
        ),
        lags=tuple(_lags(broker, record)),
    )


def list_groups(broker: Broker) -> list[GroupListing]:
    """All groups, by name."""
    if not broker.is_open:
        raise ShuttingDown
    found = [record.membership for journal in broker.coordinator.journals for record in journal.groups]
    return sorted(GroupListing(group.name, group.state, group.protocol_type) for group in found)


def _lags(broker: Broker, record: GroupRecord) -> list[PartitionLag]:
    lags = []
    for topic, topic_id, rows in record.offsets.topics():
        known = broker.metadata.topics.get(topic)
        if known is not None and known.topic_id == topic_id:
            lags += [_lag(broker, topic, row[0], row[1]) for row in sorted(rows)]
    return lags


def _lag(broker: Broker, topic: TopicName, partition: int, committed_offset: int) -> PartitionLag:
    try:
        end_offset = broker.partition(TopicPartition(topic, partition)).high_watermark
    except GoQueueError:
        return PartitionLag(topic, partition, committed_offset, -1, -1)
    return PartitionLag(topic, partition, committed_offset, end_offset, max(end_offset - committed_offset, 0))


def _admit(broker: Broker, group: str) -> None:
    if not broker.is_open:
        raise ShuttingDown
    if not group:
        raise InvalidGroupName
