"""Settings of groups: what may be set, and the image of what was.

They stand in the store as they were given, by Kafka's names, each group's under a key of its own. A group
need not be there to have settings: it may come later, and finds them.
"""

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from goqueue.model.errors import InvalidSetting
from goqueue.model.group_settings import AlterGroupSettings, GroupSettings, OffsetReset
from goqueue.model.names import checked_group_name
from goqueue.model.settings import GroupConfig

GROUP_SETTINGS = "groups/settings/"
GROUPS_MAX = 10_000
"""So many groups may have settings: all nodes keep all of them at hand."""
_LOCK_MS_MAX = 12 * 3_600_000
_DELIVERIES_MAX = 1_000
_DIGEST_BYTES = 12
_encode = msgspec.json.Encoder(order="sorted").encode


class _Stored(msgspec.Struct):
    group: str
    settings: dict[str, str]


_decode = msgspec.json.Decoder(_Stored).decode


class Known(NamedTuple):
    field: str
    parse: Callable[[str], Any]
    default: Callable[[GroupConfig], object]
    documentation: str


def _parse_reset(text: str) -> OffsetReset:
    if text.startswith("by_duration:"):
        raise InvalidSetting("share groups begin at the earliest or the latest message, not a while ago")
    return OffsetReset(text)


def _parse_isolation(text: str) -> None:
    if text == "read_uncommitted":
        raise InvalidSetting(
            "share groups read what is committed alone: what a transaction takes back is not handed out"
        )
    if text != "read_committed":
        raise ValueError(text)


def _parse_lock(text: str) -> int:
    return _within(int(text), 1_000, _LOCK_MS_MAX)


def _parse_deliveries(text: str) -> int:
    return _within(int(text), 1, _DELIVERIES_MAX)


def _within(value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise InvalidSetting(f"{value} is not between {least} and {most}")
    return value


_KNOWN = {
    "consumer.heartbeat.interval.ms": Known(
        "consumer_heartbeat_ms",
        int,
        lambda config: config.consumer_heartbeat_ms,
        "How often members of group.protocol=consumer say that they are there.",
    ),
    "consumer.session.timeout.ms": Known(
        "consumer_session_ms",
        int,
        lambda config: config.consumer_session_ms,
        "After so long without a word such a member is taken for gone.",
    ),
    "share.auto.offset.reset": Known(
        "share_offset_reset",
        _parse_reset,
        lambda config: OffsetReset.LATEST,
        "Where a share group begins in a partition: earliest or latest.",
    ),
    "share.delivery.count.limit": Known(
        "share_delivery_count_max",
        _parse_deliveries,
        lambda config: 5,
        "How often a share group is given a message before it is a dead letter.",
    ),
    "share.heartbeat.interval.ms": Known(
        "share_heartbeat_ms",
        int,
        lambda config: config.consumer_heartbeat_ms,
        "How often share consumers say that they are there.",
    ),
    "share.isolation.level": Known(
        "", _parse_isolation, lambda config: "read_committed", "Only read_committed: see the differences."
    ),
    "share.record.lock.duration.ms": Known(
        "share_lock_ms",
        _parse_lock,
        lambda config: 30_000,
        "How long a share consumer has a message for itself; not set: the topic's goqueue.visibility.ms.",
    ),
    "share.session.timeout.ms": Known(
        "share_session_ms",
        int,
        lambda config: config.consumer_session_ms,
        "After so long without a word a share consumer is taken for gone.",
    ),
}
KNOWN: Mapping[str, Known] = _KNOWN
_DEFAULTS = GroupSettings()
_PAIRS = (
    ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"),
    ("share.heartbeat.interval.ms", "share.session.timeout.ms"),
)


class GroupSettingsImage:
    """What was set for groups, as the store has it."""

    def __init__(self) -> None:
        self.entries: dict[str, GroupSettings] = {}
        self._keys: dict[str, str] = {}

    def of(self, group: str) -> GroupSettings:
        return self.entries.get(group, _DEFAULTS)

    def load(self, items: Mapping[str, bytes]) -> None:
        """Begin with all that the store holds."""
        self.entries.clear()
        self._keys.clear()
        for key, value in items.items():
            self.put(key, value)

    def put(self, key: str, value: bytes) -> None:
        if key.startswith(GROUP_SETTINGS):
            stored = _decode(value)
            self.entries[stored.group] = _understood(stored.settings)
            self._keys[key] = stored.group

    def drop(self, key: str) -> None:
        group = self._keys.pop(key, None)
        if group is not None:
            del self.entries[group]

    def altered(self, command: AlterGroupSettings, config: GroupConfig) -> dict[str, str]:
        """What is set for the group from now on. Raises InvalidSetting."""
        checked_group_name(command.group)
        given = dict(self.of(command.group).given)
        for name, value in command.changes:
            _check_known(name)
            if value is None:
                given.pop(name, None)
            else:
                given[name] = value.strip()
        _check(given, config)
        if given and command.group not in self.entries and len(self.entries) >= GROUPS_MAX:
            raise InvalidSetting(f"{GROUPS_MAX} groups have settings, and no more can be kept")
        return given


def settings_key(group: str) -> str:
    """Where a group's settings stand in the store. A name may be long, and have anything in it."""
    return GROUP_SETTINGS + blake2b(group.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def settings_value(group: str, given: Mapping[str, str]) -> bytes:
    return _encode(_Stored(group, dict(given)))


def _understood(given: Mapping[str, str]) -> GroupSettings:
    values = {_KNOWN[name].field: _KNOWN[name].parse(text) for name, text in given.items() if name in _KNOWN}
    values.pop("", None)
    return GroupSettings(given=dict(given), **values)


def _check_known(name: str) -> None:
    if name.startswith("streams."):
        raise InvalidSetting(
            "Streams groups (KIP-1071) are not served: Kafka Streams uses consumer groups here"
        )
    if name not in _KNOWN:
        raise InvalidSetting(f"a group has no setting {name!r}; it has {', '.join(_KNOWN)}")


def _check(given: Mapping[str, str], config: GroupConfig) -> None:
    for name, text in given.items():
        try:
            _KNOWN[name].parse(text)
        except ValueError as error:
            raise InvalidSetting(f"{text!r} is no value for {name}") from error
    for heartbeat_name, session_name in _PAIRS:
        heartbeat_ms, session_ms = (
            int(given.get(name, str(_KNOWN[name].default(config)))) for name in (heartbeat_name, session_name)
        )
        if not config.session_ms_min <= session_ms <= config.session_ms_max:
            raise InvalidSetting(
                f"{session_name} is {config.session_ms_min} to {config.session_ms_max}, not {session_ms}"
            )
        if not 0 < heartbeat_ms < session_ms:
            raise InvalidSetting(f"{heartbeat_name} must be above 0 and below {session_name}")
