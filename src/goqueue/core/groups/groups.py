"""The groups machine: all groups whose events share one journal."""

from collections.abc import Collection, Iterable, Iterator

from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.events import (
    Event,
    GroupAssigned,
    GroupChanged,
    GroupDeleted,
    GroupSeen,
    HolderMoved,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsPended,
    OffsetsReset,
    PendingDropped,
    StateReset,
)
from goqueue.core.groups.group import Group
from goqueue.core.groups.offsets import CommittedOffsets
from goqueue.core.groups.pending_offsets import PendingOffsets
from goqueue.core.groups.rebalances import Rebalances, summed
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import (
    GroupNotEmpty,
    GroupNotFound,
    GroupSubscribed,
    IllegalGeneration,
    InconsistentProtocol,
    StaleMemberEpoch,
)
from goqueue.model.groups import GroupKind, Membership, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig

_NOTES_PER_RETENTION = 20


class GroupRecord:
    """A group: its members, and its offsets, which outlive them."""

    __slots__ = ("_config", "is_journalled", "membership", "offsets", "pending", "seen_ms")

    def __init__(self, name: str, config: GroupConfig) -> None:
        self._config = config
        self.membership: Group | AssignedGroup = Group(name, config)
        self.is_journalled = False
        """Whether the journal has heard of its members."""
        self.offsets = CommittedOffsets()
        self.pending = PendingOffsets()
        self.seen_ms = 0
        """The wall clock when it last committed, or was last noted to have members; 0: not known."""

    @property
    def is_void(self) -> bool:
        """Whether nothing would be lost with it."""
        return self.membership.is_vacant and not self.offsets and not self.pending

    @property
    def kind(self) -> GroupKind:
        membership = self.membership
        return GroupKind.CLASSIC if isinstance(membership, Group) else membership.terms.kind

    def as_classic(self) -> Group:
        """The group as one in which a member assigns. One without members can become that."""
        membership = self.membership
        if isinstance(membership, Group):
            return membership
        self._check_vacant()
        changed = self.membership = Group(membership.name, self._config)
        changed.generation = membership.generation
        return changed

    def as_assigned(self) -> AssignedGroup:
        """The group as one in which the broker assigns. One without members can become that."""
        membership = self.membership
        if isinstance(membership, AssignedGroup):
            return membership
        self._check_vacant()
        changed = AssignedGroup(membership.name, self._config, generation=membership.generation)
        self.membership = changed
        return changed

    def _check_vacant(self) -> None:
        if not self.membership.is_vacant:
            raise InconsistentProtocol(
                f"group {self.membership.name} is of kind {self.kind.value} and has members"
            )


