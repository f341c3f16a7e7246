"""Health, version and numbers: what probes and people ask before anything else. Served at the root only."""

import platform
from typing import Annotated

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from msgspec.structs import replace

import goqueue
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home
from goqueue.broker.read.show_written import show_written
from goqueue.broker.topics.verbs import list_topics
from goqueue.core.telemetry.checks import Check
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import RootOnly, errors
from goqueue.edge.http.parts.times import format_duration, format_second
from goqueue.edge.http.topics.routes import message_count_of, size_of
from goqueue.model.commands import ShowWritten
from goqueue.model.topics import ListTopics
from goqueue.wire import node as wire
from goqueue.wire.node import Health, NodeSummary, Readiness, Stats, TopicStats, Version

_TAGS = ["health"]
_UNHEALTHY = {503: ResponseSpec(Readiness[str], generate_examples=False, description="Not now")}


@get("/health", operation_id="health", summary="A quick yes", tags=_TAGS, operation_class=RootOnly)
async def health_route(broker: NamedDependency[Broker]) -> Health[str]:
    return Health("ok", format_second(broker.clock.wall_ms()))


@get(
    "/healthz",
    operation_id="healthz",
    summary="Whether the broker is open; if not, only a new start helps",
    tags=_TAGS,
    operation_class=RootOnly,
    responses=_UNHEALTHY,
)
async def healthz_route(broker: NamedDependency[Broker]) -> Response[Readiness[str]]:
    return _reply(_health(broker, None if broker.is_open else "the broker is not open"))


@get(
    "/readyz",
    operation_id="readyz",
    summary="Whether requests are served: not while the broker is stopping, nor when a check fails",
    tags=_TAGS,
    operation_class=RootOnly,
    responses=_UNHEALTHY | errors(400),
)
async def readyz_route(
    broker: NamedDependency[Broker],
    long_polls: NamedDependency[LongPolls],
    verbose: Annotated[str | None, QueryParameter(description="`true`: tell of every check.")] = None,
) -> Response[Readiness[str]]:
    problem = (
        "the broker is not open"
        if not broker.is_open
        else "the server is stopping"
        if long_polls.is_ended
        else None
    )
    if verbose != "true":
        # From memory: probes come often, and from a disk that hangs there would be no answer.
        body = _health(broker, problem or "; ".join(broker.health.problems) or None)
        return _reply(replace(body, warnings=broker.health.warnings))
    checks = {"broker": wire.Check("fail", problem) if problem else wire.Check("pass")}
    for name, check in (await broker.health.check(broker, may_probe=True)).items():
        checks[name] = _check_body(check)
    failed = [f"{name}: {check.message}" for name, check in checks.items() if check.status == "fail"]
    body = replace(_health(broker, "; ".join(failed) or None), checks=checks)
    if broker.is_open:
        topics = await list_topics(broker, ListTopics())
        size = sum(size_of(topic) for topic in topics)
        body = replace(body, broker=NodeSummary(broker.config.node_id, len(topics), size))
    return _reply(body)


@get(
    "/livez",
    operation_id="livez",
    summary="Whether the process answers",
    tags=_TAGS,
    operation_class=RootOnly,
)
async def livez_route(broker: NamedDependency[Broker]) -> Readiness[str]:
    return _health(broker, None)


@get("/version", operation_id="version", summary="What is running", tags=_TAGS, operation_class=RootOnly)
async def version_route() -> Version:
    # A wheel does not carry the commit or the time it was built from, and we do not guess.
    return Version(goqueue.__version__, "unknown", "unknown", f"python{platform.python_version()}")


@get("/stats", operation_id="stats", summary="Topics and sizes", tags=_TAGS, operation_class=RootOnly)
async def stats_route(broker: NamedDependency[Broker]) -> Stats:
    await at_home(broker, show_written, ShowWritten(sources=None))
    topics = await at_home(broker, list_topics, ListTopics())
    return Stats(
        node_id=broker.config.node_id,
        uptime=_uptime(broker),
        topics=len(topics),
        total_size_bytes=sum(size_of(topic) for topic in topics),
        topic_stats={
            topic.name: TopicStats(topic.name, len(topic.partitions), message_count_of(topic), size_of(topic))
            for topic in topics
        },
    )


def _health(broker: Broker, problem: str | None) -> Readiness[str]:
    now = format_second(broker.clock.wall_ms())
    return Readiness("pass" if problem is None else "fail", now, _uptime(broker), problem)


def _reply(body: Readiness[str]) -> Response[Readiness[str]]:
    return Response(body, status_code=200 if body.status == "pass" else 503)


def _uptime(broker: Broker) -> str:
    return format_duration(max(broker.clock.wall_ms() - broker.started_ms, 0))


def _check_body(check: Check) -> wire.Check:
    took = None if check.took_ns is None else _latency(check.took_ns)
    return wire.Check(check.verdict.value, check.message or None, took)


def _latency(took_ns: int) -> str:
    """A short duration as Go writes it."""
    if took_ns < 1_000_000:
        return f"{took_ns // 1000}µs"
    return (
        f"{took_ns / 1_000_000:.2f}ms" if took_ns < 1_000_000_000 else format_duration(took_ns // 1_000_000)
    )


ROUTES = [health_route, healthz_route, livez_route, readyz_route, stats_route, version_route]
