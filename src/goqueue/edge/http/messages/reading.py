"""GET /topics/{topic}/partitions/{partition}/messages: look at stored messages, in log order.

Bytes that are not UTF-8 are never bent into text: such a message comes with `"encoding": "base64"`
and both its value and key in base64. An offset before the log's start (retention has taken what was
there) reads from the start; one behind its end reads nothing and stays where it is: the broker sees
to both.
"""

import binascii
from collections.abc import Sequence
from typing import Annotated, cast

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE, EncodingWord, HeaderBody, ReadMessage, ReadReply
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.paging import ABSENT, as_given
from goqueue.edge.http.parts.times import (
    DURATION_PATTERN,
    TIME_OR_MS_PATTERN,
    format_time,
    parse_duration_ns,
    parse_time_or_ms,
)
from goqueue.model.commands import ReadMessages
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers, StoredMessage

_INT64_MAX = 2**63 - 1
_PIECE_COUNT = 50
_encoder = msgspec.json.Encoder()


@get(
    "/topics/{topic:str}/partitions/{partition:str}/messages",
    operation_id="readMessages",
    summary="Read messages of one partition, in log order",
    tags=["messages"],
    responses=errors(400, 403, 404, 429, 500, 503),
)
async def read_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    long_polls: NamedDependency[LongPolls],
    topic: Annotated[str, PathParameter(description="The topic's name.")],
    partition: Annotated[int, PathParameter(ge=0, le=2**31 - 1, description="The partition's number.")],
    offset: Annotated[int, QueryParameter(ge=0, le=_INT64_MAX, description="The first offset to read.")] = 0,
    limit: Annotated[
        int,
        QueryParameter(ge=1, le=_INT64_MAX, description="100 when absent; more than 1000 counts as 1000."),
    ] = ABSENT,
    from_time: Annotated[
        str | None,
        QueryParameter(
            description="Start at the first message of this time or later instead of at an offset: "
            "RFC 3339, or unix milliseconds.",
            schema_extra={"pattern": TIME_OR_MS_PATTERN},
        ),
    ] = None,
    max_bytes: Annotated[
        int,
        QueryParameter(
            ge=1,
            le=_INT64_MAX,
            description="Stop before more than this (4 MiB at most), but never before one message.",
        ),
    ] = ABSENT,
    wait: Annotated[
        str | None,
        QueryParameter(
            description="When there is nothing to read, wait for it: a duration like 5s, at most 30s.",
            schema_extra={"pattern": DURATION_PATTERN},
        ),
    ] = None,
    encoding: Annotated[
        EncodingWord | None, QueryParameter(description="base64: give every value and key in base64.")
    ] = None,
) -> ReadReply:
    wait_ms = 0 if wait is None else parse_duration_ns(wait) // 1_000_000
    command = ReadMessages(
        source=TopicPartition(TopicName(topic), partition),
        offset=offset,
        from_time_ms=None if from_time is None else parse_time_or_ms(from_time),
        limit=min(as_given(limit) or config.read_limit, config.read_limit_max),
        max_bytes=min(as_given(max_bytes) or config.read_bytes, config.read_bytes),
        wait_ms=min(max(wait_ms, 0), config.wait_ms_max),
    )
    found = await long_polls.read(broker, command, request.scope)
    slices = Slices(broker.clock)
    return ReadReply(
        await _written(found.messages, slices, as_base64=encoding == "base64"), found.next_offset
    )


async def _written(
    messages: Sequence[StoredMessage], slices: Slices, *, as_base64: bool
) -> list[ReadMessage]:
    """Messages as JSON shows them, in JSON already: to write all at once would hold the loop."""
    pieces = []
    for first in range(0, len(messages), _PIECE_COUNT):
        await slices.pause()
        shown = [
            message_shown(message, as_base64=as_base64) for message in messages[first : first + _PIECE_COUNT]
        ]
        pieces.append(_encoder.encode(shown)[1:-1])
    return cast(list[ReadMessage], msgspec.Raw(b"[%b]" % b",".join(pieces)))


def message_shown(message: StoredMessage, *, as_base64: bool) -> ReadMessage:
    """A message as JSON shows it."""
    offset, timestamp_ms, key, value, headers, lane = message
    shown = ReadMessage(offset, format_time(timestamp_ms), None, PRIORITY_OF_LANE[lane])
    if not as_base64:
        try:
            shown.value = None if value is None else value.decode()
            shown.key = None if key is None else key.decode()
        except UnicodeDecodeError:
            as_base64 = True
    if as_base64:
        shown.value = base64_of(value)
        shown.key = base64_of(key)
        shown.encoding = "base64"
    if headers:
        shown.headers, shown.header_list = shown_headers(headers)
    return shown


def shown_headers(headers: Headers) -> tuple[dict[str, str | None], list[HeaderBody] | None]:
    """Headers as a plain map of those that are text; and all of them in order if the map leaves any out."""
    plain: dict[str, str | None] = {}
    listed: list[HeaderBody] = []
    for name, value in headers:
        try:
            plain[name] = text = _text(value)
            listed.append(HeaderBody(name, text))
        except UnicodeDecodeError:
            listed.append(HeaderBody(name, base64_of(value), "base64"))
    return plain, None if len(plain) == len(headers) else listed


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def base64_of(value: bytes | None) -> str | None:
    return None if value is None else binascii.b2a_base64(value, newline=False).decode()


ROUTES = [read_route]
