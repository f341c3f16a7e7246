"""Rules of who may do what: DescribeAcls, CreateAcls, DeleteAcls.

Rules that Kafka has no words for, about subjects or by globs, are neither shown here nor deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from goqueue.broker.access.verbs import add_rules, list_rules, remove_rules
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.errors import kafka_code, kafka_text
from goqueue.edge.kafka.once import done_to_each
from goqueue.edge.kafka.rights import KIND_NUMBERS, OPERATION_NUMBERS, PATTERN_NUMBERS
from goqueue.edge.kafka.schemas import Reply
from goqueue.model.access import AddRules, ListRules, PatternKind, RemoveRules, ResourceKind, Rule, RuleFilter
from goqueue.model.errors import GoQueueError, InvalidRule

if TYPE_CHECKING:
    from kio.schema.create_acls.v3.request import AclCreation, CreateAclsRequest
    from kio.schema.delete_acls.v3.request import DeleteAclsFilter, DeleteAclsRequest
    from kio.schema.describe_acls.v3.request import DescribeAclsRequest

T = TypeVar("T")
_ANY = 1
_MATCH = 2
"""As the kind of a pattern: all that fit the name."""
_DENIED, _ALLOWED = 2, 3


def _reversed(numbers: dict[T, int]) -> dict[int, T]:
    return {number: word for word, number in numbers.items()}


_KINDS = _reversed(KIND_NUMBERS)
_OPERATIONS = _reversed(OPERATION_NUMBERS)
_PATTERNS = _reversed(PATTERN_NUMBERS)
_PERMISSIONS = {_DENIED: False, _ALLOWED: True}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRule:
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResource:
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: tuple[ShownRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAclsReply(Reply):
    resources: tuple[ShownResource, ...] = ()
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


class _Resource(NamedTuple):
    kind: ResourceKind
    name: str
    pattern: PatternKind


async def describe_acls(context: Context, request: "DescribeAclsRequest") -> DescribeAclsReply:
    """The rules that a filter means, by what they are about."""
    try:
        wanted = _filter(
            request.resource_type_filter,
            request.resource_name_filter,
            request.pattern_type_filter,
            request.principal_filter,
            request.host_filter,
            request.operation,
            request.permission_type,
        )
        found = _known(here(context.broker, list_rules, ListRules(wanted=wanted)))
    except GoQueueError as error:
        return DescribeAclsReply(error_code=kafka_code(error), error_message=kafka_text(error))
    by_resource: dict[_Resource, list[Rule]] = {}
    for rule in found:
        by_resource.setdefault(_Resource(rule.kind, rule.name, rule.pattern), []).append(rule)
    return DescribeAclsReply(
        resources=tuple(
            ShownResource(
                resource_type=KIND_NUMBERS[resource.kind],
                resource_name=resource.name,
                pattern_type=PATTERN_NUMBERS[resource.pattern],
                acls=tuple(map(_shown, rules)),
            )
            for resource, rules in by_resource.items()
        )
    )


def _known(rules: Sequence[Rule]) -> list[Rule]:
    """Those that Kafka has words for."""
    return [
        rule
        for rule in rules
        if rule.kind in KIND_NUMBERS
        and rule.pattern in PATTERN_NUMBERS
        and rule.principal.startswith("User:")
    ]


def _shown(rule: Rule) -> ShownRule:
    return ShownRule(
        principal=rule.principal,
        host=rule.host,
        operation=OPERATION_NUMBERS[rule.operation],
        permission_type=_ALLOWED if rule.is_allowed else _DENIED,
    )


def _filter(
    kind: int,
    name: str | None,
    pattern: int,
    principal: str | None,
    host: str | None,
    operation: int,
    effect: int,
) -> RuleFilter:
    return RuleFilter(
        principal=principal,
        host=host,
        kind=_word(_KINDS, kind, "resource"),
        name=name,
        pattern=None if pattern == _MATCH else _word(_PATTERNS, pattern, "pattern"),
        matches=pattern == _MATCH,
        operation=_word(_OPERATIONS, operation, "operation"),
        is_allowed=_word(_PERMISSIONS, effect, "permission"),
    )


def _word(words: dict[int, T], number: int, what: str) -> T | None:
    """What a number of Kafka's means in a filter; None: any."""
    return None if number == _ANY else _named(words, number, what)


def _named(words: dict[int, T], number: int, what: str) -> T:
    word = words.get(number)
    if word is None:
        raise InvalidRule(f"{number} is no {what} that rules can be about here")
    return word


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedRule:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAclsReply(Reply):
    results: tuple[CreatedRule, ...]


async def create_acls(context: Context, request: "CreateAclsRequest") -> CreateAclsReply:
    """Have rules from now on, each by itself."""
    return CreateAclsReply(
        results=await done_to_each(context, request.creations, lambda wanted: _create(context, wanted))
    )


async def _create(context: Context, wanted: "AclCreation") -> CreatedRule:
    try:
        rule = Rule(
            principal=wanted.principal,
            kind=_named(_KINDS, wanted.resource_type, "resource"),
            name=wanted.resource_name,
            operation=_named(_OPERATIONS, wanted.operation, "operation"),
            pattern=_named(_PATTERNS, wanted.resource_pattern_type, "pattern"),
            host=wanted.host,
            is_allowed=_named(_PERMISSIONS, wanted.permission_type, "permission"),
        )
        await at_home(context.broker, add_rules, AddRules(rules=[rule]))
    except GoQueueError as error:
        return CreatedRule(error_code=kafka_code(error), error_message=kafka_text(error))
    return CreatedRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedRule:
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedByFilter:
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    matching_acls: tuple[DeletedRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAclsReply(Reply):
    filter_results: tuple[DeletedByFilter, ...]


async def delete_acls(context: Context, request: "DeleteAclsRequest") -> DeleteAclsReply:
    """Have the rules no more that filters mean; returns them."""
    return DeleteAclsReply(
        filter_results=await done_to_each(context, request.filters, lambda wanted: _delete(context, wanted))
    )


async def _delete(context: Context, wanted: "DeleteAclsFilter") -> DeletedByFilter:
    try:
        meant = _filter(
            wanted.resource_type_filter,
            wanted.resource_name_filter,
            wanted.pattern_type_filter,
            wanted.principal_filter,
            wanted.host_filter,
            wanted.operation,
            wanted.permission_type,
        )
        found = _known(here(context.broker, list_rules, ListRules(wanted=meant)))
        gone = await at_home(context.broker, remove_rules, RemoveRules(rules=found))
    except GoQueueError as error:
        return DeletedByFilter(error_code=kafka_code(error), error_message=kafka_text(error))
    return DeletedByFilter(matching_acls=tuple(map(_deleted, gone)))


def _deleted(rule: Rule) -> DeletedRule:
    return DeletedRule(
        resource_type=KIND_NUMBERS[rule.kind],
        resource_name=rule.name,
        pattern_type=PATTERN_NUMBERS[rule.pattern],
        principal=rule.principal,
        host=rule.host,
        operation=OPERATION_NUMBERS[rule.operation],
        permission_type=_ALLOWED if rule.is_allowed else _DENIED,
    )
