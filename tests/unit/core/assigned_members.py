"""Members the broker assigns to, as tests speak of them: joined, heard and carried through time."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assigned_state import Terms
from goqueue.core.groups.events import Event, GroupAssigned, HolderKept, HolderMoved
from goqueue.model.groups import GroupKind, Membership, Sharing
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import GroupConfig

SESSION_MS, REVOCATION_MS = 10_000, 30_000
NS_PER_MS = 1_000_000
ORDERS = TopicName("orders")

EAGER = Terms(GroupKind.HTTP, Sharing.EAGER)
COOPERATIVE = Terms(GroupKind.HTTP, Sharing.COOPERATIVE)
SHARED = Terms(GroupKind.HTTP, Sharing.SHARED)
CONSUMER = Terms(GroupKind.CONSUMER, Sharing.COOPERATIVE)


@dataclass
class Crew:
    """A group, its clock and its topics."""

    terms: Terms
    topics: dict[TopicName, int] = field(default_factory=lambda: {ORDERS: 4})
    group: AssignedGroup = field(default_factory=lambda: AssignedGroup("crew", GroupConfig(members_max=4)))
    now_ms: int = 0

    @property
    def now_ns(self) -> int:
        return self.now_ms * NS_PER_MS

    def join(
        self,
        name: str,
        *,
        topics: Iterable[TopicName] = (ORDERS,),
        pattern: str | None = None,
        assignor: str | None = None,
        instance_id: str | None = None,
        session_timeout_ms: int = SESSION_MS,
    ) -> None:
        kept = HolderKept(
            member_id=name,
            instance_id=instance_id,
            client_id="",
            client_host="",
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=REVOCATION_MS,
            topics=tuple(topics),
            pattern=pattern,
            assignor=assignor,
            joined_ms=0,
        )
        self.follow()
        self.apply(self.group.join(self.terms, kept, now_ns=self.now_ns))
        claimed = () if self.terms.kind is GroupKind.CONSUMER else None
        self.apply(self.group.arrive(name, claimed=claimed, now_ns=self.now_ns))

    def follow(self) -> None:
        self.apply(self.group.follow(self.topics, now_ns=self.now_ns))

    def heartbeat(
        self, *names: str, generation: int | None = None, claimed: Iterable[int] | None = None
    ) -> None:
        for name in names:
            epoch = self.group.member(name).epoch if generation is None else generation
            claims = None if claimed is None else {TopicPartition(ORDERS, p) for p in claimed}
            who = Membership("crew", name, epoch)
            self.apply(self.group.heartbeat(who, claimed=claims, now_ns=self.now_ns))

    def release(self, name: str, *partitions: int) -> None:
        who = Membership("crew", name, self.group.member(name).epoch)
        places = [TopicPartition(ORDERS, partition) for partition in partitions]
        self.apply(self.group.release(who, places, now_ns=self.now_ns))

    def leave(self, name: str) -> None:
        self.apply(self.group.leave(name, now_ns=self.now_ns))

    def wait(self, duration_ms: int) -> None:
        """Let time pass, stopping wherever the group has something to do."""
        end_ms = self.now_ms + duration_ms
        while (
            deadline_ns := self.group.next_deadline_ns()
        ) is not None and deadline_ns <= end_ms * NS_PER_MS:
            self.now_ms = max(self.now_ms, deadline_ns // NS_PER_MS)
            self.apply(self.group.advance(now_ns=self.now_ns).events)
        self.now_ms = end_ms

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            assert isinstance(event, GroupAssigned | HolderMoved)
            self.group.apply(event)

    def reads(self, name: str) -> list[int]:
        """The partitions of orders that a member may read from."""
        return [place.partition for place in self.group.member(name).readable if place.topic == ORDERS]

    def to_revoke(self, name: str) -> list[int]:
        return sorted(place.partition for place in self.group.member(name).revoking)
