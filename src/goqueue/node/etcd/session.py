"""A node's session: a lease of etcd that is kept alive, and the keys that hang on it.

`is_doubtful` rests on our own clock alone and errs to the careful side: the time that an answer grants counts
from when it was asked for. It may end again: etcd that was away grants every lease its whole time anew when
it is back. Only etcd itself says that a session is lost.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from math import ceil
from typing import Protocol

from goqueue.model.cluster import ABSENT
from goqueue.model.errors import StoreUnreachable, Unknown
from goqueue.node.etcd.calls import LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_REVOKE, Lost, Refused, Stream
from goqueue.node.etcd.connection import BackOff, Connection
from goqueue.proto.etcd import rpc_pb2 as rpc

logger = logging.getLogger(__name__)


class Hold(Protocol):
    def __call__(self, lease: int, key: str, value: bytes, revision: int) -> Awaitable[int]:
        """Put a key with a lease."""


class EtcdSession:
    @classmethod
    async def opened(cls, connection: Connection, ttl_ms: int, *, hold: Hold) -> "EtcdSession":
        asked_s = asyncio.get_running_loop().time()
        try:
            granted = await connection.ask(LEASE_GRANT, rpc.LeaseGrantRequest(ttl=ceil(ttl_ms / 1_000)))
        except (Lost, Refused) as error:
            raise Unknown(str(error)) from error
        return cls(connection, granted, asked_s=asked_s, hold=hold)

    def __init__(
        self, connection: Connection, granted: rpc.LeaseGrantResponse, *, asked_s: float, hold: Hold
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._lease = granted.id
        self._ttl_s: float = granted.ttl
        self._sure_until_s = asked_s + granted.ttl
        self._hold = hold
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._keeping = self._loop.create_task(self._keep_alive())

    @property
    def is_doubtful(self) -> bool:
        return self._loop.time() >= self._sure_until_s

    @property
    def is_lost(self) -> bool:
        return self._ended.done()

    async def ended(self) -> None:
        """Return when it has ended."""
        await asyncio.shield(self._ended)

    async def hold(self, key: str, value: bytes, revision: int = ABSENT) -> int:
        return await self._hold(self._lease, key, value, revision)

    async def close(self) -> None:
        """Give it up. If etcd cannot be told, what it holds goes when its time has run out."""
        self._keeping.cancel()
        with suppress(asyncio.CancelledError):
            await self._keeping
        if not self.is_lost:
            with suppress(Lost, Refused, StoreUnreachable):
                await self._connection.ask(LEASE_REVOKE, rpc.LeaseRevokeRequest(id=self._lease))
            self._end()

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def _keep_alive(self) -> None:
        back_off = BackOff()
        while not self.is_lost:
            try:
                async with await self._connection.begin(LEASE_KEEP_ALIVE) as stream:
                    while await self._renewed(stream):
                        back_off.reset()
                        await asyncio.sleep(self._ttl_s / 3)
            except (Lost, Refused, StoreUnreachable) as error:
                logger.info("etcd_keep_alive_resumed", extra={"reason": str(error)})
                await back_off.wait()

    async def _renewed(self, stream: Stream[rpc.LeaseKeepAliveRequest, rpc.LeaseKeepAliveResponse]) -> bool:
        """Ask for the whole time anew; whether the session lives."""
        asked_s = self._loop.time()
        try:
            # A member that is silent for half the time is left: another may answer while there is time.
            async with asyncio.timeout(self._ttl_s / 2):
                await stream.write(rpc.LeaseKeepAliveRequest(id=self._lease))
                answer = await stream.read()
        except TimeoutError:
            await self._connection.leave(stream.channel)
            raise Lost("the member is silent") from None
        except Lost:
            await self._connection.leave(stream.channel)
            raise
        if answer.ttl <= 0:
            logger.error("session_lost", extra={"lease": self._lease})
            self._end()
            return False
        self._sure_until_s = asked_s + answer.ttl
        return True
