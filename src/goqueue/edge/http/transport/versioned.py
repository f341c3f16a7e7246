"""The API under /v1, which is the API at the root: each route is known to the router once.

To have them registered a second time under another name takes a sixth of a node's start and megabytes.
"""

from collections.abc import Awaitable, Iterable
from typing import cast

from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

_ROOT = "/v1"


class Versioned:
    """Stands before an app and says of paths under /v1 that this is where they begin.

    Routes that are the node's own, and no part of the API, are not served there.
    """

    def __init__(self, app: ASGIApp, root_only: Iterable[HTTPRouteHandler]) -> None:
        self._app = app
        self._root_only = frozenset(_first_part(path) for route in root_only for path in route.paths)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == ScopeType.HTTP:
            path = scope["path"]
            if path.startswith(f"{_ROOT}/") and _first_part(path.removeprefix(_ROOT)) not in self._root_only:
                scope = cast(Scope, {**scope, "root_path": _ROOT})
        return self._app(scope, receive, send)


def _first_part(path: str) -> str:
    return path.split("/", 2)[1]
