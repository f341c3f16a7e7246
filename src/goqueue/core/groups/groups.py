"""The groups machine: all groups whose events share one journal."""

from collections.abc import Collection, Iterable, Iterator

from goqueue.core.groups.events import (
    Event,
    GroupChanged,
    GroupDeleted,
    OffsetsCommitted,
    OffsetsDeleted,
    StateReset,
)
from goqueue.core.groups.group import Group
from goqueue.core.groups.offsets import CommittedOffsets
from goqueue.model.errors import GroupNotEmpty, GroupNotFound, GroupSubscribed
from goqueue.model.groups import Membership, TopicOffsets
from goqueue.model.ids import TopicName
from goqueue.model.settings import GroupConfig


class GroupRecord:
    """A group: its members, and its offsets, which outlive them."""

    __slots__ = ("membership", "offsets")

    def __init__(self, name: str, config: GroupConfig) -> None:
        self.membership = Group(name, config)
        self.offsets = CommittedOffsets()

    @property
    def is_void(self) -> bool:
        """Whether nothing would be lost with it."""
        return self.membership.is_vacant and not self.offsets


class Groups:
    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._groups: dict[str, GroupRecord] = {}

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
        self, who: Membership, topics: Collection[TopicOffsets], *, now_ns: int
    ) -> OffsetsCommitted:
        """Offsets of a member, or of a reader that is none when the group has no members."""
        self.ensure(who.group).membership.admit_commit(who, now_ns=now_ns)
        return OffsetsCommitted(who.group, tuple(topics))

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
        if record.membership.standing is not None:
            return GroupDeleted(name)
        del self._groups[name]
        return None

    def apply(self, event: Event) -> None:
        match event:
            case GroupChanged():
                self.ensure(event.group).membership.apply(event)
            case OffsetsCommitted():
                self.ensure(event.group).offsets.commit(event.topics)
            case OffsetsDeleted():
                self.ensure(event.group).offsets.delete(event.topic, event.partitions)
            case GroupDeleted():
                record = self._groups.pop(event.group, None)
                if record is not None:
                    record.membership.end()
            case StateReset():
                self._groups.clear()

    def resume(self, *, now_ns: int) -> None:
        """After the journal was read back: sessions begin anew."""
        for record in self:
            record.membership.resume(now_ns=now_ns)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset."""
        yield StateReset()
        for name, record in self._groups.items():
            if record.membership.standing is not None:
                yield record.membership.standing
            if topics := tuple(record.offsets.topics()):
                yield OffsetsCommitted(name, topics)
