"""Permissions in words: who may do what with which things, as Kafka means it.

A rule allows or denies one operation to one principal on the things whose names fit a pattern. A role is a
bundle of operations with a name; a binding gives it to a principal, for everything or for what a tenant has.
What no rule and no role allows is denied, and a rule that denies is stronger than any that allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from goqueue.model.errors import (
    ClusterNotAllowed,
    GroupNotAllowed,
    InvalidRule,
    NotAllowed,
    TopicNotAllowed,
    TransactionalIdNotAllowed,
)
from goqueue.model.names import NAME_CHARACTERS_MAX, checked_name
from goqueue.model.places import Seat
from goqueue.model.tenants import TenantId

EVERYTHING = "*"
"""As a literal name: all of them. As a host: any."""
EVERYBODY = "User:*"
THE_CLUSTER = "kafka-cluster"
"""The one name of the one cluster: Kafka's clients expect it."""
USER_PREFIX = "User:"
ROLE_PREFIX = "Role:"


class ResourceKind(StrEnum):
    """What a permission is about."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional_id"
    USER = "user"
    SUBJECT = "subject"
    """Of the schema registry. Kafka knows of no such thing: its clients are not shown rules about them."""


class Operation(StrEnum):
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    CLUSTER_ACTION = "cluster_action"
    DESCRIBE_CONFIGS = "describe_configs"
    ALTER_CONFIGS = "alter_configs"
    IDEMPOTENT_WRITE = "idempotent_write"
    ALL = "all"
    """In a rule: each of the others."""


class PatternKind(StrEnum):
    LITERAL = "literal"
    PREFIXED = "prefixed"
    GLOB = "glob"
    """With `*` and `?`. Kafka has no such pattern: its clients are not shown these rules."""


class Role(StrEnum):
    ADMIN = "admin"
    """Everything, and no rule can deny it."""
    OPERATOR = "operator"
    """Runs the cluster: sees and changes how things are, and reads or writes no messages."""
    DEVELOPER = "developer"
    """Makes topics, groups and schemas, publishes and consumes."""
    PRODUCER = "producer"
    CONSUMER = "consumer"
    VIEWER = "viewer"
    """Sees what there is, and no message. Also known as `readonly`."""


class Need(NamedTuple):
    """What a request must be allowed."""

    operation: Operation
    kind: ResourceKind
    name: str


class Asking(NamedTuple):
    """Whoever asks, as far as it matters for what they may do."""

    principal: str
    host: str
    """The address they come from."""
    roles: tuple[Role, ...] = ()
    """Those that came with the key they showed; others are bound to the principal."""
    tenant: TenantId | None = None
    """Whose they are: nothing beyond its border is there for them. None: nobody's, as an operator is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An access control list's entry."""

    principal: str
    """`User:NAME`, `User:*` for everybody, or `Role:NAME` for whoever has that role."""
    kind: ResourceKind
    name: str
    operation: Operation
    pattern: PatternKind = PatternKind.LITERAL
    host: str = EVERYTHING
    """The address that whoever asks comes from."""
    is_allowed: bool = True

    def __post_init__(self) -> None:
        prefix, separator, who = self.principal.partition(":")
        if prefix + separator not in (USER_PREFIX, ROLE_PREFIX):
            raise InvalidRule(f"a principal is User:NAME, User:* or Role:NAME, not {self.principal[:60]!r}")
        checked_name(who, "a principal", error=InvalidRule)
        if self.pattern is PatternKind.GLOB and len(self.name) > NAME_CHARACTERS_MAX:
            raise InvalidRule(f"a pattern has at most {NAME_CHARACTERS_MAX} characters")
        checked_name(self.name, "what a rule is about", error=InvalidRule)
        checked_name(self.host, "a host", error=InvalidRule)
        if self.kind is ResourceKind.CLUSTER and self.name not in (THE_CLUSTER, EVERYTHING):
            raise InvalidRule(f"a rule about the cluster names it {THE_CLUSTER}, not {self.name[:60]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A principal has a role."""

    principal: str
    role: Role
    tenant: TenantId | None = None
    """For the things of that tenant alone."""


class RuleFilter(NamedTuple):
    """Which rules are meant: None is any."""

    principal: str | None = None
    host: str | None = None
    kind: ResourceKind | None = None
    name: str | None = None
    pattern: PatternKind | None = None
    matches: bool = False
    """All patterns that fit the name are meant, whatever their kind."""
    operation: Operation | None = None
    is_allowed: bool | None = None


ALL_RULES = RuleFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRules:
    """Have rules from now on. Those that are there already stay as they are."""

    rules: Sequence[Rule]

    @property
    def place(self) -> Seat:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveRules:
    """Have rules no more."""

    rules: Sequence[Rule]

    @property
    def place(self) -> Seat:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules:
    """The rules that a filter means."""

    wanted: RuleFilter = ALL_RULES

    @property
    def place(self) -> Seat:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class BindRole:
    """Give a principal a role."""

    binding: Binding

    @property
    def place(self) -> Seat:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbindRole:
    """Take a role from a principal."""

    binding: Binding

    @property
    def place(self) -> Seat:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListBindings:
    """Who has which role."""

    @property
    def place(self) -> Seat:
        return Seat.ANY_NODE


_REFUSALS: Mapping[ResourceKind, type[NotAllowed]] = {
    ResourceKind.TOPIC: TopicNotAllowed,
    ResourceKind.GROUP: GroupNotAllowed,
    ResourceKind.CLUSTER: ClusterNotAllowed,
    ResourceKind.TRANSACTIONAL_ID: TransactionalIdNotAllowed,
}


def refusal(asking: Asking, need: Need) -> NotAllowed:
    """What somebody hears who may not do what is needed."""
    refused = _REFUSALS.get(need.kind, NotAllowed)
    return refused(asking.principal, need.operation, need.kind, need.name)
