"""Compaction over HTTP: an operator does not wait until a topic is due."""

from typing import Annotated

import msgspec
from litestar import post
from litestar.di import NamedDependency
from litestar.params import RawBody
from msgspec import Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.compaction.verbs import compact_partition
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.topics.verbs import describe_topic
from goqueue.edge.http.parts.decoding import decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.topics.routes import TopicInPath
from goqueue.model.errors import Busy, Invalid, Unavailable
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.topics import CompactPartition, DescribeTopic
from goqueue.wire.topics import CompactedPartition, TopicCompacted

_PARTITIONS_MAX = 10_000


class CompactBody(Struct):
    """What is to be compacted."""

    partitions: (
        Annotated[
            list[int], Meta(max_length=_PARTITIONS_MAX, description="Their numbers; none: all of them.")
        ]
        | None
    ) = None
    dry_run: Annotated[bool, Meta(description="Only tell what would go.")] = False


_decoder = msgspec.json.Decoder(CompactBody)


@post(
    "/admin/topics/{topic:str}/compact",
    status_code=200,
    operation_id="compactTopic",
    summary="Compact a topic now",
    description="Of each key the newest message stays. The reply comes when that is done.",
    tags=["admin"],
    operation_class=takes(CompactBody, is_required=False),
    responses=errors(400, 403, 404, 409, 413, 503, 507),
)
async def compact_route(broker: NamedDependency[Broker], topic: TopicInPath, body: RawBody) -> TopicCompacted:
    request = decode_if_any(_decoder, body)
    name = TopicName(topic)
    count = len((await at_home(broker, describe_topic, DescribeTopic(name=name))).partitions)
    numbers = range(count) if request.partitions is None else request.partitions
    for number in numbers:
        if not 0 <= number < count:
            raise Invalid(f"topic {name} has no partition {number}")
    results = [await _compact(broker, TopicPartition(name, number), request.dry_run) for number in numbers]
    success = all(result.error is None for result in results)
    return TopicCompacted(success, topic, request.dry_run, results)


async def _compact(broker: Broker, target: TopicPartition, dry_run: bool) -> CompactedPartition:
    command = CompactPartition(target=target, dry_run=dry_run)
    try:
        done = await at_home(broker, compact_partition, command)
    except (Busy, Unavailable) as error:
        return CompactedPartition(target.partition, error=str(error))
    removed = done.records_before - done.records_after
    return CompactedPartition(
        target.partition, done.records_before, done.records_after, removed, done.dirty_ratio
    )


ROUTES = [compact_route]
