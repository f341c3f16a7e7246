"""What one client costs the others: a publisher at 1 kHz beside each kind of heavy request.

The publisher sends a small message with acks=leader each millisecond, on a connection of its own; requests
that come late are counted from when they were due. On a machine with few cores its clients compete with the
broker, so the row to hold is another: how long the request holds the loop in one piece, in CPU time.
"""

import json
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import httpx

from bench.http_rows import KeepAlive
from bench.kafka_rows import create_topic
from bench.measured import Row, at_most, percentile, reported
from bench.queue_rows import Connection
from bench.raw_client import RawClient, batch_of, fetch_request_of_many, produce_request_to_many
from goqueue.broker.topics.verbs import create_topic as create_wide
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.testing.world.holds import longest_hold_by_others
from tests.doors.http.running_door import RunningDoor
from tests.doors.kafka.door_thread import DoorThread
from tests.integration.running_broker import RunningBroker

HOLD_MS_MAX = 20
PROBE_S = 3.0
SOON_S = 2.0
INTERVAL_S = 0.001
FRAMES = "/topics/bulk/partitions/0/frames?max_bytes=50000000"
MESSAGES = "/topics/bulk/partitions/0/messages?limit=1000"
TRACES = "/traces?limit=1000"
SEARCH = "/traces/search?limit=1000&status=completed"
WIDE, WIDE_COUNT = "wide", 10_000
WAITED, WAITING_COUNT = "waited", 2_000
_ARRIVING_COUNT = 20
BAD_RECEIPTS_COUNT = 60_000
_PROBED = json.dumps({"messages": [{"value": "x" * 100}], "acks": "leader"}).encode()
_TEN_THOUSAND = json.dumps({"messages": [{"key": f"key-{n}", "value": "x" * 100} for n in range(10_000)]})
_BAD_RECEIPTS = json.dumps(
    {"receipt_handles": [f"bulk:0:{number}:1:0123456789abcdef" for number in range(BAD_RECEIPTS_COUNT)]}
)
_MILLION = b'{"messages":[' + b",".join([b'{"value":""}'] * 1_000_000) + b"]}"


class Client:
    """One who asks; its connections are made when they are needed."""

    def __init__(self, http: str, kafka: str) -> None:
        self._http, self._kafka = http, kafka

    @cached_property
    def http(self) -> httpx.Client:
        return httpx.Client(base_url=self._http, timeout=60)

    @cached_property
    def kafka(self) -> RawClient:
        return RawClient(self._kafka)

    @cached_property
    def fetch(self) -> bytes:
        return fetch_request_of_many(WIDE, range(WIDE_COUNT), 0, max_bytes=1_000_000)

    @cached_property
    def produce(self) -> bytes:
        return produce_request_to_many(WIDE, range(WIDE_COUNT), batch_of(1, b"x" * 100), acks=1)

    def get(self, path: str) -> None:
        self.http.get(path)

    def publish(self, body: str | bytes) -> None:
        self.http.post("/topics/many/messages", content=body)

    def exchange(self, request: bytes) -> None:
        self.kafka.send(request)
        self.kafka.receive()

    def ack_in_vain(self) -> None:
        self.http.post("/messages/ack", content=_BAD_RECEIPTS)

    def swallow(self, path: str) -> None:
        """Read a reply to its end as cheaply as can be: the client must not take what the probe needs."""
        host, port = self._http.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n".encode()
            )
            room = bytearray(1 << 20)
            while connection.recv_into(room):
                pass

    def poll_first(self) -> None:
        """The first poll of a group over very many partitions."""
        self.http.get(f"{self._join(f'first-{uuid4()}', WIDE)}&limit=1&timeout=0s").raise_for_status()

    @cached_property
    def waiting(self) -> tuple[str, dict[int, Connection]]:
        """Polls that wait for one topic, by the numbers of their sockets."""
        poll = f"{self._join('crowd', WAITED)}&limit=1&timeout=60s"
        polls = [Connection(self._http) for _ in range(WAITING_COUNT)]
        for number, connection in enumerate(polls):
            connection.send("GET", poll)
            if number % _ARRIVING_COUNT == 0:
                self.get("/livez")  # thousands of requests at once are another matter
        return poll, {connection.fileno(): connection for connection in polls}

    def wake_one(self) -> None:
        """One message for all who wait; whoever gets it waits again."""
        poll, polls = self.waiting
        self.http.post(f"/topics/{WAITED}/messages?acks=leader", content=_PROBED).raise_for_status()
        ready = select.poll()
        for number in polls:
            ready.register(number, select.POLLIN)
        for number, _ in ready.poll(1_000):
            polls[number].receive()
            polls[number].send("GET", poll)

    def _join(self, group: str, topic: str) -> str:
        body = {"client_id": "bench", "topics": [topic], "mode": "shared"}
        joined = self.http.post(f"/groups/{group}/join", json=body).raise_for_status().json()
        return f"/groups/{group}/poll?member_id={joined['member_id']}"


