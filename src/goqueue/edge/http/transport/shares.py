"""Replies are sent by shares: however much a client is to get, the loop serves others in between.

A write copies what it is given into the socket, on the loop. A large reply is therefore cut, and each share
waits until the client has taken those before it and everybody else has had a turn.
"""

import asyncio
from collections.abc import Iterable
from typing import cast

from litestar.types import Message, Send

from goqueue.model.ports import Buffer
from goqueue.model.settings import KiB

SHARE_BYTES = 256 * KiB
"""About 0.1 ms of copying."""


class Shares:
    """Carries what an app sends, large bodies by shares."""

    __slots__ = ("_send",)

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.body" and len(message["body"]) > SHARE_BYTES:
            await send_body(self._send, [message["body"]], more_body=message["more_body"])
        else:
            await self._send(message)


async def send_body(send: Send, pieces: Iterable[Buffer], *, more_body: bool = False) -> None:
    """Send a body that lies in pieces, none of which is joined or copied."""
    for piece in pieces:
        view = memoryview(piece)
        for at in range(0, len(view), SHARE_BYTES):
            # A transport takes any buffer; only the words of ASGI speak of bytes.
            share = cast(bytes, view[at : at + SHARE_BYTES])
            await send({"type": "http.response.body", "body": share, "more_body": True})
            await asyncio.sleep(0)
    if not more_body:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
