"""More partitions for a topic, over HTTP. The reply comes when they are there; nothing goes on behind it."""

from typing import Annotated

import msgspec
from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import RawBody
from msgspec import Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, seen_at_home
from goqueue.broker.topics.verbs import add_partitions, is_growing
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.topics.bodies import ScaledTopic
from goqueue.edge.http.topics.placing import Assignments, placement_of
from goqueue.edge.http.topics.routes import TopicInPath
from goqueue.model.ids import TopicName
from goqueue.model.topics import AddPartitions, DescribeGrowth

_INT31_MAX = 2**31 - 1


class AddPartitionsBody(Struct):
    """How many partitions a topic is to have."""

    count: Annotated[int, Meta(ge=1, le=_INT31_MAX, description="The new total.")]
    replica_assignments: Assignments | None = None


class ScalingStatus(Struct):
    topic: str
    scaling_in_progress: bool


_decoder = msgspec.json.Decoder(AddPartitionsBody)


@post(
    "/admin/topics/{topic:str}/partitions",
    status_code=200,
    operation_id="addPartitions",
    summary="Give a topic more partitions",
    description="Messages with a key may go to another partition afterwards; those that are stored stay.",
    tags=["admin"],
    operation_class=takes(AddPartitionsBody),
    responses=errors(400, 403, 404, 413, 503, 507),
)
async def add_partitions_route(
    broker: NamedDependency[Broker], topic: TopicInPath, body: RawBody
) -> ScaledTopic:
    request = decode(_decoder, body)
    old_count = broker.topic_counts.get(TopicName(topic), 0)
    replicas = placement_of(broker, request.replica_assignments, request.count)
    command = AddPartitions(name=topic, total=request.count, replicas=replicas)
    view = await at_home(broker, add_partitions, command)
    new_count = len(view.partitions)
    return ScaledTopic(
        topic_name=view.name,
        old_partition_count=old_count,
        new_partition_count=new_count,
        partitions_added=list(range(old_count, new_count)),
        old_count=old_count,
        new_count=new_count,
    )


@get(
    "/admin/topics/{topic:str}/scaling-status",
    operation_id="getScalingStatus",
    summary="Whether a topic is getting more partitions just now",
    tags=["admin"],
    responses=errors(403, 404),
)
async def scaling_status_route(broker: NamedDependency[Broker], topic: TopicInPath) -> ScalingStatus:
    return ScalingStatus(topic, await seen_at_home(broker, is_growing, DescribeGrowth(name=topic)))


ROUTES = [add_partitions_route, scaling_status_route]