class Offender(NamedTuple):
    """Somebody whose requests are heavy, and how many such clients there are."""

    what: str
    clients: int
    ask: Callable[[Client], object]
    is_of_one_request: bool = True
    """Whether it is one HTTP request, whose hold of the loop can be told by itself."""


OFFENDERS = (
    Offender("two readers of 50 MB frames", 2, lambda client: client.swallow(FRAMES)),
    Offender("two readers of 1,000 messages in JSON", 2, lambda client: client.get(MESSAGES)),
    Offender("a list of 1,000 traces", 1, lambda client: client.get(TRACES)),
    Offender("a search through traces", 1, lambda client: client.get(SEARCH)),
    Offender("publishes of 10,000 messages", 1, lambda client: client.publish(_TEN_THOUSAND)),
    Offender("publishes of 1,000,000 messages", 1, lambda client: client.publish(_MILLION)),
    Offender("scrapes of the metrics", 1, lambda client: client.get("/metrics")),
    Offender(f"Fetch of {WIDE_COUNT:,} partitions", 1, lambda client: client.exchange(client.fetch), False),
    Offender(
        f"Produce to {WIDE_COUNT:,} partitions", 1, lambda client: client.exchange(client.produce), False
    ),
    Offender(f"first polls over {WIDE_COUNT:,} partitions", 1, Client.poll_first, False),
    Offender(f"{WAITING_COUNT:,} waiting polls that one message wakes", 1, Client.wake_one, False),
)


def beside(broker: RunningBroker) -> list[Row]:
    """The publisher alone, and beside each offender."""
    _fill(broker.http)
    create_topic(broker, WIDE, WIDE_COUNT)
    create_topic(broker, WAITED, 1)
    rows = [_row("alone", _probe(broker.http))]
    for number, offender in enumerate(OFFENDERS):
        command = [sys.executable, "-m", "bench.fairness_rows", broker.http, broker.kafka, str(number)]
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
        client = Client(door.url, "")
        rows = [
            _hold_row(offender.what, door.longest_hold(partial(offender.ask, client)))
            for offender in OFFENDERS
            if offender.is_of_one_request
        ]
        bad_receipts = f"acks of {BAD_RECEIPTS_COUNT:,} receipts that are none"
        rows.append(_hold_row(bad_receipts, door.longest_hold(client.ack_in_vain)))
    return [*rows, *_kafka_holds()]


def _kafka_holds() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        door = DoorThread(Path(folder), BrokerConfig(), KafkaConfig())
        try:
            door.run(create_wide(door.broker, CreateTopic(name=WIDE, partitions=WIDE_COUNT)))
            client = Client("", door.address)

            def produce_and_wait() -> None:
                client.exchange(client.produce)
                time.sleep(SOON_S)  # what was written is then made safe, and that is part of it

            asked = {"Produce to": produce_and_wait, "Fetch of": lambda: client.exchange(client.fetch)}
            produce_and_wait()  # the files of 10,000 partitions are made by the first one
            return [
                _hold_row(f"{what} {WIDE_COUNT:,} partitions", longest_hold_by_others(door.run, ask))
                for what, ask in asked.items()
            ]
        finally:
            door.close()


def _hold_row(what: str, hold_ms: float) -> Row:
    return at_most(
        f"fairness: longest hold of the loop by one of {what}",
        hold_ms,
        "ms",
        HOLD_MS_MAX,
        "CPU of one turn of the loop, the best of three requests",
    )


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


def _keep_asking(client: Client, offender: Offender) -> None:
    offender.ask(client)
    print("at work", flush=True)
    while True:
        offender.ask(client)


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
    _keep_asking(Client(sys.argv[1], sys.argv[2]), OFFENDERS[int(sys.argv[3])])
