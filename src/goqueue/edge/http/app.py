"""The ASGI app of the HTTP door: all routes, at the root and under /v1, behind the fast lane."""

from functools import cache
from typing import Annotated, cast

from litestar import Response, Router, post
from litestar.di import NamedDependency, Provide
from litestar.params import HeaderParameter, PathParameter, QueryParameter, RawBody
from litestar.types import ASGIApp

from goqueue.broker.broker import Broker
from goqueue.edge.http.backup.routes import BACKUP_OPTIONS, BACKUP_REQUESTS, BACKUP_ROUTES
from goqueue.edge.http.bulk.batches import append_batches_route
from goqueue.edge.http.bulk.bodies import EndEpochBody, OffsetsAtBody, WatchOffsetsBody
from goqueue.edge.http.bulk.frames import read_frames_route, split_route
from goqueue.edge.http.bulk.offsets import offsets_at_route, watch_offsets_route
from goqueue.edge.http.bulk.sinks import (
    abort_route,
    commit_route,
    describe_sink_route,
    forget_sink_route,
    list_sinks_route,
    stage_route,
    take_generation_route,
)
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.delays.bodies import CreateScheduleBody, MoveBody
from goqueue.edge.http.delays.delayed import DELAY_ROUTES
from goqueue.edge.http.delays.schedules import SCHEDULE_OPTIONS, SCHEDULE_ROUTES
from goqueue.edge.http.errors import EXCEPTION_HANDLERS, ErrorBody
from goqueue.edge.http.fast_lane import FastLane, served
from goqueue.edge.http.groups.bodies import (
    CommitOffsetsBody,
    JoinBody,
    MemberBody,
    ResetOffsetsBody,
    RevokeBody,
)
from goqueue.edge.http.groups.cooperative import (
    all_rebalances_route,
    assignment_route,
    describe_cooperatively_route,
    group_rebalances_route,
    heartbeat_cooperatively_route,
    join_cooperatively_route,
    leave_cooperatively_route,
    revoke_route,
)
from goqueue.edge.http.groups.lag import group_lag_route
from goqueue.edge.http.groups.offsets import (
    commit_offsets_route,
    committed_offsets_route,
    reset_offsets_route,
)
from goqueue.edge.http.groups.routes import (
    delete_group_route,
    describe_group_route,
    heartbeat_route,
    join_group_route,
    leave_group_route,
    list_groups_route,
)
from goqueue.edge.http.health.metrics import metrics_route
from goqueue.edge.http.health.pprof import pprof_route
from goqueue.edge.http.health.routes import (
    health_route,
    healthz_route,
    livez_route,
    readyz_route,
    stats_route,
    version_route,
)
from goqueue.edge.http.messages.publishing import publish_messages
from goqueue.edge.http.messages.reading import read_route
from goqueue.edge.http.parts.bodies import AcksWord, CreateTopicBody, PublishBody, PublishReply
from goqueue.edge.http.parts.framework import MsgspecLitestar
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import docs_route, document, errors, openapi_route, takes
from goqueue.edge.http.parts.replies import Line, options_route
from goqueue.edge.http.queue.bodies import AckBody, NackBody, RedriveBody, RejectBody, VisibilityBody
from goqueue.edge.http.queue.dead_letters import dead_letters_route, redrive_route
from goqueue.edge.http.queue.polling import poll_route
from goqueue.edge.http.queue.settling import ack_route, nack_route, reject_route, visibility_route
from goqueue.edge.http.queue.stats import priority_route, reliability_route
from goqueue.edge.http.schemas.routes import SCHEMA_OPTIONS, SCHEMA_REQUESTS, SCHEMA_ROUTES
from goqueue.edge.http.tenants.routes import TENANT_OPTIONS, TENANT_REQUESTS, TENANT_ROUTES
from goqueue.edge.http.topics.damage import DAMAGE_REQUESTS, DAMAGE_ROUTES
from goqueue.edge.http.topics.routes import (
    create_topic_route,
    delete_topic_route,
    describe_topic_route,
    list_partitions_route,
    list_topics_route,
)
from goqueue.edge.http.topics.scaling import SCALING_REQUESTS, SCALING_ROUTES
from goqueue.edge.http.tracing.routes import TRACE_ROUTES
from goqueue.edge.http.transactions.routes import TRANSACTION_REQUESTS, TRANSACTION_ROUTES
from goqueue.edge.http.transport.access_log import AccessLog
from goqueue.edge.http.transport.page_rules import PageRules
from goqueue.edge.http.transport.slashes import EncodedSlashes, restore_slashes
from goqueue.edge.http.transport.web_pages import WebPages

_HEALTH_ROUTES = [
    health_route,
    healthz_route,
    livez_route,
    metrics_route,
    readyz_route,
    stats_route,
    version_route,
]
_DEPENDENCIES = ("broker", "config", "long_polls")


