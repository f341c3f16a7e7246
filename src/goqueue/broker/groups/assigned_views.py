"""How groups whose partitions the broker assigns look: to a member, and to people."""

from goqueue.broker.broker import Broker
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.holder import NS_PER_MS, Holder, in_order
from goqueue.core.groups.members import CONSUMER
from goqueue.core.groups.rebalances import Rebalances
from goqueue.model.groups import (
    AssignedMember,
    GroupView,
    MemberView,
    RebalanceStats,
    Reconciliation,
    ReconciliationState,
)


def view_member(group: AssignedGroup, holder: Holder) -> AssignedMember:
    """A member and what it may read from now."""
    return AssignedMember(
        member_id=holder.member_id,
        generation=holder.epoch,
        leader_id=group.leader,
        partitions=holder.readable,
        members=tuple(group.members),
        is_rebalancing=group.is_rebalancing,
    )


def view_reconciliation(broker: Broker, group: AssignedGroup, holder: Holder) -> Reconciliation:
    """What to tell a member of where it stands. Whoever calls this tells it."""
    told, holder.told = holder.told, (holder.epoch, holder.owned)
    has_changed = told is None or (told[1] is not holder.owned and told[1] != holder.owned)
    has_changed |= _has_new_topics(broker, holder, has_changed)
    is_news = has_changed or told is None or told[0] != holder.epoch
    if holder.revoking:
        state = ReconciliationState.PENDING_REVOKE
    elif holder.owned is not holder.target and holder.owned != holder.target:
        state = ReconciliationState.PENDING_ASSIGN
    elif is_news or group.is_rebalancing:
        state = ReconciliationState.COMPLETE
    else:
        state = ReconciliationState.NONE
    deadline_ms = None
    if holder.revoking and holder.revocation_ns is not None:
        deadline_ms = _wall_ms(broker, holder.revocation_ns)
    return Reconciliation(
        member_id=holder.member_id,
        generation=holder.epoch,
        state=state,
        to_revoke=tuple(in_order(holder.revoking)),
        assigned=tuple(in_order(holder.owned)) if holder.revoking else holder.readable,
        has_changed=has_changed,
        revocation_deadline_ms=deadline_ms,
        is_rebalancing=group.is_rebalancing,
    )


def _has_new_topics(broker: Broker, holder: Holder, has_changed: bool) -> bool:
    """Whether one of its topics was deleted and made anew since the member heard of it."""
    told = holder.told_topics
    if told is not None and told[0] is broker.topic_counts and not has_changed:
        return False
    topics = broker.metadata.topics
    names = {topic for topic, _ in holder.owned}
    ids = frozenset(topics[name].topic_id for name in names if name in topics)
    holder.told_topics = broker.topic_counts, ids
    return told is not None and told[1] != ids


def view_assigned(broker: Broker, group: AssignedGroup) -> GroupView:
    """A group as people see it."""
    return GroupView(
        name=group.name,
        kind=group.terms.kind,
        state=group.state,
        generation=group.generation,
        protocol_type=CONSUMER,
        protocol=group.assignor,
        members=tuple(_view(broker, holder) for holder in group.members.values()),
        sharing=group.terms.sharing,
        key_order=group.terms.key_order,
    )


def view_rebalances(broker: Broker, rebalances: Rebalances) -> RebalanceStats:
    return RebalanceStats(
        total=rebalances.total,
        successful=rebalances.successful,
        failed=rebalances.failed,
        partitions_revoked=rebalances.partitions_revoked,
        partitions_assigned=rebalances.partitions_assigned,
        revocation_timeouts=rebalances.revocation_timeouts,
        last_duration_ms=rebalances.last_duration_ms,
        average_duration_ms=rebalances.average_duration_ms,
        last_ms=None if rebalances.last_ns is None else _wall_ms(broker, rebalances.last_ns),
        by_reason=dict(rebalances.reasons),
    )


def _view(broker: Broker, holder: Holder) -> MemberView:
    kept = holder.kept
    has_target = not holder.revoking and holder.owned is holder.target
    return MemberView(
        member_id=kept.member_id,
        instance_id=kept.instance_id,
        client_id=kept.client_id,
        client_host=kept.client_host,
        epoch=holder.epoch,
        topics=kept.topics,
        pattern=kept.pattern,
        partitions=holder.readable,
        target=holder.readable if has_target else tuple(in_order(holder.target)),
        joined_ms=kept.joined_ms,
        last_heartbeat_ms=_wall_ms(broker, holder.deadline_ns - kept.session_timeout_ms * NS_PER_MS),
    )


def _wall_ms(broker: Broker, time_ns: int) -> int:
    """A time of the steady clock as the wall clock would have shown it."""
    return broker.clock.wall_ms() - (broker.coordinator.now_ns() - time_ns) // NS_PER_MS
