"""Keys and values of tenants in the store: what is agreed of each, and what it had used when noted last."""

import msgspec

from goqueue.core.access.events import Event, TenantDeleted, TenantSet, UsageNoted
from goqueue.model.tenants import Tenant, TenantId, UsageTotals

TENANTS = "tenants/"
USAGE = "usage/"
_encode = msgspec.json.Encoder().encode
_decode_tenant = msgspec.json.Decoder(Tenant).decode
_decode_usage = msgspec.json.Decoder(UsageTotals).decode


def tenant_key(tenant_id: str) -> str:
    return TENANTS + tenant_id


def changes(event: Event) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """What an event puts into the store, and what it drops."""
    match event:
        case TenantSet(tenant):
            return {tenant_key(tenant.tenant_id): _encode(tenant)}, ()
        case TenantDeleted(tenant_id):
            return {}, (tenant_key(tenant_id), USAGE + tenant_id)
        case UsageNoted(noted):
            return {USAGE + tenant_id: _encode(totals) for tenant_id, totals in noted.items()}, ()


def tenant_put(key: str, value: bytes) -> TenantSet | None:
    """What a put means, if it is a tenant's."""
    return TenantSet(_decode_tenant(value)) if key.startswith(TENANTS) else None


def tenant_dropped(key: str) -> TenantDeleted | None:
    """What a drop means, if it is a tenant's."""
    return TenantDeleted(TenantId(key.removeprefix(TENANTS))) if key.startswith(TENANTS) else None


def usage_put(key: str, value: bytes) -> UsageNoted | None:
    """What had been noted of a tenant's use."""
    if not key.startswith(USAGE):
        return None
    return UsageNoted({TenantId(key.removeprefix(USAGE)): _decode_usage(value)})
