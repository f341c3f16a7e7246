"""Changing settings of topics and groups: IncrementalAlterConfigs, and AlterConfigs for older clients."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING

from kio.schema.errors import ErrorCode

from goqueue.broker.access.needs import group_need, topic_need
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.groups.settings import alter_group_settings, describe_group_settings
from goqueue.broker.topics.settings import LISTS
from goqueue.broker.topics.verbs import alter_settings, describe_settings
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.handlers.configs import Resource
from goqueue.edge.kafka.once import done_to_each
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import Operation as Rights
from goqueue.model.errors import GoQueueError, Invalid
from goqueue.model.group_settings import AlterGroupSettings, DescribeGroupSettings
from goqueue.model.topics import AlterSettings, DescribeSettings, SettingChange, SettingView

if TYPE_CHECKING:
    from kio.schema.alter_configs.v2.request import AlterConfigsRequest
    from kio.schema.alter_configs.v2.request import AlterConfigsResource as WholeResource
    from kio.schema.incremental_alter_configs.v1.request import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )


class Operation(IntEnum):
    """Kafka's numbers for what to do with a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredResource:
    resource_type: int
    resource_name: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConfigsReply(Reply):
    responses: tuple[AlteredResource, ...]


async def incremental_alter_configs(
    context: Context, request: "IncrementalAlterConfigsRequest"
) -> AlterConfigsReply:
    """Change single settings and leave the others alone."""
    only_look = request.validate_only
    return AlterConfigsReply(
        responses=await done_to_each(
            context,
            request.resources,
            lambda wanted: _alter(
                context, wanted, partial(_single_changes, context, wanted), validate_only=only_look
            ),
        )
    )


async def alter_configs(context: Context, request: "AlterConfigsRequest") -> AlterConfigsReply:
    """Replace all settings: those that are not named go back to their defaults."""
    only_look = request.validate_only
    return AlterConfigsReply(
        responses=await done_to_each(
            context,
            request.resources,
            lambda wanted: _alter(
                context, wanted, partial(_replacement, context, wanted), validate_only=only_look
            ),
        )
    )


async def _alter(
    context: Context,
    wanted: "AlterConfigsResource | WholeResource",
    changes: Callable[[], list[SettingChange]],
    *,
    validate_only: bool,
) -> AlteredResource:
    kind, name = int(wanted.resource_type), wanted.resource_name
    try:
        # Before anything is looked at: whether it is there is nobody's business who may not change it.
        if kind == Resource.TOPIC:
            context.broker.warden.demand([topic_need(Rights.ALTER_CONFIGS, name)])
            command = AlterSettings(name=name, changes=changes(), validate_only=validate_only)
            await at_home(context.broker, alter_settings, command)
        elif kind == Resource.GROUP:
            context.broker.warden.demand([group_need(Rights.ALTER_CONFIGS, name)])
            of_group = AlterGroupSettings(group=name, changes=changes(), validate_only=validate_only)
            await at_home(context.broker, alter_group_settings, of_group)
        else:
            raise Invalid("only topics and groups have settings that can be changed here")
    except GoQueueError as error:
        return AlteredResource(
            resource_type=kind,
            resource_name=name,
            error_code=kafka_code(error),
            error_message=kafka_text(error),
        )
    return AlteredResource(resource_type=kind, resource_name=name)


def _single_changes(context: Context, wanted: "AlterConfigsResource") -> list[SettingChange]:
    return [_change(context, wanted, config) for config in wanted.configs]


def _change(context: Context, wanted: "AlterConfigsResource", config: "AlterableConfig") -> SettingChange:
    match int(config.config_operation):
        case Operation.SET if config.value is not None:
            return SettingChange(config.name, config.value)
        case Operation.SET:
            raise Invalid(f"setting {config.name} needs a value")
        case Operation.DELETE:
            return SettingChange(config.name, None)
        case Operation.APPEND | Operation.SUBTRACT as operation if config.name in LISTS:
            present = {view.name: view.value for view in _settings(context, wanted)}
            words = dict.fromkeys(filter(None, present[config.name].split(",")))
            named = dict.fromkeys(filter(None, map(str.strip, (config.value or "").split(","))))
            left = {**words, **named} if operation == Operation.APPEND else words.keys() - named.keys()
            return SettingChange(config.name, ",".join(word for word in {**words, **named} if word in left))
    raise Invalid(f"setting {config.name} is not a list: set it, or delete it to have the default")


def _settings(context: Context, wanted: "AlterConfigsResource | WholeResource") -> list[SettingView]:
    """Those that a topic or a group has now."""
    if int(wanted.resource_type) == Resource.GROUP:
        return describe_group_settings(context.broker, DescribeGroupSettings(group=wanted.resource_name))
    return describe_settings(context.broker, DescribeSettings(name=wanted.resource_name))


def _replacement(context: Context, wanted: "WholeResource") -> list[SettingChange]:
    given = {config.name: config.value for config in wanted.configs}
    settings = _settings(context, wanted)
    left_out = [SettingChange(setting.name, None) for setting in settings if setting.name not in given]
    return left_out + [SettingChange(name, value) for name, value in given.items()]
