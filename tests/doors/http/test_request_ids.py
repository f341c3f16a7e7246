"""Request ids: on every reply, the client's own where that can be, and in the log lines of the request."""

import asyncio
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.messages import publishing
from goqueue.model.errors import Corrupt
from tests.doors.http.running_door import RunningDoor
from tests.doors.http.test_connections import exchange

BODY = {"messages": [{"value": "x"}]}
MADE = re.compile(r"[0-9a-f]{8}-[0-9a-f]+")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def orders(client: httpx.Client) -> Iterator[str]:
    """A topic with three partitions and nothing in it, gone afterwards."""
    assert client.post("/topics", json={"name": "orders", "num_partitions": 3}).status_code == 201
    yield "orders"
    assert client.delete("/topics/orders").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/topics", 200),
        ("POST", "/topics/orders/messages", 200),
        ("POST", "/topics/missing/messages", 404),
        ("GET", "/groups/none/poll?member_id=m", 404),
        ("POST", "/messages/ack", 400),
        ("GET", "/nothing", 404),
        ("PUT", "/topics", 405),
        ("GET", "/readyz", 200),
        ("OPTIONS", "/topics", 204),
    ],
)
def test_every_reply_carries_an_id(
    client: httpx.Client, orders: str, method: str, path: str, status: int
) -> None:
    replies = [client.request(method, path, json=BODY) for _ in range(2)]

    assert {reply.status_code for reply in replies} == {status}
    made = {reply.headers["x-request-id"] for reply in replies}
    assert len(made) == 2
    assert all(MADE.fullmatch(name) for name in made)


@pytest.mark.parametrize("path", ["/topics/orders/messages", "/topics/missing/messages", "/nothing"])
def test_a_client_may_choose_it(client: httpx.Client, orders: str, path: str) -> None:
    reply = client.post(path, json=BODY, headers={"X-Request-ID": "order 66/e"})

    assert reply.headers.get_list("x-request-id") == ["order 66/e"]


@pytest.mark.parametrize("wrong", ["", "x" * 129, "caf\xe9", "a\tb"])
def test_what_cannot_be_an_id_is_replaced(client: httpx.Client, wrong: str) -> None:
    reply = client.get("/topics", headers={b"X-Request-ID": wrong.encode("latin-1")})

    assert MADE.fullmatch(reply.headers["x-request-id"])


def test_the_longest_id_is_taken(client: httpx.Client) -> None:
    assert client.get("/topics", headers={"X-Request-ID": "x" * 128}).headers["x-request-id"] == "x" * 128


def test_what_is_not_http_is_answered_with_an_id_too(running: RunningDoor) -> None:
    assert re.search(rb"x-request-id: [0-9a-f]{8}-[0-9a-f]+\r\n", exchange(running, b"what?\r\n\r\n"))


def test_requests_sent_one_behind_the_other_keep_their_own(running: RunningDoor) -> None:
    asked = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx-request-id: %s\r\n%s\r\n"

    received = exchange(
        running,
        asked % (b"first", b"") + asked % (b"second", b"") + asked % (b"last", b"connection: close\r\n"),
    )

    assert re.findall(rb"x-request-id: (\w+)", received) == [b"first", b"second", b"last"]


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [(RuntimeError("broken"), True), (Corrupt("bad", topic="orders", partition=0, offset=7), False)],
)
def test_a_failure_is_logged_with_the_id_of_its_request(
    client: httpx.Client,
    orders: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    has_traceback: bool,
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(publishing, "publish", fail)

    reply = client.post("/topics/orders/messages", json=BODY, headers={"X-Request-ID": "mine"})

    assert (reply.status_code, reply.headers["x-request-id"]) == (500, "mine")
    [record] = [record for record in caplog.records if record.msg.startswith("http_request_failed")]
    assert "path=/topics/orders/messages request_id=mine reason=" in record.getMessage()
    assert (record.exc_info is not None) is has_traceback


def id_of(reply: httpx.Response) -> str:
    return str(reply.headers["x-request-id"])


@pytest.fixture
def logging_requests(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[RunningDoor]:
    caplog.set_level(logging.INFO, "goqueue.edge.http")
    with RunningDoor(tmp_path, HttpConfig(is_logging_requests=True)) as running:
        yield running


def test_the_access_log_tells_of_each_request(
    logging_requests: RunningDoor, caplog: pytest.LogCaptureFixture
) -> None:
    client = logging_requests.client
    created = client.post("/topics", json={"name": "orders"}, headers={"X-Request-ID": "one"})
    published = client.post("/topics/orders/messages?api_key=secret", json=BODY)
    missing = client.get("/nothing", headers={"Authorization": "Bearer secret"})
    logging_requests.run(asyncio.sleep(0))  # the line comes behind the reply, in the same step of the loop

    records = [record for record in caplog.records if record.msg.startswith("http_request ")]
    told = [(record.args[:3], *record.args[4:]) for record in records if isinstance(record.args, tuple)]
    assert told == [
        (("POST", "/topics", 201), len(created.content), "one"),
        (("POST", "/topics/orders/messages", 200), len(published.content), id_of(published)),
        (("GET", "/nothing", 404), len(missing.content), id_of(missing)),
    ]
    # What else logs here, such as the test's own client, is not the broker's to keep silent.
    own = [record.getMessage() for record in caplog.records if record.name.startswith("goqueue")]
    assert "secret" not in "\n".join(own)


def test_without_being_asked_for_there_is_no_access_log(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.get("/topics")

    assert "http_request " not in caplog.text
