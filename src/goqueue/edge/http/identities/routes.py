"""Users and keys over HTTP, for administrators: whoever has the role, or the right to run the cluster."""

from functools import partial
from typing import Annotated

import msgspec
from litestar import Request, delete, get, post, put
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import PathParameter, RawBody

from goqueue.broker.access import identities as verbs
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.core.access.identities import Identities
from goqueue.edge.authentication import Known
from goqueue.edge.credentials import (
    PASSWORD_BYTES_MAX,
    PASSWORD_CHARACTERS_MIN,
    make_key,
    make_password,
    password_form,
    scram_forms,
)
from goqueue.edge.http.parts.decoding import decode, decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.times import format_time, parse_duration_ns
from goqueue.edge.http.transport.keeper import known_in
from goqueue.model import identity_commands as commands
from goqueue.model.access import THE_CLUSTER, Operation, ResourceKind, Role
from goqueue.model.errors import InvalidIdentity, NotAllowed, NotAuthenticated
from goqueue.model.identity import ANONYMOUS, ApiKey, PasswordForm, ScramForm, ScramMechanism, User
from goqueue.model.tenants import TenantId
from goqueue.wire import identities as wire

_NS_PER_MS = 1_000_000
_TAGS = ["security"]
_REFUSALS = errors(400, 401, 403, 503)
_ONE_KEY = "/admin/keys/{key_id:str}"
_ONE_USER = "/admin/users/{name:str}"
_create_key = msgspec.json.Decoder(wire.CreateKey)
_rotate_key = msgspec.json.Decoder(wire.RotateKey)
_create_user = msgspec.json.Decoder(wire.CreateUser)
_change_password = msgspec.json.Decoder(wire.ChangePassword)
_Asked = Request[object, object, State]
_KeyId = Annotated[str, PathParameter(description="The id of a key.")]
_Name = Annotated[str, PathParameter(description="The name of a user.")]


@post(
    "/admin/keys",
    operation_id="createKey",
    summary="Make a key, which is shown once",
    tags=_TAGS,
    operation_class=takes(wire.CreateKey),
    responses=_REFUSALS,
)
async def create_key_route(
    broker: NamedDependency[Broker], body: RawBody, request: _Asked
) -> wire.KeyCreated[str]:
    _demand_administrator(broker, known_in(request.scope))
    wanted = decode(_create_key, body)
    made, now_ms = make_key(), broker.clock.wall_ms()
    key = ApiKey(
        key_id=made.key_id,
        name=wanted.name,
        prefix=made.prefix,
        digest=made.digest,
        created_ms=now_ms,
        roles=tuple(map(_role, wanted.roles)),
        user=wanted.user,
        expires_ms=_expiry(wanted.expires_in, now_ms),
        tenant=TenantId(wanted.tenant) if wanted.tenant else None,
    )
    await at_home(broker, verbs.create_key, commands.CreateKey(key=key))
    return _created(key, made.secret)


@get("/admin/keys", operation_id="listKeys", summary="All keys", tags=_TAGS, responses=errors(401, 403))
async def list_keys_route(broker: NamedDependency[Broker], request: _Asked) -> wire.Keys[str]:
    _demand_administrator(broker, known_in(request.scope))
    keys = here(broker, verbs.list_keys, commands.ListKeys())
    return wire.Keys(keys=[_shown_key(key, broker.identities) for key in keys], count=len(keys))


@delete(
    _ONE_KEY,
    operation_id="revokeKey",
    summary="Have a key open nothing any more, at once and on every node",
    status_code=200,
    tags=_TAGS,
    responses=errors(401, 403, 404, 503),
)
async def revoke_key_route(
    broker: NamedDependency[Broker], key_id: _KeyId, request: _Asked
) -> wire.KeyRevoked:
    _demand_administrator(broker, known_in(request.scope))
    await at_home(broker, verbs.revoke_key, commands.RevokeKey(key_id=key_id))
    return wire.KeyRevoked(success=True, message="key revoked", key_id=key_id)


