"""Calls about users and keys, for administrators. What opens something is told once, when it is made."""

from collections.abc import Sequence
from datetime import datetime

from goqueue.client.call import Call, body_of, json_of, path
from goqueue.wire import identities as wire
from goqueue.wire.identities import KeyRevoked, UserSaved

Key = wire.Key[datetime]
KeyCreated = wire.KeyCreated[datetime]
User = wire.User[datetime]


def create_key(
    name: str,
    *,
    roles: Sequence[str] = (),
    expires_in: str | None = None,
    user: str | None = None,
    tenant: str | None = None,
) -> Call[KeyCreated]:
    """Make a key."""
    body = body_of(name=name, roles=list(roles), expires_in=expires_in, user=user, tenant=tenant)
    return Call(method="POST", path="/admin/keys", decode=json_of(KeyCreated), body=body, is_repeatable=False)


def keys() -> Call[list[Key]]:
    """All keys, without what opens."""
    decode = json_of(wire.Keys[datetime])
    return Call(method="GET", path="/admin/keys", decode=lambda reply: decode(reply).keys)


def rotate_key(key_id: str, *, keep_old_for: str | None = None) -> Call[KeyCreated]:
    """Make a key in place of another, which is good for a while yet."""
    return Call(
        method="POST",
        path=path("admin", "keys", key_id, "rotate"),
        decode=json_of(KeyCreated),
        body=body_of(keep_old_for=keep_old_for),
        is_repeatable=False,
    )


def revoke_key(key_id: str) -> Call[KeyRevoked]:
    """Have a key open nothing any more."""
    return Call(method="DELETE", path=path("admin", "keys", key_id), decode=json_of(KeyRevoked))


def create_user(
    name: str,
    *,
    password: str | None = None,
    service: bool = False,
    expires_in: str | None = None,
    tenant: str | None = None,
) -> Call[UserSaved]:
    """Have one more user; without a password one is made."""
    body = body_of(name=name, password=password, service=service, expires_in=expires_in, tenant=tenant)
    return Call(method="POST", path="/admin/users", decode=json_of(UserSaved), body=body, is_repeatable=False)


def users() -> Call[list[User]]:
    """All users."""
    decode = json_of(wire.Users[datetime])
    return Call(method="GET", path="/admin/users", decode=lambda reply: decode(reply).users)


def change_password(
    name: str, *, password: str | None = None, keep_old_for: str | None = None
) -> Call[UserSaved]:
    """Give a user another password; without one it is made."""
    return Call(
        method="PUT",
        path=path("admin", "users", name, "password"),
        decode=json_of(UserSaved),
        body=body_of(password=password, keep_old_for=keep_old_for),
        is_repeatable=False,
    )


def disable_user(name: str) -> Call[UserSaved]:
    """Let a user in no more."""
    return _status(name, "disable")


def enable_user(name: str) -> Call[UserSaved]:
    """Let a user in again."""
    return _status(name, "enable")


def delete_user(name: str) -> Call[UserSaved]:
    """Forget a user, with its keys."""
    return Call(
        method="DELETE", path=path("admin", "users", name), decode=json_of(UserSaved), is_repeatable=False
    )


def _status(name: str, verb: str) -> Call[UserSaved]:
    return Call(method="POST", path=path("admin", "users", name, verb), decode=json_of(UserSaved))