@post(
    "/topics/{topic:str}/messages",
    status_code=200,
    operation_id="publishMessages",
    summary="Publish messages to a topic",
    description="What is wrong with one message is told in its result; the others are stored all the same.",
    tags=["messages"],
    operation_class=takes(PublishBody),
    responses=errors(400, 403, 404, 413, 429, 503, 507),
)
async def publish_route(
    broker: NamedDependency[Broker],
    config: NamedDependency[HttpConfig],
    topic: Annotated[str, PathParameter(description="The topic's name.")],
    body: RawBody,
    acks: Annotated[
        AcksWord | None,
        QueryParameter(
            description="What to wait for: nothing, the OS, or the disk. Goes before the body's; default all."
        ),
    ] = None,
    traceparent: Annotated[
        str | None,
        HeaderParameter(description="W3C trace context of messages that have none in their own headers."),
    ] = None,
) -> Response[PublishReply]:
    given = None if traceparent is None else traceparent.encode()
    reply = await publish_messages(broker, config, topic, body, acks, given)
    status = reply.status if isinstance(reply, ErrorBody) else 200
    # The framework describes the usual reply; the other is one of the documented errors, with more in it.
    return Response(cast(PublishReply, reply), status_code=status)


_API_ROUTES = [
    # First, or Litestar has made its own by the time they come.
    options_route("/topics", "GET", "POST"),
    options_route("/topics/{topic:str}", "GET", "DELETE"),
    options_route("/sinks/{sink:str}", "GET", "DELETE"),
    options_route("/groups/{group:str}", "GET", "DELETE"),
    options_route("/groups/{group:str}/offsets", "GET", "POST"),
    *SCHEMA_OPTIONS,
    *SCHEDULE_OPTIONS,
    *TENANT_OPTIONS,
    *BACKUP_OPTIONS,
    create_topic_route,
    list_topics_route,
    describe_topic_route,
    delete_topic_route,
    list_partitions_route,
    *SCALING_ROUTES,
    *DAMAGE_ROUTES,
    publish_route,
    read_route,
    read_frames_route,
    split_route,
    watch_offsets_route,
    offsets_at_route,
    append_batches_route,
    take_generation_route,
    stage_route,
    commit_route,
    abort_route,
    list_sinks_route,
    describe_sink_route,
    forget_sink_route,
    list_groups_route,
    describe_group_route,
    delete_group_route,
    join_group_route,
    heartbeat_route,
    leave_group_route,
    commit_offsets_route,
    committed_offsets_route,
    reset_offsets_route,
    group_lag_route,
    join_cooperatively_route,
    heartbeat_cooperatively_route,
    revoke_route,
    leave_cooperatively_route,
    assignment_route,
    describe_cooperatively_route,
    group_rebalances_route,
    all_rebalances_route,
    poll_route,
    ack_route,
    nack_route,
    reject_route,
    visibility_route,
    dead_letters_route,
    redrive_route,
    reliability_route,
    priority_route,
    *SCHEMA_ROUTES,
    *DELAY_ROUTES,
    *SCHEDULE_ROUTES,
    *TRANSACTION_ROUTES,
    *TRACE_ROUTES,
    *TENANT_ROUTES,
    *BACKUP_ROUTES,
]
_REQUEST_BODIES = (
    CreateTopicBody,
    *SCALING_REQUESTS,
    *DAMAGE_REQUESTS,
    PublishBody,
    MoveBody,
    CreateScheduleBody,
    WatchOffsetsBody,
    OffsetsAtBody,
    EndEpochBody,
    JoinBody,
    MemberBody,
    RevokeBody,
    CommitOffsetsBody,
    ResetOffsetsBody,
    AckBody,
    NackBody,
    RejectBody,
    VisibilityBody,
    RedriveBody,
    *SCHEMA_REQUESTS,
    *TRANSACTION_REQUESTS,
    *TENANT_REQUESTS,
    *BACKUP_REQUESTS,
)


@cache
def api_document() -> bytes:
    """The OpenAPI document, as JSON. It is the same whatever the broker."""
    return document([*_HEALTH_ROUTES, *_API_ROUTES], _REQUEST_BODIES, _DEPENDENCIES)


def create_app(
    broker: Broker, config: HttpConfig, long_polls: LongPolls | None = None, rules: PageRules | None = None
) -> ASGIApp:
    """The app that serves a broker. Whoever ends `long_polls` has all waiting reads answered."""
    app: ASGIApp = FastLane(broker, config, long_polls or LongPolls(), _framework(config.json_bytes))
    if rules is not None:
        app = WebPages(rules, app)
    return AccessLog(app) if config.is_logging_requests else app


@cache
def _framework(json_bytes: int) -> ASGIApp:
    """All routes. Made once, because it takes a while; whom a request is for stands in its scope."""
    app = MsgspecLitestar(
        [
            *_HEALTH_ROUTES,
            *_API_ROUTES,
            Router("/v1", route_handlers=_API_ROUTES),
            docs_route,
            pprof_route,
            openapi_route(api_document()),
        ],
        dependencies={name: Provide(served(name), sync_to_thread=False) for name in _DEPENDENCIES},
        exception_handlers=EXCEPTION_HANDLERS,
        before_request=restore_slashes,
        request_max_body_size=json_bytes,
        response_class=Line,
        logging_config=None,
        openapi_config=None,
    )
    return EncodedSlashes(app)
