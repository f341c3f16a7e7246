"""What the bodies of all clients' requests take together has a bound, and small requests come through."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from goqueue.edge.http.config import HttpConfig
from goqueue.model.settings import KiB, MiB
from tests.doors.http.running_door import RunningDoor
from tests.unit.broker.running import until

BODIES = 8 * MiB
PIECE = b"x" * (64 * KiB)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDoor]:
    bounds = HttpConfig(body_bytes=6 * MiB, bodies_bytes=BODIES, leave_timeout_s=1)
    with RunningDoor(tmp_path, bounds) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        yield running


class Upload:
    """A body that is told to have 6 MiB, and comes when it is asked to."""

    def __init__(self, running: RunningDoor) -> None:
        self._socket = socket.create_connection(("127.0.0.1", running.port), timeout=20)
        self._socket.sendall(
            b"POST /batches HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % (6 * MiB)
        )

    def send(self, size: int) -> None:
        for _ in range(size // len(PIECE)):
            self._socket.sendall(PIECE)

    def reply(self) -> bytes:
        reply = b""
        while part := self._socket.recv(64 * KiB):
            reply += part
            if b"}" in reply:
                break
        return reply

    def close(self) -> None:
        self._socket.close()


def wait_until_held(running: RunningDoor, size: int) -> None:
    running.run(until(lambda: running.door.bodies.held_bytes == size))


def test_a_body_for_which_there_is_no_room_is_refused_and_others_go_on(running: RunningDoor) -> None:
    first, second = Upload(running), Upload(running)
    first.send(5 * MiB)
    wait_until_held(running, 5 * MiB)
    second.send(3 * MiB + 64 * KiB)

    refused = second.reply()

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nretry-after: 1\r\n" in refused
    assert b'"code":"unavailable"' in refused
    wait_until_held(running, 5 * MiB)
    first.send(1 * MiB)
    assert first.reply().startswith(b"HTTP/1.1 400 "), "it was read to its end, and is no batch"
    wait_until_held(running, 0)
    first.close()
    second.close()


def test_a_small_request_is_served_however_much_is_under_way(running: RunningDoor) -> None:
    large, larger = Upload(running), Upload(running)
    large.send(5 * MiB)
    larger.send(3 * MiB)
    wait_until_held(running, BODIES)

    reply = running.client.post("/topics/orders/messages", json={"messages": [{"value": "a"}]})

    assert reply.status_code == 200
    wait_until_held(running, BODIES)
    large.close()
    larger.close()
    wait_until_held(running, 0)


def test_bodies_in_chunks_are_counted_too(running: RunningDoor) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(b"POST /batches HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n")
        client.sendall(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))
        wait_until_held(running, len(PIECE))
    wait_until_held(running, 0)