class Groups:
    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._groups: dict[str, GroupRecord] = {}
        self.ended = Rebalances()
        """Rebalances of groups that are no more."""

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[GroupRecord]:
        return iter(self._groups.values())

    def get(self, name: str) -> GroupRecord | None:
        return self._groups.get(name)

    def group(self, name: str) -> GroupRecord:
        record = self._groups.get(name)
        if record is None:
            raise GroupNotFound(name)
        return record

    def ensure(self, name: str) -> GroupRecord:
        """The group, which may begin here: the journal hears of it when there is something to keep."""
        record = self._groups.get(name)
        if record is None:
            record = self._groups[name] = GroupRecord(name, self._config)
        return record

    def commit_offsets(
        self, who: Membership, topics: Collection[TopicOffsets], *, now_ns: int, now_ms: int
    ) -> OffsetsCommitted:
        """Offsets of a member, or of a reader that is none when the group has no members."""
        membership = self.ensure(who.group).membership
        membership.admit_commit(who, now_ns=now_ns)
        if isinstance(membership, AssignedGroup):
            membership.check_owner(who.member_id, topics)
        return OffsetsCommitted(who.group, tuple(topics), now_ms)

    def pend_offsets(
        self,
        who: Membership,
        producer_id: int,
        topics: Collection[TopicOffsets],
        *,
        now_ns: int,
        transaction_id: str = "",
    ) -> OffsetsPended:
        """Offsets for when a transaction commits. Old clients do not say which member they come from."""
        if who.member_id or who.generation >= 0:
            try:
                self.ensure(who.group).membership.admit_commit(who, now_ns=now_ns)
            except StaleMemberEpoch as error:
                # Producers know no epochs of members; this is what tells them to begin again.
                raise IllegalGeneration(str(error)) from error
        return OffsetsPended(who.group, producer_id, tuple(topics), transaction_id)

    def decide_pending(
        self, name: str, producer_id: int, *, is_committed: bool, now_ms: int, transaction_id: str = ""
    ) -> tuple[Event, ...]:
        """A transaction has ended: what it held becomes the group's, or is dropped."""
        record = self._groups.get(name)
        topics = () if record is None else record.pending.of(producer_id)
        if not topics:
            return ()
        if record is not None and record.pending.transaction_of(producer_id) not in ("", transaction_id):
            return ()  # of a later one
        dropped = PendingDropped(name, producer_id)
        return (OffsetsCommitted(name, topics, now_ms), dropped) if is_committed else (dropped,)

    def reset_offsets(
        self, name: str, topics: Collection[TopicOffsets], *, is_forced: bool, now_ms: int
    ) -> OffsetsReset:
        """Where a group reads on. Members would not notice, so it has none, or somebody insists."""
        record = self._groups.get(name)
        if not is_forced and record is not None and not record.membership.is_vacant:
            raise GroupNotEmpty(name)
        return OffsetsReset(name, tuple(topics), now_ms)

    def expire_offsets(self, *, now_ms: int) -> list[GroupSeen | GroupDeleted]:
        """What time does to offsets: groups with members are noted now and then, others end at last.

        The note is up to a twentieth of the retention old, which is added: never too early.
        """
        retention_ms = self._config.offsets_retention_ms
        note_ms = retention_ms // _NOTES_PER_RETENTION
        events: list[GroupSeen | GroupDeleted] = []
        for name, record in self._groups.items():
            idle_ms = now_ms - record.seen_ms
            if not record.offsets or name.startswith(REDRIVE_GROUP_PREFIX):
                continue  # dead letters that were sent back must not be sent again while they are kept
            if record.membership.is_vacant and record.seen_ms and not record.pending:
                if idle_ms > retention_ms + note_ms:
                    events.append(GroupDeleted(name))
            elif idle_ms > note_ms:
                events.append(GroupSeen(name, now_ms))
        return events

    def delete_offsets(self, name: str, topic: TopicName, partitions: Collection[int]) -> OffsetsDeleted:
        if self.group(name).membership.is_subscribed(topic):
            raise GroupSubscribed(name, topic)
        return OffsetsDeleted(name, topic, tuple(partitions))

    def delete_group(self, name: str) -> GroupDeleted:
        if not self.group(name).membership.is_vacant:
            raise GroupNotEmpty(name)
        return GroupDeleted(name)

    def drop_if_void(self, name: str) -> GroupDeleted | None:
        """Forget a group in which nothing is left; the event, if the journal has heard of it."""
        record = self._groups.get(name)
        if record is None or not record.is_void:
            return None
        if record.is_journalled:
            return GroupDeleted(name)
        del self._groups[name]
        return None

    def apply(self, event: Event) -> None:
        match event:
            case GroupChanged():
                record = self.ensure(event.group)
                record.is_journalled = True
                record.as_classic().apply(event)
            case GroupAssigned() | HolderMoved():
                record = self.ensure(event.group)
                record.is_journalled = True
                record.as_assigned().apply(event)
            case OffsetsCommitted():
                record = self.ensure(event.group)
                record.offsets.commit(event.topics)
                record.seen_ms = event.committed_ms
            case OffsetsReset():
                record = self.ensure(event.group)
                record.offsets.commit(event.topics)
                record.seen_ms = event.reset_ms
            case GroupSeen():
                self.ensure(event.group).seen_ms = event.seen_ms
            case OffsetsPended():
                self.ensure(event.group).pending.pend(event.producer_id, event.topics, event.transaction_id)
            case PendingDropped():
                self.ensure(event.group).pending.drop(event.producer_id)
            case OffsetsDeleted():
                self.ensure(event.group).offsets.delete(event.topic, event.partitions)
            case GroupDeleted():
                deleted = self._groups.pop(event.group, None)
                if deleted is not None:
                    deleted.membership.end()
                    if isinstance(deleted.membership, AssignedGroup):
                        self.ended = summed([self.ended, deleted.membership.rebalances])
            case StateReset():
                self._groups.clear()

    def resume(self, *, now_ns: int) -> None:
        """After the journal was read back: sessions begin anew."""
        for record in self:
            record.membership.resume(now_ns=now_ns)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset."""
        yield StateReset()
        # A group may begin while somebody walks through this, and nothing of it is worth keeping yet.
        for name, record in tuple(self._groups.items()):
            yield from record.membership.whole_state()
            if topics := tuple(record.offsets.topics()):
                yield OffsetsCommitted(name, topics, record.seen_ms)
            for producer_id, pending in record.pending:
                yield OffsetsPended(name, producer_id, pending, record.pending.transaction_of(producer_id))
