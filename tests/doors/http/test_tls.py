"""The HTTP door over TLS."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.edge.tls import ClientAuth
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.http.running_door import RunningDoor


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def running(tmp_path: Path, certificates: Certificates) -> Iterator[RunningDoor]:
    (tmp_path / "data").mkdir()
    with RunningDoor(tmp_path / "data", listener=tls_listener(certificates.shown())) as running:
        yield running


@pytest.fixture
def client(running: RunningDoor, certificates: Certificates) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running.url, verify=certificates.trust()) as client:
        yield client


def test_messages_go_in_and_out_over_tls(client: httpx.Client) -> None:
    value = "x" * 500_000
    assert client.post("/topics", json={"name": "orders", "num_partitions": 1}).status_code == 201
    assert (
        client.post("/topics/orders/messages", json={"messages": [{"value": value}] * 3}).status_code == 200
    )

    read = client.get("/topics/orders/partitions/0/messages").json()["messages"]

    assert [message["value"] for message in read] == [value] * 3


def test_a_body_that_is_too_large_is_refused_over_tls_too(client: httpx.Client) -> None:
    reply = client.post("/topics/orders/messages", content=b"x" * (8 << 20))

    assert reply.status_code == 413


def test_who_speaks_no_tls_is_not_answered(running: RunningDoor, client: httpx.Client) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP/1.1 200" not in plain.recv(1_000)
    assert client.get("/health").status_code == 200


def test_a_certificate_of_the_client_can_be_required(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "data").mkdir()
    listener = tls_listener(certificates.shown(ClientAuth.REQUIRE_VERIFY))
    with RunningDoor(tmp_path / "data", listener=listener) as running:
        known = httpx.get(f"{running.url}/health", verify=certificates.trust("alice"))
        with pytest.raises((httpx.TransportError, ssl.SSLError)):
            httpx.get(f"{running.url}/health", verify=certificates.trust())

    assert known.status_code == 200
