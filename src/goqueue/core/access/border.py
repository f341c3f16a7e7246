"""The border of a tenant: what somebody of a tenant can reach at all, whatever rules and roles say.

A name is a tenant's by how it begins, and needs no looking up: so it is decided in the same way, and takes as
long, whether there is such a thing or not. Of the cluster nothing is a tenant's.
"""

from goqueue.model.access import THE_CLUSTER, Need, Operation, ResourceKind
from goqueue.model.tenants import TENANT_SEPARATOR, TenantId

_NAMED = frozenset(
    {ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.TRANSACTIONAL_ID, ResourceKind.SUBJECT}
)
_FOR_ALL = frozenset(
    {
        Need(Operation.IDEMPOTENT_WRITE, ResourceKind.CLUSTER, THE_CLUSTER),
        Need(Operation.READ, ResourceKind.SUBJECT, ""),
    }
)
"""Tell nothing of anybody's things. The second asks what holds for subjects that say nothing themselves."""


def is_within(tenant: TenantId, need: Need) -> bool:
    """Whether what is needed lies within the border of a tenant."""
    if need.kind in _NAMED and need.name.startswith(tenant + TENANT_SEPARATOR):
        return True
    return need in _FOR_ALL
