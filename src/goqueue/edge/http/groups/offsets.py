"""How far groups have read, over HTTP: commit, fetch, and set from outside."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter, RawBody
from msgspec.structs import replace

from goqueue.broker.access.needs import group_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.groups.offsets import Refusals, commit_offsets, fetch_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.broker.groups.verbs import describe_group
from goqueue.edge.http.groups.bodies import (
    CommitOffsetsBody,
    CommitOffsetsReply,
    OffsetBody,
    OffsetMap,
    OffsetRefused,
    OffsetResetBody,
    OffsetsOfGroup,
    ResetOffsetsBody,
    ResetOffsetsReply,
)
from goqueue.edge.http.groups.routes import TAGS, GroupInPath
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import format_time, parse_time_or_ms
from goqueue.model.access import Operation
from goqueue.model.commands import Spot
from goqueue.model.errors import (
    GroupNotFound,
    Invalid,
    NotPartitionOwner,
    UnknownMember,
)
from goqueue.model.group_commands import CommitOffsets, DescribeGroup, FetchOffsets, ResetOffsets
from goqueue.model.groups import NO_GENERATION, Membership, OffsetRow, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition

_commit_decoder = msgspec.json.Decoder(CommitOffsetsBody)
_reset_decoder = msgspec.json.Decoder(ResetOffsetsBody)
_PARTITION_DIGITS_MAX = 10
_SPOTS = {"earliest": Spot.EARLIEST, "latest": Spot.LATEST}


@post(
    "/groups/{group:str}/offsets",
    status_code=200,
    operation_id="commitOffsets",
    summary="Keep how far a member has read; the reply waits for the disk",
    description="What is unknown, or of a topic that whoever asks may not read, is told in errors, and the "
    "rest is kept; a partition that is not the member's is a 403.",
    tags=TAGS,
    operation_class=takes(CommitOffsetsBody),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def commit_offsets_route(
    broker: NamedDependency[Broker], group: GroupInPath, body: RawBody
) -> CommitOffsetsReply:
    given = decode(_commit_decoder, body)
    offsets = {target: offset for target, offset in offsets_in(given.offsets).items() if offset >= 0}
    who = Membership(group, given.member_id or "", _generation_of(given))
    refusals = await _commit(broker, who, offsets)
    kept = {target: offset for target, offset in offsets.items() if target not in refusals}
    if refusals and not kept:
        raise next(iter(refusals.values()))
    return CommitOffsetsReply(
        status="committed",
        committed=True,
        group=group,
        offsets=_by_topic(kept),
        errors=[OffsetRefused(*target, str(refusal), refusal.code) for target, refusal in refusals.items()],
    )


@get(
    "/groups/{group:str}/offsets",
    operation_id="committedOffsets",
    summary="How far a group has read: the offsets it reads next",
    tags=TAGS,
    responses=errors(400, 403, 503),
)
async def committed_offsets_route(
    broker: NamedDependency[Broker],
    group: GroupInPath,
    topic: Annotated[str | None, QueryParameter(description="Of this topic alone.")] = None,
) -> OffsetsOfGroup[str]:
    commits = await at_home(broker, fetch_offsets, FetchOffsets(group=group, wanted=None))
    offsets: OffsetMap = {
        commit.topic: {str(row[0]): row[1] for row in sorted(commit.rows)}
        for commit in commits
        if topic in (None, commit.topic)
    }
    reply: OffsetsOfGroup[str] = OffsetsOfGroup(group, offsets, topics=offsets)
    try:
        view = await seen_at_home(broker, describe_group, DescribeGroup(group=group))
    except GroupNotFound:
        return reply
    updated_at = format_time(view.seen_ms) if view.seen_ms else None
    return replace(reply, generation=view.generation, updated_at=updated_at)


@post(
    "/groups/{group:str}/offsets/reset",
    status_code=200,
    operation_id="resetOffsets",
    summary="Set where a group reads on: all partitions or none",
    description="Refused with 409 while the group has members, unless force is given.",
    tags=TAGS,
    operation_class=takes(ResetOffsetsBody),
    responses=errors(400, 403, 404, 409, 413, 500, 503, 507),
)
async def reset_offsets_route(
    broker: NamedDependency[Broker], group: GroupInPath, body: RawBody
) -> ResetOffsetsReply:
    given = decode(_reset_decoder, body)
    resets = await at_home(broker, reset_offsets, reset_of(group, given))
    return ResetOffsetsReply(
        group_id=group,
        dry_run=bool(given.dry_run),
        reset_count=len(resets),
        partitions=[OffsetResetBody(*reset) for reset in resets],
        new_offsets=_by_topic({TopicPartition(r.topic, r.partition): r.new_offset for r in resets}),
    )


def reset_of(group: str, body: ResetOffsetsBody) -> ResetOffsets:
    """What a request to reset asks for, in whichever of its forms."""
    goal = body.to
    if goal is None:
        goal = body.timestamp if body.strategy == "timestamp" else body.strategy
    if goal is None:
        raise Invalid("say where to: give to, or a strategy, which for timestamp needs a timestamp")
    topics = body.topics if body.topic is None else [*(body.topics or ()), body.topic]
    spot: Spot | int = Spot.EARLIEST
    offsets: dict[TopicPartition, int] = {}
    match goal:
        case dict() | list():
            offsets = offsets_in(goal)
            if not offsets:
                raise Invalid("no offsets are given")
        case str():
            spot = _SPOTS[goal] if goal in _SPOTS else parse_time_or_ms(goal)
        case int():
            spot = goal
    return ResetOffsets(
        group=group,
        topics=topics,
        partition=body.partition if body.partition is not None and body.partition >= 0 else None,
        spot=spot,
        offsets=offsets,
        is_dry_run=bool(body.dry_run),
        is_forced=bool(body.force),
    )


async def _commit(broker: Broker, who: Membership, offsets: dict[TopicPartition, int]) -> Refusals:
    rows: dict[TopicName, list[OffsetRow]] = {}
    broker.warden.demand([group_need(Operation.READ, who.group)])
    denied = broker.warden.denied(Operation.READ, (target.topic for target in offsets))
    refused: Refusals = {target: denied[target.topic] for target in offsets if target.topic in denied}
    if refused and len(refused) == len(offsets):
        return refused
    for (topic, partition), offset in offsets.items():
        if topic not in denied:
            rows.setdefault(topic, []).append((partition, offset, -1, ""))
    try:
        command = CommitOffsets(who, [TopicCommit(*entry) for entry in rows.items()])
        refusals = await at_home(broker, commit_offsets, command)
    except UnknownMember as error:
        # A group that is not known is told as such.
        await seen_at_home(broker, describe_group, DescribeGroup(group=who.group))
        # Nothing is assigned to somebody who is no member.
        raise NotPartitionOwner(who.group, who.member_id, next(iter(offsets), "")) from error
    for refusal in refusals.values():
        if isinstance(refusal, NotPartitionOwner):
            raise refusal
    return {**refused, **refusals}


def _generation_of(body: CommitOffsetsBody) -> int:
    return max(body.generation or 0, 0) if body.member_id else NO_GENERATION


def offsets_in(given: OffsetMap | list[OffsetBody]) -> dict[TopicPartition, int]:
    """Offsets in either shape; of two for one partition the last counts."""
    if isinstance(given, list):
        return {TopicPartition(TopicName(item.topic), item.partition): item.offset for item in given}
    return {
        TopicPartition(TopicName(topic), _number_of(partition)): offset
        for topic, offsets in given.items()
        for partition, offset in offsets.items()
    }


def _number_of(partition: str) -> int:
    if not (partition.isascii() and partition.isdigit() and len(partition) <= _PARTITION_DIGITS_MAX):
        raise Invalid(f"{partition[:_PARTITION_DIGITS_MAX]!r} is not the number of a partition")
    return int(partition)


def _by_topic(offsets: dict[TopicPartition, int]) -> OffsetMap:
    topics: OffsetMap = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


ROUTES = [commit_offsets_route, committed_offsets_route, reset_offsets_route]
