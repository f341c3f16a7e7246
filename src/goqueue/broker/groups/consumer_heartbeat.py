"""The verb of Kafka's newer group protocol: in one request a member joins, says what it has, or leaves."""

from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.groups.assigned import at_work, foreseen, take_in, tell, tell_alive
from goqueue.broker.groups.coordinator import ActiveGroup
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.events import HolderKept
from goqueue.model.errors import GroupNotFound, UnknownMember
from goqueue.model.group_commands import ConsumerHeartbeat
from goqueue.model.groups import GroupKind, Membership, Reconciliation, Sharing
from goqueue.model.ids import TopicName
from goqueue.model.names import member_id_for

JOIN, LEAVE, STEP_OUT = 0, -1, -2
_TERMS = Terms(GroupKind.CONSUMER, Sharing.COOPERATIVE)


async def consumer_heartbeat(broker: Broker, command: ConsumerHeartbeat) -> Reconciliation | None:
    """Where the member stands now; None when it has left."""
    if command.epoch == JOIN:
        return await _join(broker, command)
    try:
        return await _speak(broker, command)
    except GroupNotFound as error:
        # Its group has gone with everything in it. To the member that is the same as being forgotten.
        raise UnknownMember(command.group, command.member_id) from error


async def _join(broker: Broker, command: ConsumerHeartbeat) -> Reconciliation:
    kept = HolderKept(
        member_id=command.member_id or member_id_for(command.client_id, broker.new_id()),
        instance_id=command.instance_id,
        client_id=command.client_id,
        client_host=command.client_host,
        session_timeout_ms=_session_ms(broker, command.group),
        rebalance_timeout_ms=command.rebalance_timeout_ms or 0,
        topics=tuple(dict.fromkeys(map(TopicName, command.topics or ()))),
        pattern=command.pattern or None,
        assignor=command.assignor,
        joined_ms=broker.clock.wall_ms(),
    )
    # Whoever joins has nothing: what it was to let go of, it has let go of.
    active, group, holder = await take_in(broker, command.group, _TERMS, kept, claimed=())
    return await tell(broker, active, group, holder)


async def _speak(broker: Broker, command: ConsumerHeartbeat) -> Reconciliation | None:
    who = Membership(command.group, command.member_id, command.epoch, command.instance_id)
    active, group = at_work(broker, who)
    coordinator, now_ns = broker.coordinator, broker.coordinator.now_ns()
    if command.epoch == LEAVE:
        coordinator.enact(active, group.leave(who.member_id, who.instance_id, now_ns=now_ns))
    elif command.epoch == STEP_OUT:
        coordinator.enact(active, group.step_out(who.member_id, who.instance_id or "", now_ns=now_ns))
    else:
        heard = group.listen(who, claimed=command.owned, now_ns=now_ns)
        described = _described(heard.kept, command, _session_ms(broker, command.group))
        # What it wants comes first. Else it would take what has become free of topics that it wants no more,
        # and be asked at once to let go of what it has never heard of.
        if described != group.member(who.member_id).kept:
            active, group = await _change(broker, who, described)
        moved = group.heartbeat(who, claimed=command.owned, now_ns=coordinator.now_ns())
        coordinator.enact(active, moved)
        return await tell_alive(broker, active, group, group.member(who.member_id), heard_ns=now_ns)
    await active.journal.submit()
    return None


async def _change(
    broker: Broker, who: Membership, described: HolderKept
) -> tuple[ActiveGroup, AssignedGroup]:
    """A member describes itself anew, which is a new generation when it wants something else."""
    async with foreseen(broker, at_work(broker, who)[0], _TERMS, described):
        active, group = at_work(broker, who)
        group.member(who.member_id, who.instance_id)  # it may have gone while that was worked out
        broker.coordinator.enact(active, group.change(described, now_ns=broker.coordinator.now_ns()))
    return active, group


def _session_ms(broker: Broker, group: str) -> int:
    return broker.group_settings.of(group).consumer_session_ms or broker.config.groups.consumer_session_ms


def _described(kept: HolderKept, command: ConsumerHeartbeat, session_ms: int) -> HolderKept:
    """A member as it describes itself now, with what it said before where it says nothing."""
    if session_ms != kept.session_timeout_ms:
        kept = replace(kept, session_timeout_ms=session_ms)
    if command.topics is not None:
        kept = replace(kept, topics=tuple(dict.fromkeys(map(TopicName, command.topics))))
    if command.pattern is not None:
        kept = replace(kept, pattern=command.pattern or None)
    if command.assignor is not None:
        kept = replace(kept, assignor=command.assignor)
    if command.rebalance_timeout_ms is not None:
        kept = replace(kept, rebalance_timeout_ms=command.rebalance_timeout_ms)
    return kept
