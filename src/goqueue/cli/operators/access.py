"""`goqueue-admin acl` and `goqueue-admin role`: who may do what."""

from typing import Annotated

import typer

from goqueue.cli.operators.call import connect
from goqueue.cli.parts.frame import invocation, noun
from goqueue.cli.parts.output import Columns, show_done, show_rows

acls = noun("Allow and deny: rules of who may do what with which topics, groups and the cluster.")
roles = noun("Give roles: admin, operator, developer, producer, consumer, viewer.")

Principal = Annotated[str, typer.Argument(metavar="WHO", help="A user or key, `*` for everybody, role:NAME.")]
RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="The role's name.")]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="For the things of this tenant alone; else for all.")
]
_RULES: Columns = {
    "RULE": "rule_id",
    "WHO": "principal",
    "EFFECT": "effect",
    "OPERATION": "operation",
    "TYPE": "resource_type",
    "NAME": "resource_name",
    "HOST": "host",
}
_BINDINGS: Columns = {"WHO": "principal", "ROLE": "role", "TENANT": "tenant"}


@acls.command("add")
def add(
    context: typer.Context,
    principal: Principal,
    operation: Annotated[
        str, typer.Argument(help="read, write, create, delete, alter, describe, …, or all.")
    ],
    kind: Annotated[
        str, typer.Argument(metavar="TYPE", help="topic, group, cluster, transactional_id, user or subject.")
    ],
    name: Annotated[str, typer.Argument(help="A name, or a pattern like 'orders*'.")],
    deny: Annotated[
        bool, typer.Option("--deny", help="Deny it instead; stronger than any that allows.")
    ] = False,
    host: Annotated[str | None, typer.Option("--host", help="Only for who comes from this address.")] = None,
) -> None:
    """Add a rule. It holds at once, on all nodes."""
    with connect(context) as queue:
        added = queue.access.add_rule(principal, operation, kind, name, deny=deny, host=host)
    show_done(invocation(context).output, f"rule {added.rule_id} holds from now on", added)


@acls.command("list")
def list_rules(context: typer.Context) -> None:
    """Show all rules."""
    with connect(context) as queue:
        show_rows(invocation(context).output, queue.access.rules(), _RULES)


@acls.command("remove")
def remove(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(help="As the list names it.")],
) -> None:
    """Take a rule back."""
    with connect(context) as queue:
        removed = queue.access.remove_rule(rule)
    show_done(invocation(context).output, f"rule {rule} holds no more", removed)


@roles.command("bind")
def bind(context: typer.Context, principal: Principal, role: RoleName, tenant: TenantOption = None) -> None:
    """Give somebody a role."""
    with connect(context) as queue:
        bound = queue.access.bind_role(principal, role, tenant=tenant)
    show_done(invocation(context).output, bound.message, bound)


@roles.command("list")
def list_roles(context: typer.Context) -> None:
    """Show who has which role."""
    with connect(context) as queue:
        show_rows(invocation(context).output, queue.access.roles(), _BINDINGS)


@roles.command("unbind")
def unbind(context: typer.Context, principal: Principal, role: RoleName, tenant: TenantOption = None) -> None:
    """Take a role from somebody."""
    with connect(context) as queue:
        unbound = queue.access.unbind_role(principal, role, tenant=tenant)
    show_done(invocation(context).output, unbound.message, unbound)
