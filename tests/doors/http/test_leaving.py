"""A refusal is read by whoever sends too much; no body and no patience takes the door's memory or time."""

import http.client
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import httpx
import pytest
import requests
import uvloop

from goqueue.edge.http.config import HttpConfig
from goqueue.model.settings import MiB
from tests.doors.http.running_door import RunningDoor

LIMIT = 4 * MiB
BODY = b"x" * (16 * MiB)
"""More than the buffers of both sockets hold: a client that is reset while it sends it reads no reply."""
PATHS = ["/topics/orders/messages", "/topics", "/batches", "/messages/ack"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    bounds = HttpConfig(body_bytes=LIMIT, leave_bytes=32 * MiB, head_timeout_s=0.5, stall_timeout_s=0.5)
    with RunningDoor(tmp_path_factory.mktemp("data"), bounds) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        yield running


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("headers", [{}, {"connection": "close"}])
def test_plain_python_reads_why_its_body_is_refused(
    running: RunningDoor, path: str, headers: dict[str, str]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    connection.request("POST", path, BODY, headers)
    reply = connection.getresponse()

    assert reply.status == 413
    assert b"request_too_large" in reply.read()
    assert reply.headers["connection"] == "close"


def test_plain_python_reads_it_after_a_body_in_chunks(running: RunningDoor) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    connection.request("POST", PATHS[0], iter([BODY[: 1 * MiB]] * 16), encode_chunked=True)

    assert connection.getresponse().status == 413


@pytest.mark.parametrize("path", PATHS)
def test_other_clients_read_it_too(running: RunningDoor, path: str) -> None:
    async def by_aiohttp() -> int:
        async with aiohttp.ClientSession() as session, session.post(running.url + path, data=BODY) as reply:
            return reply.status

    assert requests.post(running.url + path, data=BODY, timeout=20).status_code == 413
    assert requests.post(running.url + path, data=iter([BODY]), timeout=20).status_code == 413
    assert httpx.post(running.url + path, content=BODY, timeout=20).status_code == 413
    assert uvloop.run(by_aiohttp()) == 413


def test_curl_reads_it_too(running: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(BODY)
    command = ["curl", "-sS", "--data-binary", f"@{tmp_path / 'body'}", running.url + PATHS[0]]

    for extra in ([], ["-H", "expect:"], ["-H", "transfer-encoding: chunked"], ["--http1.0"]):
        told = subprocess.run([*command, *extra], capture_output=True, text=True, timeout=20, check=False)
        assert '"code":"request_too_large"' in told.stdout, told.stderr


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_an_endless_body_is_not_read_to_its_end(running: RunningDoor, path: str) -> None:
    sent = 0
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" % path.encode()
        )
        with pytest.raises(OSError):  # a reset or a broken pipe
            while sent < 200 * MiB:
                connection.sendall(b"100000\r\n" + BODY[: 1 * MiB] + b"\r\n")
                sent += MiB

    assert sent < 100 * MiB
    assert running.client.get("/health").status_code == 200


def test_bodies_that_are_refused_take_no_memory(running: RunningDoor) -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    client = "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
    client += "c.request('POST', '/topics', iter([b'x' * 1048576] * 24), encode_chunked=True);"
    client += "print(c.getresponse().status)"
    before = resident_bytes()
    ended = [
        subprocess.run(
            [sys.executable, "-c", client, str(running.port)], capture_output=True, text=True, check=True
        )
        for _ in range(8)
    ]

    assert {one.stdout for one in ended} == {"413\n"}
    assert resident_bytes() - before < 4 * LIMIT


@pytest.mark.parametrize(
    "start",
    [
        b"GET /health HTTP/1.1\r\nx-slow: ",
        b"POST /topics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n",
        b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n",
    ],
)
def test_a_request_that_comes_byte_by_byte_is_given_up(running: RunningDoor, start: bytes) -> None:
    begun_s = time.monotonic()
    with socket.create_connection(("127.0.0.1", running.port), timeout=0.02) as connection:
        connection.sendall(start)
        while time.monotonic() - begun_s < 20:
            try:
                connection.sendall(b"x")
                if not connection.recv(1_000):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break

    assert time.monotonic() - begun_s < 10


def test_a_large_body_that_keeps_coming_is_taken_however_long_it_takes(running: RunningDoor) -> None:
    value = b"x" * 200_000
    body = b'{"messages":[{"value":"%s"}]}' % value
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(b"POST /topics/orders/messages HTTP/1.1\r\nhost: localhost\r\n")
        connection.sendall(b"content-length: %d\r\n\r\n" % len(body))
        begun_s = time.monotonic()
        for at in range(0, len(body), 10_000):
            # Nothing comes back before all is there, so each look takes a twentieth of a second.
            assert select.select([connection], [], [], 0.05)[0] == []
            connection.sendall(body[at : at + 10_000])

        assert time.monotonic() - begun_s > 0.9
        assert connection.recv(1_000).startswith(b"HTTP/1.1 200 ")


def test_a_request_behind_one_that_is_refused_is_not_served(running: RunningDoor) -> None:
    publish = b"POST /topics/orders/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s"
    before = running.client.get("/topics/orders").json()["total_messages"]
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(publish % (LIMIT + 1, b"x" * 1_000))
        received = connection.recv(65_536)
        message = b'{"messages":[{"value":"hidden"}]}'
        connection.sendall(b"x" * (LIMIT + 1 - 1_000) + publish % (len(message), message))
        while part := connection.recv(65_536):
            received += part

    assert received.count(b"HTTP/1.1 ") == 1
    assert running.client.get("/topics/orders").json()["total_messages"] == before
