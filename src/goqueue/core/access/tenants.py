"""The tenants machine: which tenants there are, and to whom a name belongs.

A topic or group `acme.orders` belongs to tenant `acme` if there is one. Each step writes a tenant's whole
record, which is small; what it has used is counted in its account and noted from time to time.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from unicodedata import normalize

from goqueue.core.access.account import Account
from goqueue.core.access.events import Event, TenantDeleted, TenantSet, UsageNoted
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import InvalidTenant, SystemTenant, TenantExists, TenantNotEmpty, TenantNotFound
from goqueue.model.names import checked_name
from goqueue.model.tenant_commands import ChangeTenant, CreateTenant
from goqueue.model.tenants import (
    SYSTEM_TENANT,
    TENANT_SEPARATOR,
    UNLIMITED_QUOTAS,
    Quotas,
    Tenant,
    TenantId,
    TenantStatus,
    UsageTotals,
)

ID_PATTERN = r"^[a-z][a-z0-9-]{2,63}$"
ID_LENGTH_MAX = 64
_ID = re.compile(ID_PATTERN, re.ASCII)
_NOT_IN_IDS = re.compile(r"[^a-z0-9]+")
_SYSTEM = Tenant(tenant_id=SYSTEM_TENANT, name="System", created_ms=0, updated_ms=0, quotas=UNLIMITED_QUOTAS)


class Tenants:
    def __init__(self) -> None:
        self.accounts: dict[TenantId, Account] = {}
        """Empty on most brokers: whoever asks whether there is any is done."""
        self._noted: dict[TenantId, UsageTotals] = {}
        self.shares = 1
        """Nodes among which their rates are divided."""
        self.usage_noted_ns = 0
        """When it was last written down what they have moved."""

    def share(self, shares: int) -> None:
        """So many nodes are there: each lets through its share of what a tenant may move in a second."""
        self.shares = shares
        for account in self.accounts.values():
            account.share(shares)

    def owner(self, name: str) -> Account | None:
        """Whose topic or group this is."""
        if not self.accounts:
            return None
        tenant_id, separator, _ = name.partition(TENANT_SEPARATOR)
        return self.accounts.get(TenantId(tenant_id)) if separator else None

    def get(self, tenant_id: str) -> Tenant:
        return _SYSTEM if tenant_id == SYSTEM_TENANT else self.account(tenant_id).tenant

    def account(self, tenant_id: str) -> Account:
        """The account of a tenant; the system has none."""
        account = self.accounts.get(TenantId(tenant_id))
        if account is None:
            raise TenantNotFound(tenant_id)
        return account

    def all(self) -> list[Tenant]:
        """By id, the system first."""
        return [_SYSTEM, *(self.accounts[tenant_id].tenant for tenant_id in sorted(self.accounts))]

    def create(self, command: CreateTenant, *, now_ms: int) -> TenantSet:
        _check_name(command.name)
        tenant_id = TenantId(command.tenant_id or id_from(command.name))
        if tenant_id in (SYSTEM_TENANT, *self.accounts):
            raise TenantExists(tenant_id)
        if not _ID.fullmatch(tenant_id):
            raise InvalidTenant(
                f"{tenant_id[:ID_LENGTH_MAX]!r} is no id for a tenant: a lower-case letter, then 2 to "
                f"{ID_LENGTH_MAX - 1} of a-z, 0-9 and '-'"
            )
        if tenant_id == REDRIVE_GROUP_PREFIX.partition(TENANT_SEPARATOR)[0]:
            raise InvalidTenant(f"{tenant_id!r} is how groups of the broker's own are called")
        return TenantSet(
            Tenant(
                tenant_id=tenant_id,
                name=command.name,
                created_ms=now_ms,
                updated_ms=now_ms,
                quotas=command.quotas,
                display_name=command.display_name,
                description=command.description,
                metadata=command.metadata,
            )
        )

    def change(self, command: ChangeTenant, *, now_ms: int) -> TenantSet:
        tenant = self._changeable(command.tenant_id)
        if command.name is not None:
            _check_name(command.name)
        return TenantSet(
            replace(
                tenant,
                name=tenant.name if command.name is None else command.name,
                display_name=tenant.display_name if command.display_name is None else command.display_name,
                description=tenant.description if command.description is None else command.description,
                metadata=tenant.metadata if command.metadata is None else command.metadata,
                updated_ms=now_ms,
            )
        )

    def set_quotas(self, tenant_id: str, quotas: Quotas, *, now_ms: int) -> TenantSet:
        return TenantSet(replace(self._changeable(tenant_id), quotas=quotas, updated_ms=now_ms))

    def set_status(self, tenant_id: str, status: TenantStatus, *, reason: str = "", now_ms: int) -> TenantSet:
        """Suspending says why; whatever else becomes of the tenant forgets it."""
        tenant = self._changeable(tenant_id)
        is_suspended = status is TenantStatus.SUSPENDED
        if is_suspended and not reason.strip():
            raise InvalidTenant("suspending a tenant needs a reason")
        return TenantSet(
            replace(
                tenant,
                status=status,
                suspended_ms=now_ms if is_suspended else None,
                suspend_reason=reason if is_suspended else "",
                updated_ms=now_ms,
            )
        )

    def delete(self, tenant_id: str, *, topic_count: int, is_forced: bool) -> TenantDeleted:
        tenant = self._changeable(tenant_id)
        if topic_count and not is_forced:
            raise TenantNotEmpty(tenant.tenant_id, topic_count)
        return TenantDeleted(tenant.tenant_id)

    def reset_usage(self, tenant_id: str) -> UsageNoted:
        return UsageNoted({self._changeable(tenant_id).tenant_id: UsageTotals()})

    def note_usage(self) -> UsageNoted | None:
        """The totals that have changed since they were last noted; None when none has."""
        totals = {
            tenant_id: account.totals
            for tenant_id, account in self.accounts.items()
            if account.totals != self._noted.get(tenant_id, UsageTotals())
        }
        return UsageNoted(totals) if totals else None

    def moved_since_noted(self, noted: UsageNoted) -> dict[TenantId, UsageTotals]:
        """What tenants have moved since their totals were noted last; of one that was reset, since then."""
        moved = {}
        for tenant_id, totals in noted.totals.items():
            before = self._noted.get(tenant_id, UsageTotals())
            more = totals.less(before)
            moved[tenant_id] = totals if more is None else more
        return moved

    def apply(self, event: Event) -> None:
        match event:
            case TenantSet(tenant):
                if tenant.tenant_id in self.accounts:
                    self.accounts[tenant.tenant_id].follow(tenant)
                else:
                    self.accounts[tenant.tenant_id] = Account(tenant, shares=self.shares)
            case TenantDeleted(tenant_id):
                self.accounts.pop(tenant_id, None)
                self._noted.pop(tenant_id, None)
            case UsageNoted(noted):
                for tenant_id, totals in noted.items():
                    self.accounts[tenant_id].set_totals(totals)
                    if totals == UsageTotals():
                        self.accounts[tenant_id].violations.clear()
                self._noted |= noted

    def load(self, tenants: Iterable[TenantSet], usage: Iterable[UsageNoted]) -> None:
        """These tenants there are. What one that is known has moved is counted here, and goes on."""
        known, given = set(self.accounts), set[TenantId]()
        for event in tenants:
            self.apply(event)
            given.add(event.tenant.tenant_id)
        for tenant_id in known - given:
            self.apply(TenantDeleted(tenant_id))
        for noted in usage:
            self.apply(UsageNoted({key: noted.totals[key] for key in noted.totals if key in given - known}))

    def confirm_noted(self, event: UsageNoted) -> None:
        """What was to be noted is. They may have moved more since."""
        self._noted |= event.totals

    def _changeable(self, tenant_id: str) -> Tenant:
        if tenant_id == SYSTEM_TENANT:
            raise SystemTenant
        return self.account(tenant_id).tenant


def _check_name(name: str) -> None:
    if not name.strip():
        raise InvalidTenant("a tenant needs a name")
    checked_name(name, "the name of a tenant")


def id_from(name: str) -> str:
    """An id for a tenant of that name: its letters and digits, without accents, and dashes between them."""
    plain = normalize("NFKD", name).encode("ascii", "ignore").decode()
    tenant_id = _NOT_IN_IDS.sub("-", plain.lower()).strip("-")
    if not tenant_id[:1].isalpha() or len(tenant_id) < 3:
        tenant_id = f"tenant-{tenant_id}".rstrip("-")
    return tenant_id[:ID_LENGTH_MAX].rstrip("-")
