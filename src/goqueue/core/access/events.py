"""What of tenants must survive a restart."""

from dataclasses import dataclass

from goqueue.model.tenants import Tenant, TenantId, UsageTotals


@dataclass(frozen=True, slots=True)
class TenantSet:
    """The tenant is new, or is like this from now on."""

    tenant: Tenant


@dataclass(frozen=True, slots=True)
class TenantDeleted:
    tenant_id: TenantId


@dataclass(frozen=True, slots=True)
class UsageNoted:
    """What tenants have moved so far. Written now and then: a crash forgets what came since."""

    totals: dict[TenantId, UsageTotals]


Event = TenantSet | TenantDeleted | UsageNoted
