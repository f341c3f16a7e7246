"""The schema registry over HTTP: Confluent's API under /schemas, and what GoQueue's older clients use.

A client of Confluent's API takes `http://host:8080/schemas` as its address: subjects, config, mode and
compatibility lie there, and what it calls /schemas/ids lies under /schemas/schemas/ids.
"""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter, RawBody

from goqueue.broker.access.needs import cluster_need, subject_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.broker.schemas.verbs import (
    delete_schema_version,
    delete_subject,
    find_schema,
    register_schema,
    schema_problems,
)
from goqueue.core.schemas.registry import Registry
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.schemas.bodies import (
    FitReply,
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
from goqueue.edge.http.schemas.parameters import (
    DeletedAlone,
    DeletedOnly,
    Flag,
    FormWanted,
    GuidInPath,
    IdInPath,
    PageLength,
    PageStart,
    SubjectInPath,
    VersionInPath,
    is_set,
    page,
    version_of,
)
from goqueue.edge.http.schemas.settings import ROUTES as SETTINGS_ROUTES
from goqueue.model.access import Operation
from goqueue.model.errors import SchemaNotFound
from goqueue.model.schema_commands import (
    CompareSchema,
    DeleteSchemaVersion,
    DeleteSubject,
    FindSchema,
    RegisterSchema,
)
from goqueue.model.schemas import SchemaKind

_schema_decoder = msgspec.json.Decoder(SchemaBody)
_TAGS = ["schemas"]


@get("/schemas/subjects", operation_id="listSubjects", summary="Names of all subjects", tags=_TAGS,
     responses=errors(400))  # fmt: skip
async def list_subjects_route(
    broker: NamedDependency[Broker],
    prefix: Annotated[str | None, QueryParameter(name="subjectPrefix")] = None,
    deleted: Flag = None,
    deleted_only: DeletedOnly = None,
    deleted_alone: DeletedAlone = None,
    start: PageStart = 0,
    length: PageLength = -1,
) -> list[str]:
    registry = broker.schemas.registry
    if is_set(deleted_only) or is_set(deleted_alone):
        standing = set(registry.subjects(prefix=prefix or ""))
        names = [n for n in registry.subjects(prefix=prefix or "", with_deleted=True) if n not in standing]
    else:
        names = registry.subjects(prefix=prefix or "", with_deleted=is_set(deleted))
    return page([name for name in names if _sees(broker, name)], start, length)


@post(
    "/schemas/subjects/{subject:str}",
    status_code=200,
    operation_id="findSchema",
    summary="The version of a subject that says the same as a schema",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 404, 413, 422, 429, 503),
)
async def find_schema_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    body: RawBody,
    deleted: Flag = None,
    form: FormWanted = None,
) -> SchemaVersionBody:
    schema = await decode(_schema_decoder, body).understood(broker)
    command = FindSchema(subject=subject, schema=schema, with_deleted=is_set(deleted))
    found = await here(broker, find_schema, command)
    return await version_body(broker, found, form)


@delete(
    "/schemas/subjects/{subject:str}",
    status_code=200,
    operation_id="deleteSubject",
    summary="Delete all versions of a subject; for good only what is deleted already",
    tags=_TAGS,
    responses=errors(400, 404, 422, 503, 507),
)
async def delete_subject_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, permanent: Flag = None
) -> list[int]:
    command = DeleteSubject(subject=subject, is_permanent=is_set(permanent))
    return await at_home(broker, delete_subject, command)


@post(
    "/schemas/subjects/{subject:str}/versions",
    status_code=200,
    operation_id="registerSchema",
    summary="Register a schema as the next version of a subject, unless it is registered there",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 409, 413, 422, 429, 503, 507),
)
async def register_schema_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, body: RawBody
) -> RegisteredBody:
    request = decode(_schema_decoder, body)
    command = RegisterSchema(
        subject=subject,
        schema=await request.understood(broker),
        schema_id=request.id,
        version=request.version,
    )
    place = await at_home(broker, register_schema, command)
    schema = await broker.schemas.look_up(lambda registry: registry.schema(place.schema_id))
    return RegisteredBody(place.schema_id, place.version, place.subject, guid=str(schema.guid))


