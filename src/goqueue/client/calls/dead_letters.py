"""Dead letters: look at them, and send them back."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path, query_of
from goqueue.client.messages import Message
from goqueue.client.times import time_text
from goqueue.client.wire import MessageOnWire
from goqueue.wire.dead_letters import Redriven as Redriven

_REDRIVE_MS = 20_000
"""A node answers by then, and says whether there is more to do."""


class DeadLetter(msgspec.Struct, frozen=True):
    """A message in the topic of dead letters, and the story of how it came there."""

    message: Message
    original_topic: str
    original_partition: int
    original_offset: int
    reason: str
    delivery_attempts: int
    last_group: str
    last_consumer: str
    last_error: str
    dlq_time: datetime


class DeadLetters(msgspec.Struct, frozen=True):
    """Dead letters that were not sent back; `next` has the partitions with more, and the offset there."""

    topic: str
    dlq_topic: str
    letters: list[DeadLetter]
    next: dict[str, int]


class _Letter(MessageOnWire, kw_only=True):
    original_topic: str
    original_partition: int
    original_offset: int
    reason: str
    delivery_attempts: int
    last_group: str
    last_consumer: str
    last_error: str
    dlq_time: datetime

    def told(self, dlq_topic: str) -> DeadLetter:
        return DeadLetter(
            msgspec.structs.replace(self.opened(dlq_topic), partition=self.partition),
            self.original_topic,
            self.original_partition,
            self.original_offset,
            self.reason,
            self.delivery_attempts,
            self.last_group,
            self.last_consumer,
            self.last_error,
            self.dlq_time,
        )


class _Letters(msgspec.Struct):
    topic: str
    dlq_topic: str
    messages: list[_Letter]
    next: dict[str, int]


_decode_letters = json_of(_Letters)


def list_letters(
    topic: str, *, limit: int | None = None, partition: int | None = None, offset: int | None = None
) -> Call[DeadLetters]:
    """Dead letters of a topic that were not sent back; with a partition, from an offset on."""

    def decode(reply: Reply) -> DeadLetters:
        found = _decode_letters(reply)
        letters = [letter.told(found.dlq_topic) for letter in found.messages]
        return DeadLetters(found.topic, found.dlq_topic, letters, found.next)

    return Call(
        method="GET",
        path=path("topics", topic, "dlq"),
        decode=decode,
        query=query_of(limit=limit, partition=partition, offset=offset),
    )


def redrive(
    topic: str,
    *,
    reason: str | Sequence[str] | None = None,
    group: str | None = None,
    key: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    rate: float | None = None,
    limit: int | None = None,
    dry_run: bool = False,
) -> Call[Redriven]:
    """Send dead letters back to the partitions they came from, each once; `rate` is messages a second."""
    reasons = [reason] if isinstance(reason, str) else reason
    wanted = {
        "reason": None if reasons is None else list(reasons),
        "group": group,
        "key": key,
        "since": time_text(since),
        "until": time_text(until),
    }
    chosen = {name: given for name, given in wanted.items() if given is not None}
    return Call(
        method="POST",
        path=path("topics", topic, "dlq", "redrive"),
        decode=json_of(Redriven),
        body=body_of(filter=chosen or None, rate=rate, limit=limit, dry_run=dry_run),
        wait_ms=_REDRIVE_MS,
    )
