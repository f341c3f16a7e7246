"""The methods of etcd that we call, on a channel to one of its members, and what can come of a call.

gRPC tells of misfortune in two ways: an error, and a cancellation when the channel is closed under a call.
Both become one of two things here. `Refused`: etcd said no, and nothing was done. `Lost`: there was no
answer, and nobody knows what was done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from goqueue.proto.etcd import rpc_pb2 as rpc

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
T = TypeVar("T")
Metadata = Sequence[tuple[str, str]]
_OLD_USERS = "revision of auth store is old"
"""etcd's words for this."""

_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""With these etcd answers before it does anything. All else may have been done."""


class Lost(Exception):
    """No answer came; what was asked for may have been done."""


class Refused(Exception):
    """etcd does not do what it was asked to."""

    def __init__(self, code: grpc.StatusCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code

    @property
    def is_forgotten(self) -> bool:
        """Whether etcd does not know any more who we are: it was started anew, or its users have changed."""
        return self.code is grpc.StatusCode.UNAUTHENTICATED or _OLD_USERS in str(self)


class Unary(Generic[Request, Response]):
    """A method with one request and one response."""

    def __init__(self, path: str, request: type[Request], response: type[Response]) -> None:
        self._path = path
        self._request = request
        self._response = response

    async def __call__(
        self, channel: grpc.aio.Channel, request: Request, *, timeout_s: float, metadata: Metadata = ()
    ) -> Response:
        method = channel.unary_unary(self._path, self._request.SerializeToString, self._response.FromString)
        response: Response = await _answer(method(request, timeout=timeout_s, metadata=metadata))
        return response


class Streaming(Generic[Request, Response]):
    """A method with many requests and many responses, each going when it will."""

    def __init__(self, path: str, request: type[Request], response: type[Response]) -> None:
        self._path = path
        self._request = request
        self._response = response

    def begin(
        self, channel: grpc.aio.Channel, *, metadata: Metadata, leave: Callable[[], Awaitable[None]]
    ) -> "Stream[Request, Response]":
        method = channel.stream_stream(self._path, self._request.SerializeToString, self._response.FromString)
        return Stream(channel, method(metadata=metadata), leave)


class Stream(Generic[Request, Response]):
    """A call of such a method. Leaving the block ends it."""

    def __init__(self, channel: grpc.aio.Channel, call: Any, leave: Callable[[], Awaitable[None]]) -> None:
        """`leave` is called when etcd does not know any more who we are: only a new connection helps."""
        self.channel = channel
        self._call = call
        self._leave = leave

    async def __aenter__(self) -> "Stream[Request, Response]":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._call.cancel()

    async def write(self, request: Request) -> None:
        await self._known(_answer(self._call.write(request)))

    async def read(self) -> Response:
        response = await self._known(_answer(self._call.read()))
        if response is grpc.aio.EOF:
            raise Lost("etcd ended the stream")
        return response  # type: ignore[no-any-return]

    async def _known(self, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except Refused as refused:
            if not refused.is_forgotten:
                raise
            await self._leave()
            raise Lost(str(refused)) from refused


async def _answer(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        code, reason = error.code(), f"{error.code().name}: {error.details()}"
        if code in _REFUSALS:
            raise Refused(code, reason) from error
        raise Lost(reason) from error
    except asyncio.InvalidStateError as error:
        raise Lost(f"the stream has ended: {error}") from error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled us: the channel was closed under the call.
        raise Lost("the connection was given up") from None


RANGE = Unary("/etcdserverpb.KV/Range", rpc.RangeRequest, rpc.RangeResponse)
TXN = Unary("/etcdserverpb.KV/Txn", rpc.TxnRequest, rpc.TxnResponse)
WATCH = Streaming("/etcdserverpb.Watch/Watch", rpc.WatchRequest, rpc.WatchResponse)
LEASE_GRANT = Unary("/etcdserverpb.Lease/LeaseGrant", rpc.LeaseGrantRequest, rpc.LeaseGrantResponse)
LEASE_REVOKE = Unary("/etcdserverpb.Lease/LeaseRevoke", rpc.LeaseRevokeRequest, rpc.LeaseRevokeResponse)
LEASE_KEEP_ALIVE = Streaming(
    "/etcdserverpb.Lease/LeaseKeepAlive", rpc.LeaseKeepAliveRequest, rpc.LeaseKeepAliveResponse
)
AUTHENTICATE = Unary("/etcdserverpb.Auth/Authenticate", rpc.AuthenticateRequest, rpc.AuthenticateResponse)
STATUS = Unary("/etcdserverpb.Maintenance/Status", rpc.StatusRequest, rpc.StatusResponse)
