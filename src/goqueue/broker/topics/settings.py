"""A topic's settings by the names that Kafka's tools use, as text."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from math import isfinite
from typing import Any, NamedTuple

from goqueue.model.errors import InvalidSetting
from goqueue.model.schemas import OnInvalid, SchemaValidation, SubjectStrategy
from goqueue.model.settings import (
    PARTITIONER_SETTING,
    AcksWaitFor,
    CleanupPolicy,
    CompressionType,
    Partitioner,
    TimestampType,
    TopicSettings,
)
from goqueue.model.topics import SettingChange, SettingView

MIN_INSYNC = "min.insync.replicas"
_NOTED_CHARACTERS_MAX = 10_000
"""What is only kept comes from outside, and every node has it in memory."""


class _Known(NamedTuple):
    field: str
    parse: Callable[[str], Any]
    documentation: str


def _parse_bool(text: str) -> bool:
    words = {"true": True, "false": False}
    return words[text.strip().lower()]


def _parse_share(text: str) -> float:
    share = float(text)
    if not isfinite(share):
        raise ValueError(text)
    return share


def _parse_min_insync(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def _parse_policy(text: str) -> CleanupPolicy:
    words = {word.strip() for word in text.split(",")}
    if words == {"compact", "delete"}:
        return CleanupPolicy.BOTH
    [word] = words
    return CleanupPolicy(word)


_KNOWN = {
    "cleanup.policy": _Known(
        "cleanup_policy",
        _parse_policy,
        "delete: old segments go; compact: the newest message of each key stays; compact,delete: both.",
    ),
    "compression.type": _Known(
        "compression_type",
        CompressionType,
        "producer: batches stay as they came; uncompressed, gzip, snappy, lz4, zstd: others are made so.",
    ),
    "segment.ms": _Known(
        "segment_ms", int, "In a compacted topic a segment is sealed when its first message is so old."
    ),
    "delete.retention.ms": _Known(
        "delete_retention_ms", int, "How long a message that deletes its key stays once compaction met it."
    ),
    "min.compaction.lag.ms": _Known(
        "min_compaction_lag_ms", int, "A message stays at least so long, whatever follows it."
    ),
    "max.compaction.lag.ms": _Known(
        "max_compaction_lag_ms", int, "A message waits no longer than this for compaction."
    ),
    "min.cleanable.dirty.ratio": _Known(
        "min_cleanable_dirty_ratio",
        _parse_share,
        "How much of a partition must be new since the last compaction before the next.",
    ),
    "retention.ms": _Known("retention_ms", int, "Messages older than this are deleted; -1 keeps them."),
    "retention.bytes": _Known(
        "retention_bytes", int, "A partition larger than this loses its oldest segments; -1: no limit."
    ),
    "segment.bytes": _Known("segment_bytes", int, "A segment file of this size is sealed and another begun."),
    "max.message.bytes": _Known("max_message_bytes", int, "The largest record batch that is taken in."),
    "message.timestamp.after.max.ms": _Known(
        "timestamp_after_max_ms", int, "A message's time may be so far ahead, where its producer says it."
    ),
    "message.timestamp.before.max.ms": _Known(
        "timestamp_before_max_ms", int, "A message's time may be so long ago, where its producer says it."
    ),
    "message.timestamp.type": _Known(
        "timestamp_type",
        TimestampType,
        "CreateTime: a message's time is its producer's; LogAppendTime: that at which it was stored.",
    ),
    "goqueue.inspect.compressed": _Known(
        "inspect_compressed",
        _parse_bool,
        "Open compressed batches to check their records and look for goqueue- headers; costs CPU.",
    ),
    "goqueue.inspect.records": _Known(
        "inspect_records",
        _parse_bool,
        "Check every record of uncompressed batches; costs CPU. Without it the first of each batch.",
    ),
    "goqueue.visibility.ms": _Known(
        "visibility_ms", int, "How long a polled message stays hidden from others of its group."
    ),
    "goqueue.retries.max": _Known(
        "retries_max", int, "How often a message is delivered again before it is a dead letter."
    ),
    "goqueue.retry.backoff.ms": _Known(
        "retry_backoff_ms", int, "The wait after a message's first nack; it doubles with each further one."
    ),
    "goqueue.retry.backoff.max.ms": _Known("retry_backoff_max_ms", int, "The longest such wait."),
    "goqueue.ttl.ms": _Known(
        "ttl_ms", int, "Messages older than this are not delivered to groups; -1: no limit."
    ),
    "goqueue.ttl.dead.letters": _Known(
        "ttl_dead_letters", _parse_bool, "Messages that have grown too old go to the dead letters."
    ),
    "goqueue.lane.weights": _Known(
        "lane_weights", str, "Messages each lane hands out in its turn, the critical lane first."
    ),
    "goqueue.lane.wait.max.ms": _Known(
        "lane_wait_max_ms", int, "A lane that has waited this long goes first."
    ),
    PARTITIONER_SETTING: _Known(
        "partitioner",
        Partitioner,
        "How keys find their partitions over HTTP, from our client and Spark: murmur3, murmur2 or crc32.",
    ),
    "goqueue.schema.validation": _Known(
        "schema_validation",
        SchemaValidation,
        "What messages are checked for: none, id (of a schema that counts here) or full (data that fits it).",
    ),
    "goqueue.schema.subject.strategy": _Known(
        "schema_subject_strategy",
        SubjectStrategy,
        "The subject that a schema must stand in: topic-name, record-name or topic-record-name.",
    ),
    "goqueue.schema.on.invalid": _Known(
        "schema_on_invalid", OnInvalid, "What becomes of a message that does not fit: refuse or quarantine."
    ),
    "acks.all.waits.for": _Known(
        "acks_all_wait_for",
        AcksWaitFor,
        "What acks=all is answered behind: fsynced, or written (in memory) by all copies in sync.",
    ),
    MIN_INSYNC: _Known(
        "min_insync_replicas",
        _parse_min_insync,
        "Copies that must hold a message before acks=all is answered.",
    ),
    "goqueue.tracing.sampling": _Known(
        "tracing_sampling",
        _parse_share,
        "Which part of the messages is traced, from 0 (none) to 1 (all); -1: as the node's settings say.",
    ),
}
# What other brokers let people choose and this one has only one answer to.
_FIXED = {
    "local.retention.bytes": ("-2", "There is no tiered storage: as retention.bytes."),
    "local.retention.ms": ("-2", "There is no tiered storage: as retention.ms."),
    "remote.log.copy.disable": ("false", "There is no tiered storage."),
    "remote.log.delete.on.disable": ("false", "There is no tiered storage."),
    "remote.storage.enable": ("false", "There is no tiered storage."),
    "unclean.leader.election.enable": (
        "false",
        "Who is not in sync never leads: acknowledged messages stay.",
    ),
}


class _Noted(NamedTuple):
    """What others need to be told and this broker does without: taken, shown, and of no effect."""

    default: str
    parse: Callable[[str], Any]
    reason: str


def _parse_size(text: str) -> int:
    if int(text) < 0:
        raise ValueError(text)
    return int(text)


_NOTED = {
    "compression.gzip.level": _Noted("-1", int, "There is one level for each codec."),
    "compression.lz4.level": _Noted("9", int, "There is one level for each codec."),
    "compression.zstd.level": _Noted("3", int, "There is one level for each codec."),
    "file.delete.delay.ms": _Noted("60000", _parse_size, "Files go when nobody reads from them."),
    "flush.messages": _Noted("9223372036854775807", _parse_size, "acks says what waits for the disk."),
    "flush.ms": _Noted("9223372036854775807", _parse_size, "acks says what waits for the disk."),
    "follower.replication.throttled.replicas": _Noted("", str, "Moves are not throttled by topic."),
    "index.interval.bytes": _Noted("4096", _parse_size, "Indexes have one density."),
    "leader.replication.throttled.replicas": _Noted("", str, "Moves are not throttled by topic."),
    "message.downconversion.enable": _Noted("true", _parse_bool, "There are no older formats."),
    "preallocate": _Noted("false", _parse_bool, "Files grow as they are written."),
    "segment.index.bytes": _Noted("10485760", _parse_size, "Indexes are as large as they need to be."),
    "segment.jitter.ms": _Noted("0", _parse_size, "Segments are not sealed all at once anyway."),
}
LISTS = frozenset(
    {"cleanup.policy", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas"}
)
"""Settings of words with commas between them."""


def change_settings(
    current: TopicSettings, changes: Iterable[SettingChange], *, defaults: TopicSettings
) -> TopicSettings:
    """The settings after the changes; refuses unknown names and values that make no sense."""
    fields: dict[str, Any] = {}
    noted = dict(current.noted)
    for name, value in changes:
        if name in _NOTED:
            noted.pop(name, None)
            if value is not None:
                _check_noted(name, value)
                if value.strip() != _NOTED[name].default:
                    noted[name] = value.strip()
            continue
        if name in _FIXED:
            if value not in (None, _FIXED[name][0]):
                only, reason = _FIXED[name]
                raise InvalidSetting(f"{name} can only be {only!r} here, not {value!r}: {reason}")
            continue
        known = _KNOWN.get(name)
        if known is None:
            near = get_close_matches(name, [*_KNOWN, *_FIXED, *_NOTED], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidSetting(f"a topic has no setting {name!r}{hint}")
        fields[known.field] = getattr(defaults, known.field) if value is None else _parsed(name, known, value)
    try:
        return replace(current, **fields, noted=tuple(sorted(noted.items())))
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
    given = dict(settings.noted)
    noted = [
        SettingView(
            name=name,
            value=given.get(name, one.default),
            default=one.default,
            is_default=name not in given,
            documentation=f"Kept and of no effect. {one.reason}",
        )
        for name, one in _NOTED.items()
    ]
    return sorted(views + fixed + noted, key=lambda view: view.name)


def _check_noted(name: str, value: str) -> None:
    try:
        _NOTED[name].parse(value)
    except (ValueError, KeyError) as error:
        raise InvalidSetting(f"{name} cannot be {value!r}") from error
    if len(value) > _NOTED_CHARACTERS_MAX:
        raise InvalidSetting(f"{name} has at most {_NOTED_CHARACTERS_MAX} characters")


def _parsed(name: str, known: _Known, value: str) -> Any:
    try:
        return known.parse(value)
    except (ValueError, KeyError) as error:
        raise InvalidSetting(f"{name} cannot be {value!r}") from error


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
