"""Publish over HTTP: a JSON body becomes one Publish command, its outcome becomes results.

A request is refused as a whole when it cannot be read or its topic is missing. What is wrong with a
single message is told in its own result, and the others are stored. This is the one hot path of the
door: the body is decoded into structs and walked once, and a body that says little is decoded as such.
"""

import binascii
from collections.abc import Iterable, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Meta, Struct

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import checked_due
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.places import context_in
from goqueue.broker.write.publish import PIECE_COUNT, publish
from goqueue.core.telemetry.trace_ids import parse_traceparent
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.errors import ErrorBody, body_of
from goqueue.edge.http.parts.bodies import (
    PRIORITY_OF_LANE,
    AcksWord,
    HeaderBody,
    MessageBody,
    PublishBody,
    PublishReply,
    PublishResult,
)
from goqueue.edge.http.parts.decoding import admit_parts, decode
from goqueue.edge.http.parts.times import format_time, parse_duration_ns, parse_time
from goqueue.model.commands import Placed, Publish, Published, Quarantined
from goqueue.model.delays import Postponed
from goqueue.model.delivery import TTL_HEADER
from goqueue.model.errors import GoQueueError, Invalid, SchemaMismatch
from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Headers, Lane, Message
from goqueue.model.telemetry import TRACEPARENT


class PlainMessage(Struct, gc=False, forbid_unknown_fields=True):
    """A message with nothing but a value and perhaps a key, as most are."""

    value: str
    key: str | None = None


class PlainBody(Struct, gc=False, forbid_unknown_fields=True):
    """A PublishBody of such messages: decoded and walked in two thirds of the time."""

    messages: Annotated[list[PlainMessage], Meta(min_length=1)]
    acks: AcksWord | None = None


class OneRefused(ErrorBody, kw_only=True):
    """The answer where the only message does not fit its topic's schemas: an error, and the result."""

    results: list[PublishResult]


class Given(NamedTuple):
    """What a body holds."""

    acks: str | None
    messages: list[Message]
    """The good ones, in order."""
    refused: dict[int, PublishResult]
    """By their places in the body."""


_CLOSE_PIECE_COUNT = 50
"""Between two looks at the clock: a message may say a lot."""
_decoder = msgspec.json.Decoder(PublishBody)
_plain_decoder = msgspec.json.Decoder(PlainBody)
_LANES = {lane.label: lane for lane in Lane}
_NORMAL = Lane.NORMAL
_new_message = tuple.__new__
_ACKS = {acks.value: acks for acks in Acks}


async def publish_messages(
    broker: Broker,
    config: HttpConfig,
    topic: str,
    body: bytes,
    acks: str | None,
    traceparent: bytes | None = None,
) -> PublishReply | OneRefused:
    """Store what a publish request holds. `acks` from the query goes before the body's.

    Messages that name no trace themselves are part of the request's.
    """
    acks_given, messages, refused = await _read(body, config, broker)
    wanted = _acks_of(acks or acks_given)
    if traceparent is not None and parse_traceparent(traceparent) is not None:
        messages = [_traced(message, traceparent) for message in messages]
    if not messages:
        broker.partition_count(topic)  # a missing topic is the first thing to hear of
        _tell_refused(broker, topic, refused.values())
        return PublishReply(list(refused.values()))
    command = Publish(topic=TopicName(topic), messages=messages, acks=wanted)
    published = await at_home(broker, publish, command)
    _tell_refused(broker, topic, refused.values())
    if len(messages) <= PIECE_COUNT:
        results = _results(messages, published)
    else:
        results = []
        slices = Slices(broker.clock)
        for first in range(0, len(messages), PIECE_COUNT):
            piece = slice(first, first + PIECE_COUNT)
            results += _results(messages[piece], published[piece])
            await slices.pause()
    for index, refusal in refused.items():  # in rising order, so each lands where its message stood
        results.insert(index, refusal)
    if len(results) == 1 and isinstance(published[0], SchemaMismatch):
        told = body_of(published[0])
        return OneRefused(error=told.error, status=told.status, code=told.code, results=results)
    return PublishReply(results)


def _results(messages: Sequence[Message], published: Published) -> list[PublishResult]:
    return [
        PublishResult(outcome[0], outcome[1], PRIORITY_OF_LANE[outcome[2]])
        if isinstance(outcome, Placed)
        else _otherwise(outcome, message[3])
        for message, outcome in zip(messages, published, strict=True)
    ]


def _tell_refused(broker: Broker, topic: str, refused: Iterable[PublishResult]) -> None:
    """Messages that were not understood count as refused, as those do that the broker does not take."""
    for one in refused:
        broker.telemetry.refused(topic, one.code or "", one.error or "", time_us=broker.clock.wall_us())


async def _read(body: bytes, config: HttpConfig, broker: Broker) -> Given:
    admit_parts(body)
    try:
        plain = _plain_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        # Which tells what is wrong, if anything is.
        return await _read_closely(body, config, broker)
    _check_count(plain.messages, config)
    if len(plain.messages) <= PIECE_COUNT:
        return Given(plain.acks, _plain_messages(plain.messages), {})
    messages: list[Message] = []
    slices = Slices(broker.clock)
    for first in range(0, len(plain.messages), PIECE_COUNT):
        messages += _plain_messages(plain.messages[first : first + PIECE_COUNT])
        await slices.pause()
    return Given(plain.acks, messages, {})


def _plain_messages(messages: Sequence[PlainMessage]) -> list[Message]:
    return [
        _new_message(
            Message,
            (
                given.value.encode(),
                key.encode() if (key := given.key) else None,
                (),
                _NORMAL,
                None,
                None,
                None,
            ),
        )
        for given in messages
    ]


