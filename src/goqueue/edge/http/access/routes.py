"""Permissions over HTTP: rules, and who has which role. Any node takes the change."""

from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.access.verbs import (
    add_rules,
    bind_role,
    list_bindings,
    list_rules,
    remove_rules,
    unbind_role,
)
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.core.access.rule_values import rule_id
from goqueue.edge.http.access.words import binding_of, rule_of, shown_name
from goqueue.edge.http.parts.decoding import decode
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.model.access import AddRules, BindRole, ListBindings, ListRules, RemoveRules, Rule, UnbindRole
from goqueue.model.errors import RuleNotFound
from goqueue.wire import access as wire

_TAGS = ["admin"]
_acl_decoder = msgspec.json.Decoder(wire.AclBody)
_binding_decoder = msgspec.json.Decoder(wire.RoleBinding)


@post(
    "/admin/acls",
    operation_id="addAcl",
    summary="Allow or deny somebody something",
    tags=_TAGS,
    operation_class=takes(wire.AclBody),
    responses=errors(400, 403, 413, 503, 507),
)
async def add_acl_route(broker: NamedDependency[Broker], body: RawBody) -> wire.AclAdded:
    rule = rule_of(decode(_acl_decoder, body))
    await at_home(broker, add_rules, AddRules(rules=[rule]))
    record = wire.AclRecord(rule.principal, rule.kind, shown_name(rule), rule.operation, rule.is_allowed)
    return wire.AclAdded(
        success=True, message="the rule holds from now on", acl=record, rule_id=rule_id(rule)
    )


@get(
    "/admin/acls",
    operation_id="listAcls",
    summary="All rules of who may do what",
    tags=_TAGS,
    responses=errors(400, 403),
)
async def list_acls_route(broker: NamedDependency[Broker]) -> wire.AclList:
    rules = here(broker, list_rules, ListRules())
    shown = [_shown(number, rule) for number, rule in enumerate(rules)]
    return wire.AclList(shown, len(shown))


@delete(
    "/admin/acls/{rule:str}",
    status_code=200,
    operation_id="removeAcl",
    summary="Take a rule back, by its own name or by its place in the list",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def remove_acl_route(
    broker: NamedDependency[Broker],
    rule: Annotated[str, PathParameter(description="`rule_id` or `id` of a rule in the list.")],
) -> wire.AclRemoved:
    rules = here(broker, list_rules, ListRules())
    by_name = {rule_id(each): each for each in rules} | {str(n): each for n, each in enumerate(rules)}
    if rule not in by_name or not await at_home(broker, remove_rules, RemoveRules(rules=[by_name[rule]])):
        raise RuleNotFound(rule)
    return wire.AclRemoved(success=True, message="the rule holds no more", acl_id=rule)


@post(
    "/admin/roles",
    operation_id="bindRole",
    summary="Give somebody a role",
    tags=_TAGS,
    operation_class=takes(wire.RoleBinding),
    responses=errors(400, 403, 404, 413, 503, 507),
)
async def bind_role_route(broker: NamedDependency[Broker], body: RawBody) -> wire.RoleChanged:
    binding = binding_of(decode(_binding_decoder, body))
    await at_home(broker, bind_role, BindRole(binding=binding))
    return wire.RoleChanged(success=True, message=f"{binding.principal} has the role {binding.role}")


@get(
    "/admin/roles",
    operation_id="listRoles",
    summary="Who has which role",
    tags=_TAGS,
    responses=errors(400, 403),
)
async def list_roles_route(broker: NamedDependency[Broker]) -> wire.RoleBindings:
    bindings = [
        wire.RoleBinding(each.principal, each.role, each.tenant or "")
        for each in here(broker, list_bindings, ListBindings())
    ]
    return wire.RoleBindings(bindings, len(bindings))


@delete(
    "/admin/roles/{principal:str}/{role:str}",
    status_code=200,
    operation_id="unbindRole",
    summary="Take a role from somebody",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503, 507),
)
async def unbind_role_route(
    broker: NamedDependency[Broker],
    principal: Annotated[str, PathParameter(description="Who has it.")],
    role: Annotated[str, PathParameter(description="The role's name.")],
    tenant: Annotated[str | None, QueryParameter(description="Where it was given for one tenant.")] = None,
) -> wire.RoleChanged:
    binding = binding_of(wire.RoleBinding(principal, role, tenant or ""))
    await at_home(broker, unbind_role, UnbindRole(binding=binding))
    return wire.RoleChanged(success=True, message=f"{binding.principal} has the role {binding.role} no more")


def _shown(number: int, rule: Rule) -> wire.Acl:
    return wire.Acl(
        id=number,
        rule_id=rule_id(rule),
        principal=rule.principal,
        resource_type=rule.kind,
        resource_name=shown_name(rule),
        pattern_type=rule.pattern,
        operation=rule.operation,
        effect="allow" if rule.is_allowed else "deny",
        host=rule.host,
    )


ROUTES = [
    add_acl_route,
    list_acls_route,
    remove_acl_route,
    bind_role_route,
    list_roles_route,
    unbind_role_route,
]
