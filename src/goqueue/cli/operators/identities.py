"""`goqueue-admin user` and `goqueue-admin key`: who is let in. What opens something is shown once."""

from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.frame import invocation, noun
from goqueue.cli.parts.output import Columns, show_done, show_rows

users = noun("Keep users, who log in with a password.")
keys = noun("Keep API keys, which programs show.")

UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as the list names it.")]
Expiry = Annotated[str | None, typer.Option("--expires-in", help="A duration like 720h; else never.")]
KeepOld = Annotated[str | None, typer.Option("--keep-old-for", help="How long the old one is good yet: 24h.")]
_USERS: Columns = {
    "NAME": "name",
    "DISABLED": "disabled",
    "SERVICE": "service",
    "TENANT": "tenant",
    "EXPIRES": "expires_at",
}
_KEYS: Columns = {
    "ID": "id",
    "NAME": "name",
    "PREFIX": "prefix",
    "USER": "user",
    "ROLES": "roles",
    "EXPIRES": "expires_at",
    "REVOKED": "revoked",
}


@users.command("create")
def create_user(
    context: typer.Context,
    name: UserName,
    service: Annotated[bool, typer.Option("--service", help="A program, not a person.")] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Whose user it is.")] = None,
    expires_in: Expiry = None,
) -> None:
    """Make a user. Its password is made, too, and shown once."""
    with connect(context) as queue:
        saved = queue.identities.create_user(name, service=service, tenant=tenant, expires_in=expires_in)
    show_done(invocation(context).output, f"user {name} has the password {saved.password}", saved)


@users.command("list")
def list_users(context: typer.Context) -> None:
    """Show all users."""
    with connect(context) as queue:
        show_rows(invocation(context).output, queue.identities.users(), _USERS)


@users.command("password")
def change_password(context: typer.Context, name: UserName, keep_old_for: KeepOld = None) -> None:
    """Give a user another password, which is made and shown once."""
    with connect(context) as queue:
        saved = queue.identities.change_password(name, keep_old_for=keep_old_for)
    show_done(invocation(context).output, f"user {name} has the password {saved.password}", saved)


@users.command("disable")
def disable_user(context: typer.Context, name: UserName) -> None:
    """Let a user in no more, and close what it has open."""
    with connect(context) as queue:
        saved = queue.identities.disable_user(name)
    show_done(invocation(context).output, f"user {name} is let in no more", saved)


@users.command("enable")
def enable_user(context: typer.Context, name: UserName) -> None:
    """Let a user in again."""
    with connect(context) as queue:
        saved = queue.identities.enable_user(name)
    show_done(invocation(context).output, f"user {name} is let in again", saved)


@users.command("delete")
def delete_user(context: typer.Context, name: UserName) -> None:
    """Forget a user, with its keys."""
    with connect(context) as queue:
        saved = queue.identities.delete_user(name)
    show_done(invocation(context).output, f"user {name} is gone, with its keys", saved)


@keys.command("create")
def create_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What people call it.")],
    roles: Annotated[list[str] | None, typer.Option("--role", help="A role it has; may be repeated.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose it is; else its own.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Of which tenant; else its user's.")] = None,
    expires_in: Expiry = None,
) -> None:
    """Make a key, which is shown once."""
    with connect(context) as queue:
        made = queue.identities.create_key(
            name, roles=roles or (), user=user, tenant=tenant, expires_in=expires_in
        )
    show_done(invocation(context).output, f"key {made.id} is {made.key}", made)


@keys.command("list")
def list_keys(context: typer.Context) -> None:
    """Show all keys, without what opens."""
    with connect(context) as queue:
        show_rows(invocation(context).output, queue.identities.keys(), _KEYS)


@keys.command("rotate")
def rotate_key(context: typer.Context, key_id: KeyId, keep_old_for: KeepOld = None) -> None:
    """Make a key in place of another."""
    with connect(context) as queue:
        made = queue.identities.rotate_key(key_id, keep_old_for=keep_old_for)
    show_done(invocation(context).output, f"key {made.id} is {made.key}", made)


@keys.command("revoke")
def revoke_key(context: typer.Context, key_id: KeyId) -> None:
    """Have a key open nothing any more, at once and on every node."""
    with connect(context) as queue:
        revoked = queue.identities.revoke_key(key_id)
    show_done(invocation(context).output, f"key {key_id} opens nothing any more", revoked)
