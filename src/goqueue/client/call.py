"""A call is a value: what to ask of a node, and how to read its reply. Nothing here has a socket.

`goqueue.client.calls` makes calls, one module a noun; `Client` and `AsyncClient` carry them out, both by
the rules of `Attempts` below.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, NamedTuple, Protocol, TypeVar, overload
from urllib.parse import quote, urlencode

import msgspec

from goqueue.client.errors import NobodyAnswers, NotTrusted, Refused, UnreadableReply, refusal
from goqueue.model.errors import (
    CoordinatorLoading,
    GoQueueError,
    Invalid,
    NodeUnreachable,
    NoLeader,
    NotController,
    NotCoordinator,
    NotLeader,
)

T = TypeVar("T")

JSON = "application/json"
BYTES = "application/octet-stream"
_PAUSE_FIRST_S = 0.05
_PAUSE_MAX_S = 1.0
_HELD_NS = 1_000_000_000
"""Whoever hangs up sooner has not held a call: it may be another door, that understands none."""
_ELSEWHERE = 300
_TOO_MANY = 429
_UNAVAILABLE = 503
_UNDONE = frozenset(
    error.code
    for error in (NoLeader, NotLeader, NotCoordinator, CoordinatorLoading, NotController, NodeUnreachable)
)
"""What nodes say that would have passed a request on, and have not."""
_making_decoders = Lock()


class ReplyHeaders(Protocol):
    """Headers by name, in any letter case."""

    def __getitem__(self, name: str, /) -> str: ...

    @overload
    def get(self, name: str, /) -> str | None: ...

    @overload
    def get(self, name: str, default: str, /) -> str: ...


class Reply(NamedTuple):
    """What a node has answered."""

    status: int
    headers: ReplyHeaders
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """One request and the way to read its reply."""

    method: str
    path: str
    decode: Callable[[Reply], T]
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    is_repeatable: bool = True
    """Whether it may reach a node twice: else it is not sent again when its reply was lost."""
    accepts: tuple[int, ...] = ()
    """Statuses of 300 or more that `decode` understands."""
    wait_ms: int = 0
    """For so long a node may hold it before it replies."""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.body is None else {"content-type": self.content_type}

    def accepted(self, reply: Reply) -> bool:
        """Whether it is a yes. A node never points elsewhere: who does has done nothing of what was asked."""
        return reply.status < _ELSEWHERE or reply.status in self.accepts

    def read(self, reply: Reply) -> T:
        """What a reply that was accepted says."""
        try:
            return self.decode(reply)
        except (GoQueueError, Refused):
            raise
        except (msgspec.MsgspecError, ValueError, LookupError) as error:
            # Some of what a reply holds is read by hand: headers, base64, how many results there are.
            raise UnreadableReply(
                f"the answer to {self.method} {self.path} is not a broker's: {error or type(error).__name__}"
            ) from error


def path(*parts: str | int) -> str:
    """A path of names, each of which may hold anything; but one that is empty would be another path."""
    if "" in parts:
        raise Invalid("a name is empty")
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def json_of(kind: type[T]) -> Callable[[Reply], T]:
    """Reads a JSON body of that type; fields that are unknown are left out."""
    decoder = _decoder_of(kind)
    return lambda reply: decoder.decode(reply.body)


def _decoder_of(kind: type[T]) -> msgspec.json.Decoder[T]:
    # What msgspec notes of a type when it first meets it is half made for a while: another thread that meets
    # the type then takes the process down.
    with _making_decoders:
        return msgspec.json.Decoder(kind)


def body_of(**fields: object) -> bytes:
    """A JSON object of the fields that are not None."""
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})


def query_of(**fields: str | int | None) -> dict[str, str | int]:
    return {name: value for name, value in fields.items() if value is not None}


class Attempts:
    """When a call that failed is tried again, and what its caller hears when it is not.

    The time for that runs from the first attempt that failed. It runs anew when a node had held the call for
    a while, as it holds a poll: that node was there until now.
    """

    def __init__(self, call: Call[T], *, where: str, retry_for_ms: int, nodes: int = 1) -> None:
        """`nodes`: so many there are. Each is tried once, however short the time, where nobody listens."""
        self._is_repeatable = call.is_repeatable
        self._may_be_held = call.wait_ms > 0
        self._where = where
        self._retry_for_ns = retry_for_ms * 1_000_000
        self._untried = nodes - 1
        self._began_ns = 0
        self._failing_since_ns: int | None = None
        self._pause_s = 0.0

    def begin(self, now_ns: int) -> None:
        """An attempt is made."""
        self._began_ns = now_ns

    def refused(self, reply: Reply, *, now_ns: int) -> float:
        """Seconds to wait before the next attempt; raises the node's no when there is to be none."""
        refused = refusal(reply.status, reply.body, reply.headers.get("retry-after"))
        # A node that is too busy has done nothing, nor has one that does not lead. One that could not finish
        # may have done all of it.
        is_undone = self._is_repeatable or refused.code in _UNDONE
        is_later = reply.status == _TOO_MANY or (reply.status == _UNAVAILABLE and is_undone)
        later_s = refused.retry_after_s or 0.0
        # Who is told to come when the time is over need not wait for that.
        if self._is_over(now_ns, was_there=True, later_s=later_s) or not is_later:
            raise refused
        return max(self._next_pause(), later_s)

    def broken(self, problem: Exception, *, was_sent: bool, now_ns: int) -> float:
        """The same for a connection that broke, before or after the request had left."""
        was_there = was_sent and not isinstance(problem, TimeoutError)
        if self._untried > 0 and not was_sent and not isinstance(problem, TimeoutError):
            self._untried -= 1
            return 0.0
        if isinstance(problem, ssl.SSLCertVerificationError):
            # Whoever it is will not become another by waiting.
            told = f"who answers at {self._where} is not trusted ({problem})"
            raise NotTrusted(f"{told}: name who vouches for it by a CA file") from problem
        if self._is_over(now_ns, was_there=was_there) or (was_sent and not self._is_repeatable):
            raise self._nobody(problem, was_sent=was_sent) from problem
        return self._next_pause()

    def _is_over(self, now_ns: int, *, was_there: bool, later_s: float = 0.0) -> bool:
        if was_there and self._may_be_held and now_ns - self._began_ns >= _HELD_NS:
            self._failing_since_ns = now_ns
        elif self._failing_since_ns is None:
            self._failing_since_ns = self._began_ns
        return now_ns + later_s * 1e9 >= self._failing_since_ns + self._retry_for_ns

    def _next_pause(self) -> float:
        self._pause_s = min(self._pause_s * 2 or _PAUSE_FIRST_S, _PAUSE_MAX_S)
        return self._pause_s

    def _nobody(self, problem: Exception, *, was_sent: bool) -> NobodyAnswers:
        reason = str(problem) or type(problem).__name__
        advice = (
            "whether it was carried out is not known"
            if was_sent and not self._is_repeatable
            else "is the HTTP door of a broker there?"
        )
        return NobodyAnswers(f"no node answers at {self._where} ({reason}): {advice}")
