"""The one table from errors of the house to HTTP status codes, and the body every error has.

Whatever goes wrong, the client reads `{"error": text, "status": number, "code": word}`: `code` is
for programs and stable, `error` is for people. A bug of ours is a 500 whose body says nothing of its
inside; the log has the story.
"""

import logging
from http import HTTPStatus

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException, InternalServerException
from litestar.types import ExceptionHandlersMap, Scope

from goqueue.edge.http.transport.caller import caller_of
from goqueue.edge.http.transport.request_ids import request_id_of
from goqueue.edge.http.transport.slashes import shown_path
from goqueue.model.errors import (
    BackupExists,
    BackupUnderWay,
    Busy,
    Corrupt,
    Denied,
    Fenced,
    GoQueueError,
    GroupNotEmpty,
    GroupSubscribed,
    IncompatibleSchema,
    InconsistentProtocol,
    Invalid,
    InvalidCompatibility,
    InvalidRegistryMode,
    InvalidSchema,
    InvalidSchemaVersion,
    InvalidSubject,
    KeyExists,
    MessageTooLarge,
    NotAuthenticated,
    NotFound,
    NotSoftDeleted,
    OutOfSequence,
    RateExceeded,
    ReassignmentInProgress,
    RegistryModeNotFound,
    RegistryReadOnly,
    RegistrySettingNotFound,
    RequestTooLarge,
    RestoreConflict,
    ScheduleExists,
    SchemaNotFound,
    SchemaReferenced,
    SchemaVersionNotFound,
    SchemaVersionSoftDeleted,
    StorageFull,
    StorageQuotaExceeded,
    SubjectNotFound,
    SubjectSoftDeleted,
    TenantExists,
    TenantNotEmpty,
    TopicExists,
    Unavailable,
    UnknownMember,
    UnsupportedMediaType,
    UserExists,
    VersionNotSoftDeleted,
)

logger = logging.getLogger("goqueue.edge.http")

STATUS_OF: dict[type[GoQueueError], HTTPStatus] = {
    Invalid: HTTPStatus.BAD_REQUEST,
    MessageTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RequestTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Denied: HTTPStatus.FORBIDDEN,
    NotAuthenticated: HTTPStatus.UNAUTHORIZED,
    UserExists: HTTPStatus.CONFLICT,
    KeyExists: HTTPStatus.CONFLICT,
    NotFound: HTTPStatus.NOT_FOUND,
    Fenced: HTTPStatus.CONFLICT,
    TopicExists: HTTPStatus.CONFLICT,
    ScheduleExists: HTTPStatus.CONFLICT,
    BackupExists: HTTPStatus.CONFLICT,
    BackupUnderWay: HTTPStatus.CONFLICT,
    RestoreConflict: HTTPStatus.CONFLICT,
    ReassignmentInProgress: HTTPStatus.CONFLICT,
    GroupNotEmpty: HTTPStatus.CONFLICT,
    GroupSubscribed: HTTPStatus.CONFLICT,
    InconsistentProtocol: HTTPStatus.CONFLICT,
    UnknownMember: HTTPStatus.NOT_FOUND,
    InvalidSchema: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidSubject: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidSchemaVersion: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidCompatibility: HTTPStatus.UNPROCESSABLE_ENTITY,
    InvalidRegistryMode: HTTPStatus.UNPROCESSABLE_ENTITY,
    RegistryReadOnly: HTTPStatus.UNPROCESSABLE_ENTITY,
    SchemaReferenced: HTTPStatus.UNPROCESSABLE_ENTITY,
    IncompatibleSchema: HTTPStatus.CONFLICT,
    NotSoftDeleted: HTTPStatus.NOT_FOUND,
    OutOfSequence: HTTPStatus.BAD_REQUEST,
    Busy: HTTPStatus.TOO_MANY_REQUESTS,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageFull: HTTPStatus.INSUFFICIENT_STORAGE,
    StorageQuotaExceeded: HTTPStatus.INSUFFICIENT_STORAGE,
    TenantExists: HTTPStatus.CONFLICT,
    TenantNotEmpty: HTTPStatus.CONFLICT,
    Corrupt: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""An error stands for itself and for those below it in the tree, unless they have a line of their own."""

REGISTRY_CODE_OF: dict[type[GoQueueError], int] = {
    SubjectNotFound: 40401,
    SchemaVersionNotFound: 40402,
    SchemaNotFound: 40403,
    SubjectSoftDeleted: 40404,
    NotSoftDeleted: 40405,
    SchemaVersionSoftDeleted: 40406,
    VersionNotSoftDeleted: 40407,
    RegistrySettingNotFound: 40408,
    RegistryModeNotFound: 40409,
    IncompatibleSchema: 409,
    InvalidSchema: 42201,
    InvalidSchemaVersion: 42202,
    InvalidCompatibility: 42203,
    InvalidRegistryMode: 42204,
    RegistryReadOnly: 42205,
    SchemaReferenced: 42206,
    InvalidSubject: 42208,
}
"""The numbers by which clients of Confluent's registry know these errors."""

_CODE_OF_STATUS = {
    400: Invalid.code,
    404: "no_such_route",
    405: "method_not_allowed",
    413: RequestTooLarge.code,
}
_HANG_UP = {"connection": "close"}
"""What is too large is not read to its end, so the connection cannot be used again."""
_RETRY_LATER = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}


