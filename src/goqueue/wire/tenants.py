"""Tenants, their quotas and what they use."""

from typing import Annotated, Generic

from msgspec import Meta, Struct

from goqueue.wire.times import Time


class Quotas(Struct, frozen=True, kw_only=True):
    """All quotas of a tenant. 0 is no limit."""

    publish_rate_limit: int
    consume_rate_limit: int
    publish_bytes_rate_limit: int
    consume_bytes_rate_limit: int
    max_storage_bytes: int
    max_topics: int
    max_partitions_per_topic: int
    max_total_partitions: int
    max_message_size_bytes: int
    max_retention_hours: int | float
    max_delay_hours: int | float
    max_connections: Annotated[int, Meta(description="Where doors ask who comes.")]
    max_consumer_groups: int
    max_consumers_per_group: int


class Tenant(Struct, Generic[Time], frozen=True, kw_only=True, omit_defaults=True):
    """Who owns the topics and groups whose names begin with `id` and a dot."""

    id: str
    name: str
    status: Annotated[str, Meta(description="active, suspended or disabled.")]
    created_at: Time
    updated_at: Time
    quotas: Quotas
    display_name: str = ""
    description: str = ""
    suspended_at: Time | None = None
    suspend_reason: str = ""
    metadata: dict[str, str] = {}


class TenantUsage(Struct, Generic[Time], frozen=True):
    """What a tenant has moved since it was created or its count was reset, and what it holds now."""

    tenant_id: str
    total_messages_published: int
    total_bytes_published: int
    total_messages_consumed: int
    total_bytes_consumed: int
    storage_bytes: int
    topic_count: int
    partition_count: int
    consumer_group_count: int
    connection_count: Annotated[int, Meta(description="0 where doors do not ask who comes.")]
    last_updated: Time
    quota_violations: Annotated[
        dict[str, int],
        Meta(
            description="How often each quota refused something since the broker started or usage was reset."
        ),
    ] = {}


class UsageHour(Struct, Generic[Time], frozen=True, kw_only=True):
    """What a tenant has used in an hour."""

    start: Time
    messages_published: int
    bytes_published: int
    messages_consumed: int
    bytes_consumed: int
    storage_bytes: Annotated[int, Meta(description="The most that it held when it was looked at.")]


class UsageHours(Struct, Generic[Time], frozen=True, kw_only=True):
    tenant_id: str
    hours: Annotated[
        list[UsageHour[Time]], Meta(description="The oldest first; none in which it used nothing.")
    ]


class TenantStats(Struct, frozen=True):
    """How much of its quotas a tenant holds, in percent; 0 where there is no limit."""

    tenant_id: str
    storage_usage_percent: float
    topic_usage_percent: float
    partition_usage_percent: float
    consumer_group_usage_percent: float
    connection_usage_percent: float