@post(
    f"{_ONE_KEY}/rotate",
    operation_id="rotateKey",
    summary="Make a key in place of another, which is good for a while yet",
    tags=_TAGS,
    operation_class=takes(wire.RotateKey),
    responses=errors(400, 401, 403, 404, 503),
)
async def rotate_key_route(
    broker: NamedDependency[Broker], key_id: _KeyId, body: RawBody, request: _Asked
) -> wire.KeyCreated[str]:
    _demand_administrator(broker, known_in(request.scope))
    wanted = decode_if_any(_rotate_key, body) or wire.RotateKey()
    made = make_key()
    command = commands.RotateKey(
        key_id=key_id,
        new_id=made.key_id,
        prefix=made.prefix,
        digest=made.digest,
        keep_old_ms=_duration_ms(wanted.keep_old_for),
    )
    return _created(await at_home(broker, verbs.rotate_key, command), made.secret)


@post(
    "/admin/users",
    operation_id="createUser",
    summary="Have one more user",
    tags=_TAGS,
    operation_class=takes(wire.CreateUser),
    responses=errors(400, 401, 403, 404, 409, 503),
)
async def create_user_route(
    broker: NamedDependency[Broker], body: RawBody, request: _Asked
) -> wire.UserSaved:
    _demand_administrator(broker, known_in(request.scope))
    wanted = decode(_create_user, body)
    password, form, scram = await _forms(broker, wanted.password)
    command = commands.CreateUser(
        name=wanted.name,
        password=form,
        scram=scram,
        is_service=wanted.service,
        expires_ms=_expiry(wanted.expires_in, broker.clock.wall_ms()),
        tenant=TenantId(wanted.tenant) if wanted.tenant else None,
    )
    await at_home(broker, verbs.create_user, command)
    return wire.UserSaved(name=wanted.name, password="" if wanted.password else password)


@get("/admin/users", operation_id="listUsers", summary="All users", tags=_TAGS, responses=errors(401, 403))
async def list_users_route(broker: NamedDependency[Broker], request: _Asked) -> wire.Users[str]:
    _demand_administrator(broker, known_in(request.scope))
    users = here(broker, verbs.list_users, commands.ListUsers())
    return wire.Users(users=list(map(_shown_user, users)), count=len(users))


@put(
    f"{_ONE_USER}/password",
    operation_id="changePassword",
    summary="Give a user another password",
    tags=_TAGS,
    operation_class=takes(wire.ChangePassword),
    responses=errors(400, 401, 403, 404, 503),
)
async def change_password_route(
    broker: NamedDependency[Broker], name: _Name, body: RawBody, request: _Asked
) -> wire.UserSaved:
    _demand_administrator(broker, known_in(request.scope))
    wanted = decode_if_any(_change_password, body) or wire.ChangePassword()
    password, form, scram = await _forms(broker, wanted.password)
    command = commands.ChangePassword(
        name=name, password=form, scram=scram, keep_old_ms=_duration_ms(wanted.keep_old_for)
    )
    await at_home(broker, verbs.change_password, command)
    return wire.UserSaved(name=name, password="" if wanted.password else password)


@post(
    f"{_ONE_USER}/disable",
    operation_id="disableUser",
    summary="Let a user in no more, and close what it has open",
    status_code=200,
    tags=_TAGS,
    responses=errors(401, 403, 404, 503),
)
async def disable_user_route(broker: NamedDependency[Broker], name: _Name, request: _Asked) -> wire.UserSaved:
    return await _set_disabled(broker, name, request, is_disabled=True)


@post(
    f"{_ONE_USER}/enable",
    operation_id="enableUser",
    summary="Let a user in again",
    status_code=200,
    tags=_TAGS,
    responses=errors(401, 403, 404, 503),
)
async def enable_user_route(broker: NamedDependency[Broker], name: _Name, request: _Asked) -> wire.UserSaved:
    return await _set_disabled(broker, name, request, is_disabled=False)


