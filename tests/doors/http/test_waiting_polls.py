"""Polls that wait: what each of them holds, and what becomes of it when its client goes."""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.doors.http.running_door import RunningDoor

POLLS = 5


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("polls")) as running:
        running.client.post("/topics", json={"name": "orders", "num_partitions": 1})
        yield running


@pytest.fixture
def poll(running: RunningDoor) -> bytes:
    """A poll that waits, as bytes, of a member of its own."""
    joining = {"client_id": "test", "topics": ["orders"], "mode": "shared"}
    member_id = running.client.post("/groups/workers/join", json=joining).json()["member_id"]
    path = f"/groups/workers/poll?timeout=30s&member_id={member_id}"
    return f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()


def waiting_count(running: RunningDoor) -> int:
    return len(running.broker.waiting_reads)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)


def publish(running: RunningDoor, value: str) -> None:
    reply = running.client.post("/topics/orders/messages", json={"messages": [{"value": value}]})
    assert reply.status_code == 200


async def task_count() -> int:
    return len(asyncio.all_tasks())


def test_a_poll_that_waits_is_one_task(running: RunningDoor, poll: bytes) -> None:
    before = running.run(task_count())
    connections = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(POLLS)]
    for connection in connections:
        connection.sendall(poll)
    wait_until(lambda: waiting_count(running) == POLLS)

    assert running.run(task_count()) == before + POLLS

    for connection in connections:
        connection.close()
    wait_until(lambda: waiting_count(running) == 0)
    assert running.run(task_count()) == before


def test_a_poll_whose_client_has_hung_up_takes_nothing(running: RunningDoor, poll: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.port)) as connection:
        connection.sendall(poll)
        wait_until(lambda: waiting_count(running) == 1)
    wait_until(lambda: waiting_count(running) == 0)

    publish(running, "for somebody else")

    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(poll)
        assert b'"for somebody else"' in connection.recv(65536)


def test_a_request_behind_a_poll_is_answered_after_it(running: RunningDoor, poll: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as connection:
        connection.sendall(poll + b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        wait_until(lambda: waiting_count(running) == 1)
        publish(running, "late")
        received = bytearray()
        while part := connection.recv(65536):
            received += part

    assert received.count(b"HTTP/1.1 200") == 2
    assert received.index(b'"late"') < received.index(b'"status"')


def test_a_client_that_hangs_up_with_requests_behind_its_poll_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RunningDoor(tmp_path) as running:
        running.client.post("/topics", json={"name": "orders"})
        before = running.run(task_count())
        with socket.create_connection(("127.0.0.1", running.port)) as connection:
            read = b"GET /topics/orders/partitions/0/messages?wait=30s HTTP/1.1\r\nhost: localhost\r\n\r\n"
            connection.sendall(read * 3)
            wait_until(lambda: waiting_count(running) == 1)
        wait_until(lambda: waiting_count(running) == 0)

        wait_until(lambda: running.run(task_count()) == before)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
