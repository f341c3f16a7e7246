"""Producers and transactions: what belongs together counts together."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from goqueue.client.call import Call, Reply, body_of, json_of, path, query_of
from goqueue.client.messages import Content, GivenHeaders, Json, Outgoing, Placed, Priority
from goqueue.client.times import Duration
from goqueue.client.wire import on_wire
from goqueue.model.schemas import QUARANTINE_SUFFIX
from goqueue.wire import transactions as wire

TransactionView = wire.TransactionView[datetime]
TransactionStats = wire.TransactionStats[datetime]


class ProducerId(msgspec.Struct, frozen=True):
    """Who publishes: an id, and the epoch in which it is the only one of its transactional id."""

    producer_id: int
    epoch: int


class Speaker(NamedTuple):
    """Who speaks for a transactional id."""

    producer: ProducerId
    transactional_id: str


class HasReceipt(Protocol):
    """A message that is out with a consumer."""

    @property
    def receipt(self) -> str: ...


class _TransactionList(msgspec.Struct):
    transactions: list[TransactionView]


class _PublishedOnce(msgspec.Struct, rename={"deliver_at": "deliverAt"}):
    partition: int
    offset: int
    delayed: bool = False
    deliver_at: datetime | None = None
    quarantined: bool = False


def init_producer(transactional_id: str | None = None, *, timeout_ms: int | None = None) -> Call[ProducerId]:
    """A producer id; for a transactional id its next epoch, which fences all before it."""
    return Call(
        method="POST",
        path="/producers/init",
        decode=json_of(ProducerId),
        body=body_of(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms),
    )


def begin(speaker: Speaker) -> Call[None]:
    """Open a transaction."""
    return _step("begin", speaker, is_repeatable=False)


def publish(
    speaker: Speaker,
    topic: str,
    value: Content | Json,
    *,
    key: Content = None,
    headers: GivenHeaders = (),
    partition: int | None = None,
    priority: Priority | None = None,
    delay: Duration | None = None,
    deliver_at: datetime | None = None,
    ttl: Duration | None = None,
) -> Call[Placed]:
    """Publish a message that is seen when the transaction commits.

    It is sent once only, for nobody has numbered it: when its reply is lost, abort.
    """
    message = Outgoing(value, key, headers, partition, priority, delay, deliver_at, ttl)
    decode_reply = json_of(_PublishedOnce)

    def decode(reply: Reply) -> Placed:
        told = decode_reply(reply)
        return Placed(
            told.partition,
            told.offset,
            priority or "normal",
            told.delayed,
            told.deliver_at,
            quarantined=f"{topic}{QUARANTINE_SUFFIX}" if told.quarantined else None,
        )

    who = {"producer_id": speaker.producer.producer_id, "epoch": speaker.producer.epoch, "topic": topic}
    return Call(
        method="POST",
        path="/transactions/publish",
        decode=decode,
        body=msgspec.json.encode(who | on_wire(message)),
        is_repeatable=False,
    )


def ack(speaker: Speaker, *messages: HasReceipt) -> Call[None]:
    """Messages that a consumer has taken are acknowledged when the transaction commits."""
    return _step("add-offsets", speaker, receipt_handles=[message.receipt for message in messages])


def offsets(speaker: Speaker, group: str, offsets: Mapping[str, Mapping[int, int]]) -> Call[None]:
    """A group reads on at these offsets when the transaction commits: topic, partition, next offset."""
    told = {topic: {str(number): offset for number, offset in row.items()} for topic, row in offsets.items()}
    return _step("add-offsets", speaker, group=group, offsets=told)


def commit(speaker: Speaker) -> Call[None]:
    """Make all that the transaction has done count, at once."""
    return _step("commit", speaker)


def abort(speaker: Speaker) -> Call[None]:
    """Undo all that the transaction has done; messages taken from a queue are given back."""
    return _step("abort", speaker)


def list_transactions(*, finished: bool = False) -> Call[list[TransactionView]]:
    """Transactions that are open: who holds them, since when; or every transactional id and its last one."""
    decode = json_of(_TransactionList)
    return Call(
        method="GET",
        path="/transactions",
        query=query_of(state="all" if finished else "open"),
        decode=lambda reply: decode(reply).transactions,
    )


def stats() -> Call[TransactionStats]:
    """How transactions ended, and which are open the longest."""
    return Call(method="GET", path="/transactions/stats", decode=json_of(TransactionStats))


def abort_open(transaction: str) -> Call[TransactionView]:
    """For operators: abort an open transaction, by its own or its transactional id; fences its producer."""
    return Call(
        method="POST",
        path=path("transactions", transaction, "abort"),
        decode=json_of(TransactionView),
        is_repeatable=False,
    )


def _step(verb: str, speaker: Speaker, *, is_repeatable: bool = True, **fields: object) -> Call[None]:
    return Call(
        method="POST",
        path=f"/transactions/{verb}",
        decode=lambda reply: None,
        body=body_of(
            producer_id=speaker.producer.producer_id,
            epoch=speaker.producer.epoch,
            transactional_id=speaker.transactional_id,
            **fields,
        ),
        is_repeatable=is_repeatable,
    )
