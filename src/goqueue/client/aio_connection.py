"""Connections to nodes on an asyncio loop, by aiohttp: kept, shared, and made again when they break."""

import asyncio
import time
from collections.abc import Sequence
from typing import TypeVar

import aiohttp
from yarl import URL

from goqueue.client.addresses import Address
from goqueue.client.call import Attempts, Call, Reply
from goqueue.client.connection import key_headers
from goqueue.client.leaders import HEADER, Leaders
from goqueue.client.tls import NO_MORE_THAN_USUAL, Tls, Trust

T = TypeVar("T")


class _LineLost(aiohttp.ClientConnectionError):
    """A connection that broke when a request was under way."""


class AsyncClient:
    """Requests to whichever of the nodes answers; any number at a time."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        timeout_ms: int,
        retry_for_ms: int,
        api_key: str | None,
        trust: Trust = NO_MORE_THAN_USUAL,
    ) -> None:
        self.addresses = tuple(addresses)
        self._timeout_ms = timeout_ms
        self._retry_for_ms = retry_for_ms
        self._headers = key_headers(api_key)
        self._leaders = Leaders(self.addresses)
        self._tls = Tls(self.addresses, trust)
        self._turn = 0
        self._session: aiohttp.ClientSession | None = None

    async def carry(self, call: Call[T]) -> T:
        """What a call gives."""
        attempts = Attempts(
            call,
            where=", ".join(map(str, self.addresses)),
            retry_for_ms=self._retry_for_ms,
            nodes=len(self.addresses),
        )
        while True:
            attempts.begin(time.monotonic_ns())
            turn = self._turn
            try:
                at = self._leaders.of(call.path) or self.addresses[turn % len(self.addresses)]
                reply = await self._ask(call, at)
            except (aiohttp.ClientError, OSError) as error:
                # A connection that was never made has carried nothing.
                was_sent = not isinstance(
                    error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
                )
                pause_s = attempts.broken(error, was_sent=was_sent, now_ns=time.monotonic_ns())
            else:
                self._leaders.learn(call.path, reply.headers.get(HEADER))
                if call.accepted(reply):
                    return call.read(reply)
                pause_s = attempts.refused(reply, now_ns=time.monotonic_ns())
            self._leaders.forget(call.path)
            # Of many calls that find a node gone, one moves all of them on.
            self._turn = turn + 1 if self._turn == turn else self._turn
            await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Hang up. The next request connects again."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, call: Call[T], address: Address) -> Reply:
        if self._session is None:
            # Waiting polls hold a connection each; how many there are is the caller's business.
            connector = aiohttp.TCPConnector(limit=0, ssl=self._tls.context or True)
            self._session = aiohttp.ClientSession(connector=connector)
        timeout_s = self._timeout_ms / 1_000
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=timeout_s, sock_read=timeout_s + call.wait_ms / 1_000
        )
        async with self._session.request(
            call.method,
            URL(f"{address.url}{call.target}", encoded=True),
            data=call.body,
            headers={**self._headers, **call.headers},
            timeout=timeout,
            allow_redirects=False,
            middlewares=() if call.is_repeatable else (_sent_once,),
        ) as response:
            return Reply(response.status, response.headers, await response.read())


async def _sent_once(
    request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """A lost reply gets a name that aiohttp does not know: what that takes for idempotent it sends again."""
    try:
        return await send(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise  # nothing was sent
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _LineLost(str(error) or type(error).__name__) from error
