"""How replies are written, whatever the route."""

from collections.abc import Iterable
from typing import TypeVar

from litestar import MediaType, Response, route
from litestar.handlers import HTTPRouteHandler
from litestar.serialization import default_serializer
from litestar.types import Send, Serializer

from goqueue.edge.http.transport.shares import SHARE_BYTES, send_body

T = TypeVar("T")


class Line(Response[T]):
    """A reply that ends its JSON with a new line, so that a terminal's prompt starts on its own."""

    def render(self, content: object, media_type: str, enc_hook: Serializer = default_serializer) -> bytes:
        rendered = super().render(content, media_type, enc_hook)
        return rendered + b"\n" if media_type == MediaType.JSON else rendered


def options_route(path: str, *methods: str) -> HTTPRouteHandler:
    """OPTIONS for a path with several methods, of which Litestar by itself would name only the first."""

    @route(path, http_method=["OPTIONS"], status_code=204, include_in_schema=False, sync_to_thread=False)
    def give_options() -> Response[None]:
        return Response(None, status_code=204, headers={"allow": ", ".join([*methods, "OPTIONS"])})

    return give_options


async def send_reply(send: Send, status: int, headers: Iterable[tuple[bytes, bytes]], content: bytes) -> None:
    """A whole reply, without the framework; a large one by shares."""
    headers = [*headers, (b"content-length", b"%d" % len(content))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if len(content) <= SHARE_BYTES:
        await send({"type": "http.response.body", "body": content, "more_body": False})
    else:
        await send_body(send, [content])
