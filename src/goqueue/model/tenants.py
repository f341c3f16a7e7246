"""Tenants in words: who owns which names, what each may use, and what it has used.

A tenant owns the topics and groups whose names begin with its id and a dot. A quota of 0 is no limit.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from enum import Enum
from typing import NamedTuple, NewType

from goqueue.model.settings import HOUR_MS, MiB, require

TenantId = NewType("TenantId", str)

SYSTEM_TENANT = TenantId("__system")
"""Owns what the broker keeps for itself: topics whose names begin with two underscores."""
TENANT_SEPARATOR = "."
QUOTA_MAX = 2**53
"""Numbers in JSON are exact up to here."""


class TenantStatus(Enum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    """For a while, with a reason: its data stays and nobody gets at it."""
    DISABLED = "disabled"
    """The same, for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What a tenant may use. Rates are a second's; as much may come at once."""

    publish_rate_limit: int = 1_000
    consume_rate_limit: int = 5_000
    publish_bytes_rate_limit: int = 10 * MiB
    consume_bytes_rate_limit: int = 50 * MiB
    max_storage_bytes: int = 10 * 1024 * MiB
    max_topics: int = 100
    max_partitions_per_topic: int = 16
    max_total_partitions: int = 500
    max_message_size_bytes: int = MiB
    max_retention_ms: int = 168 * HOUR_MS
    max_delay_ms: int = 168 * HOUR_MS
    max_connections: int = 100
    """Where doors ask who comes: else a connection belongs to nobody."""
    max_consumer_groups: int = 50
    max_consumers_per_group: int = 20

    def __post_init__(self) -> None:
        for quota in fields(self):
            value = getattr(self, quota.name)
            require(0 <= value <= QUOTA_MAX, f"{quota.name} must be 0 (no limit) or more, not {value}")


UNLIMITED_QUOTAS = Quotas(**{quota.name: 0 for quota in fields(Quotas)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant as it was last agreed on."""

    tenant_id: TenantId
    name: str
    created_ms: int
    updated_ms: int
    status: TenantStatus = TenantStatus.ACTIVE
    quotas: Quotas = Quotas()
    display_name: str = ""
    description: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    suspended_ms: int | None = None
    suspend_reason: str = ""

    @property
    def is_active(self) -> bool:
        return self.status is TenantStatus.ACTIVE


@dataclass(frozen=True, slots=True)
class UsageTotals:
    """What a tenant has moved since it was created or its count was last reset."""

    messages_published: int = 0
    bytes_published: int = 0
    messages_consumed: int = 0
    bytes_consumed: int = 0

    def less(self, before: "UsageTotals") -> "UsageTotals | None":
        """What has come since; None: it was counted from 0 again."""
        now, then = astuple(self), astuple(before)
        if any(one < other for one, other in zip(now, then, strict=True)):
            return None
        return UsageTotals(*(one - other for one, other in zip(now, then, strict=True)))


class UsageHour(NamedTuple):
    """What a tenant has moved in an hour, and the most that it held then when it was looked at."""

    messages_published: int = 0
    bytes_published: int = 0
    messages_consumed: int = 0
    bytes_consumed: int = 0
    storage_bytes: int = 0

    def with_more(self, moved: UsageTotals, storage_bytes: int) -> "UsageHour":
        """With what was moved besides."""
        return UsageHour(
            self.messages_published + moved.messages_published,
            self.bytes_published + moved.bytes_published,
            self.messages_consumed + moved.messages_consumed,
            self.bytes_consumed + moved.bytes_consumed,
            max(self.storage_bytes, storage_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantUsage:
    """What a tenant has moved, and what it holds now."""

    tenant: Tenant
    totals: UsageTotals
    storage_bytes: int
    topic_count: int
    partition_count: int
    group_count: int
    counted_ms: int
    connection_count: int = 0
    violations: Mapping[str, int] = field(default_factory=dict)
    """How often each quota has refused something, since the broker has started or usage was reset."""
