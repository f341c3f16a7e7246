"""Reassignments over HTTP: order one, look how far it is, call it back. Any node takes them."""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.moving.reassigning import (
    cancel_reassignment,
    describe_reassignment,
    list_reassignments,
    reassign,
)
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import format_time
from goqueue.model.cluster import MoveState, NodeId
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import (
    THROTTLE_DEFAULT,
    TIMEOUT_DEFAULT_MS,
    CancelReassignment,
    DescribeReassignment,
    ListReassignments,
    MoveView,
    Reassign,
    ReassignmentView,
    WantedMove,
    WantedSpread,
)
from goqueue.wire import moving as wire

_TAGS = ["admin"]
_RATE_MAX = 2**40
_TIMEOUT_MAX_S = 366 * 24 * 3600
_Id = Annotated[str, PathParameter(description="The reassignment's id, like reassign-1.")]


class ReassignBody(Struct):
    """Partitions to be moved: each by its name, or whole topics to be spread."""

    partitions: list[wire.PartitionMove] = []
    topics: list[wire.TopicSpread] = []
    throttle_bytes_per_sec: Annotated[
        int,
        Meta(
            ge=-1,
            le=_RATE_MAX,
            description="What a node sends to those that copy; 0: 10 MiB, -1: as fast as it goes.",
        ),
    ] = 0
    timeout_per_partition_sec: Annotated[
        int, Meta(ge=0, le=_TIMEOUT_MAX_S, description="A move that takes longer is called back; 0: a day.")
    ] = 0


_decoder = msgspec.json.Decoder(ReassignBody)


@post(
    "/admin/reassignment",
    status_code=202,
    operation_id="createReassignment",
    summary="Move partitions to other nodes",
    description="All of it is ordered or none. Twenty partitions move at a time; readers and writers go on.",
    tags=_TAGS,
    operation_class=takes(ReassignBody),
    responses=errors(400, 404, 409, 413, 503),
)
async def create_reassignment_route(
    broker: NamedDependency[Broker], body: RawBody
) -> wire.ReassignmentOrdered:
    wanted = decode(_decoder, body)
    command = Reassign(
        moves=[
            WantedMove(
                TopicPartition(TopicName(move.topic), move.partition),
                _nodes(move.new_replicas),
                _nodes(move.old_replicas),
            )
            for move in wanted.partitions
        ],
        spreads=[
            WantedSpread(TopicName(spread.topic), _nodes(spread.nodes), spread.copies)
            for spread in wanted.topics
        ],
        throttle_bytes_per_s=wanted.throttle_bytes_per_sec or THROTTLE_DEFAULT,
        timeout_ms=wanted.timeout_per_partition_sec * 1_000 or TIMEOUT_DEFAULT_MS,
    )
    reassignment_id = await here(broker, reassign, command)
    return wire.ReassignmentOrdered(
        success=True, reassignment_id=reassignment_id, message="the reassignment is ordered"
    )


@get(
    "/admin/reassignment",
    operation_id="listReassignments",
    summary="Reassignments that are under way, and the last ones that are over",
    tags=_TAGS,
    responses=errors(503),
)
async def list_reassignments_route(broker: NamedDependency[Broker]) -> wire.ReassignmentList[str]:
    views = [_shown(view) for view in await here(broker, list_reassignments, ListReassignments())]
    return wire.ReassignmentList(count=len(views), reassignments=views)


@get(
    "/admin/reassignment/{reassignment_id:str}",
    operation_id="getReassignment",
    summary="How far a reassignment is",
    tags=_TAGS,
    responses=errors(400, 404, 503),
)
async def get_reassignment_route(
    broker: NamedDependency[Broker], reassignment_id: _Id
) -> wire.Reassignment[str]:
    command = DescribeReassignment(reassignment_id=reassignment_id)
    return _shown(await here(broker, describe_reassignment, command))


@delete(
    "/admin/reassignment/{reassignment_id:str}",
    status_code=200,
    operation_id="cancelReassignment",
    summary="Call back what is not there yet",
    description="What has moved already stays where it is now.",
    tags=_TAGS,
    responses=errors(400, 404, 409, 503),
)
async def cancel_reassignment_route(broker: NamedDependency[Broker], reassignment_id: _Id) -> wire.Done:
    await here(broker, cancel_reassignment, CancelReassignment(reassignment_id=reassignment_id))
    return wire.Done(success=True, message=f"{reassignment_id} is being called back")


def _nodes(names: list[str]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, names))


def _shown(view: ReassignmentView) -> wire.Reassignment[str]:
    moves = [
        wire.PartitionMove(
            topic=move.source.topic,
            partition=move.source.partition,
            new_replicas=list(move.replicas),
            old_replicas=list(move.before),
        )
        for move in view.moves
    ]
    troubles = [f"{move.source}: {move.reason}" for move in view.moves if move.reason]
    return wire.Reassignment(
        id=view.reassignment_id,
        state=view.state,
        request=wire.ReassignmentRequest(
            partitions=moves,
            throttle_bytes_per_sec=view.throttle_bytes_per_s,
            timeout_per_partition_sec=view.timeout_ms // 1000,
        ),
        progress={f"{move.source.topic}-{move.source.partition}": _progress(move) for move in view.moves},
        started_at=format_time(view.ordered_ms),
        completed_at=format_time(view.ended_ms) if view.ended_ms else None,
        error="; ".join(troubles),
    )


def _progress(move: MoveView) -> wire.MoveProgress[str]:
    coming = [node for node in move.replicas if node not in move.before]
    leader_offset, offsets, sent_bytes, percent = -1, {}, 0, 0.0
    if move.copies is not None:
        leader_offset = move.copies.end_offset
        offsets = {node: move.copies.ends.get(node, move.copies.start_offset) for node in coming}
        sent_bytes = sum(move.copies.sent_bytes.get(node, 0) for node in coming)
        whole = move.copies.end_offset - move.copies.start_offset
        least = min(offsets.values(), default=leader_offset) - move.copies.start_offset
        percent = round(100 * max(0, least) / whole, 1) if whole else 100.0
    return wire.MoveProgress(
        topic=move.source.topic,
        partition=move.source.partition,
        state=move.state,
        leader_offset=leader_offset,
        replica_offsets={str(node): offset for node, offset in offsets.items()},
        catchup_percent=100.0 if move.state is MoveState.COMPLETED else percent,
        bytes_transferred=sent_bytes,
        started_at=format_time(move.begun_ms) if move.begun_ms else None,
        completed_at=format_time(move.ended_ms) if move.ended_ms else None,
        error=move.reason,
    )


ROUTES = [
    create_reassignment_route,
    list_reassignments_route,
    get_reassignment_route,
    cancel_reassignment_route,
]
