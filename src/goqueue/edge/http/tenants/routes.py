"""Tenants over HTTP: who they are, what they may use and what they use."""

from typing import Annotated

import msgspec
from litestar import delete, get, patch, post, put
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter, RawBody

from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here, seen_at_home
from goqueue.broker.tenants.verbs import (
    change_tenant,
    create_tenant,
    delete_tenant,
    get_tenant,
    list_tenants,
    reset_usage,
    set_quotas,
    set_status,
    tenant_groups,
    tenant_topics,
    tenant_usage,
    usage_hours,
)
from goqueue.edge.http.parts.decoding import decode, decode_if_any
from goqueue.edge.http.parts.openapi import errors, takes
from goqueue.edge.http.parts.paging import ALL, After, Limit, names_in_page, shown_in_slices
from goqueue.edge.http.tenants.bodies import (
    ChangeTenantBody,
    CreateTenantBody,
    QuotasBody,
    QuotasShown,
    QuotasUpdated,
    StatusWord,
    SuspendBody,
    TenantBody,
    TenantDeletedBody,
    TenantGroups,
    TenantList,
    TenantTopics,
    quotas_of,
    shown_hour,
    shown_quotas,
    shown_stats,
    shown_tenant,
    shown_usage,
)
from goqueue.model.settings import HOUR_MS
from goqueue.model.tenant_commands import (
    ChangeTenant,
    CreateTenant,
    DeleteTenant,
    DescribeUsage,
    DescribeUsageHours,
    GetTenant,
    ListTenantGroups,
    ListTenants,
    ListTenantTopics,
    ResetUsage,
    SetQuotas,
    SetStatus,
)
from goqueue.model.tenants import TenantStatus
from goqueue.wire import tenants as wire

_create_decoder = msgspec.json.Decoder(CreateTenantBody)
_change_decoder = msgspec.json.Decoder(ChangeTenantBody)
_suspend_decoder = msgspec.json.Decoder(SuspendBody)
_quotas_decoder = msgspec.json.Decoder(QuotasBody)
_TAGS = ["tenants"]
_ONE = "/admin/tenants/{tenant_id:str}"

_HOURS_MAX = 24 * 400
_HoursBack = Annotated[
    int, QueryParameter(ge=1, le=_HOURS_MAX, description="So many hours back, the one that runs included.")
]
_TenantId = Annotated[str, PathParameter(description="The tenant's id.")]


@post(
    "/admin/tenants",
    operation_id="createTenant",
    summary="Create a tenant",
    description="Topics and groups whose names begin with its id and a dot are its own, also old ones.",
    tags=_TAGS,
    operation_class=takes(CreateTenantBody),
    responses=errors(400, 409, 503),
)
async def create_tenant_route(broker: NamedDependency[Broker], body: RawBody) -> TenantBody[str]:
    request = decode(_create_decoder, body)
    created = await at_home(
        broker,
        create_tenant,
        CreateTenant(
            tenant_id=request.id or "",
            name=request.name or request.display_name or "",
            display_name=request.display_name or "",
            description=request.description or "",
            quotas=quotas_of(request.quotas),
            metadata=request.metadata or {},
        ),
    )
    return shown_tenant(created)


@get(
    "/admin/tenants",
    operation_id="listTenants",
    summary="All tenants, or those of a status",
    tags=_TAGS,
    responses=errors(400),
)
async def list_tenants_route(
    broker: NamedDependency[Broker],
    status: Annotated[StatusWord | None, QueryParameter(description="Only tenants of this status.")] = None,
    limit: Limit = ALL,
    after: After = None,
) -> TenantList:
    wanted = None if status is None else TenantStatus(status)
    page = names_in_page(
        sorted(tenant.tenant_id for tenant in here(broker, list_tenants, ListTenants(status=wanted))),
        limit,
        after,
    )
    tenants = await shown_in_slices(
        broker, page.rows, lambda name: shown_tenant(here(broker, get_tenant, GetTenant(tenant_id=name)))
    )
    return TenantList(tenants, len(tenants), page.next)


@get(_ONE, operation_id="getTenant", summary="A tenant", tags=_TAGS, responses=errors(400, 404))
async def get_tenant_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> TenantBody[str]:
    return shown_tenant(here(broker, get_tenant, GetTenant(tenant_id=tenant_id)))


@patch(
    _ONE,
    operation_id="changeTenant",
    summary="Change what a tenant is called",
    tags=_TAGS,
    operation_class=takes(ChangeTenantBody),
    responses=errors(400, 403, 404, 503),
)
async def change_tenant_route(
    broker: NamedDependency[Broker], tenant_id: _TenantId, body: RawBody
) -> TenantBody[str]:
    request = decode(_change_decoder, body)
    changed = await at_home(
        broker,
        change_tenant,
        ChangeTenant(
            tenant_id=tenant_id,
            name=request.name,
            display_name=request.display_name,
            description=request.description,
            metadata=request.metadata,
        ),
    )
    return shown_tenant(changed)


@delete(
    _ONE,
    status_code=200,
    operation_id="deleteTenant",
    summary="Forget a tenant",
    description="Its topics stay and belong to nobody; while it has any, that must be forced.",
    tags=_TAGS,
    responses=errors(400, 403, 404, 409, 503),
)
async def delete_tenant_route(
    broker: NamedDependency[Broker],
    tenant_id: _TenantId,
    force: Annotated[bool, QueryParameter(description="Although it has topics.")] = False,
) -> TenantDeletedBody:
    await at_home(broker, delete_tenant, DeleteTenant(tenant_id=tenant_id, is_forced=force))
    return TenantDeletedBody(tenant_id)


