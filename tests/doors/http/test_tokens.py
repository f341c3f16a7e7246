"""Tokens at the HTTP door, beside keys and passwords."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.edge.authentication import AuthConfig, Authenticator
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.token_claims import TokenConfig
from goqueue.model.access import Role
from tests.doors.http.running_door import RunningDoor
from tests.doors.identity_provider import AUDIENCE, ISSUER, Signer, tokens_of

ROOT_KEY = "the key of all keys"
ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
CONFIG = TokenConfig(
    issuer=ISSUER, audiences=frozenset({AUDIENCE}), roles_claim="groups", roles={"ops": Role.ADMIN}
)


@pytest.fixture
def signer() -> Signer:
    return Signer()


@pytest.fixture
def client(tmp_path: Path, signer: Signer) -> Iterator[httpx.Client]:
    auth = AuthConfig(root_key=ROOT_KEY)
    with RunningDoor(tmp_path, listener=ASKING, auth=auth, tokens=tokens_of(signer, CONFIG)) as running:
        yield running.client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_opens_as_a_key_does(client: httpx.Client, signer: Signer) -> None:
    token = signer.token()

    for _ in range(2):  # looked at, and remembered
        assert client.get("/topics", headers=bearer(token)).status_code == 200
    assert client.get("/topics", headers={"X-API-Key": token}).status_code == 200
    assert client.get("/topics", headers={"X-API-Key": ROOT_KEY}).status_code == 200
    assert client.get(f"/topics?api_key={token}").status_code == 401


def test_a_bad_token_is_refused_with_a_reason_and_never_repeated(
    client: httpx.Client, signer: Signer
) -> None:
    for token, reason in (
        (signer.token(lasts_s=-100), "has ended"),
        (signer.token(iss="https://evil.example"), "another issuer"),
        (Signer().token(), "does not tell of"),
        (signer.token() + "x" * 20_000, "more than"),
    ):
        reply = client.get("/topics", headers=bearer(token))
        assert (reply.status_code, reply.json()["code"]) == (401, "not_authenticated")
        assert reason in reply.text
        assert token[-20:] not in reply.text
        assert reply.headers["www-authenticate"].startswith("Bearer")


def test_what_is_neither_a_key_nor_a_token_is_refused(client: httpx.Client) -> None:
    for secret in ("gq_" + "0" * 64, "a.b", "not a key", "x" * 40_000):
        reply = client.get("/topics", headers=bearer(secret))
        assert reply.status_code == 401 and "key is not good" in reply.text


def test_whoever_shows_bad_keys_and_tokens_waits_longer_each_time(
    client: httpx.Client, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[tuple[str, str]] = []

    async def note(authenticator: Authenticator, name: str, host: str, reason: str) -> None:
        failed.append((name, reason))

    monkeypatch.setattr(Authenticator, "delay_failure", note)
    client.get("/topics", headers=bearer("gq_" + "0" * 64))
    client.get("/topics", headers=bearer(signer.token(lasts_s=-100)))
    client.get("/topics", auth=("alice", "wrong"))
    client.get("/topics", headers=bearer(signer.token()))
    client.get("/topics")  # who shows nothing guesses nothing

    assert [name for name, _ in failed] == ["", "", "alice"]
    assert "ended" in failed[1][1]


def test_a_claim_makes_an_administrator_where_a_setting_says_so(client: httpx.Client, signer: Signer) -> None:
    made = client.post("/admin/keys", json={"name": "mine"}, headers=bearer(signer.token(groups=["ops"])))
    refused = client.post(
        "/admin/keys", json={"name": "mine"}, headers=bearer(signer.token(groups=["admin"]))
    )

    assert made.status_code == 201
    assert refused.status_code == 403


def test_a_user_who_is_disabled_is_out_though_the_token_is_remembered(
    client: httpx.Client, signer: Signer
) -> None:
    token, root = signer.token("carol"), {"X-API-Key": ROOT_KEY}
    assert client.get("/topics", headers=bearer(token)).status_code == 200
    assert client.post("/admin/users", json={"name": "carol"}, headers=root).status_code == 201
    assert client.get("/topics", headers=bearer(token)).status_code == 200
    client.post("/admin/users/carol/disable", headers=root).raise_for_status()

    assert client.get("/topics", headers=bearer(token)).status_code == 401
