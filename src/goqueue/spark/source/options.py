"""The options of the source. All problems are told at once, before anything is read."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goqueue.client.addresses import Address, parse_addresses
from goqueue.client.connection import Client
from goqueue.client.log import Which
from goqueue.model.errors import Invalid
from goqueue.spark.options.kafka import take_kafka_options
from goqueue.spark.options.locks import LOCK_OPTIONS, NO_LOCKS, Locks, take_locks
from goqueue.spark.options.values import (
    GivenOptions,
    InvalidOptions,
    parse_assignment,
    parse_boolean,
    parse_count,
    parse_folder,
    parse_names,
    parse_offsets,
    parse_pattern,
    parse_size,
    parse_time_ms,
    parse_word,
)

EARLIEST, LATEST = "earliest", "latest"
EARLIEST_OFFSET, LATEST_OFFSET = -2, -1
DEFAULT_COLUMNS: tuple[str, ...] = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "headers",
    "priority",
)

OPTIONS: dict[str, str] = {
    "bootstrap": "addresses of the HTTP door, `host:8080,…`; required; all nodes of a [cluster](cluster.md)",
    "topic": "one topic",
    "topics": "topics, separated by commas",
    "topicPattern": "a regular expression that must match the whole name; new topics are found while running",
    "assign": 'single partitions: `{"orders": [0, 2]}`',
    "startingOffsets": 'streaming default `latest`, batch default `earliest`, or `{"orders": {"0": 12}}`'
    " (-2 earliest, -1 latest; partitions left out: earliest)",
    "endingOffsets": "batch only: `latest` (default) or JSON as above (partitions left out: latest)",
    "startingTimestamp": "the first message of that time or later: unix ms or `2026-01-31T12:00:00Z`",
    "endingTimestamp": "batch only: up to the first message of that time or later",
    "startingOffsetsByTimestamp": 'a time in unix ms for each partition: `{"orders": {"0": 1700000000000}}`',
    "endingOffsetsByTimestamp": "batch only: the same for the end",
    "startingOffsetsByTimestampStrategy": "`latest`: where nothing is that new, begin at the end",
    "maxRecordsPerBatch": "streaming: at most so many messages a micro-batch (at least one a partition)",
    "maxBytesPerBatch": "streaming: about so many stored bytes a micro-batch: `64MiB`",
    "minPartitions": "about so many tasks at least; partitions are cut at batch boundaries",
    "splitBytes": "tasks of about so many stored bytes; partitions are cut at batch boundaries",
    "failOnDataLoss": "`true` (default): fail when messages to read are gone; `false`: go on behind them",
    "isolation": "`committed`, the only one: messages of open and of aborted transactions are never rows",
    "columns": "the columns to read, separated by commas; fewer are faster",
    "includeHeaders": "`false` leaves the column headers out (default `true`)",
    "pushdown": "batch: `true` hands filters on topic, partition, offset and timestamp to the source;"
    " needs `spark.sql.python.filterPushdown.enabled`",
    "timeoutMs": "how long one request may take; default 30000",
    "retryForMs": "how long nodes that do not answer are tried again; default 30000",
    "archive": "batch: a folder of `goqueue-cli job archive`: its rows up to its watermark, live ones behind",
    "transport": "`broker` (default): frames come from the node over HTTP; `files`: from its data folder",
    "dataPath": "the data folder of the node, as executors see it; for `transport=files`",
    "rack": "where this Spark is (`GOQUEUE_CLUSTER_RACK` of nodes that are near): frames come from copies"
    " there; needs all nodes in `bootstrap`",
    **LOCK_OPTIONS,
    "group": "streaming: progress is published as the offsets of this consumer group",
}
"""Ours, with what each is for: the table of docs/spark.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Where to begin or to end: a word for all partitions, and what is said of single ones or of all."""

    word: str
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    times_ms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    time_ms: int | None = None

    @property
    def may_move(self) -> bool:
        """Whether it lies elsewhere as soon as messages arrive."""
        named = [offset for partitions in self.offsets.values() for offset in partitions.values()]
        return self.word == LATEST or LATEST_OFFSET in named


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read, from where to where, and in what portions."""

    addresses: tuple[Address, ...]
    which: Which
    assigned: Mapping[str, list[int]] | None
    starting: Edge
    ending: Edge
    records_max: int | None = None
    bytes_max: int | None = None
    partitions_min: int | None = None
    split_bytes: int | None = None
    fail_on_data_loss: bool = True
    pushdown: bool = False
    archive: Path | None = None
    data_path: Path | None = None
    """Where segments are read as files; None: the node hands them out."""
    rack: str = ""
    """Where it reads from, if a copy there is in sync; empty: from leaders."""
    group: str | None = None
    timeout_ms: int = 30_000
    retry_for_ms: int = 30_000
    locks: Locks = NO_LOCKS

    def connect(self) -> Client:
        """A client for these nodes; it connects with its first request."""
        return self.locks.connect(self.addresses, timeout_ms=self.timeout_ms, retry_for_ms=self.retry_for_ms)


