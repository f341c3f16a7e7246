"""The machine of permissions: rules and bindings in, one answer out, in a microsecond or two.

Rules are kept by whom they are about, then by what kind of thing, then by pattern, so that a question looks
at the few that can matter: the name itself, everything, the prefixes of it that any rule has, and globs. What
rules of one pattern allow and deny are two masks of bits, one an operation. Roles are rules, too: binding one
to a principal writes its masks beside those of the rules. Answers are remembered until a rule changes. The
border of a tenant is asked before any rule.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate

from goqueue.core.access.border import is_within
from goqueue.core.access.roles import GRANTS
from goqueue.model.access import (
    EVERYBODY,
    EVERYTHING,
    ROLE_PREFIX,
    THE_CLUSTER,
    Asking,
    Binding,
    Need,
    Operation,
    PatternKind,
    ResourceKind,
    Role,
    Rule,
    RuleFilter,
)
from goqueue.model.ids import INTERNAL_PREFIX
from goqueue.model.names import NAME_CHARACTERS_MAX
from goqueue.model.tenants import TENANT_SEPARATOR

REMEMBERED_MAX = 50_000
"""So many answers are remembered, about names that something can have: those that clients make up must not
fill the memory."""
_BITS = {operation: 1 << number for number, operation in enumerate(Operation)}
_ALL_BITS = (1 << len(Operation)) - 1
_IMPLIED = {
    Operation.READ: (Operation.DESCRIBE,),
    Operation.WRITE: (Operation.DESCRIBE,),
    Operation.DELETE: (Operation.DESCRIBE,),
    Operation.ALTER: (Operation.DESCRIBE,),
    Operation.ALTER_CONFIGS: (Operation.DESCRIBE_CONFIGS,),
}
"""Whoever may do the first may do these; whoever is denied the first is not denied these."""
_INTERNAL = Need(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER, THE_CLUSTER)
Masks = dict[str, list[int]]
"""By host: what is allowed, and what is denied."""


class RuleBook:
    def __init__(self, super_users: Iterable[str] = (), *, is_on: bool = True) -> None:
        """`is_on`: rules and roles are asked. Else everybody may do everything, within their tenant."""
        self._super_users = frozenset(super_users)
        self._is_on = is_on
        self.rules: dict[str, Rule] = {}
        """By the key each has in the store."""
        self.bindings: dict[str, Binding] = {}
        self._shelves: dict[ResourceKind, dict[str, _Shelf]] = {kind: {} for kind in ResourceKind}
        """By kind of thing, then by principal: members of an enumeration take long to hash."""
        self._admins: frozenset[str] = self._super_users
        self._roles: dict[str, tuple[str, ...]] = {}
        """The roles of each principal, as rules name them."""
        self._remembered: dict[tuple[Asking, Need], bool] = {}

    @property
    def is_empty(self) -> bool:
        return not self.rules and not self.bindings

    def load(self, rules: Mapping[str, Rule], bindings: Mapping[str, Binding]) -> None:
        """Forget what there is, and begin with these."""
        self.rules, self.bindings = dict(rules), dict(bindings)
        self._build()

    def put(self, key: str, item: Rule | Binding) -> None:
        """A rule or a binding is new."""
        if isinstance(item, Rule):
            self.rules[key] = item
            self._shelve(item)
            self._remembered.clear()
        else:
            self.bindings[key] = item
            self._build()

    def drop(self, key: str) -> None:
        """It is gone."""
        if self.rules.pop(key, None) is not None or self.bindings.pop(key, None) is not None:
            self._build()

    def allows(self, asking: Asking, need: Need) -> bool:
        """Whether somebody may do what is needed."""
        question = asking, need
        answer = self._remembered.get(question)
        if answer is None:
            answer = self._decide(asking, need)
            if len(need.name) <= NAME_CHARACTERS_MAX:
                if len(self._remembered) >= REMEMBERED_MAX:
                    self._remembered.clear()
                self._remembered[question] = answer
        return answer

    def found(self, wanted: RuleFilter) -> list[tuple[str, Rule]]:
        """The rules that a filter means, with their keys, in the order of these."""
        return [(key, rule) for key, rule in sorted(self.rules.items()) if is_meant(rule, wanted)]

    def _decide(self, asking: Asking, need: Need) -> bool:
        principal, host, roles, tenant = asking
        if principal in self._super_users:
            return True
        if tenant is not None and not is_within(tenant, need):
            return False
        if not self._is_on or principal in self._admins or Role.ADMIN in roles:
            return True
        if need.kind is ResourceKind.TOPIC and need.name.startswith(INTERNAL_PREFIX):
            need = _INTERNAL  # what the broker keeps for itself is for those who run it
        bit, allowed, shelves = _BITS[need.operation], 0, self._shelves[need.kind]
        names = (principal, EVERYBODY, *self._roles.get(principal, ()))
        if roles:
            for role in roles:
                allowed |= _mask_of(GRANTS[role].get(need.kind, ()))
            names += tuple(ROLE_PREFIX + role for role in roles)
        for name in names:
            if name in shelves:
                allows, denies = shelves[name].masks(need.name, host)
                if denies & bit:
                    return False
                allowed |= allows
        return bool(allowed & bit)

    def _build(self) -> None:
        for shelves in self._shelves.values():
            shelves.clear()
        self._remembered.clear()
        roles: dict[str, list[str]] = {}
        admins = set(self._super_users)
        for rule in self.rules.values():
            self._shelve(rule)
        for binding in self.bindings.values():
            if binding.tenant is None:
                roles.setdefault(binding.principal, []).append(ROLE_PREFIX + binding.role)
                if binding.role is Role.ADMIN:
                    admins.add(binding.principal)
            self._grant(binding)
        self._roles = {principal: tuple(names) for principal, names in roles.items()}
        self._admins = frozenset(admins)

    def _shelve(self, rule: Rule) -> None:
        shelf = self._shelves[rule.kind].setdefault(rule.principal, _Shelf())
        bits = _mask_of([rule.operation]) if rule.is_allowed else _bits_of(rule.operation)
        shelf.add(rule.pattern, rule.name, rule.host, bits, is_allowed=rule.is_allowed)

    def _grant(self, binding: Binding) -> None:
        """What a role gives, as if rules said so. A tenant's part of the cluster is none of it."""
        for kind, operations in GRANTS[binding.role].items():
            if binding.tenant is None:
                pattern, name = PatternKind.LITERAL, EVERYTHING
            elif kind is ResourceKind.CLUSTER or kind is ResourceKind.USER:
                continue
            else:
                pattern, name = PatternKind.PREFIXED, binding.tenant + TENANT_SEPARATOR
            shelf = self._shelves[kind].setdefault(binding.principal, _Shelf())
            shelf.add(pattern, name, EVERYTHING, _mask_of(operations), is_allowed=True)


