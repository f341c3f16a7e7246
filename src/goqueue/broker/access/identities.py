"""The verbs on users and keys: create, change, disable, delete, list."""

from collections.abc import Callable, Iterable

from goqueue.broker.broker import Broker
from goqueue.core.access.identities import KEYS, USERS, key_entry, user_entry
from goqueue.model.cluster import Step
from goqueue.model.errors import ShuttingDown
from goqueue.model.identity import ApiKey, User
from goqueue.model.identity_commands import (
    AlterScram,
    ChangePassword,
    CreateKey,
    CreateUser,
    DeleteUser,
    ListKeys,
    ListUsers,
    RevokeKey,
    RotateKey,
    SetUserDisabled,
)


async def create_user(broker: Broker, command: CreateUser) -> None:
    """Have one more user; for a tenant, that must be there."""
    if command.tenant is not None:
        broker.tenants.account(command.tenant)
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: [user_entry(broker.identities.create_user(command, now_ms=now_ms))])


async def change_password(broker: Broker, command: ChangePassword) -> None:
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: [user_entry(broker.identities.change_password(command, now_ms=now_ms))])


async def alter_scram(broker: Broker, command: AlterScram) -> None:
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: [user_entry(broker.identities.alter_scram(command, now_ms=now_ms))])


async def set_user_disabled(broker: Broker, command: SetUserDisabled) -> None:
    """Let a user in no more, or again. Doors hear of it and close what it has open."""
    now_ms = broker.clock.wall_ms()

    def decide() -> list[tuple[str, bytes]]:
        changed = broker.identities.set_disabled(command.name, is_disabled=command.is_disabled, now_ms=now_ms)
        return [user_entry(changed)]

    await _make(broker, decide)


async def delete_user(broker: Broker, command: DeleteUser) -> None:
    """Forget a user, with its keys."""

    def dropped() -> list[str]:
        user = broker.identities.user(command.name)
        return [USERS + user.name, *(KEYS + key.key_id for key in broker.identities.keys_of(user.name))]

    await _make(broker, list, dropped)


async def create_key(broker: Broker, command: CreateKey) -> None:
    """Have one more key; for a tenant, that must be there."""
    if command.key.tenant is not None:
        broker.tenants.account(command.key.tenant)
    await _make(broker, lambda: [key_entry(broker.identities.create_key(command))])


async def rotate_key(broker: Broker, command: RotateKey) -> ApiKey:
    """Another key in place of one. Gives the new one as it is kept."""
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: list(map(key_entry, broker.identities.rotate_key(command, now_ms=now_ms))))
    return broker.identities.key(command.new_id)


async def revoke_key(broker: Broker, command: RevokeKey) -> None:
    await _make(broker, lambda: [key_entry(broker.identities.revoke_key(command.key_id))])


def list_users(broker: Broker, command: ListUsers) -> list[User]:
    """All users, by name."""
    return [broker.identities.users[name] for name in sorted(broker.identities.users)]


def list_keys(broker: Broker, command: ListKeys) -> list[ApiKey]:
    """All keys, the oldest first."""
    return sorted(broker.identities.keys.values(), key=lambda key: (key.created_ms, key.key_id))


async def _make(
    broker: Broker,
    decide: Callable[[], Iterable[tuple[str, bytes]]],
    dropped: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Have what was decided agreed on; returns when it is, and is seen here."""
    if not broker.is_open:
        raise ShuttingDown

    def step() -> Step[None]:
        puts, drops = dict(decide()), tuple(dropped())
        guards = tuple(sorted(map(broker.metadata.guard, (*puts, *drops))))
        return Step(None, guards, puts, drops)

    await broker.agreement.make(step)
