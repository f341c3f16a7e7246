"""Claims of tokens: whose they are, for whom, and until when."""

import json
from typing import Any

import pytest

from goqueue.edge.token_claims import TokenConfig, TokenHolder, read_claims
from goqueue.model.access import Role
from goqueue.model.errors import NotAuthenticated

NOW_S = 1_800_000_000
CONFIG = TokenConfig(
    issuer="https://id.example", audiences=frozenset({"goqueue", "other-name"}), skew_ms=30_000
)
GOOD: dict[str, Any] = {"sub": "alice", "iss": "https://id.example", "aud": "goqueue", "exp": NOW_S + 60}


def read(config: TokenConfig = CONFIG, **claims: Any) -> TokenHolder:
    said = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    return read_claims(json.dumps(said).encode(), config, now_ms=NOW_S * 1_000)


def test_a_good_token_says_who_its_holder_is_and_until_when() -> None:
    assert read() == TokenHolder("alice", (NOW_S + 60) * 1_000 + 30_000)


@pytest.mark.parametrize("aud", ["goqueue", ["goqueue"], ["somebody", "other-name"], ["goqueue", 7, None]])
def test_a_token_that_names_one_of_ours_among_others_is_meant_for_us(aud: object) -> None:
    assert read(aud=aud).name == "alice"


@pytest.mark.parametrize(
    "aud", ["GOQUEUE", "goqueue2", [], ["somebody"], [["goqueue"]], {"goqueue": 1}, 7, True, None]
)
def test_a_token_for_somebody_else_is_refused(aud: object) -> None:
    with pytest.raises(NotAuthenticated, match="somebody else"):
        read(aud=aud)


@pytest.mark.parametrize(
    "iss", ["https://id.example/", "https://evil.example", ["https://id.example"], None, 1]
)
def test_a_token_of_another_issuer_is_refused(iss: object) -> None:
    with pytest.raises(NotAuthenticated, match="another issuer"):
        read(iss=iss)


def test_a_token_ends_when_it_says_and_clocks_may_differ_by_so_much() -> None:
    assert read(exp=NOW_S - 29).until_ms == (NOW_S + 1) * 1_000
    for ended in (NOW_S - 30, NOW_S - 31, 0, 1):
        with pytest.raises(NotAuthenticated, match="has ended"):
            read(exp=ended)


@pytest.mark.parametrize("exp", ["1900000000", True, -1, 1e300, [NOW_S + 60], {}])
def test_what_is_no_time_is_no_end(exp: object) -> None:
    with pytest.raises(NotAuthenticated, match="no time in exp"):
        read(exp=exp)


def test_a_token_without_an_end_is_refused() -> None:
    with pytest.raises(NotAuthenticated, match="no end"):
        read(exp=None)


@pytest.mark.parametrize("claim", ["nbf", "iat"])
def test_a_token_of_the_future_is_refused(claim: str) -> None:
    assert read(CONFIG, **{claim: NOW_S + 30}).name == "alice"
    with pytest.raises(NotAuthenticated, match="not good yet"):
        read(CONFIG, **{claim: NOW_S + 31})
    with pytest.raises(NotAuthenticated, match=f"no time in {claim}"):
        read(CONFIG, **{claim: "soon"})


@pytest.mark.parametrize(
    "name",
    ["", None, 7, ["alice"], "root", "ANONYMOUS", "*", "key_0123", "a\nb", "x" * 300, "..", "\u202eecila"],
)
def test_a_holder_whose_name_could_be_another_s_is_refused(name: object) -> None:
    with pytest.raises(NotAuthenticated):
        read(sub=name)


def test_names_as_issuers_write_them_are_taken() -> None:
    for name in ("auth0|5f7c", "alice@example.org", "3fa85f64-5717-4562-b3fc-2c963f66afa6", "Zoë"):
        assert read(sub=name).name == name


def test_another_claim_may_name_the_holder_and_claims_stand_inside_others() -> None:
    config = TokenConfig(
        issuer=CONFIG.issuer,
        audiences=CONFIG.audiences,
        name_claim="preferred_username",
        roles_claim="realm_access.roles",
        roles={"ops": Role.OPERATOR, "devs": Role.DEVELOPER},
    )
    holder = read(config, preferred_username="bob", realm_access={"roles": ["ops", "devs", "admin", 3]})

    assert holder.name == "bob"
    assert holder.roles == (Role.DEVELOPER, Role.OPERATOR)
    assert read(config, preferred_username="bob", realm_access="ops").roles == ()
    assert read(config, **{"preferred_username": "bob", "realm_access.roles": "ops"}).roles == (
        Role.OPERATOR,
    )
    with pytest.raises(NotAuthenticated, match="who its holder is"):
        read(config)


def test_roles_are_given_only_where_a_claim_is_named_for_them() -> None:
    assert read(roles=["admin"]).roles == ()


def test_a_token_that_must_name_a_tenant_and_does_not_is_refused() -> None:
    config = TokenConfig(issuer=CONFIG.issuer, audiences=CONFIG.audiences, tenant_claim="org")

    assert read(config, org="acme").tenant == "acme"
    for org in (None, "", 7, ["acme"]):
        with pytest.raises(NotAuthenticated, match="to which tenant"):
            read(config, org=org)


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b"{", b"\xff", b'"x"', b"[" * 100_000, b'{"exp": NaN}']
)
def test_what_holds_no_claims_is_refused(payload: bytes) -> None:
    with pytest.raises(NotAuthenticated):
        read_claims(payload, CONFIG, now_ms=0)


def test_a_configuration_that_would_take_any_token_cannot_be_made() -> None:
    good: dict[str, Any] = {"issuer": "i", "audiences": frozenset({"a"})}
    for wrong in ({"issuer": ""}, {"audiences": frozenset[str]()}, {"name_claim": ""}, {"skew_ms": 300_001}):
        with pytest.raises(ValueError):
            TokenConfig(**{**good, **wrong})
