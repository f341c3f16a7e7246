"""Clients that misbehave: each is turned away alone, and the door stays open for the others."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from goqueue.edge.admission import ConnectionLimits
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.door import HttpDoor
from tests.doors.http.running_door import RunningDoor

PUBLISH = b"POST /topics/orders/messages HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    bounds = HttpConfig(head_bytes=8 * 1024, idle_timeout_s=0.2, stall_timeout_s=0.2)
    with RunningDoor(tmp_path, bounds) as running:
        assert running.client.post("/topics", json={"name": "orders"}).status_code == 201
        yield running


def exchange(running: RunningDoor, *sent: bytes) -> bytes:
    """Send, and give all that comes until the door hangs up."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in sent:
            connection.sendall(part)
        received = bytearray()
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass  # it hung up while we were still sending; what it said before is in
        return bytes(received)


def is_served(running: RunningDoor) -> bool:
    return httpx.get(f"{running.url}/health").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"this is not http\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /caf\xe9 HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
        PUBLISH + b"content-length: many\r\n\r\n",
        PUBLISH + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        PUBLISH + b"transfer-encoding: chunked\r\n\r\nzz\r\nbad chunk",
    ],
)
def test_what_is_not_http_is_refused_and_hung_up_on(running: RunningDoor, sent: bytes) -> None:
    received = exchange(running, sent)

    assert received.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"invalid"' in received
    assert is_served(running)


@pytest.mark.parametrize("pieces", [1, 20])
def test_a_huge_head_is_refused(running: RunningDoor, pieces: int) -> None:
    header = b"x-large: " + b"x" * 8_300  # over the limit with its last piece, so that all of it can be sent
    size = len(header) // pieces + 1
    parts = [header[start : start + size] for start in range(0, len(header), size)]

    received = exchange(running, b"GET /health HTTP/1.1\r\nhost: localhost\r\n", *parts)

    assert received.startswith(b"HTTP/1.1 431 ")
    assert is_served(running)


def test_a_client_that_says_nothing_is_hung_up_on(running: RunningDoor) -> None:
    assert exchange(running) == b""


def test_a_client_that_sends_empty_lines_alone_is_hung_up_on(running: RunningDoor) -> None:
    assert exchange(running, b"\r\n") == b""


def test_a_client_that_goes_on_asking_is_kept_however_long(running: RunningDoor) -> None:
    until_s = time.monotonic() + 3 * 0.2

    with httpx.Client(base_url=running.url) as client:
        addresses = set()
        while time.monotonic() < until_s:
            stream = client.get("/health").extensions["network_stream"]
            addresses.add(stream.get_extra_info("client_addr"))

    assert len(addresses) == 1


@pytest.mark.parametrize("sent", [b"GET /hea", PUBLISH, PUBLISH + b"content-length: 100\r\n\r\n{"])
def test_a_request_that_stalls_is_given_up(running: RunningDoor, sent: bytes) -> None:
    assert exchange(running, sent) == b""
    assert is_served(running)


def test_a_client_that_hangs_up_early_leaves_no_trace(
    running: RunningDoor, caplog: pytest.LogCaptureFixture
) -> None:
    for sent in (b"GET", PUBLISH, PUBLISH + b'content-length: 100\r\n\r\n{"messages"'):
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            connection.sendall(sent)

    assert is_served(running)
    assert running.client.get("/topics/orders").json()["total_messages"] == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_requests_sent_without_waiting_are_answered_in_order(running: RunningDoor) -> None:
    requests = b"".join(
        b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % path
        for path in (b"/version", b"/nothing", b"/topics")
    )

    received = exchange(running, requests)

    assert received.index(b'"go_version"') < received.index(b'"no_such_route"') < received.index(b'"topics"')


OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
BODY = b'{"messages":[{"value":"x"}]}'


