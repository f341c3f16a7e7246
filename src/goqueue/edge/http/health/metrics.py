"""GET /metrics: the families of the table, and the process itself, as Prometheus' client library writes them.

Text or OpenMetrics, as the reader asks. Every value is read from the broker at the moment of asking: there
is no registry of counters that could disagree with it. The page is written in slices, and in between the
loop serves others, so that a thousand topics hold up nobody for longer than a few milliseconds.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import isinf
from typing import NamedTuple, cast

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from goqueue.broker.access.needs import cluster_need
from goqueue.broker.broker import Broker
from goqueue.broker.measures.family import Family, Kind
from goqueue.broker.measures.table import FAMILIES
from goqueue.broker.measures.view import View
from goqueue.broker.slices import Slices
from goqueue.core.telemetry.histogram import Histogram
from goqueue.edge.http.parts.openapi import RootOnly
from goqueue.model.access import Operation

_END = b"# EOF\n"
"""What ends a page of OpenMetrics. Families are written one by one, each as a page of its own."""
_PIECE_COUNT = 100
"""So many lines are written before others may get their turn: about half a millisecond."""


class Page(NamedTuple):
    content: bytes
    content_type: str


@get(
    "/metrics",
    media_type="text/plain",
    operation_id="metrics",
    summary="Numbers for Prometheus, as text or OpenMetrics by the Accept header",
    tags=["health"],
    operation_class=RootOnly,
)
async def metrics_route(
    broker: NamedDependency[Broker], request: Request[None, None, State]
) -> Response[bytes]:
    broker.warden.demand([cluster_need(Operation.DESCRIBE)])
    page = await metrics_page(broker, request.headers.get("accept", ""))
    # By the header itself: Litestar would name the charset of a text a second time.
    return Response(page.content, headers={"content-type": page.content_type})


class _One(Collector):
    """A single family as the library wants it."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def _process_registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


_process = _process_registry()


async def metrics_page(broker: Broker, accept: str) -> Page:
    """All metrics, in the format that the Accept header prefers."""
    encode, content_type = choose_encoder(accept)
    is_open = content_type.startswith("application/openmetrics-text")
    if is_open:
        # Our names have nothing to escape, and to be told that spares the library half of its work.
        encode = partial(cast(Callable[..., bytes], encode), escaping=ALLOWUTF8)
    view = await View(broker).look()
    slices = Slices(broker.clock)
    parts = [encode(_process).removesuffix(_END)]
    for family in FAMILIES:
        for at, metric in enumerate(_metrics(family, view)):
            lines = encode(_One(metric)).removesuffix(_END)
            # Every piece comes with the two lines that say what the family is; the first one's are enough.
            parts.append(lines.split(b"\n", 2)[2] if at else lines)
            await slices.pause()
    if is_open:
        parts.append(_END)
    return Page(b"".join(parts), content_type)


def _metrics(family: Family, view: View) -> Iterator[Metric]:
    """A family in pieces: at least one, and each with some samples of it."""
    names = family.labels_in(view)
    is_counter = family.kind is Kind.COUNTER
    name = family.name.removesuffix("_total") if is_counter else family.name
    metric = Metric(name, family.help, family.kind.value)
    # What is read may change between two pieces, so it is listed first.
    for values, value in list(family.read(view)):
        if len(metric.samples) >= _PIECE_COUNT:
            yield metric
            metric = Metric(name, family.help, family.kind.value)
        labels = dict(zip(names, values, strict=True))
        if isinstance(value, Histogram):
            metric.samples += _buckets(family.name, labels, value)
        else:
            metric.samples.append(Sample(family.name, labels, value))
    yield metric


def _buckets(name: str, labels: dict[str, str], histogram: Histogram) -> Iterator[Sample]:
    seen = 0
    for bound, seen in histogram.rising():
        yield Sample(f"{name}_bucket", {**labels, "le": _bound_text(bound)}, seen)
    yield Sample(f"{name}_count", labels, seen)
    yield Sample(f"{name}_sum", labels, histogram.total)


def _bound_text(bound: float) -> str:
    return "+Inf" if isinf(bound) else repr(bound)


ROUTES = [metrics_route]