class _Shelf:
    """The rules about one principal and one kind of thing, by pattern."""

    def __init__(self) -> None:
        self._literal: dict[str, Masks] = {}
        self._prefixed: dict[str, Masks] = {}
        self._lengths: list[int] = []
        """Of the prefixes there are."""
        self._globs: dict[str, tuple[re.Pattern[str], Masks]] = {}

    def add(self, pattern: PatternKind, name: str, host: str, bits: int, *, is_allowed: bool) -> None:
        match pattern:
            case PatternKind.LITERAL:
                masks = self._literal.setdefault(name, {})
            case PatternKind.PREFIXED:
                masks = self._prefixed.setdefault(name, {})
                self._lengths = sorted({*self._lengths, len(name)})
            case PatternKind.GLOB:
                if name not in self._globs:
                    self._globs[name] = re.compile(glob_expression(name)), {}
                masks = self._globs[name][1]
        masks.setdefault(host, [0, 0])[not is_allowed] |= bits

    def masks(self, name: str, host: str) -> tuple[int, int]:
        """What is allowed and what is denied with the thing of a name, to who comes from a host."""
        allows = denies = 0
        for masks in self._fitting(name):
            for place in (EVERYTHING, host):
                if place in masks:
                    pair = masks[place]
                    allows |= pair[0]
                    denies |= pair[1]
        return allows, denies

    def _fitting(self, name: str) -> list[Masks]:
        literal = self._literal
        fitting = [literal[name]] if name in literal else []
        if EVERYTHING in literal and name != EVERYTHING:
            fitting.append(literal[EVERYTHING])
        for length in self._lengths:
            if length > len(name):
                break
            if (masks := self._prefixed.get(name[:length])) is not None:
                fitting.append(masks)
        if self._globs:
            fitting += [masks for expression, masks in self._globs.values() if expression.fullmatch(name)]
        return fitting


def is_meant(rule: Rule, wanted: RuleFilter) -> bool:
    """Whether a filter means a rule."""
    return (
        wanted.principal in (None, rule.principal)
        and wanted.host in (None, rule.host)
        and wanted.kind in (None, rule.kind)
        and wanted.operation in (None, rule.operation)
        and wanted.is_allowed in (None, rule.is_allowed)
        and (wanted.pattern in (None, rule.pattern) or wanted.matches)
        and (wanted.name is None or _is_named(rule, wanted.name, matches=wanted.matches))
    )


def _is_named(rule: Rule, name: str, *, matches: bool) -> bool:
    if not matches:
        return rule.name == name
    match rule.pattern:
        case PatternKind.LITERAL:
            return rule.name in (name, EVERYTHING)
        case PatternKind.PREFIXED:
            return name.startswith(rule.name)
        case PatternKind.GLOB:
            return re.fullmatch(glob_expression(rule.name), name) is not None


def glob_expression(pattern: str) -> str:
    """A regular expression for a pattern with `*` and `?`; brackets mean themselves."""
    return translate(pattern.replace("[", "[[]"))


def _bits_of(operation: Operation) -> int:
    return _ALL_BITS if operation is Operation.ALL else _BITS[operation]


def _mask_of(operations: Iterable[Operation]) -> int:
    """The bits of operations that are allowed, with what they imply."""
    mask = 0
    for operation in operations:
        mask |= _bits_of(operation)
        for implied in _IMPLIED.get(operation, ()):
            mask |= _BITS[implied]
    return mask
