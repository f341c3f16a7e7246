"""OTLP, taken in by receivers with OpenTelemetry's own stubs: over HTTP and over gRPC."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import pytest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from goqueue.model.ids import TopicName
from goqueue.model.telemetry import Span, Stage, Witness
from goqueue.node.tracing.otlp import Otlp, over_grpc, over_http
from goqueue.node.tracing.outgoing import Outgoing
from tests.unit.node.otlp_receivers import Receiver, grpc_receiver, http_receiver
from tests.unit.node.test_trace_export_outbox import spans


class Connect(Protocol):
    def __call__(self, endpoint: str, headers: Mapping[str, str], *, node_id: str) -> Otlp: ...


TRACE_ID = "0123456789abcdef0123456789abcdef"
ACKED = Span(
    Stage.ACKED,
    1_700_000_000_000_000,
    TopicName("orders"),
    2,
    7,
    Witness.RING,
    "00000000000000aa",
    "00000000000000bb",
    group="workers",
    consumer="c1",
    duration_us=1500,
    facts={"attempt": 2},
)
REJECTED = Span(
    Stage.REJECTED,
    1_700_000_000_000_000,
    TopicName("orders"),
    2,
    7,
    Witness.RING,
    "00000000000000cc",
    None,
    error="no such customer",
)


def plain(attributes: Iterable[KeyValue]) -> dict[str, str | int]:
    return {
        pair.key: pair.value.int_value if pair.value.HasField("int_value") else pair.value.string_value
        for pair in attributes
    }


def sent_and_received(otlp: Otlp, receiver: Receiver, *sent: Span) -> trace_pb2.ResourceSpans:
    try:
        otlp.send([Outgoing(TRACE_ID, span) for span in sent])
    finally:
        otlp.close()
    request, _ = receiver.received()
    (group,) = request.resource_spans
    return group


@pytest.fixture(params=["http", "grpc"])
def connection(request: pytest.FixtureRequest) -> Iterator[tuple[Receiver, Connect]]:
    """A collector, and the way to it."""
    receiver, connect = {"http": (http_receiver, over_http), "grpc": (grpc_receiver, over_grpc)}[
        request.param
    ]
    with receiver() as listening:
        yield listening, connect


def test_a_span_arrives_with_the_words_of_opentelemetry(connection: tuple[Receiver, Connect]) -> None:
    receiver, connect = connection

    group = sent_and_received(connect(receiver.endpoint, {}, node_id="node-7"), receiver, ACKED)

    resource = plain(group.resource.attributes)
    assert resource["service.name"] == "goqueue"
    assert resource["service.instance.id"] == "node-7"
    (span,) = group.scope_spans[0].spans
    assert span.trace_id.hex() == TRACE_ID
    assert (span.span_id.hex(), span.parent_span_id.hex()) == ("00000000000000aa", "00000000000000bb")
    assert span.name == "consume.acked orders"
    assert span.kind == trace_pb2.Span.SPAN_KIND_SERVER
    assert span.start_time_unix_nano == 1_699_999_999_998_500_000
    assert span.end_time_unix_nano == 1_700_000_000_000_000_000
    assert span.status.code == trace_pb2.Status.STATUS_CODE_UNSET
    assert plain(span.attributes) == {
        "messaging.system": "goqueue",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "2",
        "messaging.kafka.offset": 7,
        "messaging.operation.name": "consume.acked",
        "messaging.operation.type": "settle",
        "messaging.consumer.group.name": "workers",
        "messaging.client.id": "c1",
        "goqueue.source": "ring",
        "goqueue.attempt": 2,
    }


def test_a_span_of_a_failure_says_so(connection: tuple[Receiver, Connect]) -> None:
    receiver, connect = connection

    group = sent_and_received(connect(receiver.endpoint, {}, node_id="n"), receiver, REJECTED)

    (span,) = group.scope_spans[0].spans
    assert span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    assert span.status.message == "no such customer"
    assert span.parent_span_id == b""


def test_headers_go_along(connection: tuple[Receiver, Connect]) -> None:
    receiver, connect = connection
    otlp = connect(receiver.endpoint, {"X-Scope-OrgID": "shop"}, node_id="n")
    otlp.send(spans(1))
    otlp.close()

    _, headers = receiver.received()
    assert headers["x-scope-orgid"] == "shop"


def test_a_refusal_is_told_with_its_reason() -> None:
    with http_receiver() as receiver:
        otlp = over_http(receiver.endpoint + "/elsewhere", {}, node_id="n")
        with pytest.raises(OSError, match="404"):
            otlp.send(spans(1))
        otlp.close()


@pytest.mark.parametrize("connect", [over_http, over_grpc])
def test_a_collector_that_is_not_there_is_told_and_an_end_cuts_the_wait_short(connect: Connect) -> None:
    otlp = connect("http://127.0.0.1:1", {}, node_id="n")
    reasons: list[str] = []

    def send() -> None:
        try:
            otlp.send(spans(1))
        except OSError as error:
            reasons.append(str(error))

    sending = threading.Thread(target=send)
    sending.start()
    otlp.close()
    sending.join(10)

    assert not sending.is_alive()
    assert reasons
