"""Users and keys, as administrators see them. What opens something is shown once, when it is made."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class CreateKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key that programs show."""

    name: str
    roles: Annotated[
        list[str],
        Meta(description="admin, operator, developer, producer, consumer, viewer (or readonly)."),
    ] = []
    expires_in: Annotated[str, Meta(description="A duration like 720h; absent: it does not expire.")] = ""
    user: Annotated[str, Meta(description="Whose it is; absent: it stands for itself.")] = ""
    tenant: Annotated[str, Meta(description="Of which tenant; absent: that of its user.")] = ""


class KeyCreated(Struct, Generic[Time], frozen=True, kw_only=True, omit_defaults=True):
    id: str
    key: Annotated[str, Meta(description="The key itself. It is not shown again.")]
    prefix: str
    name: str
    roles: list[str]
    expires_at: Time | None = None


class Key(Struct, Generic[Time], frozen=True, kw_only=True):
    id: str
    name: str
    prefix: str
    roles: list[str]
    user: str
    tenant: str
    created_at: Time
    expires_at: Time | None
    last_used_at: Annotated[Time | None, Meta(description="As far as this node knows, since it has started.")]
    revoked: bool


class Keys(Struct, Generic[Time], frozen=True, kw_only=True):
    keys: list[Key[Time]]
    count: int


class KeyRevoked(Struct, frozen=True, kw_only=True):
    success: bool
    message: str
    key_id: str


class RotateKey(Struct, frozen=True, kw_only=True, omit_defaults=True):
    keep_old_for: Annotated[str, Meta(description="How long the old key is good yet: 24h.")] = "0s"


class CreateUser(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    password: Annotated[str, Meta(description="Absent: one is made, and shown once.")] = ""
    service: Annotated[bool, Meta(description="A program, not a person.")] = False
    expires_in: str = ""
    tenant: str = ""


class ChangePassword(Struct, frozen=True, kw_only=True, omit_defaults=True):
    password: str = ""
    keep_old_for: Annotated[
        str, Meta(description="How long the old one is good yet, where it is sent whole (PLAIN, Basic): 24h.")
    ] = "0s"


class UserSaved(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    password: Annotated[str, Meta(description="Where one was made. It is not shown again.")] = ""


class User(Struct, Generic[Time], frozen=True, kw_only=True):
    name: str
    service: bool
    disabled: bool
    tenant: str
    mechanisms: list[str]
    created_at: Time
    updated_at: Time
    expires_at: Time | None


class Users(Struct, Generic[Time], frozen=True, kw_only=True):
    users: list[User[Time]]
    count: int
