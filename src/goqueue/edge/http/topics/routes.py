"""Topics over HTTP: create, list, describe, alter, delete, and who holds their partitions."""

from functools import partial
from typing import Annotated

import msgspec
from litestar import delete, get, patch, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody

from goqueue.broker.access.needs import topic_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.show_written import show_written
from goqueue.broker.slices import Slices
from goqueue.broker.topics.verbs import (
    alter_settings,
    create_topic,
    delete_topic,
    describe_settings,
    describe_topic,
)
from goqueue.core.cluster.values import Topic
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page
from goqueue.edge.http.parts.times import format_time
from goqueue.edge.http.topics.bodies import (
    AlterTopicBody,
    CreateTopicBody,
    TopicBody,
    TopicCreated,
    TopicDeleted,
    TopicPartitions,
)
from goqueue.edge.http.topics.placing import placement_of
from goqueue.model.access import Operation
from goqueue.model.commands import ShowWritten
from goqueue.model.errors import InvalidAssignment
from goqueue.model.ids import TopicName, places_of
from goqueue.model.settings import HOUR_MS
from goqueue.model.topics import (
    AlterSettings,
    CreateTopic,
    DeleteTopic,
    DescribeSettings,
    DescribeTopic,
    PartitionView,
    SettingChange,
    TopicView,
)
from goqueue.wire.topics import OffsetRange, PartitionPlace, TopicAltered, TopicList

_decoder = msgspec.json.Decoder(CreateTopicBody)
_alter_decoder = msgspec.json.Decoder(AlterTopicBody)

TopicInPath = Annotated[str, PathParameter(description="The topic's name.")]


@post(
    "/topics",
    operation_id="createTopic",
    summary="Create a topic",
    tags=["topics"],
    operation_class=takes(CreateTopicBody),
    responses=errors(400, 403, 409, 413, 503, 507),
)
async def create_topic_route(broker: NamedDependency[Broker], body: RawBody) -> TopicCreated:
    request = decode(_decoder, body)
    created = await at_home(broker, create_topic, creation_of(broker, request))
    count = len(created.partitions)
    return TopicCreated(created.name, count, count)


@get(
    "/topics",
    operation_id="listTopics",
    summary="Names of all topics",
    tags=["topics"],
    responses=errors(400),
)
async def list_topics_route(
    broker: NamedDependency[Broker], limit: Limit = ALL, after: After = None
) -> TopicList:
    lets = broker.warden.lets
    seen = [name for name in broker.topic_counts if lets(topic_need(Operation.DESCRIBE, name))]
    return TopicList(*names_in_page(sorted(seen), limit, after))


@get(
    "/topics/{topic:str}",
    operation_id="describeTopic",
    summary="A topic's size, offsets and settings",
    tags=["topics"],
    responses=errors(400, 403, 404),
)
async def describe_topic_route(broker: NamedDependency[Broker], topic: TopicInPath) -> TopicBody[str]:
    broker.warden.demand([topic_need(Operation.DESCRIBE, topic)])
    sources = list(places_of(TopicName(topic), range(broker.partition_count(topic))))
    await at_home(broker, show_written, ShowWritten(sources=sources))
    view = await at_home(broker, describe_topic, DescribeTopic(name=topic))
    slices = Slices(broker.clock)
    await slices.pause()
    size_bytes = size_of(view)
    count = len(view.partitions)
    total_messages = message_count_of(view)
    offsets = await slices.each(view.partitions, _offsets)
    sees_settings = broker.warden.lets(topic_need(Operation.DESCRIBE_CONFIGS, topic))
    return TopicBody(
        name=view.name,
        topic=view.name,
        partitions=count,
        num_partitions=count,
        total_messages=total_messages,
        total_size_bytes=size_bytes,
        total_size_kb=size_bytes // 1024,
        partition_offsets=dict(offsets),
        created_at=format_time(view.created_ms),
        settings={
            setting.name: setting.value
            for setting in describe_settings(broker, DescribeSettings(name=topic))
            if sees_settings
        },
        damaged_partitions={
            str(partition.partition): partition.damage for partition in view.partitions if partition.damage
        },
    )


