"""What a commit costs: single messages with acks=all, to one partition and to thousands, at a steady rate."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.kafka_rows import create_topic
from bench.measured import Row, at_most, fsync_latencies_ms, measuring, percentile
from bench.raw_client import batch_of, produce_request
from tests.integration.running_broker import RunningBroker

MANY_PARTITIONS = 2_000
_WARM_UP_S = 1.0
NextRequest = Callable[[int], bytes]


class Paced:
    """Clients that send together so many requests a second, each waiting for its answer."""

    def __init__(self, address: str, *, rate: int, connections: int, is_http: bool = False) -> None:
        host, port = address.removeprefix("http://").rsplit(":", 1)
        self._host, self._port = host, int(port)
        self._rate = rate
        self._connections = connections
        self._is_http = is_http
        self.taken_ms: list[float] = []

    def run(self, requests: NextRequest, *, seconds: float) -> int:
        """How many were answered."""
        self.taken_ms = []
        return asyncio.run(self._run(requests, seconds))

    async def _run(self, requests: NextRequest, seconds: float) -> int:
        counts = await asyncio.gather(
            *(self._one(number, requests, seconds) for number in range(self._connections))
        )
        return sum(counts)

    async def _one(self, number: int, requests: NextRequest, seconds: float) -> int:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        step_s = self._connections / self._rate
        began = time.perf_counter()
        due, count = began + number * step_s / self._connections, 0
        while due < began + seconds:
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            sent = time.perf_counter()
            writer.write(requests(number + count * self._connections))
            await self._answer(reader)
            self.taken_ms.append((time.perf_counter() - sent) * 1e3)
            count += 1
            # Behind time: the rate is what is asked for, not a queue that never ends.
            due = max(due + step_s, time.perf_counter() - step_s)
        writer.close()
        return count

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        if not self._is_http:
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
            return
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(head.decode())
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))


def over_partitions(broker: RunningBroker, *, seconds: float = 6, rounds: int = 2) -> list[Row]:
    """2,000 single messages a second with acks=all: to one partition, and spread over thousands."""
    create_topic(broker, "one", 1)
    create_topic(broker, "many", MANY_PARTITIONS)
    batch = batch_of(1, b"x" * 100)
    wide = [produce_request("many", number, batch, acks=-1) for number in range(MANY_PARTITIONS)]
    narrow = [produce_request("one", 0, batch, acks=-1)]
    cpu_us: dict[str, list[float]] = {"one": [], "many": []}
    p99_ms: dict[str, list[float]] = {"one": [], "many": []}
    paced = Paced(broker.kafka, rate=2_000, connections=20)
    paced.run(lambda n: wide[n % MANY_PARTITIONS], seconds=_WARM_UP_S)
    for _ in range(rounds):
        for name, requests in (("one", narrow), ("many", wide)):
            with measuring(broker) as spent:
                count = paced.run(_turns(requests), seconds=seconds)
            cpu_us[name].append(spent.cpu_s / count * 1e6)
            p99_ms[name].append(percentile(paced.taken_ms, 0.99))
    cpu_ratio = min(cpu_us["many"]) / min(cpu_us["one"])
    p99_ratio = min(p99_ms["many"]) / min(p99_ms["one"])
    return [
        at_most(
            f"2,000 msg/s, acks=all, one message a batch, {MANY_PARTITIONS:,} partitions against 1: CPU",
            cpu_ratio,
            "×",
            1.5,
            f"{min(cpu_us['many']):.0f} against {min(cpu_us['one']):.0f} µs a message",
        ),
        at_most(
            "the same: p99",
            p99_ratio,
            "×",
            3,
            f"{min(p99_ms['many']):.2f} against {min(p99_ms['one']):.2f} ms",
        ),
    ]


def one_at_a_time(broker: RunningBroker, folder: Path, *, seconds: float = 5) -> list[Row]:
    """1,000 requests of one message a second, acks=all, at both doors."""
    create_topic(broker, "kafka-door", 1)
    create_topic(broker, "http-door", 1)
    kafka = [produce_request("kafka-door", 0, batch_of(1, b"x" * 100), acks=-1)]
    body = json.dumps({"messages": [{"value": "x" * 100}]}).encode()
    http = [
        b"POST /topics/http-door/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    ]
    rows = []
    for door, paced, requests, bound_us in (
        ("Kafka door", Paced(broker.kafka, rate=1_000, connections=1), kafka, 180),
        ("HTTP", Paced(broker.http, rate=1_000, connections=1, is_http=True), http, 220),
    ):
        paced.run(_turns(requests), seconds=_WARM_UP_S)
        with measuring(broker) as spent:
            count = paced.run(_turns(requests), seconds=seconds)
        p50, p99 = (percentile(paced.taken_ms, share) for share in (0.5, 0.99))
        fsync_ms = fsync_latencies_ms(folder)
        disk = f"the disk's own fsync: {percentile(fsync_ms, 0.5):.2f} / {percentile(fsync_ms, 0.99):.2f} ms"
        what = f"one message a request at 1,000/s, acks=all, {door}"
        rows += [
            at_most(f"{what}: CPU", spent.cpu_s / count * 1e6, "µs a message", bound_us, f"{count:,} sent"),
            at_most(f"{what}: p50", p50, "ms", 0.35, disk),
            at_most(f"{what}: p99", p99, "ms", 1.0, disk),
        ]
    return rows


def _turns(requests: Sequence[bytes]) -> NextRequest:
    return lambda number: requests[number % len(requests)]
