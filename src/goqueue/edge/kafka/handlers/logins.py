"""Logging in, and what is kept for it: SaslHandshake, SaslAuthenticate, and users' SCRAM credentials."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.errors import ErrorCode

from goqueue.broker.access.identities import alter_scram, list_users
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.edge.credentials import scram_form
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code
from goqueue.edge.kafka.once import done_to_each, each
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.errors import GoQueueError, InvalidIdentity, NotAuthenticated, UserNotFound
from goqueue.model.identity import ScramForm, ScramMechanism, User
from goqueue.model.identity_commands import AlterScram, ListUsers

if TYPE_CHECKING:
    from kio.schema.alter_user_scram_credentials.v0.request import (
        AlterUserScramCredentialsRequest,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )
    from kio.schema.describe_user_scram_credentials.v0.request import DescribeUserScramCredentialsRequest
    from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
    from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

_NUMBERS = {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
_NUMBER_OF = {mechanism: number for number, mechanism in _NUMBERS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HandshakeReply(Reply):
    error_code: ErrorCode
    mechanisms: tuple[str, ...]


async def sasl_handshake(context: Context, request: "SaslHandshakeRequest") -> HandshakeReply:
    """By which mechanism somebody will log in."""
    if context.sasl is None:
        return HandshakeReply(error_code=ErrorCode.illegal_sasl_state, mechanisms=())
    # Version 0 would have messages of the mechanism follow without requests around them. It is told of all
    # the same: older librdkafka logs in by version 1, and only where it sees the other.
    is_served = request.__version__ > 0 and context.sasl.choose(request.mechanism)
    error_code = ErrorCode.none if is_served else ErrorCode.unsupported_sasl_mechanism
    return HandshakeReply(error_code=error_code, mechanisms=context.sasl.mechanisms)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticateReply(Reply):
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    auth_bytes: bytes = b""
    session_lifetime: timedelta = timedelta()


async def sasl_authenticate(context: Context, request: "SaslAuthenticateRequest") -> AuthenticateReply:
    """One step of a login."""
    if context.sasl is None:
        return AuthenticateReply(
            error_code=ErrorCode.illegal_sasl_state, error_message="nobody logs in at this listener"
        )
    try:
        step = await context.sasl.step(bytes(request.auth_bytes))
    except NotAuthenticated as refusal:
        return AuthenticateReply(error_code=kafka_code(refusal), error_message=str(refusal))
    return AuthenticateReply(auth_bytes=step.token, session_lifetime=timedelta(milliseconds=step.session_ms))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramInfo:
    mechanism: int
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedUser:
    user: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    credential_infos: tuple[ScramInfo, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeScramReply(Reply):
    results: tuple[DescribedUser, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


async def describe_user_scram_credentials(
    context: Context, request: "DescribeUserScramCredentialsRequest"
) -> DescribeScramReply:
    """Which users have SCRAM credentials, and how strong they are."""
    try:
        users = {user.name: user for user in here(context.broker, list_users, ListUsers())}
    except GoQueueError as error:
        return DescribeScramReply(error_code=kafka_code(error), error_message=str(error))
    if request.users is None:
        return DescribeScramReply(results=tuple(_described(user) for user in users.values() if user.scram))
    names = Counter(wanted.name for wanted in request.users)
    return DescribeScramReply(
        results=await each(context, names, lambda name: _asked_for(name, users.get(name), names[name]))
    )


def _asked_for(name: str, user: User | None, count: int) -> DescribedUser:
    if count > 1:
        twice = f"user {name} is asked for twice"
        return DescribedUser(user=name, error_code=ErrorCode.duplicate_resource, error_message=twice)
    if user is None or not user.scram:
        error = UserNotFound(name)
        return DescribedUser(user=name, error_code=kafka_code(error), error_message=str(error))
    return _described(user)


def _described(user: User) -> DescribedUser:
    infos = (
        ScramInfo(mechanism=_NUMBER_OF[mechanism], iterations=form.iterations)
        for mechanism, form in sorted(user.scram.items())
    )
    return DescribedUser(user=user.name, credential_infos=tuple(infos))


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredUser:
    user: str
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterScramReply(Reply):
    results: tuple[AlteredUser, ...]


async def alter_user_scram_credentials(
    context: Context, request: "AlterUserScramCredentialsRequest"
) -> AlterScramReply:
    """Users' SCRAM credentials, put and dropped; of each user all or nothing."""
    wanted: dict[str, _Wanted] = {}
    for deletion in request.deletions:
        wanted.setdefault(deletion.name, _Wanted([], [])).deletions.append(deletion)
    for upsertion in request.upsertions:
        wanted.setdefault(upsertion.name, _Wanted([], [])).upsertions.append(upsertion)
    return AlterScramReply(
        results=await done_to_each(context, wanted, lambda name: _altered(context, name, wanted[name]))
    )


class _Wanted(NamedTuple):
    """What is asked for of one user."""

    deletions: "list[ScramCredentialDeletion]"
    upsertions: "list[ScramCredentialUpsertion]"


async def _altered(context: Context, name: str, wanted: _Wanted) -> AlteredUser:
    try:
        forms: dict[ScramMechanism, ScramForm] = {}
        dropped = [_mechanism(one.mechanism) for one in wanted.deletions]
        for one in wanted.upsertions:
            mechanism = _mechanism(one.mechanism)
            if mechanism in forms or mechanism in dropped:
                twice = f"{mechanism} of user {name} is changed twice"
                return AlteredUser(user=name, error_code=ErrorCode.duplicate_resource, error_message=twice)
            forms[mechanism] = scram_form(
                mechanism, bytes(one.salted_password), bytes(one.salt), one.iterations
            )
        command = AlterScram(name=name, forms=forms, dropped=tuple(dropped))
        await at_home(context.broker, alter_scram, command)
    except GoQueueError as error:
        return AlteredUser(user=name, error_code=kafka_code(error), error_message=str(error))
    return AlteredUser(user=name)


def _mechanism(number: int) -> ScramMechanism:
    if number not in _NUMBERS:
        raise InvalidIdentity(f"{number} is no mechanism of SCRAM that is served")
    return _NUMBERS[number]