def source_options(options: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """The options of a read, or one Invalid that names every problem with them."""
    given = GivenOptions(*take_kafka_options(options))
    _refuse_unknown(given)
    which, assigned = _topics(given)
    addresses: tuple[Address, ...] = given.take("bootstrap", parse_addresses, ())
    taken = SourceOptions(
        addresses=addresses,
        locks=take_locks(given, addresses),
        which=which,
        assigned=assigned,
        starting=_edge(given, "starting", LATEST if is_streaming else EARLIEST),
        ending=_edge(given, "ending", LATEST),
        records_max=given.take("maxRecordsPerBatch", parse_count, None),
        bytes_max=given.take("maxBytesPerBatch", parse_size, None),
        partitions_min=given.take("minPartitions", parse_count, None),
        split_bytes=given.take("splitBytes", parse_size, None),
        fail_on_data_loss=given.take("failOnDataLoss", parse_boolean, True),
        pushdown=given.take("pushdown", parse_boolean, False),
        archive=given.take("archive", parse_folder, None),
        data_path=given.take("dataPath", parse_folder, None),
        rack=given.text("rack"),
        group=given.take("group", _parse_group, None),
        timeout_ms=given.take("timeoutMs", parse_count, 30_000),
        retry_for_ms=given.take("retryForMs", parse_count, 30_000),
    )
    transport = given.take("transport", parse_word("broker", "files"), "broker")
    if (transport == "files") != given.has("dataPath"):
        given.problems.append("transport=files and dataPath, the node's data folder, go together")
    given.take("isolation", parse_word("committed"), "committed")
    given.take("startingOffsetsByTimestampStrategy", parse_word(LATEST), LATEST)
    _refuse_contradictions(given, is_streaming=is_streaming)
    if given.problems:
        raise InvalidOptions(given.problems)
    return taken


def column_names(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that the options ask for. Which of them exist is for the codec to say."""
    given = GivenOptions(options)
    names = given.take("columns", parse_names, DEFAULT_COLUMNS)
    if not given.take("includeHeaders", parse_boolean, True):
        names = tuple(name for name in names if name != "headers")
    if given.problems:
        raise InvalidOptions(given.problems)
    return names


def _refuse_unknown(given: GivenOptions) -> None:
    by_lower = {name.lower(): name for name in OPTIONS}
    for name in given.names():
        if name not in by_lower:
            near = difflib.get_close_matches(name, by_lower, n=1)
            hint = f"; did you mean {by_lower[near[0]]}?" if near else ""
            given.problems.append(f"there is no option {name}{hint}")


def _parse_group(text: str) -> str:
    if not text:
        raise Invalid("no name is given")
    return text


def _topics(given: GivenOptions) -> tuple[Which, Mapping[str, list[int]] | None]:
    names = [name for name in ("topic", "topics", "topicPattern", "assign") if given.has(name)]
    if len(names) != 1:
        was = " and ".join(names) if names else "none of them"
        given.problems.append(
            f"name what to read by one of topic, topics, topicPattern, assign, not by {was}"
        )
        return Which(), None
    match names[0]:
        case "topicPattern":
            return Which(pattern=given.take("topicPattern", parse_pattern, "")), None
        case "assign":
            assigned: dict[str, list[int]] = given.take("assign", parse_assignment, {})
            return Which(topics=tuple(sorted(assigned))), assigned
        case "topic":
            return Which(topics=(given.text("topic"),)), None
        case _:
            names_given: tuple[str, ...] = given.take("topics", parse_names, ())
            return Which(topics=tuple(sorted(set(names_given)))), None


def _edge(given: GivenOptions, side: str, default: str) -> Edge:
    names = [f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"]
    if sum(given.has(name) for name in names) > 1:
        given.problems.append(f"give only one of {', '.join(names)}")
    inner = EARLIEST if side == "starting" else LATEST
    if given.has(names[0]):
        return Edge(word=inner, time_ms=given.take(names[0], parse_time_ms, 0))
    if given.has(names[1]):
        return Edge(word=inner, times_ms=given.take(names[1], parse_offsets, {}))
    text = given.text(names[2])
    if not text.startswith("{"):
        allowed = (EARLIEST, LATEST) if side == "starting" else (LATEST,)
        return Edge(word=given.take(names[2], parse_word(*allowed), default))
    return Edge(word=inner, offsets=given.take(names[2], parse_offsets, {}))


def _refuse_contradictions(given: GivenOptions, *, is_streaming: bool) -> None:
    if not given.has("bootstrap"):
        given.problems.append("bootstrap is missing: say where the HTTP door is, like 127.0.0.1:8080")
    out_of_place: tuple[str, ...]
    if is_streaming:
        out_of_place = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "pushdown", "archive")
        reason = "is for batch reads only"
    else:
        out_of_place = ("maxRecordsPerBatch", "maxBytesPerBatch", "group")
        reason = "is for streams only"
    given.problems += [f"{name} {reason}" for name in out_of_place if given.has(name)]
    if given.has("archive") and given.has("pushdown"):
        given.problems.append("pushdown knows the live log only: leave it out, or the archive")
    if given.has("minPartitions") and given.has("splitBytes"):
        given.problems.append("give only one of minPartitions, splitBytes")