@get(
    "/schemas/subjects/{subject:str}/versions",
    operation_id="listSchemaVersions",
    summary="The numbers of a subject's versions",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def list_versions_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    deleted: Flag = None,
    deleted_only: DeletedOnly = None,
    deleted_alone: DeletedAlone = None,
    start: PageStart = 0,
    length: PageLength = -1,
) -> list[int]:
    is_alone = is_set(deleted_only) or is_set(deleted_alone)
    _demand(broker, subject)

    def look(registry: Registry) -> list[int]:
        versions = registry.versions(subject, with_deleted=is_alone or is_set(deleted))
        if is_alone:
            versions = [v for v in versions if registry.version(subject, v, with_deleted=True).is_deleted]
        return versions

    return page(await broker.schemas.look_up(look), start, length)


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}",
    operation_id="getSchemaVersion",
    summary="One version of a subject",
    tags=_TAGS,
    responses=errors(400, 404, 422),
)
async def get_version_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    version: VersionInPath,
    deleted: Flag = None,
    form: FormWanted = None,
) -> SchemaVersionBody:
    _demand(broker, subject)
    wanted = version_of(version)
    found = await broker.schemas.look_up(
        lambda registry: registry.version(subject, wanted, with_deleted=is_set(deleted))
    )
    return await version_body(broker, found, form)


@delete(
    "/schemas/subjects/{subject:str}/versions/{version:str}",
    status_code=200,
    operation_id="deleteSchemaVersion",
    summary="Delete a version; for good only one that is deleted already",
    tags=_TAGS,
    responses=errors(400, 404, 422, 503, 507),
)
async def delete_version_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, version: VersionInPath, permanent: Flag = None
) -> int:
    command = DeleteSchemaVersion(
        subject=subject, version=version_of(version), is_permanent=is_set(permanent)
    )
    return await at_home(broker, delete_schema_version, command)


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}/schema",
    operation_id="getSchemaText",
    summary="The text of a version alone",
    tags=_TAGS,
    responses=errors(400, 404, 422),
    media_type="application/json",
)
async def get_version_text_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, version: VersionInPath, deleted: Flag = None
) -> str:
    _demand(broker, subject)
    wanted = version_of(version)
    found = await broker.schemas.look_up(
        lambda registry: registry.version(subject, wanted, with_deleted=is_set(deleted))
    )
    return found.schema.text


@get(
    "/schemas/subjects/{subject:str}/versions/{version:str}/referencedby",
    operation_id="listReferencing",
    summary="Ids of the schemas that are built on a version",
    tags=_TAGS,
    responses=errors(400, 404, 422),
)
async def referenced_by_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    version: VersionInPath,
    start: PageStart = 0,
    length: PageLength = -1,
) -> list[int]:
    _demand(broker, subject)
    wanted = version_of(version)

    def look(registry: Registry) -> list[int]:
        found = registry.version(subject, wanted, with_deleted=True)
        return registry.referenced_by(subject, found.version)

    return page(await broker.schemas.look_up(look), start, length)


def _by_id(path: str, operation_id: str) -> HTTPRouteHandler:
    @get(
        path, operation_id=operation_id, summary="A schema by its id", tags=_TAGS, responses=errors(400, 404)
    )
    async def get_schema_route(
        broker: NamedDependency[Broker], schema_id: IdInPath, form: FormWanted = None
    ) -> SchemaTextBody:
        await _demand_id(broker, schema_id)
        return await text_body(broker, schema_id, form)

    return get_schema_route


get_schema_route = _by_id("/schemas/schemas/ids/{schema_id:int}", "getSchema")
get_schema_short_route = _by_id("/schemas/ids/{schema_id:int}", "getSchemaShort")


