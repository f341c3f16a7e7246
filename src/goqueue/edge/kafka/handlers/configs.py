"""The settings of topics and groups, and a few of the node: DescribeConfigs, ListConfigResources."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import cluster_need, topic_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import here
from goqueue.broker.groups.settings import describe_group_settings, list_group_settings
from goqueue.broker.topics.verbs import describe_settings
from goqueue.core.cluster.isr import min_isr_with
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.once import each, once
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation
from goqueue.model.errors import GoQueueError, Invalid, NotSupported
from goqueue.model.group_settings import DescribeGroupSettings, ListGroupSettings
from goqueue.model.topics import DescribeSettings, SettingView

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest


class Resource(IntEnum):
    """Kafka's numbers for what has settings."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Kafka's numbers for where a value comes from."""

    TOPIC = 1
    NODE = 4
    DEFAULT = 5
    GROUP = 8


class ValueType(IntEnum):
    """Kafka's numbers for what a value is."""

    BOOLEAN = 1
    STRING = 2
    LONG = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    name: str
    value: str
    config_source: Source
    read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[Synonym, ...] = ()
    config_type: ValueType = ValueType.STRING
    documentation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedResource:
    resource_type: int
    resource_name: str
    configs: tuple[ConfigEntry, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeConfigsReply(Reply):
    results: tuple[DescribedResource, ...]


async def describe_configs(context: Context, request: "DescribeConfigsRequest") -> DescribeConfigsReply:
    """The settings of each topic or node asked for."""
    with_synonyms = bool(request.include_synonyms)
    with_documentation: bool = getattr(request, "include_documentation", False)
    return DescribeConfigsReply(
        results=await each(
            context,
            once(request.resources, lambda wanted: (wanted.resource_type, wanted.resource_name)),
            lambda wanted: _describe(
                context, wanted, with_synonyms=with_synonyms, with_documentation=with_documentation
            ),
        )
    )


def _describe(
    context: Context, wanted: "DescribeConfigsResource", *, with_synonyms: bool, with_documentation: bool
) -> DescribedResource:
    kind, name = int(wanted.resource_type), wanted.resource_name
    try:
        if kind == Resource.TOPIC:
            context.broker.warden.demand([topic_need(Operation.DESCRIBE_CONFIGS, name)])
            entries = topic_entries(
                context.broker, name, with_synonyms=with_synonyms, with_documentation=with_documentation
            )
        elif kind == Resource.BROKER:
            context.broker.warden.demand([cluster_need(Operation.DESCRIBE_CONFIGS)])
            entries = _node_entries(context.broker, name)
        elif kind == Resource.GROUP:
            views = here(context.broker, describe_group_settings, DescribeGroupSettings(group=name))
            entries = _entries(views, Source.GROUP, with_synonyms, with_documentation)
        else:
            raise NotSupported(f"resources of type {kind} have no settings here")
    except GoQueueError as error:
        return DescribedResource(
            resource_type=kind,
            resource_name=name,
            error_code=kafka_code(error),
            error_message=kafka_text(error),
        )
    return DescribedResource(
        resource_type=kind, resource_name=name, configs=_only(entries, wanted.configuration_keys)
    )


def _only(entries: tuple[ConfigEntry, ...], keys: Collection[str] | None) -> tuple[ConfigEntry, ...]:
    """Those asked for: no list asks for all, an empty one for none."""
    return entries if keys is None else tuple(entry for entry in entries if entry.name in keys)


def topic_entries(
    broker: Broker, topic: str, *, with_synonyms: bool = False, with_documentation: bool = False
) -> tuple[ConfigEntry, ...]:
    """The settings of a topic, as Kafka shows them."""
    views = describe_settings(broker, DescribeSettings(name=topic))
    return _entries(views, Source.TOPIC, with_synonyms, with_documentation)


def _entries(
    views: Iterable[SettingView], source: Source, with_synonyms: bool, with_documentation: bool
) -> tuple[ConfigEntry, ...]:
    """Settings, those that were set from a source of their own."""
    return tuple(
        ConfigEntry(
            name=view.name,
            value=view.value,
            config_source=Source.DEFAULT if view.is_default else source,
            synonyms=_synonyms(view, source) if with_synonyms else (),
            config_type=_type_of(view.default),
            documentation=view.documentation if with_documentation else None,
        )
        for view in views
    )


def _synonyms(view: SettingView, source: Source) -> tuple[Synonym, ...]:
    """Where the value comes from, and what would hold without it."""
    default = Synonym(name=view.name, value=view.default, source=Source.DEFAULT)
    if view.is_default:
        return (default,)
    return (Synonym(name=view.name, value=view.value, source=source), default)


def _node_entries(broker: Broker, name: str) -> tuple[ConfigEntry, ...]:
    """What Kafka's tools look up about a node. It comes from the node's file, so it is read-only here."""
    if name not in ("", str(broker.node_number)):
        raise Invalid(f"this node is {broker.node_number}, not {name}")
    config = broker.config
    values = {
        "auto.create.topics.enable": str(config.auto_create_topics).lower(),
        "default.replication.factor": str(_copies(broker)),
        "log.flush.interval.ms": str(config.flush_interval_ms),
        "log.retention.bytes": str(config.topic_defaults.retention_bytes),
        "log.retention.ms": str(config.topic_defaults.retention_ms),
        "log.segment.bytes": str(config.topic_defaults.segment_bytes),
        "message.max.bytes": str(config.topic_defaults.max_message_bytes),
        "min.insync.replicas": str(min_isr_with(_copies(broker), config.topic_defaults.min_insync_replicas)),
        "node.id": str(broker.node_number),
        "num.partitions": str(config.default_partitions),
        "socket.request.max.bytes": str(config.limits.request_bytes),
    }
    return tuple(
        ConfigEntry(
            name=name, value=value, config_source=Source.NODE, read_only=True, config_type=_type_of(value)
        )
        for name, value in values.items()
    )


def _copies(broker: Broker) -> int:
    return 1 if broker.shared_topics is None else broker.shared_topics.copies(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedResource:
    resource_name: str
    resource_type: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class ListConfigResourcesReply(Reply):
    config_resources: tuple[ListedResource, ...] = ()
    error_code: ErrorCode = ErrorCode.none


_FIRST_WITH_TYPES = 1


async def list_config_resources(
    context: Context, request: "ListConfigResourcesRequest"
) -> ListConfigResourcesReply:
    """What has settings, by name: nodes, topics, and the groups for which something was set."""
    if request.__version__ < _FIRST_WITH_TYPES:
        return ListConfigResourcesReply()  # only settings of client metrics were listed then
    try:
        context.broker.warden.demand([cluster_need(Operation.DESCRIBE_CONFIGS)])
    except GoQueueError as error:
        return ListConfigResourcesReply(error_code=kafka_code(error))
    broker = context.broker
    kinds = request.resource_types or tuple(Resource)
    if not set(kinds) <= set(Resource):
        return ListConfigResourcesReply(error_code=ErrorCode.unsupported_version)
    names: dict[Resource, Iterable[str]] = {
        Resource.TOPIC: broker.metadata.topics,
        Resource.BROKER: (str(broker.node_number),),
        Resource.CLIENT_METRICS: (),
        Resource.GROUP: list_group_settings(broker, ListGroupSettings()),
    }
    return ListConfigResourcesReply(
        config_resources=tuple(
            ListedResource(resource_name=name, resource_type=kind)
            for kind in map(Resource, once(kinds))
            for name in sorted(names[kind])
        )
    )


def _type_of(value: str) -> ValueType:
    if value in ("true", "false"):
        return ValueType.BOOLEAN
    return ValueType.LONG if value.removeprefix("-").isdigit() else ValueType.STRING