class ErrorBody(msgspec.Struct, omit_defaults=True):
    """What every error looks like."""

    error: str
    status: int
    code: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    error_code: int | None = None
    message: str | None = None
    retry_after_ms: int | None = None


INTERNAL = ErrorBody("internal error; the log of the server has the story", 500, "internal")


def status_of(error: type[GoQueueError]) -> HTTPStatus:
    """The status of an error: its own line in the table, or its nearest ancestor's."""
    return next(STATUS_OF[ancestor] for ancestor in error.__mro__ if ancestor in STATUS_OF)


def body_of(error: GoQueueError) -> ErrorBody:
    body = ErrorBody(str(error), status_of(type(error)), error.code)
    if isinstance(error, Corrupt):
        body.topic, body.partition, body.offset = error.topic, error.partition, error.offset
    if registry_code := REGISTRY_CODE_OF.get(type(error)):
        body.error_code, body.message = registry_code, str(error)
    if isinstance(error, RateExceeded):
        body.retry_after_ms = error.retry_after_ms
    return body


def headers_of(body: ErrorBody) -> dict[str, str]:
    """Headers that an error's status asks for."""
    if body.code == RequestTooLarge.code:
        return _HANG_UP
    if body.status not in _RETRY_LATER:
        return {}
    return {"retry-after": str(-(-(body.retry_after_ms or 1) // 1_000))}  # in whole seconds, and never 0


def note_failure(scope: Scope, error: Exception) -> None:
    """Write the story of an error that should not have happened, for the people who run the server."""
    assert scope["type"] == ScopeType.HTTP
    # Where the disk has spoilt something the text says all; a bug of ours needs its traceback.
    logger.error(
        "http_request_failed method=%s path=%s request_id=%s reason=%s",
        scope["method"],
        shown_path(scope["path"]),
        request_id_of(scope),
        error,
        exc_info=None if isinstance(error, GoQueueError) else error,
    )


def answer_to(scope: Scope, error: GoQueueError) -> ErrorBody:
    """What a client hears of an error of the house; those that are our fault are noted too."""
    body = body_of(error)
    if body.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        note_failure(scope, error)
    return body


def _from_the_house(request: Request[object, object, State], error: GoQueueError) -> Response[ErrorBody]:
    body = answer_to(request.scope, error)
    return Response(body, status_code=body.status, headers=headers_of(body))


def _from_litestar(request: Request[object, object, State], error: HTTPException) -> Response[ErrorBody]:
    status = error.status_code
    if status >= 500:
        if isinstance(error, InternalServerException) and caller_of(request.scope).has_hung_up:
            return Response(INTERNAL, status_code=INTERNAL.status)  # to nobody: its body will never be whole
        return _from_a_bug(request, error)
    text = (
        f"{request.method} {shown_path(request.scope['path'])}: {error.detail}"
        if status in (404, 405)
        else _detail(error)
    )
    body = ErrorBody(text, status, _CODE_OF_STATUS.get(status, Invalid.code))
    return Response(body, status_code=status, headers={**(error.headers or {}), **headers_of(body)})


def _from_a_bug(request: Request[object, object, State], error: Exception) -> Response[ErrorBody]:
    note_failure(request.scope, error)
    return Response(INTERNAL, status_code=INTERNAL.status)


def _detail(error: HTTPException) -> str:
    """What Litestar has against a request; for parameters it keeps the facts in a list of their own."""
    if not isinstance(error.extra, list):
        return error.detail
    return "; ".join(f"{fact.get('key', 'request')}: {fact.get('message', '')}" for fact in error.extra)


EXCEPTION_HANDLERS: ExceptionHandlersMap = {
    GoQueueError: _from_the_house,
    HTTPException: _from_litestar,
    Exception: _from_a_bug,
}
