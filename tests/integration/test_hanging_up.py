"""A client that goes away in the middle of a request leaves nothing half done."""

import socket
import struct
import time

import httpx
import pytest

from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

METADATA, METADATA_VERSION = 3, 4


def test_a_client_that_hangs_up_while_its_topics_are_made_leaves_whole_topics(
    broker: RunningBroker,
) -> None:
    names = [f"topic-{number}" for number in range(30)]
    host, _, port = broker.kafka.partition(":")

    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(_metadata_request(names))

    with httpx.Client(base_url=broker.http, timeout=30) as client:
        for name in names:
            assert client.post("/topics", json={"name": name}).status_code in (201, 409), name
            _wait_until_served(client, name)


def _wait_until_served(client: httpx.Client, name: str) -> None:
    """A topic that exists may still be on its way, but not for long."""
    deadline = time.monotonic() + 5
    while client.get(f"/topics/{name}").status_code != 200:
        assert time.monotonic() < deadline, f"{name} exists and is not served"
        time.sleep(0.05)


def _metadata_request(names: list[str]) -> bytes:
    """A question about topics that are to be created if they are not there."""
    header = struct.pack(">hhih", METADATA, METADATA_VERSION, 1, -1)
    topics = b"".join(struct.pack(">h", len(name)) + name.encode() for name in names)
    body = struct.pack(">i", len(names)) + topics + b"\x01"
    return struct.pack(">i", len(header + body)) + header + body