def _check_count(messages: Sequence[object], config: HttpConfig) -> None:
    if len(messages) > config.messages_per_request:
        raise Invalid(f"a request holds at most {config.messages_per_request} messages")


async def _read_closely(body: bytes, config: HttpConfig, broker: Broker) -> Given:
    """The same for messages that say more than value and key."""
    request = decode(_decoder, body)
    _check_count(request.messages, config)
    is_base64 = request.encoding == "base64"
    now_ms = broker.clock.wall_ms()
    slices = Slices(broker.clock)
    messages: list[Message] = []
    refused: dict[int, PublishResult] = {}
    for index, given in enumerate(request.messages):
        if index % _CLOSE_PIECE_COUNT == 0:
            await slices.pause()
        try:
            messages.append(message_of(given, is_base64, now_ms))
        except GoQueueError as error:
            refused[index] = _refusal(error)
    return Given(request.acks, messages, refused)


def _traced(message: Message, traceparent: bytes) -> Message:
    if context_in(message.headers) is not None:
        return message
    return message._replace(headers=(*message.headers, (TRACEPARENT, traceparent)))


def acks_in_query(query: bytes) -> str | None:
    """The `acks` of a query string, if it has one."""
    return dict(parse_qsl(query.decode("latin-1"))).get("acks") if query else None


def _acks_of(word: str | None) -> Acks:
    if word is None:
        return Acks.ALL
    acks = _ACKS.get(word)
    if acks is None:
        raise Invalid(f"acks is none, leader or all, not {word!r}")
    return acks


def message_of(given: MessageBody, is_base64: bool, now_ms: int) -> Message:
    """The message a client means; refuses what it says wrongly."""
    due_ms = None
    if given.delay is not None or given.deliver_at is not None:
        due_ms = due_time(given.delay, given.deliver_at, now_ms)
    if given.encoding is not None:
        is_base64 = _is_base64(given.encoding)
    key_text, value_text = given.key, given.value
    if value_text is UNSET:
        raise Invalid("value is missing; give null for a message without one, which ends its key")
    if is_base64:
        value = None if value_text is None else _from_base64(value_text, "value")
        key = _from_base64(key_text, "key") if key_text else None
    else:
        value = None if value_text is None else value_text.encode()
        key = key_text.encode() if key_text else None
    headers = given.headers
    priority = given.priority
    # Past the named tuple's own constructor, which is Python and takes as long as all the rest here.
    return _new_message(
        Message,
        (
            value,
            key,
            _headers_of(given) if headers or given.header_list or given.ttl else (),
            _NORMAL if priority is None else _lane_of(priority),
            given.partition,
            None,
            due_ms,
        ),
    )


def _headers_of(given: MessageBody) -> Headers:
    headers = (*_listed(given.header_list or ()), *_mapped(given.headers or {}))
    ttl = given.ttl
    if not ttl:
        return headers
    ttl_ms = parse_duration_ns(ttl) // 1_000_000
    if ttl_ms <= 0:
        raise Invalid("ttl must be longer than 0 ms")
    return (*headers, (TTL_HEADER, b"%d" % ttl_ms))


def _mapped(headers: dict[str, str | None]) -> Headers:
    return tuple((name, None if value is None else value.encode()) for name, value in headers.items())


def _listed(headers: Sequence[HeaderBody]) -> Headers:
    return tuple(
        (
            header.name,
            None
            if header.value is None
            else _from_base64(header.value, f"header {header.name}")
            if header.encoding
            else header.value.encode(),
        )
        for header in headers
    )


def _lane_of(priority: str) -> Lane:
    lane = _LANES.get(priority.lower()) if priority else Lane.NORMAL
    if lane is None:
        raise Invalid(f"priority is one of {', '.join(PRIORITY_OF_LANE)}, not {priority!r}")
    return lane


def _is_base64(encoding: str) -> bool:
    if encoding not in ("base64", "text", ""):
        raise Invalid(f"encoding is text or base64, not {encoding!r}")
    return encoding == "base64"


def _from_base64(text: str, field: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise Invalid(f"{field} is not base64: {error}") from error


def due_time(delay: str | None, deliver_at: str | None, now_ms: int) -> int | None:
    """When a message is to be delivered; None: now. `delay` goes before `deliverAt`."""
    if delay:
        # A started millisecond counts as a whole one: never early.
        due_ms = now_ms - -parse_duration_ns(delay) // 1_000_000
    elif deliver_at:
        due_ms = parse_time(deliver_at)
    else:
        return None
    return checked_due(due_ms) if due_ms > now_ms else None


def _otherwise(outcome: Postponed | Quarantined | GoQueueError, lane: Lane) -> PublishResult:
    """A message that is not in its partition: it waits, is in quarantine, or was refused."""
    if isinstance(outcome, GoQueueError):
        return _refusal(outcome, lane)
    if isinstance(outcome, Quarantined):
        topic, partition, offset, reason, lane = outcome
        return PublishResult(partition, offset, PRIORITY_OF_LANE[lane], quarantined=topic, reason=reason)
    partition, number, due_ms, lane = outcome
    return PublishResult(
        partition, number, PRIORITY_OF_LANE[lane], delayed=True, deliver_at=format_time(due_ms)
    )


def _refusal(error: GoQueueError, lane: Lane | None = None) -> PublishResult:
    label = None if lane is None else PRIORITY_OF_LANE[lane]
    return PublishResult(-1, -1, label, error=str(error), code=error.code)
