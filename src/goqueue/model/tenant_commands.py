"""What is asked of tenants: what changes one is decided by the controller; rates are each node's own."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from goqueue.model.commands import PartitionRead
from goqueue.model.places import Place, Seat
from goqueue.model.tenants import Quotas, Tenant, TenantStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTenant:
    """An id that is absent is made from the name."""

    name: str
    tenant_id: str = ""
    display_name: str = ""
    description: str = ""
    quotas: Quotas = field(default_factory=Quotas)
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTenant:
    """Bring a tenant back as a backup has kept it."""

    tenant: Tenant

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTenant:
    """None: as it is."""

    tenant_id: str
    name: str | None = None
    display_name: str | None = None
    description: str | None = None
    metadata: Mapping[str, str] | None = None

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTenant:
    """A tenant as it was last agreed on."""

    tenant_id: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTenants:
    """All tenants, the broker's own first."""

    status: TenantStatus | None = None
    """Those of one status alone; None: of any."""

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuotas:
    """Other quotas from now on."""

    tenant_id: str
    quotas: Quotas

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    """Suspend, disable, or let work again."""

    tenant_id: str
    status: TenantStatus
    reason: str = ""

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTenant:
    """Forget a tenant. Its topics stay, and belong to nobody."""

    tenant_id: str
    is_forced: bool = False
    """Also while it has topics."""

    @property
    def place(self) -> Place:
        return Seat.CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTenantTopics:
    """The topics of a tenant, by name."""

    tenant_id: str

    @property
    def place(self) -> Place:
        return Seat.ANY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTenantGroups:
    """The consumer groups of a tenant, by name."""

    tenant_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUsage:
    """What a tenant has moved, and what it holds now."""

    tenant_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeUsageHours:
    """What a tenant has used hour by hour, from an hour on (counted since 1970)."""

    tenant_id: str
    first_hour: int

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetUsage:
    """Count from 0 again what a tenant moves."""

    tenant_id: str

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class Holding(NamedTuple):
    """What a node holds of a tenant."""

    storage_bytes: int
    group_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TellHoldings:
    """What does each node hold of each tenant? Asked by nodes, which judge quotas by the sums."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


class PublishWait(NamedTuple):
    """How long should whoever published to these topics wait, because their tenants are in debt?"""

    topics: Collection[str]

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


class ConsumeWait(NamedTuple):
    """The same for whoever has read from them."""

    topics: Collection[str]

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


class LimitReads(NamedTuple):
    """What may a Kafka client have now of what it wants to read?"""

    parts: Sequence[PartitionRead]

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE
