"""The work queue over HTTP: CPU a message in large polls, cycles a CPU-second in small ones; leases."""

import json
import socket
import tracemalloc
from uuid import UUID

from bench.measured import Row, at_least, at_most, measuring
from goqueue.core.delivery.deliveries import Deliveries
from goqueue.core.delivery.events import DeliveryKept
from goqueue.model.ids import TopicName
from tests.integration.running_broker import RunningBroker

POLLED = 500
PUBLISHED = 1_000


class Connection:
    """One kept-alive connection that speaks JSON."""

    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)))
        self._rest = b""

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        self.send(method, path, body)
        return self.receive()

    def send(self, method: str, path: str, body: object = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        self._socket.sendall(
            b"%s %s HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s"
            % (method.encode(), path.encode(), len(content), content)
        )

    def receive(self) -> bytes:
        data = self._rest
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, rest = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError((head + rest).decode())
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self._more()
        self._rest = rest[length:]
        return rest[:length]

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def _more(self) -> bytes:
        data = self._socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the broker closed the connection")
        return data


def many_at_a_time(broker: RunningBroker, *, rounds: int = 100) -> Row:
    """Publish a thousand messages, poll and acknowledge five hundred at a time, on one connection."""
    connection = Connection(broker.http)
    connection.ask("POST", "/topics", {"name": "many", "num_partitions": 1})
    messages = {"messages": [{"value": "x" * 100} for _ in range(PUBLISHED)]}
    poll = f"{_join(connection, 'many')}&limit={POLLED}&timeout=5s"
    with measuring(broker) as spent:
        for _ in range(rounds):
            connection.ask("POST", "/topics/many/messages", messages)
            for _ in range(PUBLISHED // POLLED):
                handles = _handles(connection.ask("GET", poll))
                if len(handles) != POLLED:
                    raise RuntimeError(f"{len(handles)} messages came where {POLLED} were due")
                connection.ask("POST", "/messages/ack", {"receipt_handles": handles})
    connection.close()
    return at_most(
        f"publish {PUBLISHED} → poll {POLLED} → batch ack, 100 B, HTTP, one connection: broker CPU a message",
        spent.cpu_s / rounds / PUBLISHED * 1e6,
        "µs",
        5,
        f"{rounds * PUBLISHED / spent.wall_s:,.0f} messages/s",
    )


def one_at_a_time(broker: RunningBroker) -> list[Row]:
    """Consumers of a shared group, each with its connection, poll one message and acknowledge it."""
    return [_cycles(broker, consumers, reach) for consumers, reach in ((1, 3_000), (16, 4_000))]


def _cycles(broker: RunningBroker, consumers: int, reach: int, *, count: int = 4_000) -> Row:
    topic = f"single-{consumers}"
    connections = [Connection(broker.http) for _ in range(consumers)]
    first = connections[0]
    first.ask("POST", "/topics", {"name": topic, "num_partitions": 1})
    polls = [f"{_join(one, topic, mode='shared')}&limit=1&timeout=5s" for one in connections]
    first.ask("POST", f"/topics/{topic}/messages", {"messages": [{"value": "x" * 100}] * count})
    with measuring(broker) as spent:
        for _ in range(count // consumers):
            for connection, poll in zip(connections, polls, strict=True):
                connection.send("GET", poll)
            for connection in connections:
                [handle] = _handles(connection.receive())
                connection.send("POST", "/messages/ack", {"receipt_handle": handle})
            for connection in connections:
                connection.receive()
    for connection in connections:
        connection.close()
    return at_least(
        f"poll and ack of one message, a request each, HTTP, consumers: {consumers}; cycles a CPU-second",
        count / spent.cpu_s,
        "cycles",
        reach,
        f"{count / spent.wall_s:,.0f} cycles/s",
    )


def _join(connection: Connection, topic: str, **more: str) -> str:
    """Become a consumer of a topic; the path of its polls."""
    body = {"client_id": "bench", "topics": [topic], **more}
    joined = json.loads(connection.ask("POST", f"/groups/{topic}/join", body))
    return f"/groups/{topic}/poll?member_id={joined['member_id']}"


def _handles(reply: bytes) -> list[str]:
    return [message["receipt_handle"] for message in json.loads(reply)["messages"]]


def lease_memory() -> list[Row]:
    """A million messages out with leases: what the machine keeps of them, by the size of the polls."""
    return [
        at_most(
            f"1 M messages in flight, polled {size} at a time: memory a message",
            _bytes_a_message(size),
            "bytes",
            64,
        )
        for size in (POLLED, 10)
    ]


def _bytes_a_message(size: int, *, count: int = 1_000_000) -> float:
    deliveries = Deliveries()
    deliveries.apply(DeliveryKept(1, "workers", TopicName("orders"), UUID(int=1), 0, 0))
    delivery = deliveries.numbered(1)
    assert delivery is not None
    delivery.learn(0, count, 2)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for lease in range(count // size):
        runs = delivery.shelf.take(size, weights=(50, 25, 15, 7, 3), wait_ms_max=30_000, now_ms=0)
        delivery.reserve(runs)
        deliveries.apply(delivery.lease(runs, lease=lease, consumer=f"c{lease % 1000}", until_ms=30_000))
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / count
