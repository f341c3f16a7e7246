"""The verbs on permissions: add, remove and list rules, bind and unbind roles."""

from collections.abc import Sequence
from typing import TypeVar

from goqueue.broker.broker import Broker
from goqueue.core.access.rule_values import entry
from goqueue.model.access import (
    AddRules,
    Binding,
    BindRole,
    ListBindings,
    ListRules,
    RemoveRules,
    Rule,
    UnbindRole,
)
from goqueue.model.cluster import Step
from goqueue.model.errors import InvalidRule, RuleNotFound, ShuttingDown

T = TypeVar("T", Rule, Binding)
RULES_MAX = 10_000
"""So many rules and bindings there may be: all nodes keep all of them at hand."""


async def add_rules(broker: Broker, command: AddRules) -> None:
    """Have rules from now on; returns when this node goes by them."""
    await _put(broker, command.rules)


async def bind_role(broker: Broker, command: BindRole) -> None:
    """Give a principal a role. For a tenant, that must be there."""
    if command.binding.tenant is not None:
        broker.tenants.account(command.binding.tenant)
    await _put(broker, [command.binding])


async def remove_rules(broker: Broker, command: RemoveRules) -> list[Rule]:
    """Have rules no more; returns those that there were."""
    return await _drop(broker, command.rules)


async def unbind_role(broker: Broker, command: UnbindRole) -> None:
    """Take a role from a principal. Raises RuleNotFound where it has none such."""
    binding = command.binding
    if not await _drop(broker, [binding]):
        raise RuleNotFound(f"that gives {binding.principal} the role {binding.role}")


def list_rules(broker: Broker, command: ListRules) -> list[Rule]:
    """The rules that a filter means."""
    return [rule for _, rule in broker.warden.book.found(command.wanted)]


def list_bindings(broker: Broker, command: ListBindings) -> list[Binding]:
    """Who has which role, by name."""
    bindings = broker.warden.book.bindings.values()
    return sorted(bindings, key=lambda each: (each.principal, each.role, each.tenant or ""))


async def _put(broker: Broker, items: Sequence[Rule | Binding]) -> None:
    if not broker.is_open:
        raise ShuttingDown
    puts = dict(map(entry, items))

    def decide() -> Step[None]:
        book = broker.warden.book
        if len({*book.rules, *book.bindings, *puts}) > RULES_MAX:
            raise InvalidRule(f"there are at most {RULES_MAX} rules: let some of them be about prefixes")
        return Step(None, tuple(sorted(map(broker.metadata.guard, puts))), puts)

    await broker.agreement.make(decide)


async def _drop(broker: Broker, items: Sequence[T]) -> list[T]:
    if not broker.is_open:
        raise ShuttingDown

    def decide() -> Step[list[T]]:
        book = broker.warden.book
        there = {key: item for item in items if (key := entry(item)[0]) in book.rules or key in book.bindings}
        guards = tuple(sorted(map(broker.metadata.guard, there)))
        return Step(list(there.values()), guards, {}, tuple(there))

    return await broker.agreement.make(decide)
