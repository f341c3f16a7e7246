"""Tenants: create and change them, set what they may use, see what they use."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from goqueue.client.call import Call, body_of, json_of, path, query_of
from goqueue.wire import tenants as wire
from goqueue.wire.tenants import Quotas as Quotas
from goqueue.wire.tenants import TenantStats as TenantStats

Tenant = wire.Tenant[datetime]
TenantUsage = wire.TenantUsage[datetime]
UsageHour = wire.UsageHour[datetime]


class _TenantList(msgspec.Struct):
    tenants: list[Tenant]


class _QuotasSet(msgspec.Struct):
    quotas: Quotas


class _Topics(msgspec.Struct):
    topics: list[str]


class _Groups(msgspec.Struct):
    groups: list[str]


def create(
    name: str,
    *,
    tenant_id: str | None = None,
    description: str | None = None,
    quotas: Mapping[str, float] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Call[Tenant]:
    """Create a tenant; its id is made from its name when none is given. Quotas left out are the defaults."""
    return Call(
        method="POST",
        path="/admin/tenants",
        decode=json_of(Tenant),
        body=body_of(id=tenant_id, name=name, description=description, quotas=quotas, metadata=metadata),
        is_repeatable=False,
    )


def list_tenants(*, status: str | None = None) -> Call[list[Tenant]]:
    """All tenants, the broker's own first, or those that are active, suspended or disabled."""
    decode = json_of(_TenantList)
    return Call(
        method="GET",
        path="/admin/tenants",
        query=query_of(status=status),
        decode=lambda reply: decode(reply).tenants,
    )


def get(tenant_id: str) -> Call[Tenant]:
    """A tenant."""
    return Call(method="GET", path=path("admin", "tenants", tenant_id), decode=json_of(Tenant))


def update(
    tenant_id: str,
    *,
    name: str | None = None,
    description: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Call[Tenant]:
    """Change what a tenant is called. What is left out stays; metadata takes the place of all there was."""
    return Call(
        method="PATCH",
        path=path("admin", "tenants", tenant_id),
        decode=json_of(Tenant),
        body=body_of(name=name, description=description, metadata=metadata),
    )


def delete(tenant_id: str, *, force: bool = False) -> Call[None]:
    """Forget a tenant; with topics, which stay, only by force."""
    return Call(
        method="DELETE",
        path=path("admin", "tenants", tenant_id),
        query=query_of(force="true" if force else None),
        decode=lambda reply: None,
        is_repeatable=False,
    )


def suspend(tenant_id: str, *, reason: str) -> Call[Tenant]:
    """Refuse all work on a tenant's topics and groups."""
    return _status(tenant_id, "suspend", body_of(reason=reason))


def activate(tenant_id: str) -> Call[Tenant]:
    """Let a tenant work again."""
    return _status(tenant_id, "activate")


def disable(tenant_id: str) -> Call[Tenant]:
    """Refuse all work on a tenant's topics and groups, for good."""
    return _status(tenant_id, "disable")


def quotas(tenant_id: str) -> Call[Quotas]:
    """What a tenant may use."""
    return Call(method="GET", path=path("admin", "tenants", tenant_id, "quotas"), decode=json_of(Quotas))


def set_quotas(tenant_id: str, limits: Mapping[str, float]) -> Call[Quotas]:
    """Set what a tenant may use, by the names of `Quotas`. What is left out becomes the default."""
    decode = json_of(_QuotasSet)
    return Call(
        method="PUT",
        path=path("admin", "tenants", tenant_id, "quotas"),
        decode=lambda reply: decode(reply).quotas,
        body=msgspec.json.encode(limits),
    )


def usage(tenant_id: str) -> Call[TenantUsage]:
    """What a tenant has moved, and what it holds."""
    return Call(method="GET", path=path("admin", "tenants", tenant_id, "usage"), decode=json_of(TenantUsage))


def usage_hours(tenant_id: str, *, hours: int | None = None) -> Call[list[UsageHour]]:
    """What a tenant has used hour by hour, so many hours back; None: a day."""
    decode = json_of(wire.UsageHours[datetime])
    return Call(
        method="GET",
        path=path("admin", "tenants", tenant_id, "usage", "hours"),
        query=query_of(hours=hours),
        decode=lambda reply: decode(reply).hours,
    )


def reset_usage(tenant_id: str) -> Call[TenantUsage]:
    """Begin to count from 0 what a tenant moves."""
    return Call(
        method="POST",
        path=path("admin", "tenants", tenant_id, "usage", "reset"),
        decode=json_of(TenantUsage),
    )


def stats(tenant_id: str) -> Call[TenantStats]:
    """How much of its quotas a tenant holds."""
    return Call(method="GET", path=path("admin", "tenants", tenant_id, "stats"), decode=json_of(TenantStats))


def topics(tenant_id: str) -> Call[list[str]]:
    """The topics of a tenant."""
    decode = json_of(_Topics)
    return Call(
        method="GET",
        path=path("admin", "tenants", tenant_id, "topics"),
        decode=lambda reply: decode(reply).topics,
    )


def groups(tenant_id: str) -> Call[list[str]]:
    """The consumer groups of a tenant."""
    decode = json_of(_Groups)
    return Call(
        method="GET",
        path=path("admin", "tenants", tenant_id, "groups"),
        decode=lambda reply: decode(reply).groups,
    )


def _status(tenant_id: str, verb: str, body: bytes | None = None) -> Call[Tenant]:
    return Call(
        method="POST",
        path=path("admin", "tenants", tenant_id, verb),
        decode=json_of(Tenant),
        body=body,
    )
