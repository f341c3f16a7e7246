"""Members of a group as tests speak of them: joined, synced and carried through time."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from goqueue.core.groups.group import Group
from goqueue.core.groups.outcome import Outcome
from goqueue.model.errors import GoQueueError
from goqueue.model.group_commands import JoinGroup, SyncGroup
from goqueue.model.groups import Joined, Leaver, Membership, Protocols, Synced
from goqueue.model.settings import GroupConfig

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 100
NS_PER_MS = 1_000_000
RANGE: Protocols = (("range", b"topics"),)


@dataclass
class Club:
    """A group, its clock, and what each member has heard last."""

    group: Group = field(
        default_factory=lambda: Group("club", GroupConfig(initial_delay_ms=DELAY_MS, members_max=4))
    )
    now_ms: int = 0
    heard: dict[str, Joined | Synced | GoQueueError] = field(default_factory=dict)

    @property
    def now_ns(self) -> int:
        return self.now_ms * NS_PER_MS

    def join(
        self,
        name: str,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        is_id_required: bool = False,
        may_skip_assignment: bool = False,
        session_timeout_ms: int = SESSION_MS,
    ) -> None:
        """Join: as a new member that will be called `name`, or again under a member id."""
        command = JoinGroup(
            group="club",
            member_id=member_id,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=protocol_type,
            protocols=protocols,
            is_id_required=is_id_required,
            may_skip_assignment=may_skip_assignment,
        )
        self.carry_out(self.group.join(command, fresh_id=name, now_ns=self.now_ns))

    def rejoin(self, *names: str) -> None:
        for name in names:
            self.join(name, member_id=name)

    def sync(self, name: str, assignments: Sequence[tuple[str, bytes]] = (), generation: int = 0) -> None:
        command = SyncGroup(
            group="club",
            member_id=name,
            generation=generation or self.group.generation,
            assignments=assignments,
        )
        changed = self.group.sync(command, now_ns=self.now_ns)
        if changed is not None:
            self.group.apply(changed)
        self.carry_out(self.group.answer_syncs(now_ns=self.now_ns))

    def heartbeat(self, name: str, generation: int = 0) -> None:
        who = Membership("club", name, generation or self.group.generation)
        self.group.heartbeat(who, now_ns=self.now_ns)

    def leave(self, name: str, instance_id: str | None = None) -> None:
        self.carry_out(self.group.leave(Leaver(name, instance_id), now_ns=self.now_ns))

    def abandon(self, name: str) -> None:
        self.carry_out(self.group.abandon(name, now_ns=self.now_ns))

    def wait(self, duration_ms: int) -> None:
        """Let time pass, stopping wherever the group has something to do."""
        end_ms = self.now_ms + duration_ms
        while (
            deadline_ns := self.group.next_deadline_ns()
        ) is not None and deadline_ns <= end_ms * NS_PER_MS:
            self.now_ms = max(self.now_ms, deadline_ns // NS_PER_MS)
            self.carry_out(self.group.advance(now_ns=self.now_ns))
        self.now_ms = end_ms

    def carry_out(self, outcome: Outcome) -> None:
        for event in outcome.events:
            self.group.apply(event)  # type: ignore[arg-type]  # a group alone makes no other events
        self.heard.update(outcome.answers)

    def joined(self, name: str) -> Joined:
        reply = self.heard[name]
        assert isinstance(reply, Joined), reply
        return reply

    def assignment(self, name: str) -> bytes:
        reply = self.heard[name]
        assert isinstance(reply, Synced), reply
        return reply.assignment


def stable_club(*names: str) -> Club:
    """A group in which everyone has been assigned its own name."""
    club = Club()
    for name in names:
        club.join(name)
    club.wait(2 * DELAY_MS)
    let_all_in(club)
    return club


def let_all_in(club: Club) -> None:
    """Everyone syncs, the leader last."""
    given = [(name, name.encode()) for name in club.group.members]
    for name in club.group.members:
        if name != club.group.leader:
            club.sync(name)
    club.sync(club.group.leader, given)
