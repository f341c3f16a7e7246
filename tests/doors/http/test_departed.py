"""Who has gone stays out: those of a deleted tenant, and users who are shut out but have a certificate."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.edge.authentication import AuthConfig
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.tls import ClientAuth
from goqueue.edge.token_claims import TokenConfig
from goqueue.model.settings import AccessConfig, BrokerConfig
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor
from tests.doors.identity_provider import AUDIENCE, ISSUER, Signer, tokens_of

ROOT = {"x-api-key": "the key of all keys"}
AUTH = AuthConfig(root_key=ROOT["x-api-key"])
RULED = BrokerConfig(access=AccessConfig(is_on=True, super_users=("User:root",)))
CLAIMS = TokenConfig(issuer=ISSUER, audiences=frozenset({AUDIENCE}), tenant_claim="tenant")


@pytest.fixture
def signer() -> Signer:
    return Signer()


@pytest.fixture
def client(tmp_path: Path, signer: Signer) -> Iterator[httpx.Client]:
    listener = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
    tokens = tokens_of(signer, CLAIMS)
    with RunningDoor(tmp_path, HttpConfig(), RULED, listener=listener, auth=AUTH, tokens=tokens) as running:
        yield running.client


def made(client: httpx.Client, path: str, **body: object) -> dict[str, str]:
    reply = client.post(path, json=body, headers=ROOT)
    assert reply.status_code == 201, reply.text
    shown: dict[str, str] = reply.json()
    return shown


def test_who_is_of_a_deleted_tenant_opens_nothing_not_even_the_next_of_its_name(
    client: httpx.Client, signer: Signer
) -> None:
    made(client, "/admin/tenants", id="acme", name="acme", quotas={"max_topics": 1})
    key = made(client, "/admin/keys", name="k", roles=["admin"], tenant="acme")["key"]
    made(client, "/admin/users", name="ann", password="long enough", tenant="acme")
    of_ann = made(client, "/admin/keys", name="a", user="ann")["key"]
    shown = [{"x-api-key": key}, {"x-api-key": of_ann}, {"x-api-key": signer.token(tenant="acme")}]
    for header in shown:
        assert client.get("/topics", headers=header).status_code == 200
    assert client.get("/topics", auth=("ann", "long enough")).status_code == 200

    client.delete("/admin/tenants/acme", headers=ROOT).raise_for_status()

    for header in shown:
        assert client.get("/topics", headers=header).status_code == 401
    assert client.get("/topics", auth=("ann", "long enough")).status_code == 401
    made(client, "/admin/tenants", id="acme", name="somebody else")
    for header in shown[:2]:
        assert client.get("/topics", headers=header).status_code == 401
    assert client.get("/topics", auth=("ann", "long enough")).status_code == 401
    new = made(client, "/admin/keys", name="n", roles=["admin"], tenant="acme")["key"]
    assert client.get("/topics", headers={"x-api-key": new}).status_code == 200


def test_a_certificate_of_a_user_who_is_disabled_opens_nothing(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    shown = certificates.shown(ClientAuth.REQUIRE, rules="RULE:^CN=(.*?),.*$/$1/L")
    listener = tls_listener(shown, asks_who=True)
    with (
        RunningDoor(tmp_path / "data", HttpConfig(), RULED, listener=listener, auth=AUTH) as running,
        httpx.Client(base_url=running.url, verify=certificates.trust("root")) as root,
        httpx.Client(base_url=running.url, verify=certificates.trust("ann")) as ann,
    ):
        assert root.post("/admin/users", json={"name": "ann"}).status_code == 201
        assert ann.get("/topics").status_code == 200
        root.post("/admin/users/ann/disable").raise_for_status()
        refused = ann.get("/topics")
        assert (refused.status_code, refused.json()["code"]) == (401, "not_authenticated")
        root.post("/admin/users/ann/enable").raise_for_status()
        assert ann.get("/topics").status_code == 200
