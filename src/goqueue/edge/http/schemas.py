"""The schema registry over HTTP: Confluent's API under /schemas, and what GoQueue's older clients use.

A client of Confluent's API takes `http://host:8080/schemas` as its address: subjects, config, mode and
compatibility lie there, and what it calls /schemas/ids lies under /schemas/schemas/ids.
"""

from typing import Annotated

import msgspec
from litestar import delete, get, post, put
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.schemas import (
    delete_schema_version,
    delete_subject,
    register_schema,
    set_compatibility,
    set_registry_mode,
)
from goqueue.core.schemas.registry import Latest
from goqueue.core.schemas.settings import GLOBAL
from goqueue.edge.http.decoding import decode
from goqueue.edge.http.openapi import errors, takes
from goqueue.edge.http.replies import options_route
from goqueue.edge.http.schema_bodies import (
    CompatibilityBody,
    FitReply,
    LevelReply,
    ModeBody,
    ModeReply,
    PlaceBody,
    RegisteredBody,
    RegistryStats,
    SchemaBody,
    SchemaTextBody,
    SchemaVersionBody,
    stats_body,
    text_body,
    version_body,
)
from goqueue.model.errors import Invalid, InvalidSchemaVersion
from goqueue.model.schemas import Compatibility, RegistryMode, SchemaKind, SchemaValidation

_schema_decoder = msgspec.json.Decoder(SchemaBody)
_level_decoder = msgspec.json.Decoder(CompatibilityBody)
_mode_decoder = msgspec.json.Decoder(ModeBody)
_TAGS = ["schemas"]
_INT31_MAX = 2**31 - 1

_Subject = Annotated[str, PathParameter(description="The subject's name, such as orders-value.")]
_Version = Annotated[
    str,
    PathParameter(
        description="A number from 1 on, or latest.", schema_extra={"pattern": "^([1-9][0-9]{0,8}|latest)$"}
    ),
]
_Id = Annotated[int, PathParameter(ge=1, le=_INT31_MAX, description="The schema's id.")]
_FLAG_WORDS = {"enum": ["true", "false", "True", "False"]}
_Flag = Annotated[str | None, QueryParameter(schema_extra=_FLAG_WORDS)]
_WithDefault = Annotated[
    str | None,
    QueryParameter(
        name="defaultToGlobal",
        schema_extra=_FLAG_WORDS,
        description="Answer with the one for all if need be.",
    ),
]
_Form = Annotated[
    str | None,
    QueryParameter(name="format", description="serialized: a Protobuf schema as its descriptor in base64."),
]


def _is_set(flag: str | None) -> bool:
    if flag is None or flag in ("false", "False"):
        return False
    if flag in ("true", "True"):
        return True
    raise Invalid(f"{flag!r} is neither true nor false")


def _version(text: str) -> int | Latest:
    if text in ("latest", "-1"):
        return "latest"
    if not text.isdecimal() or not 1 <= int(text) <= _INT31_MAX:
        raise InvalidSchemaVersion(f"{text!r} is not a version: they count from 1, and the last is latest")
    return int(text)


@get("/schemas/subjects", operation_id="listSubjects", summary="Names of all subjects", tags=_TAGS,
     responses=errors(400))  # fmt: skip
async def list_subjects_route(
    broker: NamedDependency[Broker],
    prefix: Annotated[str | None, QueryParameter(name="subjectPrefix")] = None,
    deleted: _Flag = None,
) -> list[str]:
    return broker.registry.subjects(prefix=prefix or "", with_deleted=_is_set(deleted))


@post(
    "/schemas/subjects/{subject:str}",
    status_code=200,
    operation_id="findSchema",
    summary="The version of a subject that says the same as a schema",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 404, 413, 422),
)
async def find_schema_route(
    broker: NamedDependency[Broker],
    subject: _Subject,
    body: RawBody,
    deleted: _Flag = None,
    form: _Form = None,
) -> SchemaVersionBody:
    schema = decode(_schema_decoder, body).understood()
    found = broker.registry.find(subject, schema, with_deleted=_is_set(deleted))
    return version_body(broker.registry, found, form)


@delete(
    "/schemas/subjects/{subject:str}",
    status_code=200,
    operation_id="deleteSubject",
    summary="Delete all versions of a subject; for good only what is deleted already",
    tags=_TAGS,
    responses=errors(400, 404, 422, 503, 507),
)
async def delete_subject_route(
    broker: NamedDependency[Broker], subject: _Subject, permanent: _Flag = None
) -> list[int]:
    return await delete_subject(broker, subject, is_permanent=_is_set(permanent))


@post(
    "/schemas/subjects/{subject:str}/versions",
    status_code=200,
    operation_id="registerSchema",
    summary="Register a schema as the next version of a subject, unless it is registered there",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 409, 413, 422, 503, 507),
)
async def register_schema_route(
    broker: NamedDependency[Broker], subject: _Subject, body: RawBody
) -> RegisteredBody:
    request = decode(_schema_decoder, body)
    place = await register_schema(
        broker, subject, request.understood(), schema_id=request.id, version=request.version
    )
    return RegisteredBody(place.schema_id, place.version, place.subject)


@get(
    "/schemas/subjects/{subject:str}/versions",
    operation_id="listSchemaVersions",
    summary="The numbers of a subject's versions",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def list_versions_route(
    broker: NamedDependency[Broker], subject: _Subject, deleted: _Flag = None
) -> list[int]:
    return broker.registry.versions(subject, with_deleted=_is_set(deleted))


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}",
    operation_id="getSchemaVersion",
    summary="One version of a subject",
    tags=_TAGS,
    responses=errors(400, 404, 422),
)
async def get_version_route(
    broker: NamedDependency[Broker],
    subject: _Subject,
    version: _Version,
    deleted: _Flag = None,
    form: _Form = None,
) -> SchemaVersionBody:
    found = broker.registry.version(subject, _version(version), with_deleted=_is_set(deleted))
    return version_body(broker.registry, found, form)


@delete(
    "/schemas/subjects/{subject:str}/versions/{version:str}",
    status_code=200,
    operation_id="deleteSchemaVersion",
    summary="Delete a version; for good only one that is deleted already",
    tags=_TAGS,
    responses=errors(400, 404, 422, 503, 507),
)
async def delete_version_route(
    broker: NamedDependency[Broker], subject: _Subject, version: _Version, permanent: _Flag = None
) -> int:
    return await delete_schema_version(broker, subject, _version(version), is_permanent=_is_set(permanent))


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}/schema",
    operation_id="getSchemaText",
    summary="The text of a version alone",
    tags=_TAGS,
    responses=errors(400, 404, 422),
    media_type="application/json",
)
async def get_version_text_route(
    broker: NamedDependency[Broker], subject: _Subject, version: _Version, deleted: _Flag = None
) -> str:
    found = broker.registry.version(subject, _version(version), with_deleted=_is_set(deleted))
    return found.schema.text


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}/referencedby",
    operation_id="listReferencing",
    summary="Ids of the schemas that are built on a version",
    tags=_TAGS,
    responses=errors(400, 404, 422),
)
async def referenced_by_route(
    broker: NamedDependency[Broker], subject: _Subject, version: _Version
) -> list[int]:
    found = broker.registry.version(subject, _version(version), with_deleted=True)
    return broker.registry.referenced_by(subject, found.version)


def _by_id(path: str, operation_id: str) -> HTTPRouteHandler:
    @get(
        path, operation_id=operation_id, summary="A schema by its id", tags=_TAGS, responses=errors(400, 404)
    )
    async def get_schema_route(
        broker: NamedDependency[Broker], schema_id: _Id, form: _Form = None
    ) -> SchemaTextBody:
        return text_body(broker.registry, schema_id, form)

    return get_schema_route


get_schema_route = _by_id("/schemas/schemas/ids/{schema_id:int}", "getSchema")
get_schema_short_route = _by_id("/schemas/ids/{schema_id:int}", "getSchemaShort")


