"""Permissions: rules and who has which role."""

from typing import Annotated

from msgspec import Meta, Struct


class AclBody(Struct, frozen=True):
    """A rule that is wanted."""

    principal: Annotated[
        str, Meta(description="A user or key (`User:ann`, or only `ann`), `*` for everybody, or `role:NAME`.")
    ]
    resource_type: Annotated[
        str, Meta(description="topic, group, cluster, transactional_id, user or subject.")
    ]
    resource_name: Annotated[str, Meta(description="A name, or a pattern with `*` and `?`.")]
    operation: Annotated[str, Meta(description="read, write, create, delete, alter, describe, …, or all.")]
    effect: Annotated[str, Meta(description="allow or deny.")] = "allow"
    host: Annotated[str, Meta(description="The address that they come from; `*`: any.")] = "*"


class Acl(Struct, frozen=True):
    """A rule that is there."""

    id: Annotated[int, Meta(description="Its place in the list, as it is now.")]
    rule_id: Annotated[str, Meta(description="Its own name, which stays.")]
    principal: str
    resource_type: str
    resource_name: str
    pattern_type: Annotated[str, Meta(description="literal, prefixed or glob.")]
    operation: str
    effect: str
    host: str


class AclList(Struct, frozen=True):
    acls: list[Acl]
    count: int


class AclRecord(Struct, frozen=True, rename="pascal"):
    """The rule as the first edition tells it."""

    principal: str
    resource_type: str
    resource_name: str
    operation: str
    allow: bool


class AclAdded(Struct, frozen=True):
    success: bool
    message: str
    acl: AclRecord
    rule_id: str


class AclRemoved(Struct, frozen=True):
    success: bool
    message: str
    acl_id: str


class RoleBinding(Struct, frozen=True, omit_defaults=True):
    """A principal has a role."""

    principal: str
    role: Annotated[str, Meta(description="admin, operator, developer, producer, consumer or viewer.")]
    tenant: Annotated[str, Meta(description="For the things of that tenant alone; left out: for all.")] = ""


class RoleBindings(Struct, frozen=True):
    bindings: list[RoleBinding]
    count: int


class RoleChanged(Struct, frozen=True):
    success: bool
    message: str
