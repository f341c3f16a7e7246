"""Traces out of a real broker: to a collector over HTTP and gRPC, to files and to standard output."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker
from tests.unit.node.otlp_receivers import Receiver, grpc_receiver, http_receiver

pytestmark = pytest.mark.slow

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PRODUCER_SPAN_ID = "00f067aa0ba902b7"
A_WHOLE_LIFE = {
    "publish.received",
    "publish.partitioned",
    "publish.persisted",
    "consume.fetched",
    "consume.acked",
}
Json = dict[str, Any]


def live(broker: RunningBroker) -> None:
    """A message is published with a trace context, taken and acknowledged."""
    with httpx.Client(base_url=broker.http) as client:
        client.post("/topics", json={"name": "orders", "num_partitions": 1})
        headers = {"traceparent": f"00-{TRACE_ID}-{PRODUCER_SPAN_ID}-01"}
        client.post("/topics/orders/messages", json={"messages": [{"value": "a", "headers": headers}]})
        joined = client.post("/groups/workers/join", json={"client_id": "test", "topics": ["orders"]}).json()
        query = {"member_id": joined["member_id"], "timeout": "5s"}
        (message,) = client.get("/groups/workers/poll", params=query).json()["messages"]
        reply = client.post("/messages/ack", json={"receipt_handle": message["receipt_handle"]})
        assert reply.status_code == 200, reply.text


def stages_received(receiver: Receiver) -> set[str]:
    """Wait until a whole life has arrived; the names of its spans."""
    stages: set[str] = set()
    while not stages >= A_WHOLE_LIFE:
        request, _ = receiver.received()
        for span in request.resource_spans[0].scope_spans[0].spans:
            assert span.trace_id.hex() == TRACE_ID
            stages.add(span.name.removesuffix(" orders"))
    return stages


def exporter(broker: RunningBroker, name: str) -> Json:
    stats = httpx.get(f"{broker.http}/traces/stats").json()
    return next(told for told in stats["exporters"] if told["name"] == name)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_life_reaches_collector_files_and_output_and_the_last_spans_leave_at_the_end(
    start_broker: StartBroker,
) -> None:
    with http_receiver() as receiver:
        # The interval is longer than the test: all that leaves does so at the end.
        broker = start_broker(
            "--tracing-export=file,stdout,otlp-http",
            f"--tracing-export-endpoint={receiver.endpoint}",
            "--tracing-export-interval-ms=10000",
        )
        live(broker)
        assert httpx.get(f"{broker.http}/traces/stats").json()["exporters_enabled"] == [
            "file",
            "stdout",
            "otlp-http",
        ]
        broker.send(signal.SIGTERM)
        printed, _ = broker.process.communicate(timeout=20)

        assert broker.process.returncode == 0
        assert stages_received(receiver) >= A_WHOLE_LIFE
    (path,) = (broker.folder / "traces").iterdir()
    for lines in (printed.splitlines(), path.read_text().splitlines()):
        spans = [json.loads(line) for line in lines]
        assert {span["event_type"] for span in spans} >= A_WHOLE_LIFE
        assert {span["trace_id"] for span in spans} == {TRACE_ID}
        assert spans[0]["parent_span_id"] == PRODUCER_SPAN_ID


def test_a_collector_that_is_down_costs_the_broker_nothing_and_gets_all_when_it_is_back(
    start_broker: StartBroker,
) -> None:
    with socket.socket() as bound:  # bound, and not listening: nobody answers, and nobody else takes the port
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        broker = start_broker(
            "--tracing-export=otlp-grpc",
            f"--tracing-export-endpoint=http://127.0.0.1:{port}",
            "--tracing-export-interval-ms=50",
        )
        live(broker)
        wait_until(lambda: exporter(broker, "otlp-grpc")["waiting"] > 0)

        with grpc_receiver(port) as receiver:
            assert stages_received(receiver) >= A_WHOLE_LIFE
        wait_until(lambda: exporter(broker, "otlp-grpc")["waiting"] == 0)

        assert exporter(broker, "otlp-grpc")["dropped"] == 0
        assert broker.stop() == 0


def test_a_broker_without_otlp_knows_nothing_of_opentelemetry() -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None; import goqueue.node.serving\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('opentelemetry', 'grpc')])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert (ended.stdout, ended.stderr) == ("[]\n", "")
