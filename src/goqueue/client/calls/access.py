"""Calls about permissions: rules, and who has which role."""

from goqueue.client.call import Call, body_of, json_of, path
from goqueue.wire.access import Acl, AclAdded, AclList, AclRemoved, RoleBinding, RoleBindings, RoleChanged

__all__ = ["Acl", "RoleBinding"]


def add_rule(
    principal: str,
    operation: str,
    resource_type: str,
    resource_name: str,
    *,
    deny: bool = False,
    host: str | None = None,
) -> Call[AclAdded]:
    """Allow or deny somebody something; the name may be a pattern with `*` and `?`."""
    body = body_of(
        principal=principal,
        operation=operation,
        resource_type=resource_type,
        resource_name=resource_name,
        effect="deny" if deny else "allow",
        host=host,
    )
    return Call(method="POST", path="/admin/acls", decode=json_of(AclAdded), body=body)


def rules() -> Call[list[Acl]]:
    """All rules there are."""
    decode = json_of(AclList)
    return Call(method="GET", path="/admin/acls", decode=lambda reply: decode(reply).acls)


def remove_rule(rule_id: str) -> Call[AclRemoved]:
    """Take a rule back."""
    return Call(
        method="DELETE", path=path("admin", "acls", rule_id), decode=json_of(AclRemoved), is_repeatable=False
    )


def bind_role(principal: str, role: str, *, tenant: str | None = None) -> Call[RoleChanged]:
    """Give somebody a role, for everything or for one tenant's things."""
    body = body_of(principal=principal, role=role, tenant=tenant)
    return Call(method="POST", path="/admin/roles", decode=json_of(RoleChanged), body=body)


def roles() -> Call[list[RoleBinding]]:
    """Who has which role."""
    decode = json_of(RoleBindings)
    return Call(method="GET", path="/admin/roles", decode=lambda reply: decode(reply).bindings)


def unbind_role(principal: str, role: str, *, tenant: str | None = None) -> Call[RoleChanged]:
    """Take a role from somebody."""
    return Call(
        method="DELETE",
        path=path("admin", "roles", principal, role),
        query={"tenant": tenant} if tenant else {},
        decode=json_of(RoleChanged),
        is_repeatable=False,
    )