@get(
    "/schemas/schemas/guids/{guid:uuid}",
    operation_id="getSchemaByGuid",
    summary="A schema by its guid",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_schema_by_guid_route(
    broker: NamedDependency[Broker], guid: GuidInPath, form: FormWanted = None
) -> SchemaTextBody:
    schema_id = await broker.schemas.look_up(lambda registry: registry.id_of_guid(guid))
    await _demand_id(broker, schema_id, unseen=f"Schema {guid} not found")
    return await text_body(broker, schema_id, form)


@get(
    "/schemas/schemas/ids/{schema_id:int}/subjects",
    operation_id="listSubjectsOfSchema",
    summary="The subjects that have a schema",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def subjects_of_schema_route(
    broker: NamedDependency[Broker],
    schema_id: IdInPath,
    deleted: Flag = None,
    start: PageStart = 0,
    length: PageLength = -1,
) -> list[str]:
    await _demand_id(broker, schema_id)
    places = await broker.schemas.look_up(
        lambda registry: registry.places(schema_id, with_deleted=is_set(deleted))
    )
    subjects = {place.subject for place in places if _sees(broker, place.subject)}
    return page(sorted(subjects), start, length)


@get(
    "/schemas/schemas/ids/{schema_id:int}/versions",
    operation_id="listVersionsOfSchema",
    summary="The subjects and versions under which a schema stands",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def versions_of_schema_route(
    broker: NamedDependency[Broker],
    schema_id: IdInPath,
    deleted: Flag = None,
    start: PageStart = 0,
    length: PageLength = -1,
) -> list[PlaceBody]:
    await _demand_id(broker, schema_id)
    places = await broker.schemas.look_up(
        lambda registry: registry.places(schema_id, with_deleted=is_set(deleted))
    )
    seen = [PlaceBody(place.subject, place.version) for place in places if _sees(broker, place.subject)]
    return page(seen, start, length)


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
    responses=errors(400, 404, 413, 422, 429, 503),
)
async def test_version_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    version: VersionInPath,
    body: RawBody,
    verbose: Flag = None,
) -> FitReply:
    against = version_of(version)
    schema = await decode(_schema_decoder, body).understood(broker)
    problems = await here(
        broker, schema_problems, CompareSchema(subject=subject, schema=schema, against=against)
    )
    return FitReply(not problems, problems if is_set(verbose) else [])


@post(
    "/schemas/compatibility/subjects/{subject:str}/versions",
    status_code=200,
    operation_id="testCompatibilityAll",
    summary="Whether a schema could follow what a subject has, as its level asks",
    tags=_TAGS,
    operation_class=takes(SchemaBody),
    responses=errors(400, 404, 413, 422, 429, 503),
)
async def test_versions_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, body: RawBody, verbose: Flag = None
) -> FitReply:
    schema = await decode(_schema_decoder, body).understood(broker)
    problems = await here(broker, schema_problems, CompareSchema(subject=subject, schema=schema))
    return FitReply(not problems, problems if is_set(verbose) else [])


@get("/schemas/stats", operation_id="getSchemaStats", summary="Numbers of the registry", tags=_TAGS)
async def schema_stats_route(broker: NamedDependency[Broker]) -> RegistryStats:
    broker.warden.demand([cluster_need(Operation.DESCRIBE)])
    return await stats_body(broker)


def _demand(broker: Broker, subject: str) -> None:
    """Raises NotAllowed unless whoever asks may read a subject."""
    broker.warden.demand([subject_need(Operation.READ, subject)])


def _sees(broker: Broker, subject: str) -> bool:
    return broker.warden.lets(subject_need(Operation.READ, subject))


async def _demand_id(broker: Broker, schema_id: int, *, unseen: str = "") -> None:
    """The same for a schema: some subject that has it must be theirs to read. Else there is none."""
    places = await broker.schemas.look_up(lambda registry: registry.places(schema_id, with_deleted=True))
    if places and not any(_sees(broker, place.subject) for place in places):
        raise SchemaNotFound(unseen or f"Schema {schema_id} not found")


ROUTES = [
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
    get_schema_by_guid_route,
    subjects_of_schema_route,
    versions_of_schema_route,
    schema_types_route,
    contexts_route,
    test_version_route,
    test_versions_route,
    *SETTINGS_ROUTES,
    schema_stats_route,
]
