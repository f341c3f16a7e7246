"""Nodes and leaders over HTTP: empty a node and retire it, have leaders elected. Any node takes the order."""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody
from msgspec import Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.moving.decommissioning import cancel_decommission, decommission, describe_decommission
from goqueue.broker.moving.electing import elect_leaders
from goqueue.edge.http.parts.decoding import decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.moving import (
    THROTTLE_DEFAULT,
    CancelDecommission,
    Decommission,
    DescribeDecommission,
    Election,
    ElectLeaders,
)
from goqueue.wire import moving as wire

_TAGS = ["admin"]
_RATE_MAX = 2**40
_Node = Annotated[str, PathParameter(description="The node's id.")]


class DecommissionBody(Struct):
    """How a node is to be emptied."""

    allow_fewer_copies: Annotated[
        bool, Meta(description="Go on with fewer copies where too few nodes are left to hold them.")
    ] = False
    throttle_bytes_per_sec: Annotated[
        int,
        Meta(ge=-1, le=_RATE_MAX, description="What a node sends to those that copy; 0: 10 MiB, -1: all."),
    ] = 0


class ElectionPlace(Struct):
    topic: str
    partition: int


class ElectionsBody(Struct):
    """Which partitions get another leader."""

    partitions: Annotated[
        list[ElectionPlace] | None, Meta(description="Left out: all that are not led as they should be.")
    ] = None
    unclean: Annotated[
        bool,
        Meta(
            description="Where nobody leads: let a replica lead that may lack messages. Those are lost then."
        ),
    ] = False


_decommission_decoder = msgspec.json.Decoder(DecommissionBody)
_elections_decoder = msgspec.json.Decoder(ElectionsBody)


@post(
    "/admin/decommission/{node:str}",
    status_code=202,
    operation_id="decommissionNode",
    summary="Move all that a node holds to others, and retire it",
    description="A retired node never comes back under its id. Stop it when its state is `retired`.",
    tags=_TAGS,
    operation_class=takes(DecommissionBody, is_required=False),
    responses=errors(400, 404, 413, 503),
)
async def decommission_route(broker: NamedDependency[Broker], node: _Node, body: RawBody) -> wire.Done:
    wanted = decode_if_any(_decommission_decoder, body)
    await here(
        broker,
        decommission,
        Decommission(
            node=node,
            allows_fewer_copies=wanted.allow_fewer_copies,
            throttle_bytes_per_s=wanted.throttle_bytes_per_sec or THROTTLE_DEFAULT,
        ),
    )
    return wire.Done(success=True, message=f"node {node} is being emptied")


@get(
    "/admin/decommission/{node:str}",
    operation_id="getDecommission",
    summary="How far a node is on its way out",
    tags=_TAGS,
    responses=errors(400, 404, 503),
)
async def describe_decommission_route(broker: NamedDependency[Broker], node: _Node) -> wire.NodeRetirement:
    view = await here(broker, describe_decommission, DescribeDecommission(node=node))
    return wire.NodeRetirement(
        node=view.node,
        state=view.state,
        partitions_left=view.holds,
        partitions_moving=view.moving,
        partitions_stuck=[str(source) for source in view.stuck],
    )


@delete(
    "/admin/decommission/{node:str}",
    status_code=200,
    operation_id="cancelDecommission",
    summary="Let a node stay that is being emptied",
    description="What has moved away does not come back by itself.",
    tags=_TAGS,
    responses=errors(400, 404, 503),
)
async def cancel_decommission_route(broker: NamedDependency[Broker], node: _Node) -> wire.Done:
    await here(broker, cancel_decommission, CancelDecommission(node=node))
    return wire.Done(success=True, message=f"node {node} stays")


@post(
    "/admin/elections",
    status_code=200,
    operation_id="electLeaders",
    summary="Have partitions led by who should lead them",
    description="That is the first of a partition's replicas, if it is in sync.",
    tags=_TAGS,
    operation_class=takes(ElectionsBody, is_required=False),
    responses=errors(400, 413, 503),
)
async def elect_leaders_route(broker: NamedDependency[Broker], body: RawBody) -> wire.Elections:
    wanted = decode_if_any(_elections_decoder, body)
    sources = (
        None
        if wanted.partitions is None
        else [TopicPartition(TopicName(place.topic), place.partition) for place in wanted.partitions]
    )
    elections = await here(broker, elect_leaders, ElectLeaders(sources=sources, is_unclean=wanted.unclean))
    return wire.Elections(results=[_shown(election) for election in elections])


def _shown(election: Election) -> wire.PartitionElection:
    error = election.error
    return wire.PartitionElection(
        topic=election.source.topic,
        partition=election.source.partition,
        elected=error is None,
        code="" if error is None else error.code,
        error="" if error is None else str(error),
    )


ROUTES = [decommission_route, describe_decommission_route, cancel_decommission_route, elect_leaders_route]
