"""A real process: its health as a probe sees it, and its log as a program reads it."""

import json
import socket
import struct
import time

import httpx
import pytest

from tests.integration.conftest import StartBroker

pytestmark = pytest.mark.slow


def test_a_broker_is_watched_from_its_start_and_logs_json_when_asked(start_broker: StartBroker) -> None:
    broker = start_broker(
        "--logging-format", "json", "--logging-requests", "true", "--health-disk-enough-bytes", "0"
    )
    with httpx.Client(base_url=broker.http, timeout=20) as client:
        assert client.get("/readyz").status_code == 200
        checks: dict[str, dict[str, str]] = {}
        deadline_s = time.monotonic() + 20
        while "late" not in checks.get("loop_lag", {}).get("message", ""):
            assert time.monotonic() < deadline_s, checks
            checks = client.get("/readyz", params={"verbose": "true"}).json()["checks"]
        named = client.get("/topics", headers={"X-Request-ID": "mine"})
    assert named.headers["x-request-id"] == "mine"
    assert (broker.folder / "reserve").stat().st_size == 4 * 1024 * 1024
    host, port = broker.kafka.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        frame = struct.pack(">hhih", 9_999, 0, 42, 3) + b"app"
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        assert connection.recv(1) == b""

    assert broker.stop() == 0

    lines = [json.loads(line) for line in broker.log.splitlines()]
    by_event = {line["event"]: line for line in lines}
    assert {"broker_opened", "http_request", "stopping", "stopped"} <= by_event.keys()
    [request] = [line for line in lines if line.get("request_id") == "mine"]
    assert (request["method"], request["path"], request["status"]) == ("GET", "/topics", 200)
    refused = by_event["kafka_frame_refused"]
    assert (refused["client_id"], refused["correlation_id"], refused["level"]) == ("app", 42, "warning")
