"""What a group has committed: OffsetFetch, OffsetDelete. OffsetCommit is hot and has a module of its own."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import group_need, topic_need
from goqueue.broker.groups.offsets import delete_offsets, fetch_offsets, unstable_offsets
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import coordinator_code, kafka_code
from goqueue.edge.kafka.once import done_to_each, each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError
from goqueue.model.group_commands import DeleteOffsets, FetchOffsets, ListUnstable
from goqueue.model.groups import NO_GENERATION, Membership, OffsetRow, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition

if TYPE_CHECKING:
    from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
    from kio.schema.offset_fetch.v7.request import OffsetFetchRequest, OffsetFetchRequestTopic
    from kio.schema.offset_fetch.v9.request import OffsetFetchRequestGroup, OffsetFetchRequestTopics

_NOTHING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPartition:
    partition_index: int
    committed_offset: int = _NOTHING
    committed_leader_epoch: int = -1
    metadata: str = ""
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTopic:
    name: str
    partitions: tuple[CommittedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedGroup:
    group_id: str
    topics: tuple[CommittedTopic, ...]
    error_code: ErrorCode = ErrorCode.none


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetchReply(Reply):
    """Up to version 7 there is one group, and its answer stands in the reply itself."""

    groups: tuple[CommittedGroup, ...] = ()
    topics: tuple[CommittedTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def offset_fetch(context: Context, request: "OffsetFetchRequest") -> OffsetFetchReply:
    """The offsets that groups have committed; what a transaction may change is told if that is asked for."""
    stable: bool = getattr(request, "require_stable", False)
    groups: tuple[OffsetFetchRequestGroup, ...] | None = getattr(request, "groups", None)
    if groups is None:
        found = await committed_of(context, request.group_id, request.topics, stable=stable)
        return OffsetFetchReply(topics=found.topics, error_code=found.error_code)
    return OffsetFetchReply(
        groups=tuple(
            [
                await committed_of(context, group.group_id, group.topics, _speaker(group), stable=stable)
                for group in once(groups, lambda group: group.group_id)
            ]
        )
    )


def _speaker(group: "OffsetFetchRequestGroup") -> Membership | None:
    """Who asks, if it says so: from version 9 on members can, tools do not."""
    member_id, epoch = getattr(group, "member_id", None), getattr(group, "member_epoch", NO_GENERATION)
    return Membership(group.group_id, member_id, epoch) if member_id and epoch >= 0 else None


async def committed_of(
    context: Context,
    group: str,
    topics: "Sequence[OffsetFetchRequestTopic | OffsetFetchRequestTopics | SimpleNamespace] | None",
    who: Membership | None = None,
    *,
    stable: bool,
) -> CommittedGroup:
    """What a group has committed of some topics, or of all."""
    wanted = None if topics is None else [(TopicName(t.name), t.partition_indexes) for t in topics]
    warden = context.broker.warden
    denied = warden.denied(Operation.DESCRIBE, (topic for topic, _ in wanted or ()))
    try:
        warden.demand([group_need(Operation.DESCRIBE, group)])
        seen = None if wanted is None else [row for row in wanted if row[0] not in denied]
        found = await fetch_offsets(context.broker, FetchOffsets(group=group, wanted=seen, who=who))
        if wanted is None:
            found = [each for each in found if warden.lets(topic_need(Operation.DESCRIBE, each.topic))]
    except GoQueueError as error:
        # The oldest version has room for an error only next to a partition.
        code = coordinator_code(error)

        async def refuse(topic: tuple[TopicName, Sequence[int]]) -> CommittedTopic:
            tell = partial(_refused, code)
            return CommittedTopic(name=topic[0], partitions=await each(context, topic[1], tell))

        refused = await done_to_each(context, wanted or (), refuse)
        return CommittedGroup(group_id=group, topics=refused, error_code=code)
    unstable = unstable_offsets(context.broker, ListUnstable(group=group)) if stable else set()

    async def tell(commit: TopicCommit) -> CommittedTopic:
        tell_row = partial(_told, commit.topic, unstable) if unstable else _partition
        return CommittedTopic(name=commit.topic, partitions=await each(context, commit.rows, tell_row))

    told = await done_to_each(context, [each for each in found if each.topic not in denied], tell)
    unseen = [
        CommittedTopic(
            name=topic, partitions=tuple(_refused(kafka_code(denied[topic]), number) for number in numbers)
        )
        for topic, numbers in wanted or ()
        if topic in denied
    ]
    return CommittedGroup(group_id=group, topics=(*told, *unseen))


def _told(topic: TopicName, unstable: Collection[TopicPartition], row: OffsetRow) -> CommittedPartition:
    return _unstable(row[0]) if TopicPartition(topic, row[0]) in unstable else _partition(row)


def _refused(code: ErrorCode, partition: int) -> CommittedPartition:
    return CommittedPartition(partition_index=partition, error_code=code)


def _partition(row: OffsetRow) -> CommittedPartition:
    partition, offset, leader_epoch, metadata = row
    return CommittedPartition(
        partition_index=partition,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        metadata=metadata,
    )


def _unstable(partition: int) -> CommittedPartition:
    return CommittedPartition(partition_index=partition, error_code=ErrorCode.unstable_offset_commit)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPartition:
    partition_index: int
    error_code: ErrorCode


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedOffsets:
    name: str
    partitions: tuple[DeletedPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetDeleteReply(Reply):
    topics: tuple[DeletedOffsets, ...] = ()
    error_code: ErrorCode = ErrorCode.none


async def offset_delete(context: Context, request: "OffsetDeleteRequest") -> OffsetDeleteReply:
    """Forget committed offsets of topics that no member reads."""
    unwanted = [(TopicName(t.name), [p.partition_index for p in t.partitions]) for t in request.topics]
    warden = context.broker.warden
    try:
        warden.demand([group_need(Operation.DELETE, request.group_id)])
        refused = dict[TopicName, GoQueueError](
            warden.denied(Operation.READ, (topic for topic, _ in unwanted))
        )
        allowed = [row for row in unwanted if row[0] not in refused]
        refused |= await delete_offsets(
            context.broker, DeleteOffsets(group=request.group_id, unwanted=allowed)
        )
    except GoQueueError as error:
        return OffsetDeleteReply(error_code=coordinator_code(error))
    codes = {topic: coordinator_code(error) for topic, error in refused.items()}
    return OffsetDeleteReply(
        topics=tuple(
            DeletedOffsets(
                name=topic,
                partitions=tuple(
                    DeletedPartition(partition_index=p, error_code=codes.get(topic, ErrorCode.none))
                    for p in partitions
                ),
            )
            for topic, partitions in unwanted
        )
    )
