"""Names with a slash in a path: `a/b` comes as `a%2Fb`, which routing must not take for two parts.

The server hands paths over decoded, and the router cuts them at each slash. So a slash that was encoded goes
through the router as a character that no path has, and is one again when a route gets its parameters.
"""

from collections.abc import Awaitable
from typing import cast
from urllib.parse import unquote

from litestar import Request
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

_STAND_IN = "\ud800"
"""Half of a surrogate pair: what is decoded from UTF-8 never has it, whatever bytes a client sends."""


class EncodedSlashes:
    """Stands before an app whose routes have such names; the app calls `restore_slashes`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == ScopeType.HTTP:
            raw_path = scope.get("raw_path", b"")
            if b"%2F" in raw_path or b"%2f" in raw_path:
                parts = [
                    unquote(part).replace("/", _STAND_IN) for part in raw_path.decode("latin-1").split("/")
                ]
                scope = cast(Scope, {**scope, "path": "/".join(parts)})
        return self._app(scope, receive, send)


def shown_path(path: str) -> str:
    """A path of the router's for people to read, who know it as it was sent."""
    return path.replace(_STAND_IN, "%2F")


async def restore_slashes(request: Request[object, object, State]) -> None:
    """Give a route its parameters as the client meant them."""
    parameters = request.scope["path_params"]
    if any(isinstance(value, str) and _STAND_IN in value for value in parameters.values()):
        # Another dict: the router keeps its own for the next request to this path.
        request.scope["path_params"] = {
            name: value.replace(_STAND_IN, "/") if isinstance(value, str) else value
            for name, value in parameters.items()
        }
