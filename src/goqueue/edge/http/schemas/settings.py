"""The registry's own settings over HTTP: what may follow what (config), who may write (mode), and whether
messages are checked (validation).
"""

import msgspec
from litestar import delete, get, put
from litestar.di import NamedDependency
from litestar.params import RawBody

from goqueue.broker.access.needs import subject_need
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.schemas.verbs import set_compatibility, set_registry_mode, set_validation
from goqueue.core.schemas.settings import GLOBAL
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.schemas.bodies import (
    CompatibilityBody,
    LevelReply,
    ModeBody,
    ModeReply,
    ValidationBody,
)
from goqueue.edge.http.schemas.parameters import Flag, SubjectInPath, WithDefault, is_set
from goqueue.model.access import Operation
from goqueue.model.schema_commands import SetCompatibility, SetRegistryMode, SetValidation
from goqueue.model.schemas import Compatibility, RegistryMode

_level_decoder = msgspec.json.Decoder(CompatibilityBody)
_mode_decoder = msgspec.json.Decoder(ModeBody)
_validation_decoder = msgspec.json.Decoder(ValidationBody)
_TAGS = ["schemas"]


@get("/schemas/config", operation_id="getCompatibility", summary="The level for all subjects", tags=_TAGS)
async def get_config_route(broker: NamedDependency[Broker]) -> LevelReply:
    broker.warden.demand([subject_need(Operation.READ, GLOBAL)])
    return _level(broker.schemas.registry.settings.compatibility())


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
    await at_home(broker, set_compatibility, SetCompatibility(subject=GLOBAL, level=None))
    return _level(broker.schemas.registry.settings.compatibility())


