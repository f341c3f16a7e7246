"""A topic's settings by the names that Kafka's tools use, as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NamedTuple

from goqueue.model.commands import SettingChange, SettingView
from goqueue.model.errors import InvalidSetting
from goqueue.model.settings import TopicSettings


class _Known(NamedTuple):
    field: str
    parse: Callable[[str], Any]
    documentation: str


def _parse_bool(text: str) -> bool:
    words = {"true": True, "false": False}
    return words[text.strip().lower()]


_KNOWN = {
    "retention.ms": _Known("retention_ms", int, "Messages older than this are deleted; -1 keeps them."),
    "retention.bytes": _Known(
        "retention_bytes", int, "A partition larger than this loses its oldest segments; -1: no limit."
    ),
    "segment.bytes": _Known("segment_bytes", int, "A segment file of this size is sealed and another begun."),
    "max.message.bytes": _Known("max_message_bytes", int, "The largest record batch that is taken in."),
    "goqueue.inspect.compressed": _Known(
        "inspect_compressed",
        _parse_bool,
        "Open compressed batches to look for goqueue- headers; costs CPU.",
    ),
}
# What other brokers let people choose and this one has only one answer to.
_FIXED = {
    "cleanup.policy": ("delete", "Old segments are deleted."),
    "compression.type": ("producer", "Batches are stored as the producer compressed them."),
    "message.timestamp.type": ("CreateTime", "A message's time is the producer's."),
    "min.insync.replicas": ("1", "Copies that must hold a message before acks=all is answered."),
}


def change_settings(
    current: TopicSettings, changes: Iterable[SettingChange], *, defaults: TopicSettings
) -> TopicSettings:
    """The settings after the changes; refuses unknown names and values that make no sense."""
    fields: dict[str, Any] = {}
    for name, value in changes:
        if name in _FIXED:
            if value not in (None, _FIXED[name][0]):
                raise InvalidSetting(f"{name} can only be {_FIXED[name][0]!r} here, not {value!r}")
            continue
        known = _KNOWN.get(name)
        if known is None:
            near = get_close_matches(name, [*_KNOWN, *_FIXED], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidSetting(f"a topic has no setting {name!r}{hint}")
        fields[known.field] = getattr(defaults, known.field) if value is None else _parsed(name, known, value)
    try:
        return replace(current, **fields)
    except ValueError as error:
        raise InvalidSetting(str(error)) from error


def settings_from(texts: Mapping[str, str | None], *, defaults: TopicSettings) -> TopicSettings:
    """Settings of a new topic."""
    return change_settings(defaults, (SettingChange(*pair) for pair in texts.items()), defaults=defaults)


def view_settings(settings: TopicSettings, *, defaults: TopicSettings) -> list[SettingView]:
    """Every setting with its value, for tools to show."""
    views = [
        SettingView(
            name=name,
            value=_text(getattr(settings, known.field)),
            default=_text(getattr(defaults, known.field)),
            is_default=getattr(settings, known.field) == getattr(defaults, known.field),
            documentation=known.documentation,
        )
        for name, known in _KNOWN.items()
    ]
    fixed = [
        SettingView(name=name, value=value, default=value, is_default=True, documentation=documentation)
        for name, (value, documentation) in _FIXED.items()
    ]
    return sorted(views + fixed, key=lambda view: view.name)


def _parsed(name: str, known: _Known, value: str) -> Any:
    try:
        return known.parse(value)
    except (ValueError, KeyError) as error:
        raise InvalidSetting(f"{name} cannot be {value!r}") from error


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
