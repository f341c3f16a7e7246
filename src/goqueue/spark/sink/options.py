"""The options of a write. All problems are told at once, before anything is written."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from goqueue.client.addresses import Address, parse_addresses
from goqueue.client.connection import Client
from goqueue.model.errors import Invalid
from goqueue.model.names import checked_topic_name
from goqueue.records.layout import Codec
from goqueue.spark.options.kafka import take_kafka_options
from goqueue.spark.options.locks import LOCK_OPTIONS, NO_LOCKS, Locks, take_locks
from goqueue.spark.options.values import GivenOptions, InvalidOptions, parse_count, parse_word

SINK_OPTIONS: dict[str, str] = {
    "bootstrap": "addresses of the HTTP door, `host:8080,…`; required",
    "topic": "where rows go that name no topic of their own in a column `topic`",
    "delivery": "`exactly-once` (default) or `at-least-once`",
    "sinkId": "streaming: the name under which epochs are counted; default: the id of the query",
    "writeId": "batch: the name of this write; when a write of that name is done, it is not done again",
    "compression": "`none` (default), `lz4` or `zstd`",
    "timeoutMs": "how long one request may take; default 60000",
    "retryForMs": "how long nodes that do not answer are tried again; default 60000",
    **LOCK_OPTIONS,
}
"""Ours, with what each is for: the table of docs/spark-sink.md."""

SINK_ID_LENGTH_MAX = 200
_SINK_ID = re.compile(r"[A-Za-z0-9._-]+")
_LIKENESS = 0.8
"""Spark passes on options of its own, so a name that is not ours is refused only when it looks like ours."""


class Delivery(StrEnum):
    """How often a row may be found in the topic when something fails on the way."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where rows go, and what is promised about them."""

    addresses: tuple[Address, ...]
    topic: str | None = None
    delivery: Delivery = Delivery.EXACTLY_ONCE
    sink_id: str | None = None
    write_id: str | None = None
    codec: Codec = Codec.NONE
    timeout_ms: int = 60_000
    retry_for_ms: int = 60_000
    locks: Locks = NO_LOCKS

    def connect(self) -> Client:
        """A client for these nodes; it connects with its first request."""
        return self.locks.connect(self.addresses, timeout_ms=self.timeout_ms, retry_for_ms=self.retry_for_ms)

    def connect_briefly(self) -> Client:
        """A client that asks once: for what is well to do but not worth waiting for."""
        return self.locks.connect(self.addresses, timeout_ms=self.timeout_ms, retry_for_ms=0)


def sink_options(options: Mapping[str, str], *, is_streaming: bool) -> SinkOptions:
    """The options of a write, or one Invalid that names every problem with them."""
    given = GivenOptions(*take_kafka_options(options))
    _refuse_misspelt(given)
    addresses: tuple[Address, ...] = given.take("bootstrap", parse_addresses, ())
    taken = SinkOptions(
        addresses=addresses,
        locks=take_locks(given, addresses),
        topic=given.take("topic", checked_topic_name, None),
        delivery=Delivery(given.take("delivery", parse_word(*Delivery), str(Delivery.EXACTLY_ONCE))),
        sink_id=given.take("sinkId", parse_id, None),
        write_id=given.take("writeId", parse_id, None),
        codec=Codec[given.take("compression", parse_word("none", "lz4", "zstd"), "none").upper()],
        timeout_ms=given.take("timeoutMs", parse_count, 60_000),
        retry_for_ms=given.take("retryForMs", parse_count, 60_000),
    )
    if not given.has("bootstrap"):
        given.problems.append("bootstrap is missing: say where the HTTP door is, like 127.0.0.1:8080")
    if is_streaming and given.has("writeId"):
        given.problems.append("writeId is for batch writes only; a stream is known by its sinkId")
    if not is_streaming and given.has("sinkId"):
        given.problems.append("sinkId is for streams only; a batch write is known by its writeId")
    if given.problems:
        raise InvalidOptions(given.problems)
    return taken


def _refuse_misspelt(given: GivenOptions) -> None:
    by_lower = {name.lower(): name for name in SINK_OPTIONS}
    for name in given.names():
        near = difflib.get_close_matches(name, by_lower, n=1, cutoff=_LIKENESS)
        if near and name not in by_lower:
            given.problems.append(f"there is no option {name}; did you mean {by_lower[near[0]]}?")


def parse_id(text: str) -> str:
    """The name of a sink or of a write."""
    if not _SINK_ID.fullmatch(text) or len(text) > SINK_ID_LENGTH_MAX or text in (".", ".."):
        raise Invalid(
            f"{text!r} is not a name of letters, digits, '.', '_' and '-', at most {SINK_ID_LENGTH_MAX}"
        )
    return text
