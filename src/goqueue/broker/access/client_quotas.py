"""The verbs on quotas of users and client ids: set, take away, list."""

from goqueue.broker.broker import Broker
from goqueue.core.access.client_quotas import quota_key, quota_value
from goqueue.model.client_quotas import AlterClientQuota, ClientQuota, ListClientQuotas
from goqueue.model.cluster import Step
from goqueue.model.errors import ShuttingDown


async def alter_client_quota(broker: Broker, command: AlterClientQuota) -> None:
    """Hold an entity to other limits; returns when this node goes by them."""
    if not broker.is_open:
        raise ShuttingDown
    key = quota_key(command.entity)

    def decide() -> Step[None]:
        quota = broker.client_quotas.altered(command)
        guards = (broker.metadata.guard(key),)
        if quota is None:
            return Step(None, guards, {}, (key,) if command.entity in broker.client_quotas.entries else ())
        return Step(None, guards, {key: quota_value(quota)})

    if command.is_dry_run:
        decide()
    else:
        await broker.agreement.make(decide)


def list_client_quotas(broker: Broker, command: ListClientQuotas) -> list[ClientQuota]:
    """All that were set, by whom they are for."""
    quotas = broker.client_quotas.entries.values()
    return sorted(quotas, key=lambda quota: (quota.entity.user or "", quota.entity.client_id or ""))
