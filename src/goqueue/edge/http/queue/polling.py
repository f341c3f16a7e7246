"""GET /groups/{group}/poll: take messages with a lease, waiting for them when there are none.

Bytes that are not UTF-8 come as base64, as everywhere at this door. A client that hangs up while it
waits takes nothing.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat, zip_longest
from operator import itemgetter
from typing import Annotated, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from litestar import Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from litestar.types import Scope

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.queue.auto_commit import commit_polled
from goqueue.broker.queue.poll import poll
from goqueue.broker.tracing.places import traceparents_of
from goqueue.core.telemetry.trace_ids import parse_traceparent
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.messages.reading import base64_of, shown_headers
from goqueue.edge.http.parts.bodies import PRIORITY_OF_LANE, EncodingWord, HeaderBody
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.paging import ABSENT, as_given
from goqueue.edge.http.parts.times import DURATION_PATTERN, format_time, parse_duration_ns
from goqueue.edge.http.queue.bodies import PolledMessage, PollReply
from goqueue.model.delivery import CommitPolled, Poll, Polled, PolledPart
from goqueue.model.errors import Invalid
from goqueue.model.groups import Membership
from goqueue.model.messages import StoredMessage
from goqueue.model.telemetry import TRACEPARENT, FindTraceparents

Shown = TypeVar("Shown")
_INT64_MAX = 2**63 - 1
_COUNT = re.compile(r"[1-9]\d{0,17}", re.ASCII)
_GENERATION = re.compile(r"\d{1,18}", re.ASCII)
_ENCODINGS = ("text", "base64")
_KNOWN_POLLS_MAX = 1024
_KNOWN_LENGTH_MAX = 1024
_DEFAULT_WAIT = "30s"
_NS_PER_MS = 1_000_000
_offset_of = itemgetter(StoredMessage._fields.index("offset"))


@get(
    "/groups/{group:str}/poll",
    operation_id="poll",
    summary="Take messages with a lease; acknowledge them before it runs out",
    tags=["queue"],
    responses=errors(400, 403, 404, 409, 429, 500, 503, 507),
)
async def poll_route(
    request: Request[object, object, State],
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    long_polls: NamedDependency[LongPolls],
    group: Annotated[str, PathParameter(description="The group's name.")],
    member_id: Annotated[str, QueryParameter(description="As the join gave it.", min_length=1)],
    generation: Annotated[
        int, QueryParameter(ge=-1, le=_INT64_MAX, description="0 or absent: not checked.")
    ] = 0,
    limit: Annotated[
        int,
        QueryParameter(ge=1, le=_INT64_MAX, description="100 when absent; more than 1000 counts as 1000."),
    ] = ABSENT,
    max_messages: Annotated[
        int, QueryParameter(ge=1, le=_INT64_MAX, description="Another name for limit.")
    ] = ABSENT,
    max_bytes: Annotated[
        int,
        QueryParameter(ge=1, le=_INT64_MAX, description="Stop behind this, but never before one message."),
    ] = ABSENT,
    wait: Annotated[
        str | None,
        QueryParameter(
            name="timeout",
            description="How long to wait when there is nothing: 30s when absent, at most 60s.",
            schema_extra={"pattern": DURATION_PATTERN},
        ),
    ] = None,
    visibility_timeout: Annotated[
        str | None,
        QueryParameter(
            description="How long messages stay hidden from others: as the topic says when absent.",
            schema_extra={"pattern": DURATION_PATTERN},
        ),
    ] = None,
    encoding: Annotated[
        EncodingWord | None, QueryParameter(description="base64: give every value and key in base64.")
    ] = None,
    auto_commit: Annotated[
        bool,
        QueryParameter(description="Acknowledge first what the member was given before and has not settled."),
    ] = False,
) -> PollReply:
    if auto_commit:
        await at_home(broker, commit_polled, CommitPolled(Membership(group, member_id, max(generation, 0))))
    command = Poll(
        group=group,
        member_id=member_id,
        generation=max(generation, 0),
        limit=min(as_given(limit) or as_given(max_messages) or config.read_limit, config.read_limit_max),
        max_bytes=min(as_given(max_bytes) or config.read_bytes, config.read_bytes_max),
        wait_ms=_wait_ms(wait, config),
        visibility_ms=_visibility_ms(visibility_timeout),
    )
    polled = await hold_poll(broker, long_polls, command, request.scope)
    return traced_reply(broker, polled, as_base64=encoding == "base64")


class WantedPoll(NamedTuple):
    command: Poll
    as_base64: bool


def poll_in_request(path: str, query: bytes, config: HttpConfig) -> WantedPoll | None:
    """What a plain poll asks for; None for whatever the route above has to look at more closely."""
    return None if len(path) + len(query) > _KNOWN_LENGTH_MAX else _known_poll(path, query, config)


@lru_cache(maxsize=_KNOWN_POLLS_MAX)
def _known_poll(path: str, query: bytes, config: HttpConfig) -> WantedPoll | None:
    """A consumer asks the same again and again, and to read it is a tenth of the work of a small poll."""
    match path.split("/"):
        case ["", "groups", group, "poll"] | ["", "v1", "groups", group, "poll"] if group:
            pass
        case _:
            return None
    given = dict(parse_qsl(query.decode("latin-1")))
    limit, max_messages, max_bytes = map(given.get, ("limit", "max_messages", "max_bytes"))
    if any(text is not None and not _COUNT.fullmatch(text) for text in (limit, max_messages, max_bytes)):
        return None
    generation, encoding = given.get("generation", "0"), given.get("encoding", "text")
    if "auto_commit" in given:
        return None  # that asks for two things
    if "member_id" not in given or not _GENERATION.fullmatch(generation) or encoding not in _ENCODINGS:
        return None
    try:
        command = Poll(
            group=group,
            member_id=given["member_id"],
            generation=int(generation),
            limit=min(int(limit or max_messages or config.read_limit), config.read_limit_max),
            max_bytes=min(int(max_bytes or config.read_bytes), config.read_bytes_max),
            wait_ms=_wait_ms(given.get("timeout"), config),
            visibility_ms=_visibility_ms(given.get("visibility_timeout")),
        )
    except Invalid:
        return None
    return WantedPoll(command, encoding == "base64")


def hold_poll(broker: Broker, long_polls: LongPolls, command: Poll, scope: Scope) -> Awaitable[Polled]:
    """Poll, waiting as long as the command says, the client is there and the door is open."""
    if not command.wait_ms:
        return at_home(broker, poll, command)
    # Asked not to wait: the client has gone, or the door closes, and nobody would read the messages.
    return long_polls.hold(
        lambda wait_ms: at_home(broker, poll, command) if wait_ms else _nothing(), command.wait_ms, scope
    )


def traced_reply(broker: Broker, polled: Polled, *, as_base64: bool) -> PollReply:
    """The reply in which a sampled message that brings no trace has the header of the one made for it."""
    made = [
        traceparents_of(broker, FindTraceparents(part.source, list(map(_offset_of, part.messages))))
        for part in polled.parts
    ]
    return reply_of(polled, as_base64=as_base64, made=made)


def reply_of(polled: Polled, *, as_base64: bool, made: Sequence[Sequence[str | None]] = ()) -> PollReply:
    """Messages as JSON shows them, flat, and where each partition goes on behind them."""
    messages: list[PolledMessage] = []
    next_offsets = dict(polled.floors)
    for part, traceparents in zip_longest(polled.parts, made):
        messages += _shown(part, as_base64, traceparents)
        next_offsets[part.source] = max(map(_offset_of, part.messages)) + 1
    shown = {f"{source.topic}-{source.partition}": offset for source, offset in next_offsets.items()}
    if len({source.topic for source in next_offsets}) == 1:
        shown |= {str(source.partition): offset for source, offset in next_offsets.items()}
    return PollReply(messages, shown)


async def _nothing() -> Polled:
    return Polled([], {}, {})


def _shown(
    part: PolledPart, as_base64: bool, traceparents: Sequence[str | None] | None
) -> list[PolledMessage]:
    """Hundreds at a time, so column by column: first what all of them have, then what few of them have."""
    topic, partition = part.source
    counts = part.delivery_counts
    receipt_start, receipt_end = f"{topic}:{partition}:", f":{part.nonce:016x}"
    first_end = f":1{receipt_end}"
    offsets, times_ms, keys, values, headers, lanes = zip(*part.messages, strict=True)
    is_text = not as_base64 and None not in values
    try:
        texts: Iterable[str | None] = list(map(bytes.decode, values)) if is_text else repeat(None)
    except UnicodeDecodeError:
        texts, is_text = repeat(None), False
    messages = list(
        map(
            PolledMessage,
            repeat(topic),
            repeat(partition),
            offsets,
            texts,
            _each(times_ms, format_time),
            [f"{receipt_start}{offset}{first_end}" for offset in offsets],
            _each(lanes, PRIORITY_OF_LANE.__getitem__),
            repeat(1),
            repeat(None),
            repeat(None),
            [one and {TRACEPARENT: one} for one in traceparents] if traceparents else repeat(None),
        )
    )
    if not is_text or any(headers) or keys.count(None) < len(keys):
        for message, stored in zip(messages, part.messages, strict=True):
            _add_rest(message, stored, as_base64)
    for message in messages if counts else ():
        message.delivery_count = count = counts.get(message.offset, 1)
        message.receipt_handle = f"{receipt_start}{message.offset}:{count}{receipt_end}"
    return messages


def _names_a_trace(message: PolledMessage) -> bool:
    listed = [(header.name, header.value) for header in message.header_list or ()]
    return any(
        name.lower() == TRACEPARENT and parse_traceparent((value or "").encode()) is not None
        for name, value in listed or (message.headers or {}).items()
    )


def _each(column: Collection[int], show: Callable[[int], Shown]) -> Iterable[Shown]:
    """What is shown of each; mostly it is the same for all."""
    shown = {one: show(one) for one in set(column)}
    return repeat(*shown.values()) if len(shown) == 1 else map(shown.__getitem__, column)


def _add_rest(shown: PolledMessage, stored: StoredMessage, as_base64: bool) -> None:
    """Key and headers; and the value once more, which may be no text."""
    key, value = stored.key, stored.value
    if not as_base64:
        try:
            shown.value = None if value is None else value.decode()
            shown.key = None if key is None else key.decode()
        except UnicodeDecodeError:
            as_base64 = True
    if as_base64:
        shown.value, shown.key, shown.encoding = base64_of(value), base64_of(key), "base64"
    if stored.headers:
        made = shown.headers
        shown.headers, shown.header_list = shown_headers(stored.headers)
        if made and not _names_a_trace(shown):
            _add_trace(shown, made)


def _add_trace(shown: PolledMessage, made: Mapping[str, str | None]) -> None:
    """A consumer goes on with the trace that a message is part of, also when that was made here."""
    shown.headers = {**(shown.headers or {}), **made}
    if shown.header_list is not None:
        shown.header_list += [HeaderBody(*header) for header in made.items()]


def _wait_ms(timeout: str | None, config: HttpConfig) -> int:
    wait_ms = parse_duration_ns(timeout or _DEFAULT_WAIT) // _NS_PER_MS
    return min(max(wait_ms, 0), config.poll_wait_ms_max)


def _visibility_ms(visibility_timeout: str | None) -> int | None:
    if not visibility_timeout:
        return None
    visibility_ms = parse_duration_ns(visibility_timeout) // _NS_PER_MS
    if visibility_ms <= 0:
        raise Invalid("visibility_timeout must be longer than 0 ms")
    return visibility_ms


ROUTES = [poll_route]