@get(
    "/schemas/schemas/ids/{schema_id:int}/subjects",
    operation_id="listSubjectsOfSchema",
    summary="The subjects that have a schema",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def subjects_of_schema_route(
    broker: NamedDependency[Broker], schema_id: _Id, deleted: _Flag = None
) -> list[str]:
    places = broker.registry.places(schema_id, with_deleted=_is_set(deleted))
    return sorted({place.subject for place in places})


@get(
    "/schemas/schemas/ids/{schema_id:int}/versions",
    operation_id="listVersionsOfSchema",
    summary="The subjects and versions under which a schema stands",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def versions_of_schema_route(
    broker: NamedDependency[Broker], schema_id: _Id, deleted: _Flag = None
) -> list[PlaceBody]:
    places = broker.registry.places(schema_id, with_deleted=_is_set(deleted))
    return [PlaceBody(place.subject, place.version) for place in places]


@get("/schemas/schemas/types", operation_id="listSchemaTypes", summary="The kinds of schemas", tags=_TAGS)
async def schema_types_route() -> list[str]:
    return [kind.value for kind in SchemaKind]


@get("/schemas/contexts", operation_id="listContexts", summary="The one context there is", tags=_TAGS)
async def contexts_route() -> list[str]:
    return ["."]


@post(
    "/schemas/compatibility/subjects/{subject:str}/versions/{version:str}",
    status_code=200,
    operation_id="testCompatibility",
    summary="Whether a schema could follow one version of a subject",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 404, 413, 422),
)
async def test_version_route(
    broker: NamedDependency[Broker],
    subject: _Subject,
    version: _Version,
    body: RawBody,
    verbose: _Flag = None,
) -> FitReply:
    schema = decode(_schema_decoder, body).understood()
    problems = broker.registry.problems(subject, schema, against=_version(version))
    return FitReply(not problems, problems if _is_set(verbose) else [])


@post(
    "/schemas/compatibility/subjects/{subject:str}/versions",
    status_code=200,
    operation_id="testCompatibilityAll",
    summary="Whether a schema could follow what a subject has, as its level asks",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 404, 413, 422),
)
async def test_versions_route(
    broker: NamedDependency[Broker], subject: _Subject, body: RawBody, verbose: _Flag = None
) -> FitReply:
    schema = decode(_schema_decoder, body).understood()
    problems = broker.registry.problems(subject, schema)
    return FitReply(not problems, problems if _is_set(verbose) else [])


@get("/schemas/config", operation_id="getCompatibility", summary="The level for all subjects", tags=_TAGS)
async def get_config_route(broker: NamedDependency[Broker]) -> LevelReply:
    return _level(broker.registry.settings.compatibility())