@get(
    "/schemas/config/{subject:str}",
    operation_id="getSubjectCompatibility",
    summary="The level of a subject",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_subject_config_route(
    broker: NamedDependency[Broker],
    subject: SubjectInPath,
    with_default: WithDefault = None,
) -> LevelReply:
    broker.warden.demand([subject_need(Operation.READ, subject)])
    if is_set(with_default):
        return _level(broker.schemas.registry.settings.compatibility(subject))
    return _level(await broker.schemas.look_up(lambda registry: registry.settings.own_compatibility(subject)))


@put(
    "/schemas/config/{subject:str}",
    operation_id="setSubjectCompatibility",
    summary="Set the level of a subject",
    tags=_TAGS,
    operation_class=takes(CompatibilityBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_subject_config_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, body: RawBody
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
async def delete_subject_config_route(broker: NamedDependency[Broker], subject: SubjectInPath) -> LevelReply:
    await at_home(broker, set_compatibility, SetCompatibility(subject=subject, level=None))
    return _level(broker.schemas.registry.settings.compatibility(subject))


@get(
    "/schemas/validation",
    operation_id="getValidation",
    summary="Whether messages are checked, for all subjects that do not say otherwise",
    tags=_TAGS,
)
async def get_validation_route(broker: NamedDependency[Broker]) -> ValidationBody:
    broker.warden.demand([subject_need(Operation.READ, GLOBAL)])
    return ValidationBody(broker.schemas.registry.settings.is_validating())


@put(
    "/schemas/validation",
    operation_id="setValidation",
    summary="Have messages checked or not, for all subjects that do not say otherwise",
    tags=_TAGS,
    operation_class=takes(ValidationBody),
    responses=errors(400, 413, 503, 507),
)
async def put_validation_route(broker: NamedDependency[Broker], body: RawBody) -> ValidationBody:
    return await _set_validation(broker, GLOBAL, body)


@get(
    "/schemas/validation/{subject:str}",
    operation_id="getSubjectValidation",
    summary="Whether messages are checked against the schemas of a subject",
    tags=_TAGS,
    responses=errors(400),
)
async def get_subject_validation_route(
    broker: NamedDependency[Broker], subject: SubjectInPath
) -> ValidationBody:
    broker.warden.demand([subject_need(Operation.READ, subject)])
    return ValidationBody(broker.schemas.registry.settings.is_validating(subject))


@put(
    "/schemas/validation/{subject:str}",
    operation_id="setSubjectValidation",
    summary="Have messages checked against the schemas of a subject or not",
    tags=_TAGS,
    operation_class=takes(ValidationBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_subject_validation_route(
    broker: NamedDependency[Broker], subject: SubjectInPath, body: RawBody
) -> ValidationBody:
    return await _set_validation(broker, subject, body)


@delete(
    "/schemas/validation/{subject:str}",
    status_code=200,
    operation_id="resetSubjectValidation",
    summary="Go back to what counts for all subjects",
    tags=_TAGS,
    responses=errors(400, 404, 503, 507),
)
async def delete_subject_validation_route(
    broker: NamedDependency[Broker], subject: SubjectInPath
) -> ValidationBody:
    await at_home(broker, set_validation, SetValidation(subject=subject, is_enabled=None))
    return ValidationBody(broker.schemas.registry.settings.is_validating(subject))


@get("/schemas/mode", operation_id="getRegistryMode", summary="The mode for all subjects", tags=_TAGS)
async def get_mode_route(broker: NamedDependency[Broker]) -> ModeReply:
    broker.warden.demand([subject_need(Operation.READ, GLOBAL)])
    return ModeReply(broker.schemas.registry.settings.mode().value)


@put(
    "/schemas/mode",
    operation_id="setRegistryMode",
    summary="Set the mode for all subjects",
    tags=_TAGS,
    operation_class=takes(ModeBody),
    responses=errors(400, 413, 422, 503, 507),
)
async def put_mode_route(broker: NamedDependency[Broker], body: RawBody, force: Flag = None) -> ModeReply:
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
    subject: SubjectInPath,
    with_default: WithDefault = None,
) -> ModeReply:
    broker.warden.demand([subject_need(Operation.READ, subject)])
    if is_set(with_default):
        return ModeReply(broker.schemas.registry.settings.mode(subject).value)
    mode = await broker.schemas.look_up(lambda registry: registry.settings.own_mode(subject))
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
    broker: NamedDependency[Broker], subject: SubjectInPath, body: RawBody, force: Flag = None
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
async def delete_subject_mode_route(broker: NamedDependency[Broker], subject: SubjectInPath) -> ModeReply:
    broker.warden.demand([subject_need(Operation.ALTER, subject)])
    mode = await broker.schemas.look_up(lambda registry: registry.settings.own_mode(subject))
    await at_home(broker, set_registry_mode, SetRegistryMode(subject=subject, mode=None))
    return ModeReply(mode.value)


async def _set_level(broker: Broker, subject: str, body: bytes) -> LevelReply:
    level = decode(_level_decoder, body).level()
    await at_home(broker, set_compatibility, SetCompatibility(subject=subject, level=level))
    return _level(level)


async def _set_mode(broker: Broker, subject: str, body: bytes, force: str | None) -> ModeReply:
    mode: RegistryMode = decode(_mode_decoder, body).understood()
    await at_home(
        broker, set_registry_mode, SetRegistryMode(subject=subject, mode=mode, is_forced=is_set(force))
    )
    return ModeReply(mode.value)


async def _set_validation(broker: Broker, subject: str, body: bytes) -> ValidationBody:
    wanted: ValidationBody = decode(_validation_decoder, body)
    await at_home(
        broker, set_validation, SetValidation(subject=subject, is_enabled=wanted.validation_enabled)
    )
    return wanted


def _level(level: Compatibility) -> LevelReply:
    return LevelReply(level.value, level.value)


ROUTES = [
    get_config_route,
    put_config_route,
    delete_config_route,
    get_subject_config_route,
    put_subject_config_route,
    delete_subject_config_route,
    get_validation_route,
    put_validation_route,
    get_subject_validation_route,
    put_subject_validation_route,
    delete_subject_validation_route,
    get_mode_route,
    put_mode_route,
    get_subject_mode_route,
    put_subject_mode_route,
    delete_subject_mode_route,
]
