"""A log line for each request, for those who ask for it: what was asked, how it ended, how long it took.

The query is left out: clients may put keys there.
"""

import logging
import time

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from goqueue.edge.http.transport.request_ids import request_id_of

logger = logging.getLogger("goqueue.edge.http")

_HUNG_UP = 499
"""No status of HTTP's own: the client was gone before there was a reply."""


class AccessLog:
    """Stands before an app and tells of each of its requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        status, size = _HUNG_UP, 0

        async def send_and_count(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message["body"])
            await send(message)

        begun_s = time.perf_counter()
        try:
            await self._app(scope, receive, send_and_count)
        finally:
            logger.info(
                "http_request method=%s path=%s status=%d ms=%s bytes=%d request_id=%s",
                scope["method"],
                scope["path"],
                status,
                round((time.perf_counter() - begun_s) * 1000, 1),
                size,
                request_id_of(scope),
            )
