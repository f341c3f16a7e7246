"""The ASGI app of the HTTP door: all routes, at the root and under /v1, behind the fast routes.

A module with routes has a list of them, `ROUTES`; a new one is a line here.
"""

from functools import cache

from litestar.di import Provide
from litestar.types import ASGIApp

from goqueue.broker.broker import Broker
from goqueue.edge.authentication import Authenticator
from goqueue.edge.http.access import routes as access
from goqueue.edge.http.backup import routes as backups
from goqueue.edge.http.backup import whole as whole_backups
from goqueue.edge.http.bulk import batches, frames, offsets, sinks
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.http.delays import delayed, schedules
from goqueue.edge.http.errors import EXCEPTION_HANDLERS
from goqueue.edge.http.fast_routes import FastRoutes, served
from goqueue.edge.http.groups import cooperative, lag
from goqueue.edge.http.groups import offsets as group_offsets
from goqueue.edge.http.groups import routes as groups
from goqueue.edge.http.health import cluster, metrics, pprof
from goqueue.edge.http.health import routes as health
from goqueue.edge.http.identities import routes as identities
from goqueue.edge.http.messages import reading
from goqueue.edge.http.messages import routes as messages
from goqueue.edge.http.moving import nodes, reassignments
from goqueue.edge.http.parts.framework import MsgspecLitestar
from goqueue.edge.http.parts.long_polls import LongPolls
from goqueue.edge.http.parts.openapi import docs_route, document, openapi_route
from goqueue.edge.http.parts.replies import Line, options_of
from goqueue.edge.http.queue import dead_letters, polling, settling
from goqueue.edge.http.queue import stats as queue_stats
from goqueue.edge.http.schemas import routes as schemas
from goqueue.edge.http.tenants import routes as tenants
from goqueue.edge.http.topics import compaction, damage, scaling
from goqueue.edge.http.topics import routes as topics
from goqueue.edge.http.tracing import routes as traces
from goqueue.edge.http.transactions import routes as transactions
from goqueue.edge.http.transport.access_log import AccessLog
from goqueue.edge.http.transport.keeper import Keeper
from goqueue.edge.http.transport.leader_hints import LeaderHints
from goqueue.edge.http.transport.page_rules import PageRules
from goqueue.edge.http.transport.slashes import EncodedSlashes, restore_slashes
from goqueue.edge.http.transport.versioned import Versioned
from goqueue.edge.http.transport.web_pages import WebPages

_HEALTH_ROUTES = [*health.ROUTES, *cluster.ROUTES, *metrics.ROUTES]
_NAMED_ROUTES = [
    *topics.ROUTES,
    *scaling.ROUTES,
    *compaction.ROUTES,
    *damage.ROUTES,
    *messages.ROUTES,
    *reading.ROUTES,
    *frames.ROUTES,
    *offsets.ROUTES,
    *batches.ROUTES,
    *sinks.ROUTES,
    *groups.ROUTES,
    *group_offsets.ROUTES,
    *lag.ROUTES,
    *cooperative.ROUTES,
    *polling.ROUTES,
    *settling.ROUTES,
    *dead_letters.ROUTES,
    *queue_stats.ROUTES,
    *schemas.ROUTES,
    *delayed.ROUTES,
    *schedules.ROUTES,
    *transactions.ROUTES,
    *traces.ROUTES,
    *tenants.ROUTES,
    *identities.ROUTES,
    *backups.ROUTES,
    *whole_backups.ROUTES,
    *reassignments.ROUTES,
    *nodes.ROUTES,
    *access.ROUTES,
]
# What gives OPTIONS comes first, or Litestar has made its own by the time it comes.
_API_ROUTES = [*options_of(_NAMED_ROUTES), *_NAMED_ROUTES]
_DEPENDENCIES = ("broker", "config", "long_polls")


@cache
def api_document() -> bytes:
    """The OpenAPI document, as JSON. It is the same whatever the broker.

    To draw it takes as long as a third of a start, so that is left to whoever asks for it first.
    """
    return document([*_HEALTH_ROUTES, *_API_ROUTES], _DEPENDENCIES)


_PAGE_ROUTES = [docs_route, openapi_route(api_document), *pprof.ROUTES]


def create_app(
    broker: Broker,
    config: HttpConfig,
    long_polls: LongPolls | None = None,
    rules: PageRules | None = None,
    authenticator: Authenticator | None = None,
) -> ASGIApp:
    """The app that serves a broker. Whoever ends `long_polls` has all waiting reads answered."""
    app: ASGIApp = FastRoutes(broker, config, long_polls or LongPolls(), _framework(config.json_bytes))
    if broker.is_one_of_several:
        app = LeaderHints(app)
    if authenticator is not None:
        app = Keeper(
            authenticator,
            app,
            are_probes_open=config.are_probes_open,
            takes_query_keys=config.takes_query_keys,
        )
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
            *_PAGE_ROUTES,
        ],
        dependencies={name: Provide(served(name), sync_to_thread=False) for name in _DEPENDENCIES},
        exception_handlers=EXCEPTION_HANDLERS,
        before_request=restore_slashes,
        request_max_body_size=json_bytes,
        response_class=Line,
        logging_config=None,
        openapi_config=None,
    )
    return EncodedSlashes(Versioned(app, root_only=[*_HEALTH_ROUTES, *_PAGE_ROUTES]))
