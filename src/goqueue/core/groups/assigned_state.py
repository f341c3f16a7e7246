"""What of a group whose partitions the broker assigns must survive a restart: members and what they hold.

It changes by events alone, through `apply`. In a cooperative group a partition has never two holders.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from goqueue.core.groups.events import Event, GroupAssigned, HolderKept, HolderMoved
from goqueue.core.groups.holder import (
    NONE,
    Everything,
    Holder,
    Partitions,
    by_topic,
    everything_of,
    from_topics,
    subscriptions,
)
from goqueue.core.groups.rebalances import Rebalances
from goqueue.model.groups import GroupKind, GroupState, Sharing
from goqueue.model.ids import TopicName, TopicPartition

AWAY_EPOCH = -2
"""The epoch of a static member that has stopped and will be back: its partitions wait for it."""


class Terms(NamedTuple):
    """What all members of a group have to agree on."""

    kind: GroupKind
    sharing: Sharing
    key_order: bool = False


class AssignedState:
    def __init__(self, name: str, *, generation: int = 0) -> None:
        self.name = name
        self.terms = Terms(GroupKind.CONSUMER, Sharing.COOPERATIVE)
        self.generation = generation
        self.assignor = ""
        self.members: dict[str, Holder] = {}
        """In the order in which they came."""
        self.rebalances = Rebalances()
        self.is_journalled = False
        """Whether the journal has heard of the group."""
        self._topics: dict[TopicName, int] = {}
        """The topics of this generation, and how many partitions each has."""
        self._instances: dict[str, str] = {}
        """The member id behind each instance id."""
        self._holders: dict[TopicPartition, str] = {}
        """Cooperative groups: who holds a partition."""
        self._shared: dict[tuple[tuple[TopicName, int], ...], Everything] = {}
        """Shared groups: all partitions of topics and how many each has, for every subscription there is."""
        self._reconciling: set[str] = set()
        self._is_dead = False
        self._now_ns = 0
        """The time of the step that is being decided or applied."""

    @property
    def is_vacant(self) -> bool:
        return not self.members

    @property
    def is_rebalancing(self) -> bool:
        """Whether somebody is still to let go of a partition, or to take one."""
        return bool(self._reconciling)

    @property
    def topics(self) -> Mapping[TopicName, int]:
        """The topics of this generation, and how many partitions each has."""
        return self._topics

    @property
    def leader(self) -> str:
        return next(iter(self.members), "")

    @property
    def state(self) -> GroupState:
        if self._is_dead:
            return GroupState.DEAD
        if not self.members:
            return GroupState.EMPTY
        return GroupState.RECONCILING if self._reconciling else GroupState.STABLE

    def is_reconciling(self, member_id: str) -> bool:
        return member_id in self._reconciling

    def end(self) -> None:
        """The group has been deleted: an event, which cannot be refused."""
        self._is_dead = True

    def resume(self, *, now_ns: int) -> None:
        """After a restart: members that are still there have their whole session to say so."""
        for holder in self.members.values():
            holder.touch(now_ns)
            if holder.revoking:
                holder.start_revocation(now_ns)

    def apply(self, event: GroupAssigned | HolderMoved) -> None:
        self.is_journalled = True
        match event:
            case GroupAssigned():
                self._apply_assigned(event)
            case HolderMoved():
                holder = self.members[event.member_id]
                self._let_go(holder)
                holder.hold(from_topics(event.owned), from_topics(event.revoking))
                holder.epoch, holder.previous_epoch = event.epoch, event.previous_epoch
                self._holders.update(dict.fromkeys(holder.held, event.member_id))
                self._note_reconciled(holder)
        if not self._reconciling:
            self.rebalances.finish(self._now_ns)

    def whole_state(self) -> Iterator[Event]:
        """Events that lead to the present state from a group without any."""
        if not self.is_journalled:
            return
        holders = self.members.values()
        targets = () if self.terms.sharing is Sharing.SHARED else [(h.member_id, h.target) for h in holders]
        yield self._assigned(came=[holder.kept for holder in holders], targets=targets)
        if self.terms.sharing is Sharing.COOPERATIVE:
            for holder in holders:
                yield self._moved(holder, holder.owned, holder.revoking, holder.epoch, holder.previous_epoch)

    def _kept(self) -> Iterable[HolderKept]:
        return (holder.kept for holder in self.members.values())

    def _moved(
        self, holder: Holder, owned: Partitions, revoking: Partitions, epoch: int, previous: int
    ) -> HolderMoved:
        return HolderMoved(self.name, holder.member_id, epoch, previous, by_topic(owned), by_topic(revoking))

    def _assigned(
        self,
        *,
        came: Sequence[HolderKept],
        gone: Sequence[str] = (),
        targets: Iterable[tuple[str, Partitions]] = (),
    ) -> GroupAssigned:
        """Other members, or other descriptions of them, in the present generation."""
        return GroupAssigned(
            group=self.name,
            kind=self.terms.kind,
            sharing=self.terms.sharing,
            key_order=self.terms.key_order,
            assignor=self.assignor,
            generation=self.generation,
            topics=tuple(self._topics.items()),
            came=tuple(came),
            gone=tuple(gone),
            targets=tuple((member_id, by_topic(target)) for member_id, target in targets),
        )

    def _apply_assigned(self, event: GroupAssigned) -> None:
        self.terms = Terms(event.kind, event.sharing, event.key_order)
        self.assignor, self.generation = event.assignor, event.generation
        self._topics = dict(event.topics)
        for member_id in event.gone:
            self._drop(member_id)
        for kept in event.came:
            if kept.member_id in self.members:
                self.members[kept.member_id].kept = kept
            else:
                holder = self.members[kept.member_id] = Holder(kept)
                holder.touch(self._now_ns)
            if kept.instance_id is not None:
                self._instances[kept.instance_id] = kept.member_id
        for member_id, target in event.targets:
            self.members[member_id].target = from_topics(target)
        if event.sharing is Sharing.SHARED:
            self._share_everything()
        for holder in self.members.values():
            if event.sharing is not Sharing.COOPERATIVE:
                if holder.owned is not holder.target and holder.owned != holder.target:
                    holder.hold(holder.target)
                holder.epoch = holder.previous_epoch = event.generation
            else:
                self._aim(holder)
            self._note_reconciled(holder)

    def _aim(self, holder: Holder) -> None:
        """A member is to let go of what it is not to have. One that is away reads nothing: it has let go."""
        held = holder.held
        if holder.epoch == AWAY_EPOCH:
            self._let_go(holder)
            holder.hold(held & holder.target)
            self._holders.update(dict.fromkeys(holder.owned, holder.member_id))
        elif holder.revoking or not held <= holder.target:
            # What it was asked for and is to have again after all stays with it, told or not.
            holder.hold(held & holder.target, held - holder.target)

    def _share_everything(self) -> None:
        """Members with the same subscription share one set, also with those who were there before."""
        shared: dict[tuple[tuple[TopicName, int], ...], Everything] = {}
        counts: dict[frozenset[TopicName], tuple[tuple[TopicName, int], ...]] = {}
        for member_id, topics in subscriptions(self._kept(), self._topics).items():
            if topics not in counts:
                key = counts[topics] = tuple((topic, self._topics[topic]) for topic in sorted(topics))
                shared[key] = self._shared.get(key) or everything_of(key)
            holder, everything = self.members[member_id], shared[counts[topics]]
            if holder.owned is not everything.partitions:
                holder.share(everything)
        self._shared = shared

    def _drop(self, member_id: str) -> None:
        holder = self.members.pop(member_id)
        self._let_go(holder)
        self._reconciling.discard(member_id)
        if holder.kept.instance_id is not None:
            self._instances.pop(holder.kept.instance_id, None)

    def _let_go(self, holder: Holder) -> None:
        for place in holder.held if self._holders else NONE:
            if self._holders.get(place) == holder.member_id:
                del self._holders[place]

    def _note_reconciled(self, holder: Holder) -> None:
        # Nobody waits for one that is away.
        if holder.epoch == AWAY_EPOCH or holder.is_reconciled(self.generation):
            self._reconciling.discard(holder.member_id)
        else:
            self._reconciling.add(holder.member_id)
