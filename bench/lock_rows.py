"""What locks cost: the same work at an open door, at one that asks, and over TLS, in turn."""

import json
import ssl
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.http_rows import KeepAlive
from bench.measured import Row, at_most, measuring, reported, running
from bench.raw_client import RawClient, batch_of, fetch_request, keep_busy, produce_request
from tests.doors.certificates import Certificates
from tests.integration.running_broker import RunningBroker

TOPIC = "locked"
NAME, PASSWORD = "ann", "correct horse battery staple"
ROOT_KEY = "gq_" + "0" * 40
MESSAGES = 100
"""In a batch: 10 KB, as a producer with a short linger sends them."""
BATCHES = 500
HTTP_REQUESTS = 20
HTTP_MESSAGES = 1_000
ROUNDS = 30
RULES = 1_000


@dataclass(frozen=True)
class Door:
    """A broker, and how one gets in."""

    broker: RunningBroker
    key: str = ""
    trust: ssl.SSLContext | None = None

    def admin(self) -> httpx.Client:
        address = self.broker.http.replace("http:", "https:" if self.trust else "http:")
        return httpx.Client(
            base_url=address, headers={"X-API-Key": self.key} if self.key else {}, verify=self.trust or False
        )


def locks(folder: Path) -> list[Row]:
    """Each kind of door is a broker of its own; rounds alternate: what else runs touches all alike."""
    folder.mkdir(exist_ok=True)
    certificates = Certificates(folder)
    with ExitStack() as stack:

        def start(name: str, *flags: str) -> RunningBroker:
            return stack.enter_context(running(folder / name, *flags))

        doors = {
            "open": Door(start("open")),
            "asked": Door(
                start("asked", "--auth-enabled=true", f"--api-root-key={ROOT_KEY}", "--acl-enabled=true"),
                ROOT_KEY,
            ),
            "tls": Door(
                start(
                    "tls",
                    "--tls-enabled=true",
                    f"--tls-cert-file={folder / 'door.pem'}",
                    f"--tls-key-file={folder / 'door.key'}",
                ),
                trust=certificates.trust(),
            ),
        }
        for door in doors.values():
            with door.admin() as admin:
                admin.post("/topics", json={"name": TOPIC, "num_partitions": 1}).raise_for_status()
        doors["asked"] = _with_rules(doors["asked"])
        return [*_kafka_rows(doors), *_http_rows(doors)]


def _with_rules(door: Door) -> Door:
    """The same with many rules and a user whom one of them lets in, by a key of theirs."""
    with door.admin() as root:
        for n in range(RULES):
            rule = {
                "principal": f"user-{n % 97}",
                "resource_type": "topic",
                "resource_name": f"other-{n}",
                "operation": "read",
            }
            _add(root, rule)
        root.post("/admin/users", json={"name": NAME, "password": PASSWORD}).raise_for_status()
        for operation in ("read", "write"):
            rule = {
                "principal": NAME,
                "resource_type": "topic",
                "resource_name": f"{TOPIC[:4]}*",
                "operation": operation,
            }
            _add(root, rule)
        made = root.post("/admin/keys", json={"name": "bench", "user": NAME}).raise_for_status()
    return Door(door.broker, made.json()["key"])


def _kafka_rows(doors: dict[str, Door]) -> list[Row]:
    request = produce_request(TOPIC, 0, batch_of(MESSAGES, b"x" * 100), acks=-1)

    def work(door: Door, turn: int) -> float:
        with RawClient(door.broker.kafka, trust=door.trust) as client:
            if door.key:
                client.log_in(NAME, PASSWORD)
            with measuring(door.broker) as spent:
                keep_busy(client, lambda _: request, BATCHES)
                first = turn * BATCHES
                keep_busy(
                    client, lambda n: fetch_request(TOPIC, 0, (first + n) * MESSAGES, max_bytes=1), BATCHES
                )
        return spent.cpu_s / BATCHES

    what = f"Kafka door, batches of {MESSAGES} × 100 B, acks=all, published and fetched: CPU added by"
    return _added(doors, work, what, bound=3, unit="a batch")


def _http_rows(doors: dict[str, Door]) -> list[Row]:
    messages = [{"key": f"key-{n}", "value": "x" * 100} for n in range(HTTP_MESSAGES)]
    body = json.dumps({"messages": messages}).encode()
    path = f"/topics/{TOPIC}/messages"
    ways = {
        name: KeepAlive(door.broker.http, path, body, key=door.key, trust=door.trust)
        for name, door in doors.items()
    }
    names = {id(door): name for name, door in doors.items()}

    def work(door: Door, _: int) -> float:
        way = ways[names[id(door)]]
        with measuring(door.broker) as spent:
            for _ in range(HTTP_REQUESTS):
                way.send()
                way.receive()
        return spent.cpu_s / HTTP_REQUESTS

    try:
        what = f"HTTP publish, {HTTP_MESSAGES:,} messages of 100 B a request: CPU added by"
        return _added(doors, work, what, bound=5, unit="a request")
    finally:
        for way in ways.values():
            way.close()


def _added(
    doors: dict[str, Door], work: Callable[[Door, int], float], what: str, *, bound: float, unit: str
) -> list[Row]:
    """What `work` costs more at the doors with a lock than at the open one, in CPU-seconds each."""
    spent: dict[str, list[float]] = {name: [] for name in doors}
    for turn in range(ROUNDS + 1):
        names = list(doors)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            one = work(doors[name], turn)
            if turn:  # the first is to warm up
                spent[name].append(one)

    def told(name: str) -> tuple[float, str]:
        added = [on / off - 1 for on, off in zip(spent[name], spent["open"], strict=True)]
        first, middle, last = statistics.quantiles(added, n=4)
        open_us = statistics.median(spent["open"]) * 1e6
        quartiles = f"{first * 100:.1f} to {last * 100:.1f} %"
        detail = f"median of {ROUNDS} rounds in turn, quartiles {quartiles}; {open_us:.0f} µs {unit} without"
        return middle * 100, detail

    added, detail = told("asked")
    tls_added, tls_detail = told("tls")
    return [
        at_most(f"{what} a login and {RULES:,} rules", added, "%", bound, detail),
        reported(f"{what} TLS", tls_added, "%", tls_detail),
    ]


def _add(root: httpx.Client, rule: dict[str, str]) -> None:
    answer = root.post("/admin/acls", json=rule)
    if answer.is_error:
        raise RuntimeError(answer.text)
