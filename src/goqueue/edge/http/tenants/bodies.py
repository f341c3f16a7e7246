"""The JSON of tenants, their quotas and what they use."""

from typing import Annotated, Generic, Literal

from msgspec import Meta, Struct

from goqueue.edge.http.parts.times import ZERO_TIME, format_time
from goqueue.model.errors import InvalidTenant
from goqueue.model.settings import HOUR_MS
from goqueue.model.tenants import QUOTA_MAX, Quotas, Tenant, TenantUsage, UsageHour
from goqueue.wire import tenants as wire
from goqueue.wire.pages import Next
from goqueue.wire.times import Time

StatusWord = Literal["active", "suspended", "disabled"]
Limit = Annotated[int, Meta(ge=0, le=QUOTA_MAX, description="0: no limit.")]
Hours = Annotated[float, Meta(ge=0, le=QUOTA_MAX // HOUR_MS, description="Hours; 0: no limit.")]


class QuotasBody(Struct):
    """What a tenant may use; 0 is no limit. What is left out is as for a new tenant.

    Some have a second name, which older clients use: the first one counts where both are given.
    """

    publish_rate_limit: Limit | None = None
    consume_rate_limit: Limit | None = None
    publish_bytes_rate_limit: Limit | None = None
    consume_bytes_rate_limit: Limit | None = None
    max_storage_bytes: Limit | None = None
    max_topics: Limit | None = None
    max_partitions_per_topic: Limit | None = None
    max_total_partitions: Limit | None = None
    max_message_size_bytes: Limit | None = None
    max_retention_hours: Hours | None = None
    max_delay_hours: Hours | None = None
    max_connections: Limit | None = None
    max_consumer_groups: Limit | None = None
    max_consumers_per_group: Limit | None = None
    max_messages_per_second: Limit | None = None
    max_bytes_per_second: Limit | None = None
    max_partitions_total: Limit | None = None
    max_retention_ms: Limit | None = None
    max_delay_ms: Limit | None = None
    consumers_per_group: Limit | None = None


class QuotasShown(wire.Quotas, frozen=True, kw_only=True):
    """All quotas of a tenant. 0 is no limit."""

    max_retention_hours: float
    max_delay_hours: float


class CreateTenantBody(Struct):
    """A tenant: it owns the topics and groups whose names begin with its id and a dot."""

    name: str | None = None
    id: Annotated[str, Meta(description="Made from the name when absent.")] | None = None
    display_name: str | None = None
    description: str | None = None
    quotas: QuotasBody | None = None
    metadata: dict[str, str] | None = None


class ChangeTenantBody(Struct):
    """What is left out stays as it is."""

    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    metadata: Annotated[dict[str, str], Meta(description="Takes the place of all there was.")] | None = None


class SuspendBody(Struct):
    reason: str


class TenantBody(wire.Tenant[Time], Generic[Time], frozen=True, kw_only=True):
    quotas: QuotasShown


class TenantList(Struct, omit_defaults=True):
    tenants: list[TenantBody[str]]
    count: int
    next: Next = None


class TenantDeletedBody(Struct):
    tenant_id: str
    status: Literal["deleted"] = "deleted"


class QuotasUpdated(Struct):
    tenant_id: str
    quotas: QuotasShown
    status: Literal["updated"] = "updated"


class TenantTopics(Struct):
    tenant_id: str
    topics: list[str]
    count: int


class TenantGroups(Struct):
    tenant_id: str
    groups: list[str]
    count: int


def quotas_of(body: QuotasBody | None) -> Quotas:
    """The quotas that a body asks for."""
    given = body or QuotasBody()
    wanted = {
        "publish_rate_limit": _first(given.publish_rate_limit, given.max_messages_per_second),
        "consume_rate_limit": given.consume_rate_limit,
        "publish_bytes_rate_limit": _first(given.publish_bytes_rate_limit, given.max_bytes_per_second),
        "consume_bytes_rate_limit": given.consume_bytes_rate_limit,
        "max_storage_bytes": given.max_storage_bytes,
        "max_topics": given.max_topics,
        "max_partitions_per_topic": given.max_partitions_per_topic,
        "max_total_partitions": _first(given.max_total_partitions, given.max_partitions_total),
        "max_message_size_bytes": given.max_message_size_bytes,
        "max_retention_ms": _first(_ms(given.max_retention_hours), given.max_retention_ms),
        "max_delay_ms": _first(_ms(given.max_delay_hours), given.max_delay_ms),
        "max_connections": given.max_connections,
        "max_consumer_groups": given.max_consumer_groups,
        "max_consumers_per_group": _first(given.max_consumers_per_group, given.consumers_per_group),
    }
    try:
        return Quotas(**{name: value for name, value in wanted.items() if value is not None})
    except ValueError as error:
        raise InvalidTenant(str(error)) from error


def shown_quotas(quotas: Quotas) -> QuotasShown:
    return QuotasShown(
        publish_rate_limit=quotas.publish_rate_limit,
        consume_rate_limit=quotas.consume_rate_limit,
        publish_bytes_rate_limit=quotas.publish_bytes_rate_limit,
        consume_bytes_rate_limit=quotas.consume_bytes_rate_limit,
        max_storage_bytes=quotas.max_storage_bytes,
        max_topics=quotas.max_topics,
        max_partitions_per_topic=quotas.max_partitions_per_topic,
        max_total_partitions=quotas.max_total_partitions,
        max_message_size_bytes=quotas.max_message_size_bytes,
        max_retention_hours=_hours(quotas.max_retention_ms),
        max_delay_hours=_hours(quotas.max_delay_ms),
        max_connections=quotas.max_connections,
        max_consumer_groups=quotas.max_consumer_groups,
        max_consumers_per_group=quotas.max_consumers_per_group,
    )


def shown_tenant(tenant: Tenant) -> TenantBody[str]:
    return TenantBody(
        id=tenant.tenant_id,
        name=tenant.name,
        status=tenant.status.value,
        created_at=format_time(tenant.created_ms) if tenant.created_ms else ZERO_TIME,
        updated_at=format_time(tenant.updated_ms) if tenant.updated_ms else ZERO_TIME,
        quotas=shown_quotas(tenant.quotas),
        display_name=tenant.display_name,
        description=tenant.description,
        suspended_at=None if tenant.suspended_ms is None else format_time(tenant.suspended_ms),
        suspend_reason=tenant.suspend_reason,
        metadata=dict(tenant.metadata),
    )


def shown_usage(usage: TenantUsage) -> wire.TenantUsage[str]:
    totals = usage.totals
    return wire.TenantUsage(
        tenant_id=usage.tenant.tenant_id,
        total_messages_published=totals.messages_published,
        total_bytes_published=totals.bytes_published,
        total_messages_consumed=totals.messages_consumed,
        total_bytes_consumed=totals.bytes_consumed,
        storage_bytes=usage.storage_bytes,
        topic_count=usage.topic_count,
        partition_count=usage.partition_count,
        consumer_group_count=usage.group_count,
        connection_count=usage.connection_count,
        last_updated=format_time(usage.counted_ms),
        quota_violations=dict(usage.violations),
    )


def shown_hour(hour: int, used: UsageHour) -> wire.UsageHour[str]:
    return wire.UsageHour(start=format_time(hour * HOUR_MS), **used._asdict())


def shown_stats(usage: TenantUsage) -> wire.TenantStats:
    quotas = usage.tenant.quotas
    return wire.TenantStats(
        tenant_id=usage.tenant.tenant_id,
        storage_usage_percent=_percent(usage.storage_bytes, quotas.max_storage_bytes),
        topic_usage_percent=_percent(usage.topic_count, quotas.max_topics),
        partition_usage_percent=_percent(usage.partition_count, quotas.max_total_partitions),
        consumer_group_usage_percent=_percent(usage.group_count, quotas.max_consumer_groups),
        connection_usage_percent=_percent(usage.connection_count, quotas.max_connections),
    )


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _ms(hours: float | None) -> int | None:
    """Never 0, which would be no limit, for a limit that is only very short."""
    if hours is None:
        return None
    return max(round(hours * HOUR_MS), 1) if hours else 0


def _hours(time_ms: int) -> float:
    """A whole number where it is one: clients in Go read nothing else."""
    return time_ms / HOUR_MS if time_ms % HOUR_MS else time_ms // HOUR_MS


def _percent(used: int, limit: int) -> float:
    return round(100 * used / limit, 2) if limit else 0.0
