"""A group whose partitions the broker assigns: Kafka's newer protocol, and the groups of HTTP.

Whenever members or topics change, a new generation says what each member is to have, its target. How members
get there is the group's sharing:

    eager         everybody has its target at once, and only the new generation is listened to
    cooperative   a member lets go of what it is no longer to have, then comes to the new generation (its
                  epoch) and takes what is free; what is not free yet it takes when the others have let go
    shared        everybody has everything

In a cooperative group a partition has never two holders: who is asked to let go of it holds it until it
says so, leaves, falls silent for a session, or has been asked for longer than agreed. All of that changes by
events, through `apply`, and survives a restart. When sessions end and what members were told is not kept.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from goqueue.core.groups.assigned_state import AWAY_EPOCH, AssignedState, Terms
from goqueue.core.groups.assignors import ASSIGNORS, Assigning, Assignment, TopicCounts, at_once
from goqueue.core.groups.events import Event, GroupAssigned, HolderKept, HolderMoved
from goqueue.core.groups.holder import NONE, Holder, Partitions, by_topic, subscriptions
from goqueue.core.groups.outcome import Outcome
from goqueue.core.groups.patterns import topic_pattern
from goqueue.model.errors import (
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    InstanceFenced,
    InstanceInUse,
    Invalid,
    InvalidSessionTimeout,
    MemberEpochFenced,
    NotPartitionOwner,
    NotRebalancing,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedAssignor,
)
from goqueue.model.groups import GroupKind, Membership, Sharing, TopicOffsets
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import GroupConfig

TOPICS_MAX = 10_000
"""Topics that one member may subscribe to by name, whether they exist or not."""


class AssignedGroup(AssignedState):
    """The decisions: each looks at the state and answers with the events that would change it."""

    def __init__(self, name: str, config: GroupConfig, *, generation: int = 0) -> None:
        super().__init__(name, generation=generation)
        self._config = config
        self._all_topics: TopicCounts | None = None
        """All there are, as last heard; None: not since the broker began."""
        self._foreseen: tuple[_Inputs, Assignment] | None = None
        """What the next assignment will be if it is made from just this."""

    def follow(self, topics: TopicCounts, *, now_ns: int) -> list[Event]:
        """Topics may have come, gone or grown. Cheap when they are those of the last time."""
        if topics is self._all_topics:
            return []
        self._now_ns, self._all_topics = now_ns, topics
        if not self.members or self._counts(subscriptions(self._kept(), topics)) == self._topics:
            return []
        return [self._reassign("topics_changed")]

    def foresee(self, terms: Terms, kept: HolderKept) -> Generator[None, None, None]:
        """Work out ahead what everybody is to have once this member has come, or has described itself so.

        In steps, since there may be very many partitions. It decides nothing: if the group is another by
        then, all of it is worked out again.
        """
        self._check_join(terms, kept)
        known = self.members.get(kept.member_id)
        is_the_same = known is not None and _wishes(known.kept) == _wishes(kept)
        if self.members and terms.sharing is not Sharing.SHARED and not is_the_same:
            inputs = self._inputs([kept], ())
            self._foreseen = inputs, (yield from inputs.assigning())

    def join(self, terms: Terms, kept: HolderKept, *, now_ns: int) -> list[Event]:
        """A member comes, or comes back, perhaps with another subscription."""
        self._now_ns = now_ns
        self._check_join(terms, kept)
        owner = None if kept.instance_id is None else self._instances.get(kept.instance_id)
        if owner is not None and owner != kept.member_id:
            return self._replace_static(self.members[owner], kept)
        known = self.members.get(kept.member_id)
        if known is not None:
            known.touch(now_ns)
            return self._rejoin(known, replace(kept, joined_ms=known.kept.joined_ms))
        return [self._reassign("member_joined", came=[kept], terms=terms)]

    def heartbeat(
        self, who: Membership, *, claimed: Collection[TopicPartition] | None = None, now_ns: int
    ) -> list[Event]:
        """A sign of life. What it was to let go of and no longer claims to hold, it has let go of."""
        return self._move(self.listen(who, claimed=claimed, now_ns=now_ns), claimed)

    def listen(
        self, who: Membership, *, claimed: Collection[TopicPartition] | None = None, now_ns: int
    ) -> Holder:
        """The member that speaks, if it is listened to in its epoch: a sign of life that moves nothing."""
        self._now_ns = now_ns
        holder = self.member(who.member_id, who.instance_id)
        self._check_epoch(holder, who.generation, claimed)
        holder.touch(now_ns)
        return holder

    def arrive(
        self, member_id: str, *, claimed: Collection[TopicPartition] | None = None, now_ns: int
    ) -> list[Event]:
        """The first step of a member that has just joined, or joined again, whatever its epoch was."""
        self._now_ns = now_ns
        return self._move(self.members[member_id], claimed)

    def change(self, kept: HolderKept, *, now_ns: int) -> list[Event]:
        """A member describes itself anew: another subscription is a new generation."""
        self._now_ns = now_ns
        self._check_description(kept)
        return self._rejoin(self.members[kept.member_id], kept)

    def release(self, who: Membership, revoked: Collection[TopicPartition], *, now_ns: int) -> list[Event]:
        """A member has let go of partitions that it was asked for."""
        holder = self.listen(who, now_ns=now_ns)
        if not holder.revoking:
            raise NotRebalancing(f"member {who.member_id!r} of group {self.name} has nothing to let go of")
        return self._move(holder, holder.revoking.difference(revoked))

    def leave(self, member_id: str, instance_id: str | None = None, *, now_ns: int) -> list[Event]:
        """A member goes for good; a static one may be named by its instance id alone."""
        self._now_ns = now_ns
        if not member_id and instance_id is not None:
            member_id = self._instances.get(instance_id, "")
        return [self._reassign("member_left", gone=[self.member(member_id, instance_id)])]

    def step_out(self, member_id: str, instance_id: str, *, now_ns: int) -> list[Event]:
        """A static member stops for a while: within a session it can be back, under any member id."""
        self._now_ns = now_ns
        holder = self.member(member_id, instance_id)
        holder.touch(now_ns)
        return [self._moved(holder, holder.owned, NONE, AWAY_EPOCH, AWAY_EPOCH)]

    def advance(self, *, now_ns: int) -> Outcome:
        """Time has passed: sessions end, and what members do not let go of is taken away."""
        self._now_ns = now_ns
        silent = [holder for holder in self.members.values() if holder.deadline_ns <= now_ns]
        if silent:
            return Outcome(events=[self._reassign("member_expired", gone=silent)])
        outcome = Outcome()
        for holder in self.members.values():
            if holder.revoking and holder.revocation_ns is not None and holder.revocation_ns <= now_ns:
                # It is not listened to in its old epoch any more, so it learns of what it has lost.
                self.rebalances.force()
                outcome.events += self._move(holder, NONE, is_forced=True)
        return outcome

    def next_deadline_ns(self) -> int | None:
        """When `advance` has something to do next."""
        deadlines = [holder.deadline_ns for holder in self.members.values()]
        deadlines += [
            holder.revocation_ns
            for holder in self.members.values()
            if holder.revoking and holder.revocation_ns is not None
        ]
        return min(deadlines, default=None)

    def readable(self, who: Membership, *, now_ns: int) -> Sequence[TopicPartition]:
        """What a member may read from now; a sign of life, as hot as polls are."""
        holder = self.members.get(who.member_id)
        if holder is None:
            raise UnknownMember(self.name, who.member_id)
        self._check_epoch(holder, who.generation, None)
        holder.touch(now_ns)
        return holder.readable

    def member(self, member_id: str, instance_id: str | None = None) -> Holder:
        if instance_id is not None:
            owner = self._instances.get(instance_id)
            if owner is not None and owner != member_id:
                raise InstanceFenced(f"instance {instance_id} of group {self.name} is {owner} now")
        holder = self.members.get(member_id)
        if holder is None:
            raise UnknownMember(self.name, member_id)
        return holder

    def admit_commit(self, who: Membership, *, now_ns: int) -> None:
        """Refuse offsets of somebody who is not, or no longer, entitled to commit any."""
        if who.generation < 0 and not self.members:
            return
        if self.terms.kind is GroupKind.CONSUMER:
            self.check_member_epoch(who)
        self.member(who.member_id, who.instance_id).touch(now_ns)

    def check_owner(self, member_id: str, topics: Collection[TopicOffsets]) -> None:
        """Whether partitions are a member's own. Members that came over HTTP tell no epoch worth checking."""
        holder = self.members.get(member_id)
        if holder is None or self.terms.kind is GroupKind.CONSUMER:
            return
        for topic, _, rows, _ in topics:
            for row in rows:
                if (place := TopicPartition(topic, row[0])) not in holder.held:
                    raise NotPartitionOwner(self.name, member_id, place)

    def check_member_epoch(self, who: Membership) -> None:
        """Whether somebody who commits or asks for offsets knows its present epoch."""
        epoch = self.member(who.member_id, who.instance_id).epoch
        if who.generation != epoch:
            raise StaleMemberEpoch(
                f"member {who.member_id!r} of group {self.name} is in epoch {epoch}, not {who.generation}"
            )

    def is_subscribed(self, topic: TopicName) -> bool:
        return any(subscriptions(self._kept(), (topic,)).values())

    @property
    def _known_topics(self) -> TopicCounts:
        return self._topics if self._all_topics is None else self._all_topics

    def _counts(self, wanted: Mapping[str, frozenset[TopicName]]) -> dict[TopicName, int]:
        """The topics that members subscribe to, and how many partitions they have."""
        topics = set[TopicName]().union(*set(wanted.values()))
        return {topic: self._known_topics[topic] for topic in sorted(topics)}

    def _check_join(self, terms: Terms, kept: HolderKept) -> None:
        if self.members and terms != self.terms:
            raise InconsistentProtocol(
                f"group {self.name} is of kind {self.terms.kind.value}, {self.terms.sharing.value}"
                f"{' in order of keys' if self.terms.key_order else ''}"
            )
        config = self._config
        if not config.session_ms_min <= kept.session_timeout_ms <= config.session_ms_max:
            raise InvalidSessionTimeout(
                f"a session lasts {config.session_ms_min} to {config.session_ms_max} ms, "
                f"not {kept.session_timeout_ms}"
            )
        self._check_description(kept)
        is_new = kept.member_id not in self.members and kept.instance_id not in self._instances
        if is_new and len(self.members) >= config.members_max:
            raise GroupFull(f"group {self.name} has {config.members_max} members")

    def _check_description(self, kept: HolderKept) -> None:
        if len(kept.topics) > TOPICS_MAX:
            raise Invalid(f"a member subscribes to at most {TOPICS_MAX} topics, not {len(kept.topics)}")
        if kept.assignor is not None and kept.assignor not in ASSIGNORS:
            raise UnsupportedAssignor(f"there is no assignor {kept.assignor!r}; use {', '.join(ASSIGNORS)}")
        if kept.pattern is not None:
            topic_pattern(kept.pattern)

    def _check_epoch(
        self, holder: Holder, generation: int, claimed: Collection[TopicPartition] | None
    ) -> None:
        if generation == holder.epoch:
            return
        if self.terms.kind is GroupKind.CONSUMER:
            # The reply that told of the new epoch may have been lost. Then it claims only what it has.
            is_behind = generation == holder.previous_epoch and claimed is not None
            if not is_behind or not holder.held.issuperset(claimed or ()):
                raise MemberEpochFenced(
                    f"member {holder.member_id!r} of group {self.name} is in epoch {holder.epoch}, "
                    f"not {generation}"
                )
        elif generation > 0 and generation != holder.previous_epoch:
            if self.terms.sharing is Sharing.SHARED and generation < holder.epoch:
                return  # nothing is ever taken from anybody here
            raise IllegalGeneration(
                f"member {holder.member_id!r} of group {self.name} is in generation {holder.epoch}, "
                f"not {generation}"
            )

    def _rejoin(self, known: Holder, kept: HolderKept) -> list[Event]:
        if kept == known.kept:
            return []
        if _wishes(kept) == _wishes(known.kept):
            return [self._assigned(came=[kept])]
        return [self._reassign("subscription_changed", came=[kept])]

    def _replace_static(self, old: Holder, kept: HolderKept) -> list[Event]:
        """A static member is back under a new member id, and takes the place that was kept for it."""
        if old.epoch != AWAY_EPOCH or kept.member_id in self.members:
            raise InstanceInUse(
                f"instance {kept.instance_id} of group {self.name} is {old.member_id!r}, which is still there"
            )
        if _wishes(kept) != _wishes(old.kept):
            return [self._reassign("subscription_changed", came=[kept], gone=[old])]
        place = self._assigned(came=[kept], gone=[old.member_id], targets=[(kept.member_id, old.target)])
        taken = HolderMoved(
            self.name, kept.member_id, self.generation, self.generation, by_topic(old.owned & old.target), ()
        )
        return [place, taken]

    def _reassign(
        self,
        reason: str,
        *,
        came: Sequence[HolderKept] = (),
        gone: Sequence[Holder] = (),
        terms: Terms | None = None,
    ) -> GroupAssigned:
        """Decide anew what everybody is to have, in a new generation."""
        terms = terms or self.terms
        inputs = self._inputs(came, gone)
        targets: list[tuple[str, Partitions]] = []
        if terms.sharing is not Sharing.SHARED:
            if self._foreseen is None or self._foreseen[0] != inputs:
                self._foreseen = inputs, at_once(inputs.assigning())
            assigned, previous = self._foreseen[1], inputs.previous
            targets = [(m, t) for m, t in assigned.items() if m not in previous or previous[m] != t]
            self._prepare(terms.sharing, assigned)
        self._foreseen = None
        self.rebalances.begin(reason, self._now_ns)
        # Without members there is nobody to tell a generation from the last one.
        generation = self.generation + 1 if inputs.wanted else self.generation
        return GroupAssigned(
            group=self.name,
            kind=terms.kind,
            sharing=terms.sharing,
            key_order=terms.key_order,
            assignor=inputs.assignor,
            generation=generation,
            topics=tuple(inputs.counts.items()),
            came=tuple(came),
            gone=tuple(holder.member_id for holder in gone),
            targets=tuple((member_id, by_topic(target)) for member_id, target in targets),
        )

    def _inputs(self, came: Sequence[HolderKept], gone: Sequence[Holder]) -> "_Inputs":
        kept = {holder.member_id: holder.kept for holder in self.members.values()}
        kept.update((one.member_id, one) for one in came)
        for holder in gone:
            del kept[holder.member_id]
        wanted = subscriptions(kept.values(), self._known_topics)
        previous = {name: holder.target for name, holder in self.members.items()}
        return _Inputs(_chosen(kept.values()), tuple(wanted), wanted, self._counts(wanted), previous)

    def _prepare(self, sharing: Sharing, assigned: Assignment) -> None:
        """What a new assignment means for those who are there: clocks that begin to run, and the counts."""
        for member_id, target in assigned.items():
            holder = self.members.get(member_id)
            owned = NONE if holder is None else holder.owned
            if sharing is Sharing.EAGER:
                self.rebalances.partitions_assigned += len(target - owned)
                self.rebalances.partitions_revoked += len(owned - target)
            elif holder is not None and owned - target:
                holder.start_revocation(self._now_ns)

    def _move(
        self, holder: Holder, claimed: Collection[TopicPartition] | None, *, is_forced: bool = False
    ) -> list[Event]:
        """One step of a cooperative member towards its target, or none when there is nothing to do."""
        if self.terms.sharing is not Sharing.COOPERATIVE:
            return []
        revoking = holder.revoking if claimed is None else holder.revoking.intersection(claimed)
        owned, epoch, previous = holder.owned, holder.epoch, holder.previous_epoch
        if not revoking:
            owned |= {place for place in holder.target - owned if place not in self._holders}
            if epoch != self.generation:
                epoch, previous = self.generation, max(epoch, 0)
        if is_forced:
            previous = epoch
        if (owned, revoking, epoch) == (holder.owned, holder.revoking, holder.epoch):
            return []
        self.rebalances.partitions_revoked += len(holder.revoking) - len(revoking)
        self.rebalances.partitions_assigned += len(owned - holder.owned)
        return [self._moved(holder, owned, revoking, epoch, previous)]


class _Inputs(NamedTuple):
    """All that an assignment is made from. None of it changes: a member's target is replaced as a whole."""

    assignor: str
    order: tuple[str, ...]
    """Of the members: it decides between equals."""
    wanted: dict[str, frozenset[TopicName]]
    counts: dict[TopicName, int]
    previous: dict[str, Partitions]

    def assigning(self) -> Assigning:
        return ASSIGNORS[self.assignor](self.wanted, self.counts, self.previous)


def _wishes(kept: HolderKept) -> tuple[object, ...]:
    """What of a member's description bears on who is to have what."""
    return kept.topics, kept.pattern, kept.assignor


def _chosen(kept: Iterable[HolderKept]) -> str:
    """The assignor that most members ask for; of equals, the one that was asked for first."""
    votes = Counter(one.assignor for one in kept if one.assignor is not None)
    return votes.most_common(1)[0][0] if votes else "uniform"
