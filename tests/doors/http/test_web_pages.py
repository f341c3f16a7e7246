"""What a browser may do to a broker, by the bytes that browsers send. The rules: `tests/unit/edge_http`."""

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from goqueue.edge.http.config import HttpConfig
from tests.doors.http.running_door import RunningDoor

EVIL = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
DASHBOARD = "https://dashboard.example"
BODY = {"messages": [{"value": "x"}]}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        yield running


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[httpx.Client]:
    """A door at which the pages of a dashboard are welcome."""
    config = HttpConfig(cors_origins=(DASHBOARD,), hosts=("broker.example",))
    with RunningDoor(tmp_path, config) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        yield running.client


REQUESTS: list[Callable[[httpx.Client, dict[str, str]], httpx.Response]] = [
    lambda client, headers: client.get("/topics", headers=headers),
    lambda client, headers: client.delete("/topics/orders", headers=headers),
    lambda client, headers: client.post("/topics/orders/messages", json=BODY, headers=headers),
    lambda client, headers: client.get("/groups/g/poll?member_id=m", headers=headers),
    lambda client, headers: client.post(
        "/messages/ack", content=b"{}", headers=headers | {"content-type": "text/plain"}
    ),
    lambda client, headers: client.get("/nothing", headers=headers),
    lambda client, headers: client.get(
        "/topics", headers=headers | {"Upgrade": "websocket", "Connection": "Upgrade"}
    ),
    lambda client, headers: client.options(
        "/topics/orders", headers=headers | {"Access-Control-Request-Method": "DELETE"}
    ),
]


@pytest.mark.parametrize("ask", REQUESTS)
def test_a_page_of_another_origin_reads_and_changes_nothing(
    client: httpx.Client, ask: Callable[[httpx.Client, dict[str, str]], httpx.Response]
) -> None:
    reply = ask(client, EVIL)

    assert (reply.status_code, reply.json()["code"]) == (403, "origin_denied")
    assert not [name for name in reply.headers if name.startswith("access-control")]
    assert reply.headers["vary"] == "Origin"
    assert client.get("/topics/orders").status_code == 200
    assert client.get("/topics/orders/partitions/0/messages").json()["messages"] == []


@pytest.mark.parametrize("ask", REQUESTS)
def test_a_name_that_leads_here_without_being_ours_reaches_nothing(
    client: httpx.Client, ask: Callable[[httpx.Client, dict[str, str]], httpx.Response]
) -> None:
    reply = ask(client, {"Host": "rebound.example:8080", "Sec-Fetch-Site": "same-origin"})

    assert (reply.status_code, reply.json()["code"]) == (403, "host_denied")
    assert "HTTP_HOSTS" in reply.json()["error"]


@pytest.mark.parametrize("names", [("127.0.0.1", "rebound.example"), ("rebound.example", "127.0.0.1")])
def test_a_good_name_that_is_known_hides_no_other(running: RunningDoor, names: tuple[str, str]) -> None:
    assert running.client.get("/topics", headers={"Host": "127.0.0.1"}).status_code == 200

    connection = HTTPConnection("127.0.0.1", running.port)
    connection.putrequest("GET", "/topics", skip_host=True)
    for name in names:
        connection.putheader("Host", name)
    connection.endheaders()
    reply = connection.getresponse()

    assert (reply.status, json.loads(reply.read())["error"]) == (400, "a request has one Host")
    connection.close()


def test_programs_hear_nothing_of_all_this(client: httpx.Client) -> None:
    reply = client.post("/topics/orders/schedules", content=b"{}", headers={"content-type": "text/plain"})
    plain = client.get("/topics")

    assert reply.json()["code"] == "invalid"  # it is read, whatever it says to be
    assert not [name for name in plain.headers if name.startswith(("access-control", "vary"))]


def test_the_page_of_the_broker_itself_works(running: RunningDoor) -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Origin": running.url}
    opened = running.client.get("/docs", headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"})

    assert opened.status_code == 200
    assert running.client.get("/openapi.json", headers=own).status_code == 200
    assert running.client.post("/topics", json={"name": "own"}, headers=own).status_code == 201
    formed = running.client.post("/topics", content=b'{"name": "form"}', headers=own)
    assert (formed.status_code, formed.json()["code"]) == (415, "unsupported_media_type")
    assert running.client.delete("/topics/own", headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/topics", "/topics/orders/messages", "/v1/topics/orders/messages"])
def test_a_listed_page_is_told_what_it_may_send(trusting: httpx.Client, path: str) -> None:
    asked = trusting.options(
        path,
        headers={
            "origin": DASHBOARD,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type, x-api-key",
        },
    )

    assert asked.status_code == 204
    assert asked.headers["access-control-allow-origin"] == DASHBOARD
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "x-api-key" in asked.headers["access-control-allow-headers"].lower()
    assert asked.headers["access-control-max-age"] == "300"
    assert asked.headers["vary"] == "Origin"


def test_a_listed_page_reads_replies_and_their_headers(trusting: httpx.Client) -> None:
    origin = {"origin": DASHBOARD, "sec-fetch-site": "cross-site"}

    for reply in (
        trusting.get("/topics", headers=origin),
        trusting.get("/nothing", headers=origin),
        trusting.post("/topics/orders/messages", json=BODY, headers=origin),
        trusting.post("/topics/orders/messages", content=b"{", headers=origin | JSON),
    ):
        assert reply.headers["access-control-allow-origin"] == DASHBOARD
        assert "X-Request-ID" in reply.headers["access-control-expose-headers"]
        assert reply.headers["vary"] == "Origin"
    assert trusting.get("/topics", headers={"host": "broker.example"}).status_code == 200
    assert trusting.get("/topics", headers=EVIL).status_code == 403
