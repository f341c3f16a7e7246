"""Errors about tenants and what they may use."""

from goqueue.model.errors.families import Busy, Denied, Invalid, NotFound


class InvalidTenant(Invalid):
    """A tenant whose id, name or quotas cannot be."""

    code = "invalid_tenant"


class TenantNotFound(NotFound):
    """There is no tenant of that id."""

    code = "tenant_not_found"

    def __init__(self, tenant: str) -> None:
        super().__init__(f"tenant {tenant} does not exist")
        self.tenant = tenant


class TenantExists(Busy):
    """A tenant of that id is there already."""

    code = "tenant_exists"

    def __init__(self, tenant: str) -> None:
        super().__init__(f"tenant {tenant} already exists")
        self.tenant = tenant


class TenantNotEmpty(Busy):
    """The tenant has topics: delete them first, or insist and leave them to nobody."""

    code = "tenant_not_empty"

    def __init__(self, tenant: str, topic_count: int) -> None:
        super().__init__(f"tenant {tenant} has {topic_count} topics; delete them first, or force it")
        self.tenant = tenant


class SystemTenant(Denied):
    """The broker's own tenant cannot be changed."""

    code = "system_tenant"

    def __init__(self) -> None:
        super().__init__("tenant __system is the broker's own and cannot be changed")


class TopicSuspended(Denied):
    """The topic's tenant is suspended or disabled: its data stays, and nobody gets at it."""

    code = "topic_suspended"

    def __init__(self, topic: str, tenant: str, status: str) -> None:
        super().__init__(f"topic {topic} belongs to tenant {tenant}, which is {status}")
        self.topic = topic
        self.tenant = tenant


class GroupSuspended(Denied):
    """The group's tenant is suspended or disabled: nobody reads by it."""

    code = "group_suspended"

    def __init__(self, group: str, tenant: str, status: str) -> None:
        super().__init__(f"group {group} belongs to tenant {tenant}, which is {status}")
        self.group = group
        self.tenant = tenant


class QuotaExceeded(Denied):
    """The tenant's quotas do not allow it: use less, or have them raised."""

    code = "quota_exceeded"

    def __init__(self, text: str, *, tenant: str) -> None:
        super().__init__(text)
        self.tenant = tenant


class StorageQuotaExceeded(QuotaExceeded):
    """The tenant has stored as much as it may: delete something, or shorten retention."""

    code = "storage_quota_exceeded"


class RateExceeded(Busy):
    """The tenant goes faster than it may: try again after the time that is told."""

    code = "rate_exceeded"

    def __init__(self, text: str, *, retry_after_ms: int) -> None:
        super().__init__(text)
        self.retry_after_ms = retry_after_ms


class TooManyConnections(RateExceeded):
    """The tenant has as many connections as it may have: close some, or try again later."""

    code = "too_many_connections"
