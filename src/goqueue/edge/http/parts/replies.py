"""How replies are written, whatever the route."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from litestar import MediaType, Response, route
from litestar.handlers import HTTPRouteHandler
from litestar.serialization import default_serializer
from litestar.types import Send, Serializer

from goqueue.edge.http.transport.shares import SHARE_BYTES, send_body

T = TypeVar("T")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""In the order in which they are named."""


class Line(Response[T]):
    """A reply that ends its JSON with a new line, so that a terminal's prompt starts on its own."""

    def render(self, content: object, media_type: str, enc_hook: Serializer = default_serializer) -> bytes:
        rendered = super().render(content, media_type, enc_hook)
        return rendered + b"\n" if media_type == MediaType.JSON else rendered


def options_of(routes: Sequence[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """OPTIONS for paths with several methods, of which Litestar by itself would name only the first."""
    methods: dict[str, set[str]] = {}
    for handler in routes:
        for path in handler.paths:
            methods.setdefault(path, set()).update(map(str, handler.http_methods))
    return [
        _options_route(path, sorted(found, key=_METHODS.index))
        for path, found in methods.items()
        if len(found) > 1
    ]


def _options_route(path: str, methods: Sequence[str]) -> HTTPRouteHandler:
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
