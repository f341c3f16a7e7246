"""What is asked of users and keys. Passwords and keys never travel: doors make of them what is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from goqueue.model.identity import ApiKey, PasswordForm, ScramForm, ScramMechanism
from goqueue.model.places import Place, Seat
from goqueue.model.tenants import TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    name: str
    password: PasswordForm | None = None
    scram: Mapping[ScramMechanism, ScramForm] = field(default_factory=dict)
    is_service: bool = False
    expires_ms: int | None = None
    tenant: TenantId | None = None

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePassword:
    """Another password. If that is asked for the one before is good for a while, where it is sent whole."""

    name: str
    password: PasswordForm
    scram: Mapping[ScramMechanism, ScramForm]
    keep_old_ms: int = 0

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterScram:
    """What Kafka's clients say of a user's SCRAM forms. A user that is not there comes into being by that."""

    name: str
    forms: Mapping[ScramMechanism, ScramForm] = field(default_factory=dict)
    dropped: tuple[ScramMechanism, ...] = ()

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUserDisabled:
    """Let a user in no more, or again. Connections that are open are closed."""

    name: str
    is_disabled: bool

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteUser:
    """Forget a user, with its keys."""

    name: str

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListUsers:
    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateKey:
    key: ApiKey

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateKey:
    """Another key in place of one, which is good for a while yet."""

    key_id: str
    new_id: str
    prefix: str
    digest: str
    keep_old_ms: int = 0

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeKey:
    key_id: str

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListKeys:
    @property
    def place(self) -> Place:
        return Seat.ANY_NODE