@put(
    "/schemas/config",
    operation_id="setCompatibility",
    summary="Set the level for all subjects",
    tags=_TAGS,
    operation_class=takes(CompatibilityBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_config_route(broker: NamedDependency[Broker], body: RawBody) -> LevelReply:
    return await _set_level(broker, GLOBAL, body)


@delete(
    "/schemas/config",
    status_code=200,
    operation_id="resetCompatibility",
    summary="Go back to BACKWARD for all subjects",
    tags=_TAGS,
    responses=errors(503, 507),
)
async def delete_config_route(broker: NamedDependency[Broker]) -> LevelReply:
    await set_compatibility(broker, GLOBAL, None)
    return _level(broker.registry.settings.compatibility())


@get(
    "/schemas/config/{subject:str}",
    operation_id="getSubjectCompatibility",
    summary="The level of a subject",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_subject_config_route(
    broker: NamedDependency[Broker],
    subject: _Subject,
    with_default: _WithDefault = None,
) -> LevelReply:
    settings = broker.registry.settings
    if _is_set(with_default):
        return _level(settings.compatibility(subject))
    return _level(settings.own_compatibility(subject))


@put(
    "/schemas/config/{subject:str}",
    operation_id="setSubjectCompatibility",
    summary="Set the level of a subject",
    tags=_TAGS,
    operation_class=takes(CompatibilityBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_subject_config_route(
    broker: NamedDependency[Broker], subject: _Subject, body: RawBody
) -> LevelReply:
    return await _set_level(broker, subject, body)


@delete(
    "/schemas/config/{subject:str}",
    status_code=200,
    operation_id="resetSubjectCompatibility",
    summary="Go back to the level for all subjects",
    tags=_TAGS,
    responses=errors(404, 503, 507),
)
async def delete_subject_config_route(broker: NamedDependency[Broker], subject: _Subject) -> LevelReply:
    await set_compatibility(broker, subject, None)
    return _level(broker.registry.settings.compatibility(subject))


@get("/schemas/mode", operation_id="getRegistryMode", summary="The mode for all subjects", tags=_TAGS)
async def get_mode_route(broker: NamedDependency[Broker]) -> ModeReply:
    return ModeReply(broker.registry.settings.mode().value)


@put(
    "/schemas/mode",
    operation_id="setRegistryMode",
    summary="Set the mode for all subjects",
    tags=_TAGS,
    operation_class=takes(ModeBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_mode_route(broker: NamedDependency[Broker], body: RawBody, force: _Flag = None) -> ModeReply:
    return await _set_mode(broker, GLOBAL, body, force)


@get(
    "/schemas/mode/{subject:str}",
    operation_id="getSubjectMode",
    summary="The mode of a subject",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_subject_mode_route(
    broker: NamedDependency[Broker],
    subject: _Subject,
    with_default: _WithDefault = None,
) -> ModeReply:
    settings = broker.registry.settings
    mode = settings.mode(subject) if _is_set(with_default) else settings.own_mode(subject)
    return ModeReply(mode.value)


@put(
    "/schemas/mode/{subject:str}",
    operation_id="setSubjectMode",
    summary="Set the mode of a subject",
    tags=_TAGS,
    operation_class=takes(ModeBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_subject_mode_route(
    broker: NamedDependency[Broker], subject: _Subject, body: RawBody, force: _Flag = None
) -> ModeReply:
    return await _set_mode(broker, subject, body, force)


@delete(
    "/schemas/mode/{subject:str}",
    status_code=200,
    operation_id="resetSubjectMode",
    summary="Go back to the mode for all subjects",
    tags=_TAGS,
    responses=errors(404, 503, 507),
)
async def delete_subject_mode_route(broker: NamedDependency[Broker], subject: _Subject) -> ModeReply:
    mode = broker.registry.settings.own_mode(subject)
    await set_registry_mode(broker, subject, None)
    return ModeReply(mode.value)


@get("/schemas/stats", operation_id="getSchemaStats", summary="Numbers of the registry", tags=_TAGS)
async def schema_stats_route(broker: NamedDependency[Broker]) -> RegistryStats:
    settings = (topic.settings for topic in broker.metadata.topics.values())
    is_checking = any(each.schema_validation is not SchemaValidation.NONE for each in settings)
    return stats_body(broker.registry, is_checking=is_checking)


async def _set_level(broker: Broker, subject: str, body: bytes) -> LevelReply:
    level = decode(_level_decoder, body).level()
    await set_compatibility(broker, subject, level)
    return _level(level)


async def _set_mode(broker: Broker, subject: str, body: bytes, force: str | None) -> ModeReply:
    mode: RegistryMode = decode(_mode_decoder, body).understood()
    await set_registry_mode(broker, subject, mode, is_forced=_is_set(force))
    return ModeReply(mode.value)


def _level(level: Compatibility) -> LevelReply:
    return LevelReply(level.value, level.value)


SCHEMA_OPTIONS = [
    options_route("/schemas/subjects/{subject:str}", "POST", "DELETE"),
    options_route("/schemas/subjects/{subject:str}/versions", "GET", "POST"),
    options_route("/schemas/subjects/{subject:str}/versions/{version:str}", "GET", "DELETE"),
    options_route("/schemas/config", "GET", "PUT", "DELETE"),
    options_route("/schemas/config/{subject:str}", "GET", "PUT", "DELETE"),
    options_route("/schemas/mode", "GET", "PUT"),
    options_route("/schemas/mode/{subject:str}", "GET", "PUT", "DELETE"),
]
SCHEMA_ROUTES = [
    list_subjects_route,
    find_schema_route,
    delete_subject_route,
    register_schema_route,
    list_versions_route,
    get_version_route,
    delete_version_route,
    get_version_text_route,
    referenced_by_route,
    get_schema_route,
    get_schema_short_route,
    subjects_of_schema_route,
    versions_of_schema_route,
    schema_types_route,
    contexts_route,
    test_version_route,
    test_versions_route,
    get_config_route,
    put_config_route,
    delete_config_route,
    get_subject_config_route,
    put_subject_config_route,
    delete_subject_config_route,
    get_mode_route,
    put_mode_route,
    get_subject_mode_route,
    put_subject_mode_route,
    delete_subject_mode_route,
    schema_stats_route,
]
SCHEMA_REQUESTS = (SchemaBody, CompatibilityBody, ModeBody)