@patch(
    "/topics/{topic:str}",
    operation_id="alterTopic",
    summary="Change settings of a topic",
    tags=["topics"],
    operation_class=takes(AlterTopicBody),
    responses=errors(400, 403, 404, 413, 503, 507),
)
async def alter_topic_route(
    broker: NamedDependency[Broker], topic: TopicInPath, body: RawBody
) -> TopicAltered:
    given = decode(_alter_decoder, body).settings
    changes = [SettingChange(name, _setting_text(value)) for name, value in given.items()]
    await at_home(broker, alter_settings, AlterSettings(name=topic, changes=changes))
    settings = describe_settings(broker, DescribeSettings(name=topic))
    return TopicAltered(topic, {setting.name: setting.value for setting in settings})


@delete(
    "/topics/{topic:str}",
    status_code=200,
    operation_id="deleteTopic",
    summary="Delete a topic and all it holds",
    tags=["topics"],
    responses=errors(400, 403, 404, 503),
)
async def delete_topic_route(broker: NamedDependency[Broker], topic: TopicInPath) -> TopicDeleted:
    await at_home(broker, delete_topic, DeleteTopic(name=topic))
    return TopicDeleted(topic)


@get(
    "/topics/{topic:str}/partitions",
    operation_id="listPartitions",
    summary="Who leads and who copies each partition",
    tags=["topics"],
    responses=errors(400, 403, 404),
)
async def list_partitions_route(broker: NamedDependency[Broker], topic: TopicInPath) -> TopicPartitions:
    broker.warden.demand([topic_need(Operation.DESCRIBE, topic)])
    known = broker.metadata.topic(topic)
    places = await Slices(broker.clock).each(
        range(broker.partition_count(topic)), partial(_place, broker, known)
    )
    return TopicPartitions(known.name, places)


def _place(broker: Broker, topic: Topic, number: int) -> PartitionPlace:
    if not broker.is_one_of_several:
        here = broker.config.node_id
        return PartitionPlace(number, leader=here, replicas=[here], isr=[here], version=0)
    record = broker.metadata.record(topic, number)
    return PartitionPlace(
        number,
        leader=record.leader or "",
        replicas=list(record.replicas),
        isr=list(record.isr),
        version=record.epoch,
    )


def _offsets(partition: PartitionView) -> tuple[str, OffsetRange]:
    return str(partition.partition), OffsetRange(partition.start_offset, partition.end_offset - 1)


def creation_of(broker: Broker, request: CreateTopicBody) -> CreateTopic:
    """What a request to create a topic asks for; counts of 0 or less leave the choice to the broker."""
    assigned = request.replica_assignments or {}
    count = request.num_partitions or request.partitions or len(assigned)
    copies = request.replication_factor or 0
    if assigned and copies > 0 and {copies} != {len(nodes) for nodes in assigned.values()}:
        raise InvalidAssignment(f"replica_assignments name other numbers of nodes than {copies}")
    settings: dict[str, str | None] = {}
    if request.retention_hours is not None and request.retention_hours > 0:
        settings["retention.ms"] = str(request.retention_hours * HOUR_MS)
    for name, value in (request.settings or {}).items():
        settings[name] = _setting_text(value)
    return CreateTopic(
        name=request.name,
        partitions=count if count > 0 else None,
        replication=copies if copies > 0 and not assigned else -1,
        settings=settings,
        replicas=placement_of(broker, assigned, count),
    )


def message_count_of(topic: TopicView) -> int:
    """How many messages can be read."""
    return sum(partition.end_offset - partition.start_offset for partition in topic.partitions)


def size_of(topic: TopicView) -> int:
    return sum(partition.size_bytes for partition in topic.partitions)


def _setting_text(value: str | int | bool | None) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)


ROUTES = [
    create_topic_route,
    list_topics_route,
    describe_topic_route,
    alter_topic_route,
    delete_topic_route,
    list_partitions_route,
]
