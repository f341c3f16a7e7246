"""A connection to etcd: a channel to one of its members at a time, and the next one when that is silent.

All calls and streams of a node go to the same member. So whoever notices that it does not answer (a call that
ran into its deadline, or the keep-alive of the session) leaves it for all: a watch on a member that hangs
would say nothing for ever, and nobody could tell that from a quiet day.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from random import Random

import grpc

from goqueue.model.errors import StoreUnreachable
from goqueue.node.config_etcd import OPEN_ACCESS, EtcdAccess
from goqueue.node.etcd.calls import (
    AUTHENTICATE,
    Lost,
    Metadata,
    Refused,
    Request,
    Response,
    Stream,
    Streaming,
    Unary,
)
from goqueue.proto.etcd import rpc_pb2 as rpc

DEADLINE_S = 1.0
"""A call that is not answered within this is lost."""
_CONNECT_S = 0.3
"""A member that cannot be connected to within this is passed over, if there is another."""
_BACK_OFF_S = 0.1
_BACK_OFF_MAX_S = 0.5

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Connections of earlier channels to the same address are not taken over: they may be the reason to leave.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    # By its name a pause, it is how long one try to connect may take; a busy machine needs a while.
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 500),
    # etcd closes connections that ping more often than every 5 s.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    # A proxy that the environment names is for the world outside.
    ("grpc.enable_http_proxy", 0),
]


class BackOff:
    """How long to wait before the next try: longer each time, until something worked."""

    def __init__(self) -> None:
        self._wait_s = _BACK_OFF_S

    async def wait(self) -> None:
        await asyncio.sleep(self._wait_s)
        self._wait_s = min(2 * self._wait_s, _BACK_OFF_MAX_S)

    def reset(self) -> None:
        self._wait_s = _BACK_OFF_S


class Connection:
    def __init__(self, endpoints: Sequence[str], chance: Random, access: EtcdAccess = OPEN_ACCESS) -> None:
        self._access = access
        self._metadata: Metadata = ()
        """By which etcd knows who we are."""
        self._is_known = False
        """Whether that was had on the channel that there is now."""
        self._endpoints = list(endpoints)
        chance.shuffle(self._endpoints)  # so that not all nodes are at the first
        self._channel: grpc.aio.Channel | None = None
        self._connecting = asyncio.Lock()

    async def ask(self, method: Unary[Request, Response], request: Request) -> Response:
        """The answer to a call. Raises StoreUnreachable if it was not sent, else Refused or Lost."""
        begun_s = asyncio.get_running_loop().time()
        channel = await self._connected()
        left_s = begun_s + DEADLINE_S - asyncio.get_running_loop().time()
        try:
            timeout_s = max(left_s, _CONNECT_S)
            return await method(channel, request, timeout_s=timeout_s, metadata=self._metadata)
        except Lost:
            await self.leave(channel)
            raise
        except Refused as refused:
            if not refused.is_forgotten or not self._access.user:
                raise
            # Nothing was done. We say anew who we are, and ask once more.
            await self.leave(channel)
            channel = await self._connected()
            return await method(channel, request, timeout_s=DEADLINE_S, metadata=self._metadata)

    async def ask_again(self, method: Unary[Request, Response], request: Request) -> Response:
        """The same for a question that may be put twice, which is put to the next member when it was lost."""
        try:
            return await self.ask(method, request)
        except Lost:
            pass
        try:
            return await self.ask(method, request)
        except Lost as lost:
            raise StoreUnreachable(self._endpoints, str(lost)) from lost

    async def begin(self, method: Streaming[Request, Response]) -> Stream[Request, Response]:
        """Begin a stream. Raises StoreUnreachable."""
        channel = await self._connected()
        return method.begin(channel, metadata=self._metadata, leave=partial(self.leave, channel))

    async def leave(self, channel: grpc.aio.Channel) -> None:
        """Go to the next member if this is still the one talked to: its calls and streams end as lost."""
        if channel is self._channel:
            self._endpoints.append(self._endpoints.pop(0))
            await self.close()

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _connected(self) -> grpc.aio.Channel:
        """A channel that is ready: one is looked for until the deadline."""
        channel = self._channel
        if channel is not None and self._is_known and channel.get_state() is grpc.ChannelConnectivity.READY:
            return channel
        async with self._connecting:
            try:
                async with asyncio.timeout(DEADLINE_S):
                    return await self._connect()
            except TimeoutError:
                raise StoreUnreachable(self._endpoints, "no connection") from None

    async def _connect(self) -> grpc.aio.Channel:
        back_off = BackOff()
        while True:
            for _ in self._endpoints:
                if self._channel is None:
                    self._channel, self._is_known = self._opened(), not self._access.user
                channel = self._channel
                if await _is_ready(channel, _CONNECT_S if len(self._endpoints) > 1 else DEADLINE_S):
                    await self._say_who(channel)
                    return channel
                await self.leave(channel)
            await back_off.wait()

    def _opened(self) -> grpc.aio.Channel:
        """A channel to the next member. Files are read each time, so that new ones are shown."""
        access, endpoint = self._access, self._endpoints[0]
        if not access.has_tls:
            return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
        files = (access.ca_file, access.key_file, access.cert_file)
        try:
            read = [None if file is None else file.read_bytes() for file in files]
            return grpc.aio.secure_channel(endpoint, grpc.ssl_channel_credentials(*read), options=_OPTIONS)
        except OSError as error:
            raise StoreUnreachable(self._endpoints, f"{error.filename}: {error.strerror}") from error

    async def _say_who(self, channel: grpc.aio.Channel) -> None:
        """Log in, where a user is named. Raises StoreUnreachable."""
        if self._is_known:
            return
        login = rpc.AuthenticateRequest(name=self._access.user, password=self._access.password)
        try:
            known = await AUTHENTICATE(channel, login, timeout_s=DEADLINE_S)
        except (Lost, Refused) as error:
            await self.leave(channel)
            raise StoreUnreachable(self._endpoints, f"no login as {self._access.user}: {error}") from error
        self._metadata, self._is_known = (("token", known.token),), True


async def _is_ready(channel: grpc.aio.Channel, patience_s: float) -> bool:
    """Whether a member is connected to. One that refuses is told at once from one that is silent."""
    try:
        async with asyncio.timeout(patience_s):
            while (state := channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
                if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    return False
                await channel.wait_for_state_change(state)
            return True
    except TimeoutError:
        return False