@delete(
    _ONE_USER,
    operation_id="deleteUser",
    summary="Forget a user, with its keys",
    status_code=200,
    tags=_TAGS,
    responses=errors(401, 403, 404, 503),
)
async def delete_user_route(broker: NamedDependency[Broker], name: _Name, request: _Asked) -> wire.UserSaved:
    _demand_administrator(broker, known_in(request.scope))
    await at_home(broker, verbs.delete_user, commands.DeleteUser(name=name))
    return wire.UserSaved(name=name)


async def _set_disabled(broker: Broker, name: str, request: _Asked, *, is_disabled: bool) -> wire.UserSaved:
    _demand_administrator(broker, known_in(request.scope))
    command = commands.SetUserDisabled(name=name, is_disabled=is_disabled)
    await at_home(broker, verbs.set_user_disabled, command)
    return wire.UserSaved(name=name)


def _demand_administrator(broker: Broker, known: Known) -> None:
    """Where permissions are on the gate decides; else only the role does, and nobody has it unasked."""
    if known.principal == ANONYMOUS:
        raise NotAuthenticated("show the key of an administrator; where nobody is asked, nobody is one")
    if not broker.config.access.is_on and Role.ADMIN not in known.roles:
        raise NotAllowed(str(known.principal), Operation.ALTER, ResourceKind.CLUSTER, THE_CLUSTER)


async def _forms(broker: Broker, password: str) -> tuple[str, PasswordForm, dict[ScramMechanism, ScramForm]]:
    """The password, or one that is made now, and what is kept of it."""
    password = password or make_password()
    if len(password) < PASSWORD_CHARACTERS_MIN or len(password.encode()) > PASSWORD_BYTES_MAX:
        raise InvalidIdentity(
            f"a password has at least {PASSWORD_CHARACTERS_MIN} characters, and at most "
            f"{PASSWORD_BYTES_MAX} bytes"
        )
    form = await broker.threads.run(partial(password_form, password))
    scram = await broker.threads.run(partial(scram_forms, password))
    return password, form, dict(scram)


def _role(word: str) -> Role:
    word = Role.VIEWER if word == "readonly" else word
    if word not in set(Role):
        raise InvalidIdentity(f"{word[:60]!r} is no role; use {', '.join(Role)}")
    return Role(word)


def _duration_ms(text: str) -> int:
    duration_ms = parse_duration_ns(text) // _NS_PER_MS
    if duration_ms < 0:
        raise InvalidIdentity("a duration cannot be below 0")
    return duration_ms


def _expiry(text: str, now_ms: int) -> int | None:
    return now_ms + _duration_ms(text) if text else None


def _time(time_ms: int | None) -> str | None:
    return None if time_ms is None else format_time(time_ms)


def _created(key: ApiKey, secret: str) -> wire.KeyCreated[str]:
    return wire.KeyCreated(
        id=key.key_id,
        key=secret,
        prefix=key.prefix,
        name=key.name,
        roles=list(key.roles),
        expires_at=_time(key.expires_ms),
    )


def _shown_key(key: ApiKey, identities: Identities) -> wire.Key[str]:
    return wire.Key(
        id=key.key_id,
        name=key.name,
        prefix=key.prefix,
        roles=list(key.roles),
        user=key.user,
        tenant=identities.tenant_of(key.principal) or "",
        created_at=format_time(key.created_ms),
        expires_at=_time(key.expires_ms),
        last_used_at=_time(identities.used_ms.get(key.key_id)),
        revoked=key.is_revoked,
    )


def _shown_user(user: User) -> wire.User[str]:
    return wire.User(
        name=user.name,
        service=user.is_service,
        disabled=user.is_disabled,
        tenant=user.tenant or "",
        mechanisms=[*(["PLAIN"] if user.passwords or user.scram else []), *sorted(user.scram)],
        created_at=format_time(user.created_ms),
        updated_at=format_time(user.updated_ms),
        expires_at=_time(user.expires_ms),
    )


ROUTES = [
    create_key_route,
    list_keys_route,
    revoke_key_route,
    rotate_key_route,
    create_user_route,
    list_users_route,
    change_password_route,
    disable_user_route,
    enable_user_route,
    delete_user_route,
]
