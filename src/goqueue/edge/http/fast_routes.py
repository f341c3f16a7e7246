"""The way past the framework for the hot routes: publish, poll and ack.

Litestar's routing, request and response objects cost about 55 µs of CPU a request, measured against
75 µs for all that uvicorn does; a single message is stored in less. So this ASGI app stands in front,
takes these requests by their path and hands everything else on. Only the carrying is done here: the
behaviour is `publish_messages`, `ack_messages` and `hold_poll`, which Litestar's own routes for the same
paths call too.
"""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from goqueue.broker.access.warden import ASKING
from goqueue.broker.broker import Broker
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.errors import INTERNAL, ErrorBody, answer_to, headers_of, note_failure
from goqueue.edge.http.messages.publishing import acks_in_query, publish_messages
from goqueue.edge.http.parts.decoding import ClientGone, read_body
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.replies import send_reply
from goqueue.edge.http.queue.polling import WantedPoll, hold_poll, poll_in_request, traced_reply
from goqueue.edge.http.queue.settling import ack_messages
from goqueue.edge.http.transport.keeper import SEAT, known_in
from goqueue.edge.http.transport.shares import Shares
from goqueue.edge.seats import Seat
from goqueue.model.access import Asking
from goqueue.model.errors import GoQueueError, TooManyConnections
from goqueue.model.telemetry import TRACEPARENT

_encoder = msgspec.json.Encoder()
_TRACEPARENT = TRACEPARENT.encode()
_ACK_PATHS = {"/messages/ack", "/v1/messages/ack"}
_JSON = (b"content-type", b"application/json")
_SERVED = "goqueue"


def served(name: str) -> Callable[[Scope], Any]:
    """What of the served broker a route wants, looked up in the scope of its request."""

    def look_up(scope: Scope) -> Any:
        return cast(dict[str, Any], scope)[_SERVED][name]

    return look_up


class FastRoutes:
    """Hot requests are served here, all others by the app behind."""

    def __init__(self, broker: Broker, config: HttpConfig, long_polls: LongPolls, app: ASGIApp) -> None:
        self._broker = broker
        self._config = config
        self._long_polls = long_polls
        self._app = app
        self._served = {"broker": broker, "config": config, "long_polls": long_polls}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Not a coroutine itself: thousands of polls wait behind it, and each would hold one more.
        if scope["type"] == ScopeType.HTTP:
            if self._broker.config.access.is_asked:
                # A request has a task of its own: who it comes from is named there, and forgotten with it.
                host = (scope["client"] or ("",))[0]
                asking = known_in(scope).asking(host, self._broker.identities)
                ASKING.set(asking)
                if (full := self._seat(scope, asking)) is not None:
                    return self._answer(full, scope, send)
            path = scope["path"]
            if b"%2" in scope["raw_path"]:
                pass  # an encoded slash may be in it, which parts nothing
            elif scope["method"] == "POST":
                topic = topic_published_to(path)
                if topic is not None:
                    return self._answer(self._publish(topic, scope, receive), scope, send)
                if path in _ACK_PATHS:
                    return self._answer(self._ack(scope, receive), scope, send)
            elif path.endswith("/poll") and scope["method"] == "GET":
                wanted = poll_in_request(path, scope["query_string"], self._config)
                if wanted is not None:
                    return self._answer(self._poll(wanted, scope), scope, send)
            cast(dict[str, Any], scope)[_SERVED] = self._served
        return self._app(scope, receive, Shares(send))

    def _seat(self, scope: Scope, asking: Asking) -> Awaitable[object] | None:
        """Count the connection among those of the client's tenant; what is answered if that has too many."""
        seat: Seat | None = cast(dict[str, Any], scope).get(SEAT)
        try:
            if seat is not None:
                seat.take(self._broker, asking.tenant)
        except TooManyConnections as error:
            return _refused(error)
        return None

    async def _publish(self, topic: str, scope: Scope, receive: Receive) -> object:
        assert scope["type"] == ScopeType.HTTP
        body = await read_body(scope, receive, self._config.json_bytes)
        acks = acks_in_query(scope["query_string"])
        traceparent = dict(scope["headers"]).get(_TRACEPARENT)
        return await publish_messages(self._broker, self._config, topic, body, acks, traceparent)

    async def _ack(self, scope: Scope, receive: Receive) -> object:
        body = await read_body(scope, receive, self._config.json_bytes)
        return await ack_messages(self._broker, self._config, body)

    async def _poll(self, wanted: WantedPoll, scope: Scope) -> object:
        polled = await hold_poll(self._broker, self._long_polls, wanted.command, scope)
        return traced_reply(self._broker, polled, as_base64=wanted.as_base64)

    async def _answer(self, work: Awaitable[object], scope: Scope, send: Send) -> None:
        assert scope["type"] == ScopeType.HTTP
        status, headers = 200, [_JSON]
        reply: object
        try:
            reply = await work
            if isinstance(reply, ErrorBody):
                status = reply.status
        except ClientGone:
            return
        except GoQueueError as error:
            reply = failure = answer_to(scope, error)
            status = failure.status
            headers += _encoded(failure)
        except Exception as error:
            note_failure(scope, error)
            reply, status = INTERNAL, INTERNAL.status
        await send_reply(send, status, headers, _encoder.encode(reply) + b"\n")


async def _refused(error: GoQueueError) -> object:
    raise error


def topic_published_to(path: str) -> str | None:
    """The topic in /topics/{topic}/messages or the same under /v1; None for any other path."""
    if not path.endswith("/messages"):
        return None
    match path.split("/"):
        case ["", "topics", topic, "messages"] | ["", "v1", "topics", topic, "messages"] if topic:
            return topic
    return None


def _encoded(failure: ErrorBody) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers_of(failure).items()]
