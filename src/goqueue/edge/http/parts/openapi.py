"""The OpenAPI document and the page that shows it.

The document is drawn from the routes and from the structs that are really decoded and encoded. The
API stands at the root and under /v1; the document says so once, by naming both as servers. The page
is one file without outside parts, so that it also opens on a machine without the internet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from typing import ClassVar

import msgspec
from litestar import MediaType, Response, get
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import (
    OpenAPIMediaType,
    OpenAPIType,
    Operation,
    Reference,
    RequestBody,
    Schema,
    Server,
)

import goqueue
from goqueue.edge.http.errors import ErrorBody
from goqueue.edge.http.parts.framework import MsgspecLitestar

BYTES = "application/octet-stream"
_OF_THE_PAGE = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""It is one file that asks its own broker, and stands in no frame of others."""
_COMPONENTS = "#/components/schemas/"


@dataclass
class RootOnly(Operation):
    """An operation that is not served under /v1."""

    servers: list[Server] | None = field(default_factory=lambda: [Server(url="/")])


class Taking(Operation):
    """An operation whose body is decoded by ourselves, into a struct."""

    body: ClassVar[type[msgspec.Struct]]


def takes(body: type[msgspec.Struct], *, is_required: bool = True) -> type[Operation]:
    """An operation whose body is decoded into this struct."""
    taken = body

    @dataclass
    class TakingThis(Taking):
        body = taken

        def __post_init__(self) -> None:
            reference = Reference(ref=_COMPONENTS + body.__name__)
            self.request_body = RequestBody(
                content={"application/json": OpenAPIMediaType(schema=reference)}, required=is_required
            )

    return TakingThis


@dataclass
class TakingBytes(Operation):
    """An operation whose body is no JSON."""

    def __post_init__(self) -> None:
        schema = Schema(type=OpenAPIType.STRING, content_media_type=BYTES)
        self.request_body = RequestBody(content={BYTES: OpenAPIMediaType(schema=schema)}, required=True)


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """The error replies an operation may give."""
    return {
        status: ResponseSpec(ErrorBody, generate_examples=False, description=HTTPStatus(status).phrase)
        for status in statuses
    }


def document(routes: Sequence[HTTPRouteHandler], dependencies: Sequence[str]) -> bytes:
    """The whole document as JSON.

    Drawn by an app that serves nothing: one that serves would add pages of its own, in a look of
    their own and with parts from the internet.
    """
    app = MsgspecLitestar(
        routes,
        dependencies={name: Provide(lambda: None, sync_to_thread=False) for name in dependencies},
        logging_config=None,
        openapi_config=OpenAPIConfig(
            title="GoQueue",
            version=goqueue.__version__,
            description="Topics, publish and read over HTTP. Errors are JSON: error, status, code.",
            servers=[Server(url="/"), Server(url="/v1", description="The same, under a version.")],
            render_plugins=[JsonRenderPlugin()],
        ),
    )
    drawn = app.openapi_schema.to_schema()
    _, components = msgspec.json.schema_components(_bodies_of(routes), ref_template=_COMPONENTS + "{name}")
    drawn["components"]["schemas"].update(components)
    drawn["components"]["securitySchemes"] = _LOCKS
    drawn["security"] = [{}, *({name: []} for name in _LOCKS)]
    for item in drawn["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _never_null(parameter["schema"])
            # Whoever is not known, or may not do it, hears so wherever it is.
            for status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                operation["responses"].setdefault(str(status.value), _refusal(status))
    # A body that is shared with the client is generic over how times are told, which is no part of its name.
    return msgspec.json.encode(drawn).replace(b"_str_", b"").replace(b"[str]", b"")


_LOCKS = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a token of the issuer."},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "basic": {"type": "http", "scheme": "basic", "description": "A user and its password."},
}
"""What is shown where a listener asks; where none does, nothing is."""


def _refusal(status: HTTPStatus) -> dict[str, object]:
    schema = {"$ref": _COMPONENTS + ErrorBody.__name__}
    return {"description": status.phrase, "content": {"application/json": {"schema": schema}}}


def _bodies_of(routes: Sequence[HTTPRouteHandler]) -> list[type[msgspec.Struct]]:
    """What the routes take, each once."""
    operations = [route.operation_class for route in routes]
    return list(dict.fromkeys(one.body for one in operations if issubclass(one, Taking)))


def _never_null(schema: dict[str, object]) -> dict[str, object]:
    """The schema of a parameter: `str | None` means that it may be left out, for null cannot be sent."""
    match schema.get("oneOf"):
        case [{"type": "null"}, dict() as given] | [dict() as given, {"type": "null"}]:
            return {name: value for name, value in schema.items() if name != "oneOf"} | given
    return schema


def openapi_route(draw: Callable[[], bytes]) -> HTTPRouteHandler:
    """The route that gives out a document, drawn in a thread: the loop cannot wait for so long."""

    @get("/openapi.json", include_in_schema=False, sync_to_thread=True)
    def give_document() -> Response[bytes]:
        return Response(draw(), media_type=MediaType.JSON)

    return give_document


@get("/docs", include_in_schema=False, sync_to_thread=False)
def docs_route() -> Response[bytes]:
    page = files("goqueue.edge.http").joinpath("docs.html").read_bytes()
    return Response(page, media_type=MediaType.HTML, headers={"content-security-policy": _OF_THE_PAGE})
