"""The verbs of Kafka's share groups: a member heartbeats, acknowledges by offset, and lets go of everything.

A share group is a group whose members all take from all partitions, by the same leases as consumers over
HTTP. Only the tokens differ: a share consumer names offsets, and what it holds is known by its member id.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import at_work, take_in, tell, tell_alive
from goqueue.broker.groups.coordinator import ActiveGroup
from goqueue.broker.queue.poll import poll_batches
from goqueue.broker.queue.read import batches_from
from goqueue.broker.queue.settle import Leased, settle_leased
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.lease import Lease
from goqueue.core.delivery.runs import Run, Runs, count_of
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.events import HolderKept
from goqueue.model.delivery import (
    Acquire,
    AcquiredPart,
    Action,
    KnowMember,
    ReadBatches,
    ReleaseAll,
    Settle,
    SettleOutcome,
    SettleRuns,
)
from goqueue.model.errors import GroupNotFound, MemberEpochFenced, RecordNotHeld, UnknownMember
from goqueue.model.group_commands import ShareHeartbeat
from goqueue.model.groups import GroupKind, Membership, Reconciliation, Sharing
from goqueue.model.ids import TopicName, TopicPartition

JOIN, LEAVE = 0, -1
_UNCHECKED = 0
_TERMS = Terms(GroupKind.SHARE, Sharing.SHARED)


async def share_heartbeat(broker: Broker, command: ShareHeartbeat) -> Reconciliation | None:
    """Where the member stands now; None when it has left."""
    if command.epoch == JOIN:
        kept = HolderKept(
            member_id=command.member_id,
            instance_id=None,
            client_id=command.client_id,
            client_host=command.client_host,
            session_timeout_ms=_session_ms(broker, command.group),
            rebalance_timeout_ms=0,
            topics=_names(command.topics or ()),
            pattern=None,
            assignor=None,
            joined_ms=broker.clock.wall_ms(),
        )
        active, group, holder = await take_in(broker, command.group, _TERMS, kept, claimed=None)
        return await tell(broker, active, group, holder)
    # The group's generation rises whenever somebody comes or goes, so most members are behind it: what
    # tells a zombie from them is only that it is unknown.
    who = Membership(command.group, command.member_id, _UNCHECKED)
    active, group = _at_work(broker, who)
    coordinator, now_ns = broker.coordinator, broker.coordinator.now_ns()
    if command.epoch > group.generation:
        raise MemberEpochFenced(f"group {command.group} is in epoch {group.generation}, not {command.epoch}")
    if command.epoch == LEAVE:
        coordinator.enact(active, group.leave(command.member_id, now_ns=now_ns))
        await active.journal.submit()
        return None
    coordinator.enact(active, group.heartbeat(who, now_ns=now_ns))
    holder = group.member(command.member_id)
    topics = holder.kept.topics if command.topics is None else _names(command.topics)
    changed = replace(holder.kept, topics=topics, session_timeout_ms=_session_ms(broker, command.group))
    if changed != holder.kept:
        coordinator.enact(active, group.change(changed, now_ns=now_ns))
    return await tell_alive(broker, active, group, holder, heard_ns=now_ns)


def _session_ms(broker: Broker, group: str) -> int:
    return broker.group_settings.of(group).share_session_ms or broker.config.groups.consumer_session_ms


async def know_member(broker: Broker, command: KnowMember) -> None:
    """Refuse whoever is no member with UnknownMember."""
    _, group = _at_work(broker, command.who)
    group.member(command.who.member_id)


async def acquire(broker: Broker, command: Acquire) -> list[AcquiredPart]:
    """Take messages with a lease, as a poll does, and tell where they lie."""
    wanted = replace(
        command.wanted, visibility_ms=broker.group_settings.of(command.wanted.group).share_lock_ms
    )
    return [
        AcquiredPart(part.source, sorted(message.offset for message in part.messages), part.delivery_counts)
        for part in (await poll_batches(broker, wanted)).parts
    ]


def _at_work(broker: Broker, who: Membership) -> tuple[ActiveGroup, AssignedGroup]:
    """The group of a member that is at work in it; UnknownMember for anybody else."""
    try:
        return at_work(broker, who)
    except GroupNotFound as error:
        raise UnknownMember(who.group, who.member_id) from error


async def settle_runs(broker: Broker, command: SettleRuns) -> None:
    """Settle messages that a member has out, named by runs that rise. None is when one is not its own."""
    leased = _leased(broker, command.who, command.source, command.runs)
    # What is released is to be had by others at once: that is what a member releases it for.
    settings = broker.metadata.topic(command.source.topic).settings
    lock_ms = broker.group_settings.of(command.who.group).share_lock_ms or settings.visibility_ms
    settling = Settle(action=command.action, receipts=(), delay_ms=0, visibility_ms=lock_ms)
    await settle_leased(broker, settling, leased, SettleOutcome())


async def release_all(broker: Broker, command: ReleaseAll) -> None:
    """A member fetches no more: what it has out goes to others at once."""
    for source in command.sources:
        out = Runs(run for _, lease in _leases(broker, command.who, source) for run in lease.offsets)
        if out:
            await settle_runs(broker, SettleRuns(command.who, source, list(out), Action.NACK))


def _leased(broker: Broker, who: Membership, source: TopicPartition, runs: Sequence[Run]) -> list[Leased]:
    """What of some runs a member has out, by lease. A client may name any run: only what is out is opened."""
    journal = broker.coordinator.journals.find(who.group)
    wanted = count_of(runs)
    out = 0 if journal is None else journal.deliveries.in_flight(who.group, who.member_id)
    leased: list[Leased] = []
    if journal is not None and wanted <= out:
        named = Runs(runs)
        now_ms = broker.running.now_ms()
        for delivery, lease in _leases(broker, who, source):
            pieces = [piece for run in lease.offsets for piece in named.within(*run)]
            places = {
                offset: offset for piece in pieces for offset in range(*piece) if lease.holds(offset, now_ms)
            }
            if places:
                leased.append(Leased(journal, delivery, lease, places))
    found = sum(len(one.places) for one in leased)
    if found < wanted:
        raise RecordNotHeld(
            f"member {who.member_id} of group {who.group} does not have all of the {wanted} records it names"
        )
    return leased


def _leases(broker: Broker, who: Membership, source: TopicPartition) -> list[tuple[Delivery, Lease]]:
    journal = broker.coordinator.journals.find(who.group)
    delivery = None if journal is None else journal.deliveries.find(who.group, source)
    if delivery is None:
        return []
    return [(delivery, lease) for lease in delivery.leases.values() if lease.consumer == who.member_id]


async def batches_of(broker: Broker, command: ReadBatches) -> list[memoryview]:
    """The stored batches that hold some messages, rising, whole as their producers built them."""
    source, offsets = command
    found: list[memoryview] = []
    position = at = 0
    while at < len(offsets):
        batches, end_offset = await batches_from(broker, source, max(offsets[at], position))
        for first, end, body, _ in batches:
            at = bisect_left(offsets, first, lo=at)
            if at < len(offsets) and offsets[at] < end:
                found.append(body)
                at = bisect_left(offsets, end, lo=at)
        position = max(batches[-1][1] if batches else end_offset, position + 1)
        at = bisect_left(offsets, position, lo=at)
    return found


def runs_by_count(delivery_counts: dict[int, int], offsets: Iterable[int]) -> list[tuple[Run, int]]:
    """Rising offsets as runs of neighbours that were delivered equally often."""
    found: list[tuple[Run, int]] = []
    for offset in offsets:
        count = delivery_counts.get(offset, 1)
        if found and found[-1][0][1] == offset and found[-1][1] == count:
            found[-1] = ((found[-1][0][0], offset + 1), count)
        else:
            found.append(((offset, offset + 1), count))
    return found


def _names(topics: Iterable[str]) -> tuple[TopicName, ...]:
    return tuple(dict.fromkeys(map(TopicName, topics)))
