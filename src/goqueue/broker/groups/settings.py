"""The verbs on settings of groups: change, describe, list."""

from goqueue.broker.broker import Broker
from goqueue.core.groups.settings import KNOWN, settings_key, settings_value
from goqueue.model.cluster import Step
from goqueue.model.errors import ShuttingDown
from goqueue.model.group_settings import AlterGroupSettings, DescribeGroupSettings, ListGroupSettings
from goqueue.model.topics import SettingView


async def alter_group_settings(broker: Broker, command: AlterGroupSettings) -> None:
    """Change settings of a group; returns when this node goes by them."""
    if not broker.is_open:
        raise ShuttingDown
    key = settings_key(command.group)

    def decide() -> Step[None]:
        image = broker.group_settings
        given = image.altered(command, broker.config.groups)
        guards = (broker.metadata.guard(key),)
        if not given:
            return Step(None, guards, {}, (key,) if command.group in image.entries else ())
        return Step(None, guards, {key: settings_value(command.group, given)})

    if command.validate_only:
        decide()
    else:
        await broker.agreement.make(decide)


def describe_group_settings(broker: Broker, command: DescribeGroupSettings) -> list[SettingView]:
    """All settings that a group may have, with what counts for this one."""
    given = broker.group_settings.of(command.group).given
    defaults = {name: str(known.default(broker.config.groups)) for name, known in KNOWN.items()}
    return [
        SettingView(
            name=name,
            value=given.get(name, default),
            default=default,
            is_default=name not in given,
            documentation=KNOWN[name].documentation,
        )
        for name, default in defaults.items()
    ]


def list_group_settings(broker: Broker, command: ListGroupSettings) -> list[str]:
    """The groups for which something was set, by name."""
    return sorted(broker.group_settings.entries)
