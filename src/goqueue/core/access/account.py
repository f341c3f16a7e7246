"""A tenant at work: what it is allowed, and what it has used of it, in plain numbers."""

from goqueue.core.access.rates import Rate
from goqueue.model.errors import RateExceeded
from goqueue.model.tenants import Quotas, Tenant, UsageTotals

_NS_PER_MS = 1_000_000


class Account:
    """Partitions of a tenant's topics hold on to it, so that nothing is looked up by name on the way."""

    __slots__ = (
        "bytes_consumed",
        "bytes_published",
        "connections",
        "consuming",
        "groups_elsewhere",
        "is_active",
        "messages_consumed",
        "messages_published",
        "publishing",
        "quotas",
        "shares",
        "storage_bytes",
        "stored_elsewhere_bytes",
        "tenant",
        "violations",
    )

    quotas: Quotas
    publishing: Rate
    consuming: Rate
    messages_published: int
    bytes_published: int
    messages_consumed: int
    bytes_consumed: int

    def __init__(self, tenant: Tenant, *, shares: int = 1) -> None:
        self.tenant = tenant
        self.shares = shares
        """Nodes among which rates are divided: each lets through one share."""
        self.is_active = tenant.is_active
        self.storage_bytes = 0
        """As it was when last looked at, with what has been written since."""
        self.stored_elsewhere_bytes = self.groups_elsewhere = 0
        """What other nodes hold of it, as they told last."""
        self.connections = 0
        """Those that clients of the tenant have open at this node."""
        self.violations: dict[str, int] = {}
        """How often each quota has refused something, since the broker has started or usage was reset."""
        self.set_totals(UsageTotals())
        self._set_quotas(tenant.quotas)

    def follow(self, tenant: Tenant) -> None:
        """The tenant has changed. Other quotas begin without debt."""
        self.tenant = tenant
        self.is_active = tenant.is_active
        if tenant.quotas != self.quotas:
            self._set_quotas(tenant.quotas)

    def share(self, shares: int) -> None:
        """So many nodes serve the tenant from now on."""
        self.shares = shares
        quotas, share = self.quotas, self._share
        self.publishing.change(
            messages=share(quotas.publish_rate_limit), size_bytes=share(quotas.publish_bytes_rate_limit)
        )
        self.consuming.change(
            messages=share(quotas.consume_rate_limit), size_bytes=share(quotas.consume_bytes_rate_limit)
        )

    def _set_quotas(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.publishing = Rate(messages=0, size_bytes=0)
        self.consuming = Rate(messages=0, size_bytes=0)
        self.share(self.shares)

    def _share(self, rate: int) -> int:
        return -(-rate // self.shares)  # 0 is without a limit, and a share of a limit is never 0

    @property
    def totals(self) -> UsageTotals:
        return UsageTotals(
            self.messages_published, self.bytes_published, self.messages_consumed, self.bytes_consumed
        )

    def set_totals(self, totals: UsageTotals) -> None:
        self.messages_published = totals.messages_published
        self.bytes_published = totals.bytes_published
        self.messages_consumed = totals.messages_consumed
        self.bytes_consumed = totals.bytes_consumed

    def enter(self) -> bool:
        """One more connection, if the tenant may have it: of several nodes each lets in its share."""
        limit = self._share(self.quotas.max_connections)
        if limit and self.connections >= limit:
            self.note_violation("connections")
            return False
        self.connections += 1
        return True

    def note_violation(self, quota: str) -> None:
        """Something was refused because of a quota."""
        self.violations[quota] = self.violations.get(quota, 0) + 1

    def note_stored(self, messages: int, size_bytes: int) -> None:
        """Messages are in the log, whoever put them there."""
        self.messages_published += messages
        self.bytes_published += size_bytes
        self.storage_bytes += size_bytes

    def note_consumed(self, messages: int, size_bytes: int, *, now_ns: int) -> None:
        """Messages have been handed out."""
        self.messages_consumed += messages
        self.bytes_consumed += size_bytes
        self.consuming.take(messages, size_bytes, now_ns=now_ns)

    def check_publishing(self, messages: int, size_bytes: int, *, now_ns: int) -> None:
        """Refuse what comes too fast. Nothing is taken yet."""
        wait_ns = self.publishing.wait_ns(messages, size_bytes, now_ns=now_ns)
        if wait_ns:
            raise self._too_fast("publish", self.publishing, wait_ns)

    def check_consuming(self, *, now_ns: int) -> None:
        """Refuse a reader while what was read before is not paid for."""
        wait_ns = self.consuming.wait_ns(now_ns=now_ns)
        if wait_ns:
            raise self._too_fast("consume", self.consuming, wait_ns)

    def _too_fast(self, verb: str, rate: Rate, wait_ns: int) -> RateExceeded:
        wait_ms = -(-wait_ns // _NS_PER_MS)
        self.note_violation(f"{verb}_rate")
        where = f" at each of {self.shares} nodes" if self.shares > 1 else ""
        return RateExceeded(
            f"tenant {self.tenant.tenant_id} may {verb} {rate}{where}; try again in {wait_ms}ms",
            retry_after_ms=wait_ms,
        )
