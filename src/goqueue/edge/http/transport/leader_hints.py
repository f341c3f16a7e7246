"""`goqueue-leader`: where the node is that answered, when another than the one asked did.

A client may ask there next time and save a hop. Only where there are several nodes; a reply that several of
them had a part in has no such line.
"""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from goqueue.broker.forwarding.hints import open_note
from goqueue.edge.http.transport.keeper import listener_in

HEADER = b"goqueue-leader"


class LeaderHints:
    """Stands before the app of one of several nodes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        answered_by = open_note(listener_in(scope))

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and len(answered_by) == 1:
                [address] = answered_by
                message["headers"] = [*message.get("headers", ()), (HEADER, address.encode())]
            await send(message)

        await self._app(scope, receive, tell)
