"""One consumer group: members come and go, and every change leads through a rebalance to a new generation.

    Empty --join--> Preparing --everyone joined, or time is up--> Completing --leader assigned--> Stable
                        ^                                             |                              |
                        +---------- a member joins, leaves, changes or falls silent -----------------+

What must survive a restart (the agreed generation and its assignments) changes by events, through
`apply`. Who waits for an answer and whose session ends when is not kept: it changes at once, and after a
restart every member gets a full session. Answers to those who wait come out as values; a member waits for
at most one. In one generation each member has the assignment that one leader gave it, so what the
leader does not give twice has never two owners.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from goqueue.core.groups.barrier import Barrier
from goqueue.core.groups.events import Event, GroupChanged, MemberKept
from goqueue.core.groups.members import (
    CONSUMER,
    NS_PER_MS,
    Member,
    choose_protocol,
    common_protocols,
    new_member,
    restored_member,
    subscribed_topics,
)
from goqueue.core.groups.outcome import Answer, Outcome
from goqueue.model.errors import (
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InvalidSessionTimeout,
    MemberIdRequired,
    MetadataTooLarge,
    RebalanceInProgress,
    UnknownMember,
)
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import GroupState, Joined, JoinedMember, Leaver, Membership, Synced
from goqueue.model.settings import GroupConfig, MiB

MEMBER_BYTES_MAX = MiB
"""What a member may say of itself in all its protocols; it is kept as long as the member is there."""
EMPTY, PREPARING, COMPLETING = GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING
STABLE, DEAD = GroupState.STABLE, GroupState.DEAD

TRANSITIONS: dict[GroupState, frozenset[GroupState]] = {
    EMPTY: frozenset({PREPARING, DEAD}),
    PREPARING: frozenset({COMPLETING, EMPTY}),
    COMPLETING: frozenset({STABLE, PREPARING}),
    STABLE: frozenset({PREPARING}),
    DEAD: frozenset(),
}


class Group:
    def __init__(self, name: str, config: GroupConfig) -> None:
        self.name = name
        self.state = EMPTY
        self.generation = 0
        self.protocol_type = ""
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Member] = {}
        self._config = config
        self._instances: dict[str, str] = {}
        """The member id behind each instance id."""
        self._expected: dict[str, int] = {}
        """Ids given to new members that are still to come back with them, and until when."""
        self._barrier = Barrier(config.initial_delay_ms * NS_PER_MS)
        self._common: set[str] | None = None
        """The protocols that all members know; None: to be looked up. A thousand members join one by one."""
        self.standing: GroupChanged | None = None
        """The generation that was agreed on last, as the journal has it."""

    @property
    def is_vacant(self) -> bool:
        """Whether nobody is in the group or on the way into it."""
        return self.state is EMPTY and not self._expected

    def join(self, command: JoinGroup, *, fresh_id: str, now_ns: int) -> Outcome:
        """A member wants to be in the next generation, or a new one to come in, under `fresh_id`."""
        self._check_join(command)
        outcome = Outcome()
        if not command.member_id:
            self._join_new(command, fresh_id, now_ns, outcome)
        elif self._expected.pop(command.member_id, None) is not None:
            self._add(command.member_id, command)
            self._rebalance(now_ns, outcome)
        else:
            member = self._known(command.member_id, command.instance_id)
            has_changed = member.protocols != command.protocols
            if has_changed:
                self._common = None
            member.follow(command)
            member.is_syncing = False  # whoever joins again no longer waits for the old assignment
            self.protocol_type = command.protocol_type
            is_at_rest = self.state is COMPLETING or (
                self.state is STABLE and member.member_id != self.leader
            )
            if is_at_rest and not has_changed:
                # It missed the answer, or looks again: it has its place already.
                member.touch(now_ns)
                outcome.answers.append(Answer(member.member_id, self._joined(member)))
            else:
                member.is_joining = True
                self._rebalance(now_ns, outcome)
        return outcome

    def sync(self, command: SyncGroup, *, now_ns: int) -> GroupChanged | None:
        """A member waits for its assignment; the leader's sync makes the generation complete."""
        member = self._known(command.member_id, command.instance_id)
        self._check_generation(command.generation)
        if command.protocol_type not in (None, self.protocol_type) or command.protocol not in (
            None,
            self.protocol,
        ):
            raise InconsistentProtocol(f"group {self.name} has chosen {self.protocol_type}/{self.protocol}")
        member.touch(now_ns)
        if self.state is PREPARING:
            raise RebalanceInProgress(self.name)
        member.is_syncing = True
        if self.state is COMPLETING and member.member_id == self.leader:
            given = dict(command.assignments)
            return self._changed(m.kept(given.get(m.member_id, b"")) for m in self.members.values())
        return None

    def answer_syncs(self, *, now_ns: int) -> Outcome:
        """Tell everyone who waits for an assignment, if there is one."""
        outcome = Outcome()
        if self.state is STABLE:
            for member in self.members.values():
                if member.is_syncing:
                    member.is_syncing = False
                    member.touch(now_ns)
                    reply = Synced(self.protocol_type, self.protocol, member.assignment)
                    outcome.answers.append(Answer(member.member_id, reply))
        return outcome

    def heartbeat(self, who: Membership, *, now_ns: int) -> None:
        """A sign of life; refused when the member must join again."""
        member = self._known(who.member_id, who.instance_id)
        self._check_generation(who.generation)
        member.touch(now_ns)
        if self.state is PREPARING:
            raise RebalanceInProgress(self.name)

    def leave(self, leaver: Leaver, *, now_ns: int) -> Outcome:
        """A member goes for good."""
        outcome = Outcome()
        member_id = leaver.member_id
        if not member_id and leaver.instance_id is not None:
            member_id = self._instances.get(leaver.instance_id, "")
        if self._expected.pop(member_id, None) is not None:
            self._complete_if_ready(now_ns, outcome)
            return outcome
        self._remove(self._known(member_id, leaver.instance_id), outcome)
        self._rebalance(now_ns, outcome)
        return outcome

    def abandon(self, member_id: str, *, now_ns: int) -> Outcome:
        """A member that waited has gone away without its answer.

        One that waited to join has no place in a generation yet and is removed: it would only be waited
        for. A static member keeps its place as it does when it is silent.
        """
        outcome = Outcome()
        member = self.members.get(member_id)
        if member is None or not member.is_waiting:
            return outcome
        was_joining = member.is_joining
        member.is_joining = member.is_syncing = False
        member.touch(now_ns)
        if was_joining and member.instance_id is None:
            self._remove(member, outcome)
            self._rebalance(now_ns, outcome)
        return outcome

    def advance(self, *, now_ns: int) -> Outcome:
        """Time has passed: sessions end, and nobody is waited for longer than agreed."""
        outcome = Outcome()
        for member_id in [m for m, deadline_ns in self._expected.items() if deadline_ns <= now_ns]:
            del self._expected[member_id]
        silent = [m for m in self.members.values() if not m.is_waiting and m.deadline_ns <= now_ns]
        if self.state is COMPLETING and self._barrier.deadline_ns <= now_ns:
            # The leader did not assign in time. Whoever has not come for an assignment goes with it, but
            # for static members: they may not even know of this generation.
            silent += [
                m
                for m in self.members.values()
                if not m.is_syncing
                and m not in silent
                and (m.instance_id is None or m.member_id == self.leader)
            ]
        for member in silent:
            self._remove(member, outcome)
        if silent:
            self._rebalance(now_ns, outcome)
        else:
            self._complete_if_ready(now_ns, outcome)
        return outcome

    def next_deadline_ns(self) -> int | None:
        """When `advance` has something to do next; None for a group that can be left alone."""
        deadlines = [m.deadline_ns for m in self.members.values() if not m.is_waiting]
        deadlines += self._expected.values()
        if self.state in (PREPARING, COMPLETING):
            deadlines.append(self._barrier.deadline_ns)
        return min(deadlines, default=None)

    def admit_commit(self, who: Membership, *, now_ns: int) -> None:
        """Refuse offsets of somebody who is not, or no longer, entitled to commit them."""
        if who.generation < 0 and not self.members:
            return
        member = self._known(who.member_id, who.instance_id)
        self._check_generation(who.generation)
        member.touch(now_ns)
        if self.state is COMPLETING:
            # The partitions may have another owner in this generation, who does not know of them yet.
            raise RebalanceInProgress(self.name)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may be reading a topic. One that cannot be understood may read anything."""
        for member in self.members.values():
            for _, metadata in member.protocols:
                topics = subscribed_topics(metadata) if self.protocol_type == CONSUMER else None
                if topics is None or topic in topics:
                    return True
        return False

    def end(self) -> None:
        """The group has been deleted: an event, which cannot be refused."""
        self.state = DEAD

    def apply(self, event: GroupChanged) -> None:
        """A generation stands, just now or read back from the journal."""
        self.standing = event
        self._common = None
        self.generation = event.generation
        self.protocol_type, self.protocol, self.leader = event.protocol_type, event.protocol, event.leader
        known = self.members
        self.members = {
            kept.member_id: known.get(kept.member_id) or restored_member(kept) for kept in event.members
        }
        for kept in event.members:
            self.members[kept.member_id].assignment = kept.assignment
        self._instances = {m.instance_id: m.member_id for m in event.members if m.instance_id is not None}
        self.state = STABLE if event.members else EMPTY

    def whole_state(self) -> Iterator[Event]:
        """The events that lead to the generation that was agreed on last."""
        if self.standing is not None:
            yield self.standing

    def resume(self, *, now_ns: int) -> None:
        """After a restart: members that are still there have their whole session to say so."""
        for member in self.members.values():
            member.touch(now_ns)

    def _check_join(self, command: JoinGroup) -> None:
        config = self._config
        if not config.session_ms_min <= command.session_timeout_ms <= config.session_ms_max:
            raise InvalidSessionTimeout(
                f"a session lasts {config.session_ms_min} to {config.session_ms_max} ms, "
                f"not {command.session_timeout_ms}"
            )
        size = sum(len(name) + len(metadata) for name, metadata in command.protocols)
        if size > MEMBER_BYTES_MAX:
            raise MetadataTooLarge(f"a member says at most {MEMBER_BYTES_MAX} bytes of itself, not {size}")
        names = {name for name, _ in command.protocols}
        if not names or not command.protocol_type:
            raise InconsistentProtocol("a member names a protocol type and at least one protocol")
        if self._common is None:
            self._common = common_protocols(self.members.values())
        if command.protocol_type == self.protocol_type and self._common and self._common & names:
            return
        # A member may still change to what only the others know.
        common = common_protocols(m for m in self.members.values() if not self._is_replaced(m, command))
        if common is None:
            return
        if command.protocol_type != self.protocol_type or not common & names:
            raise InconsistentProtocol(
                f"group {self.name} is of type {self.protocol_type}; its members know {sorted(common)}"
            )

    def _is_replaced(self, member: Member, command: JoinGroup) -> bool:
        if member.member_id == command.member_id:
            return True
        return command.instance_id is not None and member.instance_id == command.instance_id

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"group {self.name} is in generation {self.generation}, not {generation}")

    def _known(self, member_id: str, instance_id: str | None) -> Member:
        if instance_id is not None:
            owner = self._instances.get(instance_id)
            if owner is not None and owner != member_id:
                raise InstanceFenced(f"instance {instance_id} of group {self.name} is {owner} now")
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMember(self.name, member_id)
        return member

    def _join_new(self, command: JoinGroup, fresh_id: str, now_ns: int, outcome: Outcome) -> None:
        if command.instance_id is not None and command.instance_id in self._instances:
            self._replace_static(command, fresh_id, now_ns, outcome)
            return
        if len(self.members) + len(self._expected) >= self._config.members_max:
            raise GroupFull(f"group {self.name} has {self._config.members_max} members")
        if command.is_id_required and command.instance_id is None:
            self._expected[fresh_id] = now_ns + command.session_timeout_ms * NS_PER_MS
            raise MemberIdRequired(fresh_id)
        self._add(fresh_id, command)
        self._rebalance(now_ns, outcome)

    def _add(self, member_id: str, command: JoinGroup) -> None:
        self.protocol_type = command.protocol_type
        member = self.members[member_id] = new_member(member_id, command)
        member.is_joining = True
        if self._common is not None:
            self._common &= {name for name, _ in command.protocols}
        if command.instance_id is not None:
            self._instances[command.instance_id] = member_id
        self._barrier.note_newcomer()

    def _replace_static(self, command: JoinGroup, fresh_id: str, now_ns: int, outcome: Outcome) -> None:
        """A static member is back, under a new member id; the process that had the old one is fenced."""
        assert command.instance_id is not None
        old = self.members.pop(self._instances[command.instance_id])
        self._common = None
        if old.is_waiting:
            fenced = InstanceFenced(f"instance {command.instance_id} has joined again")
            outcome.answers.append(Answer(old.member_id, fenced))
        member = self.members[fresh_id] = new_member(fresh_id, command)
        self._instances[command.instance_id] = fresh_id
        self.protocol_type = command.protocol_type
        is_leader, is_same = old.member_id == self.leader, old.protocols == command.protocols
        if is_leader:
            self.leader = fresh_id
        if self.state is STABLE and is_same:
            # Nothing has changed for anybody: it goes on where it left off, without a rebalance.
            member.assignment = old.assignment
            member.touch(now_ns)
            outcome.events.append(self._changed(m.kept(m.assignment) for m in self.members.values()))
            reply = self._joined(member)
            if is_leader and command.may_skip_assignment:
                reply = replace(reply, skips_assignment=True)
            elif is_leader:
                # A client that cannot be told to skip must not take itself for the leader.
                reply = replace(reply, leader=old.member_id, members=())
            outcome.answers.append(Answer(fresh_id, reply))
            return
        member.is_joining = True
        self._rebalance(now_ns, outcome)

    def _remove(self, member: Member, outcome: Outcome) -> None:
        del self.members[member.member_id]
        self._common = None
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        if member.is_waiting:
            outcome.answers.append(Answer(member.member_id, UnknownMember(self.name, member.member_id)))

    def _rebalance(self, now_ns: int, outcome: Outcome) -> None:
        """Members have changed: everybody has to join again, if that is not under way already."""
        if self.state is not PREPARING:
            is_gathering = self.state is EMPTY
            for member in self.members.values():
                if member.is_syncing:
                    member.is_syncing = False
                    member.touch(now_ns)
                    outcome.answers.append(Answer(member.member_id, RebalanceInProgress(self.name)))
            self._go(PREPARING)
            self._barrier.begin(now_ns, self._patience_ns(), is_gathering=is_gathering)
        self._complete_if_ready(now_ns, outcome)

    def _patience_ns(self) -> int:
        """How long members may take to join again: as long as the slowest of them asked for."""
        asked_ms = max((m.rebalance_timeout_ms for m in self.members.values()), default=0)
        return max(asked_ms, self._config.session_ms_min) * NS_PER_MS

    def _complete_if_ready(self, now_ns: int, outcome: Outcome) -> None:
        if self.state is not PREPARING:
            return
        is_time_up = self._barrier.is_over(now_ns)
        has_everyone = not self._expected and all(m.is_joining for m in self.members.values())
        has_nobody = not (self.members or self._expected)
        if is_time_up or has_nobody or (has_everyone and not self._barrier.is_gathering):
            self._complete(now_ns, outcome)

    def _complete(self, now_ns: int, outcome: Outcome) -> None:
        """Begin a new generation with those who have joined. Static members keep their place unasked."""
        for member in [m for m in self.members.values() if not m.is_joining and m.instance_id is None]:
            self._remove(member, outcome)
        joined = [member for member in self.members.values() if member.is_joining]
        if self.members and not joined:
            self._barrier.wait(now_ns, self._patience_ns())
            return
        self.generation += 1
        if not joined:
            self._go(EMPTY)
            self.protocol = self.leader = ""
            outcome.events.append(self._changed(()))
            return
        self._go(COMPLETING)
        self._barrier.wait(now_ns, self._patience_ns())
        self.protocol = choose_protocol(self.members.values())
        if self.leader not in self.members or not self.members[self.leader].is_joining:
            self.leader = joined[0].member_id
        for member in self.members.values():
            member.assignment = b""
        for member in joined:
            member.is_joining = False
            member.touch(now_ns)
            outcome.answers.append(Answer(member.member_id, self._joined(member)))

    def _joined(self, member: Member) -> Joined:
        members: tuple[JoinedMember, ...] = ()
        if member.member_id == self.leader:
            members = tuple(
                JoinedMember(m.member_id, m.instance_id, m.metadata(self.protocol))
                for m in self.members.values()
            )
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader,
            member_id=member.member_id,
            members=members,
        )

    def _changed(self, members: Iterable[MemberKept]) -> GroupChanged:
        return GroupChanged(
            self.name, self.generation, self.protocol_type, self.protocol, self.leader, tuple(members)
        )

    def _go(self, state: GroupState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.name}: no way from {self.state} to {state}"
        self.state = state