@post(
    f"{_ONE}/suspend",
    status_code=200,
    operation_id="suspendTenant",
    summary="Refuse all work on a tenant's topics and groups, for a reason",
    tags=_TAGS,
    operation_class=takes(SuspendBody),
    responses=errors(400, 403, 404, 503),
)
async def suspend_tenant_route(
    broker: NamedDependency[Broker], tenant_id: _TenantId, body: RawBody
) -> TenantBody[str]:
    reason = decode(_suspend_decoder, body).reason
    return shown_tenant(
        await at_home(
            broker, set_status, SetStatus(tenant_id=tenant_id, status=TenantStatus.SUSPENDED, reason=reason)
        )
    )


@post(
    f"{_ONE}/activate",
    status_code=200,
    operation_id="activateTenant",
    summary="Let a tenant work again",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503),
)
async def activate_tenant_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> TenantBody[str]:
    return shown_tenant(
        await at_home(broker, set_status, SetStatus(tenant_id=tenant_id, status=TenantStatus.ACTIVE))
    )


@post(
    f"{_ONE}/disable",
    status_code=200,
    operation_id="disableTenant",
    summary="Refuse all work on a tenant's topics and groups, for good",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503),
)
async def disable_tenant_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> TenantBody[str]:
    return shown_tenant(
        await at_home(broker, set_status, SetStatus(tenant_id=tenant_id, status=TenantStatus.DISABLED))
    )


@get(
    f"{_ONE}/quotas",
    operation_id="getQuotas",
    summary="What a tenant may use",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_quotas_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> QuotasShown:
    return shown_quotas(here(broker, get_tenant, GetTenant(tenant_id=tenant_id)).quotas)


@put(
    f"{_ONE}/quotas",
    operation_id="setQuotas",
    summary="Set what a tenant may use",
    description="What is left out becomes as for a new tenant.",
    tags=_TAGS,
    operation_class=takes(QuotasBody, is_required=False),
    responses=errors(400, 403, 404, 503),
)
async def set_quotas_route(
    broker: NamedDependency[Broker], tenant_id: _TenantId, body: RawBody
) -> QuotasUpdated:
    quotas = quotas_of(decode_if_any(_quotas_decoder, body))
    tenant = await at_home(broker, set_quotas, SetQuotas(tenant_id=tenant_id, quotas=quotas))
    return QuotasUpdated(tenant_id, shown_quotas(tenant.quotas))


@get(
    f"{_ONE}/usage",
    operation_id="getUsage",
    summary="What a tenant has moved, and what it holds",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_usage_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> wire.TenantUsage[str]:
    return shown_usage(await seen_at_home(broker, tenant_usage, DescribeUsage(tenant_id=tenant_id)))


@get(
    f"{_ONE}/usage/hours",
    operation_id="getUsageHours",
    summary="What a tenant has used hour by hour",
    description="What was moved in the last half minute may be missing yet.",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_usage_hours_route(
    broker: NamedDependency[Broker], tenant_id: _TenantId, hours: _HoursBack = 24
) -> wire.UsageHours[str]:
    first_hour = broker.clock.wall_ms() // HOUR_MS - hours + 1
    command = DescribeUsageHours(tenant_id=tenant_id, first_hour=first_hour)
    used = await seen_at_home(broker, usage_hours, command)
    return wire.UsageHours(tenant_id=tenant_id, hours=[shown_hour(hour, used[hour]) for hour in sorted(used)])


@post(
    f"{_ONE}/usage/reset",
    status_code=200,
    operation_id="resetUsage",
    summary="Begin to count from 0 what a tenant moves",
    tags=_TAGS,
    responses=errors(400, 403, 404, 503),
)
async def reset_usage_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> wire.TenantUsage[str]:
    return shown_usage(await at_home(broker, reset_usage, ResetUsage(tenant_id=tenant_id)))


@get(
    f"{_ONE}/stats",
    operation_id="getTenantStats",
    summary="How much of its quotas a tenant holds",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def get_tenant_stats_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> wire.TenantStats:
    return shown_stats(await seen_at_home(broker, tenant_usage, DescribeUsage(tenant_id=tenant_id)))


@get(
    f"{_ONE}/topics",
    operation_id="listTenantTopics",
    summary="The topics of a tenant",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def list_tenant_topics_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> TenantTopics:
    topics = here(broker, tenant_topics, ListTenantTopics(tenant_id=tenant_id))
    return TenantTopics(tenant_id, [*topics], len(topics))


@get(
    f"{_ONE}/groups",
    operation_id="listTenantGroups",
    summary="The consumer groups of a tenant",
    tags=_TAGS,
    responses=errors(400, 404),
)
async def list_tenant_groups_route(broker: NamedDependency[Broker], tenant_id: _TenantId) -> TenantGroups:
    groups = await seen_at_home(broker, tenant_groups, ListTenantGroups(tenant_id=tenant_id))
    return TenantGroups(tenant_id, groups, len(groups))


ROUTES = [
    create_tenant_route,
    list_tenants_route,
    get_tenant_route,
    change_tenant_route,
    delete_tenant_route,
    suspend_tenant_route,
    activate_tenant_route,
    disable_tenant_route,
    get_quotas_route,
    set_quotas_route,
    get_usage_route,
    get_usage_hours_route,
    reset_usage_route,
    get_tenant_stats_route,
    list_tenant_topics_route,
    list_tenant_groups_route,
]