@pytest.mark.parametrize(
    "framed_body",
    [
        b"content-length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 100, 10_000])
def test_an_offer_to_speak_http_2_is_declined_and_the_request_served(
    running: RunningDoor, framed_body: bytes, piece_bytes: int
) -> None:
    sent = PUBLISH + OFFER + framed_body + b"GET /version HTTP/1.1\r\nhost: localhost\r\n" + OFFER + b"\r\n"

    received = exchange(
        running, *[sent[start : start + piece_bytes] for start in range(0, len(sent), piece_bytes)]
    )

    assert received.count(b"HTTP/1.1 200 ") == 2
    assert b'"results":[{"partition":0,"offset":0,' in received
    assert b'"go_version"' in received
    assert is_served(running)


def test_an_offer_of_a_request_that_ends_nobody_knows_where_is_refused(running: RunningDoor) -> None:
    lengths = b"content-length: 5\r\ntransfer-encoding: identity\r\n"

    assert exchange(running, PUBLISH + OFFER + lengths + b"\r\nhello").startswith(b"HTTP/1.1 400 ")
    assert is_served(running)


@pytest.mark.parametrize("path", [b"/topics", b"/topics/orders/messages"])
def test_a_body_that_turns_bad_is_the_clients_fault(
    running: RunningDoor, caplog: pytest.LogCaptureFixture, path: bytes
) -> None:
    head = b"POST %s HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n" % path

    assert exchange(running, head + b"2\r\n{}\r\n", b"zz\r\n").startswith(b"HTTP/1.1 400 ")
    assert is_served(running)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_what_is_not_http_behind_a_request_leaves_its_reply_the_last_one(running: RunningDoor) -> None:
    received = exchange(running, PUBLISH + b"content-length: %d\r\n\r\n%s\x00 rubbish" % (len(BODY), BODY))

    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_body_too_large_is_refused_before_it_is_sent(running: RunningDoor) -> None:
    received = exchange(running, PUBLISH + b"content-length: 99999999999\r\nexpect: 100-continue\r\n\r\n")

    assert received.startswith(b"HTTP/1.1 413 ")


def test_a_door_that_closes_takes_no_more_connections(tmp_path: Path) -> None:
    with RunningDoor(tmp_path) as running:
        running.run(running.door.stop())

        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{running.url}/health")


def test_a_port_that_is_taken_is_an_error_to_the_caller(running: RunningDoor) -> None:
    second = HttpDoor(running.broker, HttpConfig())

    with pytest.raises(OSError, match="in use"):
        running.run(second.start("127.0.0.1", running.port))


def test_one_address_has_its_bound_and_whoever_leaves_makes_room(tmp_path: Path) -> None:
    limits = ConnectionLimits(per_address_max=3)
    ask = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with RunningDoor(tmp_path, HttpConfig(connections=limits)) as running:
        running.client.close()
        held = [socket.create_connection(("127.0.0.1", running.port), timeout=10) for _ in range(3)]
        for connection in held:
            connection.sendall(ask)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")

        assert exchange(running, ask) == b""
        refused = running.broker.counters.connections_refused
        assert refused["http", "address_full"] == 1

        for connection in held:
            connection.close()
        while exchange(running, ask[:-2] + b"connection: close\r\n\r\n") == b"":
            assert refused["http", "address_full"] < 1_000


ENDLESS_FRAMING = {
    "trailers": (b"0\r\n", b"x-more: %s\r\n" % (b"x" * 1_000)),
    "one trailer": (b"0\r\nx-more: ", b"x" * 1_000),
    "an extension of a chunk": (b"1;", b"x" * 1_000),
}


@pytest.mark.parametrize("kind", ENDLESS_FRAMING)
def test_what_is_neither_head_nor_body_has_a_bound(running: RunningDoor, kind: str) -> None:
    begin, more = ENDLESS_FRAMING[kind]
    parts = [more * 40] * 30  # 1.2 MB, sent while the door reads

    received = exchange(running, PUBLISH + b"transfer-encoding: chunked\r\n\r\n" + begin, *parts)

    assert received.startswith(b"HTTP/1.1 431 ")
    assert is_served(running)


def test_trailers_and_small_chunks_are_read_and_trailers_are_no_headers(running: RunningDoor) -> None:
    chunks = b"".join(b"1;note=small\r\n%c\r\n" % byte for byte in BODY + b" " * 100_000)
    trailer = b"0\r\nconnection: close\r\nx-checksum: 1\r\n\r\n"

    received = exchange(running, PUBLISH + b"transfer-encoding: chunked\r\n\r\n" + chunks + trailer)

    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" not in received
