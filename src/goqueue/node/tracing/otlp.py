"""Spans to a collector that speaks OTLP: Jaeger, Tempo, the OpenTelemetry Collector and many others.

OpenTelemetry's SDK builds and sends the requests; it is imported here and here only, and this module only
when somebody wants OTLP. The SDK tells why a send failed in a log line and nowhere else, so its lines are
caught: they become the reason, and the broker's log is not flooded while a collector is down.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

import goqueue
from goqueue.model.telemetry import Span, Stage
from goqueue.node.tracing.outgoing import Outgoing

HTTP_PATH = "/v1/traces"
HTTP_ENDPOINT = f"http://localhost:4318{HTTP_PATH}"
GRPC_ENDPOINT = "http://localhost:4317"
_TIMEOUT_S = 10
_SYSTEM = "goqueue"
_SCOPE = InstrumentationScope("goqueue", goqueue.__version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)

_OPERATIONS = {
    Stage.RECEIVED: "send",
    Stage.REFUSED: "send",
    Stage.FETCHED: "receive",
    Stage.ACKED: "settle",
    Stage.NACKED: "settle",
    Stage.REJECTED: "settle",
    Stage.EXTENDED: "settle",
}
"""What clients ask for, in the words of OpenTelemetry's conventions; all else the broker does by itself."""
_ERRORS = frozenset({Stage.REFUSED, Stage.NACKED, Stage.REJECTED, Stage.EXPIRED, Stage.DEAD_LETTERED})


class Otlp:
    """The targets `otlp-http` and `otlp-grpc`."""

    def __init__(self, exporter: SpanExporter, *, node_id: str) -> None:
        self._exporter = exporter
        self._resource = Resource(
            {
                "service.name": "goqueue",
                "service.version": goqueue.__version__,
                "service.instance.id": node_id,
            }
        )
        _catch_lines()

    def send(self, spans: Sequence[Outgoing]) -> None:
        _lines.forget()
        result = self._exporter.export([_readable(outgoing, self._resource) for outgoing in spans])
        if result is not SpanExportResult.SUCCESS:
            raise OSError(_lines.first() or "the collector did not take the spans")

    def close(self) -> None:
        self._exporter.shutdown()


def over_http(endpoint: str, headers: Mapping[str, str], *, node_id: str) -> Otlp:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    url = endpoint or HTTP_ENDPOINT
    if urlsplit(url).path in ("", "/"):
        url = url.rstrip("/") + HTTP_PATH
    return Otlp(OTLPSpanExporter(endpoint=url, headers=headers, timeout=_TIMEOUT_S), node_id=node_id)


def over_grpc(endpoint: str, headers: Mapping[str, str], *, node_id: str) -> Otlp:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    lower = {name.lower(): value for name, value in headers.items()}  # gRPC refuses any others
    return Otlp(
        OTLPSpanExporter(endpoint=endpoint or GRPC_ENDPOINT, headers=lower, timeout=_TIMEOUT_S),
        node_id=node_id,
    )


def _readable(outgoing: Outgoing, resource: Resource) -> ReadableSpan:
    span = outgoing.span
    end_ns = span.time_us * 1000
    is_error = span.stage in _ERRORS
    return ReadableSpan(
        name=f"{span.stage.value} {span.topic}",
        context=_context(outgoing.trace_id, span.span_id),
        parent=None if span.parent_span_id is None else _context(outgoing.trace_id, span.parent_span_id),
        resource=resource,
        attributes=_attributes(span),
        kind=SpanKind.SERVER if span.stage in _OPERATIONS else SpanKind.INTERNAL,
        instrumentation_scope=_SCOPE,
        status=Status(StatusCode.ERROR, span.error or None) if is_error else Status(),
        start_time=end_ns - (span.duration_us or 0) * 1000,
        end_time=end_ns,
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=_SAMPLED)


def _attributes(span: Span) -> dict[str, str | int | float | bool]:
    """Names of OpenTelemetry's messaging conventions where there is one, else below `goqueue.`."""
    attributes: dict[str, str | int | float | bool] = {
        "messaging.system": _SYSTEM,
        "messaging.destination.name": span.topic,
        "messaging.operation.name": span.stage.value,
        "goqueue.source": span.witness.value,
    }
    if span.partition >= 0:
        attributes["messaging.destination.partition.id"] = str(span.partition)
    if span.offset >= 0:
        attributes["messaging.kafka.offset"] = span.offset
    if operation := _OPERATIONS.get(span.stage):
        attributes["messaging.operation.type"] = operation
    if span.group:
        attributes["messaging.consumer.group.name"] = span.group
    if span.consumer:
        attributes["messaging.client.id"] = span.consumer
    if span.error:
        attributes["error.type"] = span.error
    attributes.update((f"goqueue.{name}", value) for name, value in span.facts.items())
    return attributes


class _Lines(logging.Handler):
    """Keeps the first line that the SDK writes during a send, for the thread that sends."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._here = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        if not self.first():
            self._here.first = record.getMessage()

    def first(self) -> str:
        return getattr(self._here, "first", "")

    def forget(self) -> None:
        self._here.first = ""


_lines = _Lines()


def _catch_lines() -> None:
    logger = logging.getLogger("opentelemetry")
    logger.propagate = False
    if _lines not in logger.handlers:
        logger.addHandler(_lines)
