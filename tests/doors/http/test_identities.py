"""The HTTP door asks who is there: keys and passwords, what strangers get, and who keeps both."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from goqueue.edge.authentication import AuthConfig
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.tls import ClientAuth
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor

ROOT_KEY = "the key of all keys"
ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
ROOT = {"X-API-Key": ROOT_KEY}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path, listener=ASKING, auth=AuthConfig(root_key=ROOT_KEY)) as running:
        yield running


@pytest.fixture
def client(running: RunningDoor) -> httpx.Client:
    return running.client


def new_key(client: httpx.Client, **wanted: Any) -> dict[str, Any]:
    reply = client.post("/admin/keys", json={"name": "mine", **wanted}, headers=ROOT)
    assert reply.status_code == 201, reply.text
    made: dict[str, Any] = reply.json()
    return made


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_a_stranger_is_told_what_to_show_and_nothing_else(client: httpx.Client) -> None:
    for path in ("/topics", "/v1/topics", "/metrics", "/docs", "/openapi.json", "/stats", "/admin/keys"):
        reply = client.get(path)
        assert reply.status_code == 401, path
        assert reply.json()["code"] == "not_authenticated"
        assert set(reply.headers.get_list("www-authenticate")) == {
            'Bearer realm="goqueue"',
            'Basic realm="goqueue", charset="UTF-8"',
        }
    assert client.post("/topics/orders/messages", json={"messages": [{"value": "x"}]}).status_code == 401
    assert client.get("/groups/g/poll").status_code == 401


def test_probes_stay_open_unless_a_setting_shuts_them(client: httpx.Client, tmp_path: Path) -> None:
    assert client.get("/healthz").status_code == 200
    (tmp_path / "shut").mkdir()
    config = HttpConfig(are_probes_open=False)
    with RunningDoor(tmp_path / "shut", config, listener=ASKING, auth=AuthConfig()) as shut:
        assert shut.client.get("/healthz").status_code == 401


def test_a_key_opens_in_each_of_its_places_but_not_in_an_address(client: httpx.Client) -> None:
    secret = new_key(client)["key"]

    assert client.get("/topics", headers=bearer(secret)).status_code == 200
    assert client.get("/topics", headers={"X-API-Key": secret}).status_code == 200
    assert client.get("/topics", headers=basic("anybody", secret)).status_code == 401
    assert client.get(f"/topics?api_key={secret}").status_code == 401


def test_a_key_in_an_address_opens_where_a_setting_says_so(tmp_path: Path) -> None:
    config = HttpConfig(takes_query_keys=True)
    with RunningDoor(tmp_path, config, listener=ASKING, auth=AuthConfig(root_key=ROOT_KEY)) as running:
        assert running.client.get("/topics", params={"api_key": ROOT_KEY}).status_code == 200
        assert running.client.get("/topics", params={"api_key": "another"}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer gq_" + "0" * 64},
        {"Authorization": "Basic"},
        {"Authorization": "Basic ????"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe:x").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"Authorization": "Digest x"},
        {"X-API-Key": ""},
        {"X-API-Key": "gq_"},
        {"X-API-Key": "\xe4" * 100},
        {"Authorization": "Bearer " + "x" * 30_000},
    ],
)
def test_what_opens_nothing_is_refused(client: httpx.Client, headers: dict[str, str]) -> None:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]

    assert client.get("/topics", headers=encoded).status_code == 401


def test_keys_are_made_listed_and_revoked_as_the_contract_has_it(client: httpx.Client) -> None:
    made = new_key(client, roles=["producer", "readonly"], expires_in="1h")
    client.get("/topics", headers=bearer(made["key"]))

    listed = client.get("/admin/keys", headers=ROOT).json()
    revoked = client.delete(f"/admin/keys/{made['id']}", headers=ROOT)

    assert made["key"].startswith("gq_") and made["prefix"] == made["key"][:11]
    assert made["roles"] == ["producer", "viewer"]
    [key] = listed["keys"]
    assert (listed["count"], key["id"], key["revoked"]) == (1, made["id"], False)
    assert key["last_used_at"] is not None and key["expires_at"] == made["expires_at"]
    assert made["key"] not in str(listed)
    assert revoked.json() == {"success": True, "message": "key revoked", "key_id": made["id"]}
    assert client.get("/topics", headers=bearer(made["key"])).status_code == 401
    assert client.delete("/admin/keys/key_none", headers=ROOT).status_code == 404


def test_a_key_that_has_expired_opens_nothing(client: httpx.Client) -> None:
    made = new_key(client, expires_in="0s")

    assert client.get("/topics", headers=bearer(made["key"])).status_code == 401


def test_a_rotated_key_is_good_for_a_while_beside_the_new_one(client: httpx.Client) -> None:
    made = new_key(client)

    kept = client.post(f"/admin/keys/{made['id']}/rotate", json={"keep_old_for": "1h"}, headers=ROOT).json()
    assert client.get("/topics", headers=bearer(made["key"])).status_code == 200
    assert client.get("/topics", headers=bearer(kept["key"])).status_code == 200
    last = client.post(f"/admin/keys/{kept['id']}/rotate", headers=ROOT).json()

    assert client.get("/topics", headers=bearer(kept["key"])).status_code == 401
    assert client.get("/topics", headers=bearer(last["key"])).status_code == 200


def test_only_administrators_keep_keys_and_users(client: httpx.Client) -> None:
    plain, admin = new_key(client, roles=["consumer"]), new_key(client, roles=["admin"])

    for method, path in (("GET", "/admin/keys"), ("GET", "/admin/users"), ("DELETE", "/admin/users/x")):
        assert client.request(method, path, headers=bearer(plain["key"])).status_code == 403
    assert client.get("/admin/users", headers=bearer(admin["key"])).status_code == 200
    for wanted in ({"name": "x", "roles": ["king"]}, {"name": ""}, {}, {"name": "x", "expires_in": "-1h"}):
        assert client.post("/admin/keys", json=wanted, headers=ROOT).status_code == 400


def test_where_nobody_is_asked_nobody_is_an_administrator(tmp_path: Path) -> None:
    with RunningDoor(tmp_path) as running:
        assert running.client.get("/admin/keys").status_code == 401
        assert running.client.post("/admin/keys", json={"name": "x"}).status_code == 401


def test_a_user_comes_in_by_a_password_until_it_is_disabled(client: httpx.Client) -> None:
    saved = client.post("/admin/users", json={"name": "alice"}, headers=ROOT)
    password = saved.json()["password"]
    again = client.post("/admin/users", json={"name": "alice"}, headers=ROOT)
    assert (saved.status_code, again.status_code) == (201, 409)
    assert client.get("/topics", headers=basic("alice", password)).status_code == 200
    assert client.get("/topics", headers=basic("alice", password + "x")).status_code == 401

    client.post("/admin/users/alice/disable", headers=ROOT)
    assert client.get("/topics", headers=basic("alice", password)).status_code == 401
    client.post("/admin/users/alice/enable", headers=ROOT)

    assert client.get("/topics", headers=basic("alice", password)).status_code == 200
    listed = client.get("/admin/users", headers=ROOT)
    assert [user["name"] for user in listed.json()["users"]] == ["alice"]
    assert password not in listed.text and "digest" not in listed.text
    assert client.delete("/admin/users/alice", headers=ROOT).status_code == 200
    assert client.get("/topics", headers=basic("alice", password)).status_code == 401


def test_an_old_password_is_good_for_a_while_if_asked_for(client: httpx.Client) -> None:
    old = client.post("/admin/users", json={"name": "alice"}, headers=ROOT).json()["password"]

    kept = {"password": "a new password", "keep_old_for": "1h"}
    assert client.put("/admin/users/alice/password", json=kept, headers=ROOT).json() == {"name": "alice"}
    assert client.get("/topics", headers=basic("alice", old)).status_code == 200
    assert client.get("/topics", headers=basic("alice", "a new password")).status_code == 200
    last = client.put("/admin/users/alice/password", headers=ROOT).json()["password"]

    assert client.get("/topics", headers=basic("alice", "a new password")).status_code == 401
    assert client.get("/topics", headers=basic("alice", last)).status_code == 200
    short = client.put("/admin/users/alice/password", json={"password": "short"}, headers=ROOT)
    assert short.status_code == 400


def test_a_certificate_says_who_somebody_is_as_well(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    (tmp_path / "data").mkdir()
    listener = tls_listener(certificates.shown(ClientAuth.VERIFY), asks_who=True)
    with RunningDoor(tmp_path / "data", listener=listener, auth=AuthConfig()) as running:
        shown = httpx.get(f"{running.url}/topics", verify=certificates.trust("alice"))
        hidden = httpx.get(f"{running.url}/topics", verify=certificates.trust())

    assert (shown.status_code, hidden.status_code) == (200, 401)
