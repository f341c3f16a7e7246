"""The book of rules answers as somebody does who reads all rules for every question."""

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.access.roles import GRANTS
from goqueue.core.access.rules import RuleBook, is_meant
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
    RuleFilter,
)
from goqueue.model.tenants import TenantId

PRINCIPALS = ["User:ann", "User:bob", "User:*", "Role:producer"]
NAMES = ["a", "ab", "abc", "acme.a", "acme.ab", "b", "*"]
HOSTS = ["*", "10.0.0.1", "10.0.0.2"]
IMPLIES = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    kind = draw(st.sampled_from(ResourceKind))
    pattern = draw(st.sampled_from(PatternKind)) if kind is not ResourceKind.CLUSTER else PatternKind.LITERAL
    names = ["a*", "*b", "a?c", "[a]"] if pattern is PatternKind.GLOB else NAMES
    return Rule(
        principal=draw(st.sampled_from(PRINCIPALS)),
        kind=kind,
        name=THE_CLUSTER if kind is ResourceKind.CLUSTER else draw(st.sampled_from(names)),
        operation=draw(st.sampled_from(Operation)),
        pattern=pattern,
        host=draw(st.sampled_from(HOSTS)),
        is_allowed=draw(st.booleans()),
    )


bindings = st.builds(
    Binding,
    principal=st.sampled_from(["User:ann", "User:bob"]),
    role=st.sampled_from(Role),
    tenant=st.sampled_from([None, TenantId("acme")]),
)
questions = st.tuples(
    st.builds(
        Asking,
        st.sampled_from(["User:ann", "User:bob", "User:eve"]),
        st.sampled_from(HOSTS[1:]),
        st.lists(st.sampled_from(Role), max_size=1).map(tuple),
        st.sampled_from([None, None, TenantId("acme"), TenantId("acm")]),
    ),
    st.builds(
        Need,
        st.sampled_from([each for each in Operation if each is not Operation.ALL]),
        st.sampled_from(ResourceKind),
        st.sampled_from([*NAMES[:-1], "axc", "zzb", "[a]", THE_CLUSTER]),
    ),
)


def is_own(asking: Asking, need: Need) -> bool:
    """Whether somebody's tenant has that; all is theirs who have none."""
    if asking.tenant is None or need.kind in (ResourceKind.CLUSTER, ResourceKind.USER):
        return asking.tenant is None or (
            need.operation is Operation.IDEMPOTENT_WRITE
            and (need.kind is ResourceKind.CLUSTER and need.name == THE_CLUSTER)
        )
    return need.name.split(".")[0] == asking.tenant and "." in need.name


def reads_all(rules: list[Rule], bound: list[Binding], asking: Asking, need: Need) -> bool:
    if not is_own(asking, need):
        return False
    mine = [binding for binding in bound if binding.principal == asking.principal]
    everywhere = [binding.role for binding in mine if binding.tenant is None] + list(asking.roles)
    if Role.ADMIN in everywhere:
        return True
    whom = {asking.principal, "User:*", *(f"Role:{role}" for role in everywhere)}
    matching = [
        rule
        for rule in rules
        if rule.principal in whom
        and rule.kind is need.kind
        and rule.host in ("*", asking.host)
        and fits(rule, need.name)
    ]
    if any(not rule.is_allowed and rule.operation in (need.operation, Operation.ALL) for rule in matching):
        return False
    enough = {need.operation, Operation.ALL, *IMPLIES.get(need.operation, ())}
    granted = [GRANTS[role].get(need.kind, ()) for role in everywhere]
    if need.name.startswith("acme.") and need.kind not in (ResourceKind.CLUSTER, ResourceKind.USER):
        granted += [GRANTS[b.role].get(need.kind, ()) for b in mine if b.tenant is not None]
    return any(rule.is_allowed and rule.operation in enough for rule in matching) or any(
        enough & set(operations) for operations in granted
    )


def fits(rule: Rule, name: str) -> bool:
    match rule.pattern:
        case PatternKind.LITERAL:
            return rule.name in (name, "*")
        case PatternKind.PREFIXED:
            return name.startswith(rule.name)
        case PatternKind.GLOB:
            return fnmatchcase(name, rule.name.replace("[", "[[]"))


@given(st.lists(rules(), max_size=12), st.lists(bindings, max_size=3), st.lists(questions, min_size=1))
def test_the_book_answers_as_whoever_reads_all_rules(
    given_rules: list[Rule], bound: list[Binding], asked: list[tuple[Asking, Need]]
) -> None:
    book = RuleBook()
    book.load({str(i): rule for i, rule in enumerate(given_rules)}, {f"b{i}": b for i, b in enumerate(bound)})
    for asking, need in asked:
        assert book.allows(asking, need) is reads_all(given_rules, bound, asking, need)


@given(st.lists(rules(), max_size=12), st.lists(bindings, max_size=3), st.lists(questions, min_size=1))
def test_no_rule_and_no_role_leads_beyond_the_border_of_a_tenant(
    given_rules: list[Rule], bound: list[Binding], asked: list[tuple[Asking, Need]]
) -> None:
    ruled, unruled = RuleBook(["User:eve"]), RuleBook(["User:eve"], is_on=False)
    ruled.load(
        {str(i): rule for i, rule in enumerate(given_rules)}, {f"b{i}": b for i, b in enumerate(bound)}
    )
    for asking, need in asked:
        for book in (ruled, unruled):
            if asking.principal == "User:eve":
                assert book.allows(asking, need), "super users go everywhere"
            elif not is_own(asking, need):
                assert not book.allows(asking, need)
        assert unruled.allows(asking, need) or not is_own(asking, need), "within it all is theirs"


@given(st.lists(st.one_of(rules(), bindings), min_size=1, max_size=8), st.data())
def test_a_book_that_was_changed_answers_as_one_that_was_written_anew(
    items: list[Rule | Binding], data: st.DataObject
) -> None:
    book, there = RuleBook(), dict[str, Rule | Binding]()
    asked = data.draw(st.lists(questions, min_size=1, max_size=5))
    for number, item in enumerate(items):
        book.put(str(number), item)
        there[str(number)] = item
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(there)))
            book.drop(gone)
            del there[gone]
        anew = RuleBook()
        anew.load(
            {key: each for key, each in there.items() if isinstance(each, Rule)},
            {key: each for key, each in there.items() if isinstance(each, Binding)},
        )
        for asking, need in asked:
            assert book.allows(asking, need) is anew.allows(asking, need)


@given(rules(), st.sampled_from(["a", "ab", "abc", "axc", "zz"]))
def test_a_filter_that_matches_finds_the_rules_that_fit_a_name(rule: Rule, name: str) -> None:
    assert is_meant(rule, RuleFilter(name=name, matches=True)) is fits(rule, name)
    assert is_meant(rule, RuleFilter(name=rule.name, pattern=rule.pattern))
    assert not is_meant(rule, RuleFilter(is_allowed=not rule.is_allowed))
