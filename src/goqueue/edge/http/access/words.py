"""How permissions are written over HTTP: names of the first edition, patterns by their stars."""

from enum import StrEnum
from typing import TypeVar

from goqueue.model.access import (
    EVERYBODY,
    EVERYTHING,
    ROLE_PREFIX,
    USER_PREFIX,
    Binding,
    Operation,
    PatternKind,
    ResourceKind,
    Role,
    Rule,
)
from goqueue.model.errors import InvalidRule
from goqueue.model.tenants import TenantId
from goqueue.wire.access import AclBody, RoleBinding

_EFFECTS = {"allow": True, "deny": False}
_OLD_ROLE = "readonly"
E = TypeVar("E", bound=StrEnum)


def rule_of(body: AclBody) -> Rule:
    """The rule that a body means. Raises InvalidRule."""
    if body.effect not in _EFFECTS:
        raise InvalidRule(f"effect is allow or deny, not {body.effect[:60]!r}")
    pattern, name = _pattern(body.resource_name)
    return Rule(
        principal=principal_of(body.principal),
        kind=_word(ResourceKind, body.resource_type, "resource_type"),
        name=name,
        operation=_word(Operation, body.operation, "operation"),
        pattern=pattern,
        host=body.host,
        is_allowed=_EFFECTS[body.effect],
    )


def binding_of(body: RoleBinding) -> Binding:
    """The binding that a body means. Raises InvalidRule."""
    return Binding(
        principal=principal_of(body.principal),
        role=role_of(body.role),
        tenant=TenantId(body.tenant) if body.tenant else None,
    )


def role_of(name: str) -> Role:
    return Role.VIEWER if name == _OLD_ROLE else _word(Role, name, "role")


def principal_of(text: str) -> str:
    """A principal as rules name it: a bare name is a user's or a key's."""
    if text == EVERYTHING:
        return EVERYBODY
    prefix, separator, rest = text.partition(":")
    if prefix.lower() + separator == ROLE_PREFIX.lower():
        return ROLE_PREFIX + role_of(rest)
    return text if text.startswith(USER_PREFIX) else USER_PREFIX + text


def shown_name(rule: Rule) -> str:
    """The name of a rule's things, as it was written."""
    return rule.name + EVERYTHING if rule.pattern is PatternKind.PREFIXED else rule.name


def _pattern(text: str) -> tuple[PatternKind, str]:
    stem = text.removesuffix(EVERYTHING)
    if text == EVERYTHING or not set("*?") & set(text):
        return PatternKind.LITERAL, text
    if stem != text and not set("*?") & set(stem):
        return PatternKind.PREFIXED, stem
    return PatternKind.GLOB, text


def _word(words: type[E], text: str, what: str) -> E:
    try:
        return words(text.lower())
    except ValueError:
        raise InvalidRule(f"{what} is one of {', '.join(words)}, not {text[:60]!r}") from None
