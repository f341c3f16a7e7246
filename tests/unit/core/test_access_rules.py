"""Rules of who may do what: what is not allowed is denied, and who is denied is not allowed."""

import pytest

from goqueue.core.access import rules as module
from goqueue.core.access.rules import RuleBook
from goqueue.model.access import (
    THE_CLUSTER,
    Asking,
    Binding,
    Need,
    Operation,
    PatternKind,
    ResourceKind,
    Role,
    Rule,
    refusal,
)
from goqueue.model.errors import GroupNotAllowed, InvalidRule, NotAllowed, TopicNotAllowed
from goqueue.model.tenants import TenantId

ANN = Asking("User:ann", "10.0.0.1")
READ_ORDERS = Need(Operation.READ, ResourceKind.TOPIC, "orders")
WRITE_ORDERS = Need(Operation.WRITE, ResourceKind.TOPIC, "orders")


def topic_rule(operation: Operation = Operation.READ, *, is_allowed: bool = True, **more: str) -> Rule:
    given = {"principal": "User:ann", "name": "orders", "host": "*"} | more
    return Rule(kind=ResourceKind.TOPIC, operation=operation, is_allowed=is_allowed, **given)  # type: ignore[arg-type]


def book_of(*items: Rule | Binding) -> RuleBook:
    book = RuleBook(super_users=["User:root"])
    for number, item in enumerate(items):
        book.put(str(number), item)
    return book


def test_what_nobody_has_allowed_is_denied_but_to_super_users() -> None:
    assert not book_of().allows(ANN, READ_ORDERS)
    assert book_of().allows(Asking("User:root", "10.0.0.9"), READ_ORDERS)


def test_a_rule_that_denies_is_stronger_than_any_that_allows() -> None:
    allow = topic_rule(Operation.ALL)
    deny = topic_rule(Operation.WRITE, is_allowed=False, principal="User:*")
    book = book_of(allow, deny)
    assert book.allows(ANN, READ_ORDERS)
    assert not book.allows(ANN, WRITE_ORDERS)


def test_whoever_may_read_may_look_and_who_may_not_look_may_still_read() -> None:
    look = Need(Operation.DESCRIBE, ResourceKind.TOPIC, "orders")
    assert book_of(topic_rule()).allows(ANN, look)
    book = book_of(topic_rule(), topic_rule(Operation.DESCRIBE, is_allowed=False))
    assert book.allows(ANN, READ_ORDERS)
    assert not book.allows(ANN, look)


def test_a_rule_for_a_host_is_for_that_host() -> None:
    book = book_of(topic_rule(host="10.0.0.1"))
    assert book.allows(ANN, READ_ORDERS)
    assert not book.allows(ANN._replace(host="10.0.0.2"), READ_ORDERS)


def test_a_role_for_a_tenant_reaches_its_names_and_nothing_of_the_cluster() -> None:
    book = book_of(Binding(principal="User:ann", role=Role.DEVELOPER, tenant=TenantId("acme")))
    assert book.allows(ANN, Need(Operation.WRITE, ResourceKind.TOPIC, "acme.orders"))
    assert not book.allows(ANN, Need(Operation.WRITE, ResourceKind.TOPIC, "acmeorders"))
    assert not book.allows(ANN, WRITE_ORDERS)
    assert not book.allows(ANN, Need(Operation.DESCRIBE, ResourceKind.CLUSTER, THE_CLUSTER))


def test_an_admin_of_one_tenant_is_no_admin_of_another() -> None:
    book = book_of(
        Binding(principal="User:ann", role=Role.ADMIN, tenant=TenantId("acme")),
        topic_rule(Operation.ALL, is_allowed=False, name="acme.secret"),
    )
    assert not book.allows(ANN, Need(Operation.READ, ResourceKind.TOPIC, "other.orders"))
    assert not book.allows(ANN, Need(Operation.READ, ResourceKind.TOPIC, "acme.secret"))
    assert book.allows(ANN, Need(Operation.DELETE, ResourceKind.TOPIC, "acme.orders"))


def test_the_roles_of_a_key_count_and_rules_may_name_them() -> None:
    key = Asking("User:key-1", "10.0.0.1", (Role.PRODUCER,))
    assert book_of().allows(key, WRITE_ORDERS)
    assert not book_of().allows(key, READ_ORDERS)
    denied = topic_rule(Operation.WRITE, is_allowed=False, principal="Role:producer")
    assert not book_of(denied).allows(key, WRITE_ORDERS)


def test_a_rule_that_is_taken_back_counts_no_more_also_for_who_has_asked_before() -> None:
    book = book_of(topic_rule())
    assert book.allows(ANN, READ_ORDERS)
    book.drop("0")
    book.drop("none")
    assert not book.allows(ANN, READ_ORDERS)
    assert book.is_empty


def test_names_that_are_made_up_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 10)
    book = book_of(topic_rule())
    for number in range(100):
        assert not book.allows(ANN, READ_ORDERS._replace(name=f"t{number}"))
    assert len(book._remembered) <= 10
    assert book.allows(ANN, READ_ORDERS)


def test_a_name_that_nothing_can_have_is_judged_and_not_remembered() -> None:
    book = book_of(topic_rule())
    assert not book.allows(ANN, READ_ORDERS._replace(name="t" * 30_000))
    assert not book._remembered


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": "ann"},
        {"principal": "User:"},
        {"principal": "Group:x"},
        {"name": ""},
        {"name": "x" * 300},
        {"host": "a\nb"},
        {"kind": ResourceKind.CLUSTER, "name": "mine"},
        {"pattern": PatternKind.GLOB, "name": "x" * 300},
    ],
)
def test_a_rule_that_nobody_could_go_by_is_refused(wrong: dict[str, str]) -> None:
    right = {"principal": "User:a", "kind": ResourceKind.TOPIC, "name": "t", "operation": Operation.READ}
    with pytest.raises(InvalidRule):
        Rule(**right | wrong)  # type: ignore[arg-type]


def test_who_is_refused_hears_what_was_missing() -> None:
    refused = refusal(ANN, WRITE_ORDERS)
    assert isinstance(refused, TopicNotAllowed)
    assert str(refused).startswith("User:ann may not write topic orders")
    assert isinstance(refusal(ANN, WRITE_ORDERS._replace(kind=ResourceKind.GROUP)), GroupNotAllowed)
    assert type(refusal(ANN, WRITE_ORDERS._replace(kind=ResourceKind.SUBJECT))) is NotAllowed
