"""What one client costs the others: a publisher at 1 kHz beside each kind of heavy request.

The publisher sends a small message with acks=leader each millisecond, on a connection of its own; requests
that come late are counted from when they were due. On a machine with few cores its clients compete with the
broker, so the row to hold is another: how long the request holds the loop in one piece, in CPU time.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx

from bench.http_rows import KeepAlive
from bench.measured import Row, at_most, percentile, reported
from tests.doors.http.running_door import RunningDoor
from tests.integration.running_broker import RunningBroker

HOLD_MS_MAX = 20
PROBE_S = 3.0
INTERVAL_S = 0.001
FRAMES = "/topics/bulk/partitions/0/frames?max_bytes=50000000"
MESSAGES = "/topics/bulk/partitions/0/messages?limit=1000"
TRACES = "/traces?limit=1000"
SEARCH = "/traces/search?limit=1000&status=completed"
_PROBED = json.dumps({"messages": [{"value": "x" * 100}], "acks": "leader"}).encode()
_TEN_THOUSAND = json.dumps({"messages": [{"key": f"key-{n}", "value": "x" * 100} for n in range(10_000)]})
_MILLION = b'{"messages":[' + b",".join([b'{"value":""}'] * 1_000_000) + b"]}"


class Offender(NamedTuple):
    """Somebody whose requests are heavy, and how many such clients there are."""

    what: str
    clients: int
    ask: Callable[[httpx.Client], object]


OFFENDERS = (
    Offender("two readers of 50 MB frames", 2, lambda client: _swallow(client, FRAMES)),
    Offender("two readers of 1,000 messages in JSON", 2, lambda client: client.get(MESSAGES)),
    Offender("a list of 1,000 traces", 1, lambda client: client.get(TRACES)),
    Offender("a search through traces", 1, lambda client: client.get(SEARCH)),
    Offender("publishes of 10,000 messages", 1, lambda client: _publish(client, _TEN_THOUSAND)),
    Offender("publishes of 1,000,000 messages", 1, lambda client: _publish(client, _MILLION)),
    Offender("scrapes of the metrics", 1, lambda client: client.get("/metrics")),
)


def beside(broker: RunningBroker) -> list[Row]:
    """The publisher alone, and beside each offender."""
    _fill(broker.http)
    rows = [_row("alone", _probe(broker.http))]
    for number, offender in enumerate(OFFENDERS):
        command = [sys.executable, "-m", "bench.fairness_rows", broker.http, str(number)]
        # Processes of their own: what they do must not stand in the probe's way.
        clients = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(offender.clients)]
        try:
            for client in clients:
                assert client.stdout is not None
                client.stdout.readline()  # it has had its first answer
            rows.append(_row(f"beside {offender.what}", _probe(broker.http)))
        finally:
            for client in clients:
                client.kill()
                client.wait()
                assert client.stdout is not None
                client.stdout.close()
    return rows


def holds() -> list[Row]:
    """For how long one request of each offender holds the loop in one piece."""
    with tempfile.TemporaryDirectory() as folder, RunningDoor(Path(folder)) as door:
        _fill(door.url)
        return [
            at_most(
                f"fairness: longest hold of the loop by one of {offender.what}",
                door.longest_hold(lambda ask=offender.ask: ask(door.client)),  # type: ignore[misc]  # a default binds it
                "ms",
                HOLD_MS_MAX,
                "CPU of one turn of the loop, the best of three requests",
            )
            for offender in OFFENDERS
        ]


def _fill(address: str) -> None:
    """50 MB in a topic, and 30,000 recorded events."""
    with httpx.Client(base_url=address, timeout=60) as client:
        for topic in ("bulk", "probe", "many"):
            client.post("/topics", json={"name": topic, "num_partitions": 1}).raise_for_status()
        small = json.dumps({"messages": [{"value": "x" * 100}] * 1000})
        for _ in range(20):
            client.post("/topics/bulk/messages?acks=leader", content=small).raise_for_status()
        large = json.dumps({"messages": [{"value": "y" * 1_000_000}] * 3})
        for _ in range(17):
            client.post("/topics/bulk/messages?acks=leader", content=large).raise_for_status()
    probe = KeepAlive(address, "/topics/probe/messages", _PROBED)
    for _ in range(10_000):
        probe.send()
        probe.receive()
    probe.close()


def _keep_asking(address: str, offender: Offender) -> None:
    with httpx.Client(base_url=address, timeout=60) as client:
        offender.ask(client)
        print("at work", flush=True)
        while True:
            offender.ask(client)


def _publish(client: httpx.Client, body: str | bytes) -> None:
    client.post("/topics/many/messages", content=body)


def _swallow(client: httpx.Client, path: str) -> None:
    """Read a reply to its end as cheaply as can be: the client must not take what the probe needs."""
    host, port = client.base_url.host, client.base_url.port
    with socket.create_connection((host, port or 80)) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n".encode()
        )
        room = bytearray(1 << 20)
        while connection.recv_into(room):
            pass


def _probe(address: str) -> list[float]:
    """How long each publish took from when it was due, in milliseconds."""
    connection = KeepAlive(address, "/topics/probe/messages", _PROBED)
    taken = []
    due = time.perf_counter()
    end = due + PROBE_S
    while due < end:
        time.sleep(max(due - time.perf_counter(), 0))
        connection.send()
        connection.receive()
        now = time.perf_counter()
        taken.append((now - due) * 1e3)
        # One that is late is not followed by a burst of those that were due meanwhile.
        due = max(due + INTERVAL_S, now)
    connection.close()
    return taken


def _row(what: str, taken: list[float]) -> Row:
    return reported(
        f"fairness: publish at 1 kHz {what}, p99.9",
        percentile(taken, 0.999),
        "ms",
        f"p50 {percentile(taken, 0.5):.2f}, worst {max(taken):.1f} ms of {len(taken):,}",
    )


if __name__ == "__main__":
    _keep_asking(sys.argv[1], OFFENDERS[int(sys.argv[2])])
