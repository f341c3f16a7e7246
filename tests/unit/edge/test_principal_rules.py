"""What the owner of a certificate is called."""

import pytest

from goqueue.edge.principal_rules import PrincipalRules, distinguished_name

ALICE = (
    (("countryName", "DE"),),
    (("organizationName", "Example, Inc."),),
    (("organizationalUnitName", "ops"),),
    (("commonName", "Alice"),),
)


def test_a_name_is_written_as_rfc_2253_does() -> None:
    assert distinguished_name(ALICE) == r"CN=Alice,OU=ops,O=Example\, Inc.,C=DE"
    assert distinguished_name(((("commonName", "#a"), ("userId", "b ")),)) == r"CN=\#a+UID=b\ "


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", r"CN=Alice,OU=ops,O=Example\, Inc.,C=DE"),
        ("RULE:^CN=(.*?),OU=ops,.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),OU=ops,.*$/$1@ops/L", "alice@ops"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/U, DEFAULT", "OPS-ALICE"),
        ("RULE:^CN=(.*?)$/$1/,RULE:^CN=Alice,.*$/first/,DEFAULT", r"Alice,OU=ops,O=Example\, Inc.,C=DE"),
        ("RULE:^CN=Bob$/$1b/,DEFAULT".replace("$1b", "bob"), r"CN=Alice,OU=ops,O=Example\, Inc.,C=DE"),
        ("RULE:^CN=Bob$/bob/", None),
        ("RULE:Alice/alice/", None),
        (r"RULE:^.*$/\$1/", "$1"),
    ],
)
def test_the_first_rule_that_fits_the_whole_name_makes_it(rules: str, name: str | None) -> None:
    assert PrincipalRules(rules).name(ALICE) == name


def test_a_certificate_without_a_name_is_nobodys() -> None:
    assert PrincipalRules().name(()) is None


@pytest.mark.parametrize(
    "rules", ["", "default", "RULE:a", "RULE:a/b", "RULE:(/x/", "RULE:a/$1/", "DEFAULT;DEFAULT"]
)
def test_what_are_no_rules_is_refused(rules: str) -> None:
    with pytest.raises(ValueError):
        PrincipalRules(rules)
