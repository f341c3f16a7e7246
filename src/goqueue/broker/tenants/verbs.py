"""The verbs on tenants: create, change, suspend, delete, set quotas, and tell what they use.

A tenant owns topics and groups by their names. Whose a topic is, is looked up when the topic is opened or
tenants come and go, and kept with its partitions: a message on its way asks nobody.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from goqueue.broker.storage.waiters import ReadWaiter, tell_in_turn
from goqueue.broker.tenants.quotas import groups_owned, measure_storage, size_of, topics_owned
from goqueue.core.access.events import Event, TenantDeleted, TenantSet, UsageNoted
from goqueue.core.access.values import changes, tenant_key
from goqueue.model.cluster import NodeState, Step
from goqueue.model.errors import GoQueueError, ShuttingDown
from goqueue.model.ids import TopicName
from goqueue.model.names import is_internal
from goqueue.model.tenant_commands import (
    ChangeTenant,
    CreateTenant,
    DeleteTenant,
    DescribeUsage,
    DescribeUsageHours,
    GetTenant,
    Holding,
    ListTenantGroups,
    ListTenants,
    ListTenantTopics,
    ResetUsage,
    RestoreTenant,
    SetQuotas,
    SetStatus,
    TellHoldings,
)
from goqueue.model.tenants import (
    SYSTEM_TENANT,
    Tenant,
    TenantId,
    TenantUsage,
    UsageHour,
    UsageTotals,
)

if TYPE_CHECKING:  # the broker keeps the tenants' upkeep
    from goqueue.broker.broker import Broker

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000
USAGE_NOTED_MS = 30_000
"""What tenants have moved is written down this often: so much of it a crash can forget."""


async def create_tenant(broker: "Broker", command: CreateTenant) -> Tenant:
    """Create a tenant. Topics and groups that bear its name already are its own from now on."""
    now_ms = broker.clock.wall_ms()
    tenant_id = broker.tenants.create(command, now_ms=now_ms).tenant.tenant_id
    await _make(broker, lambda: broker.tenants.create(command, now_ms=now_ms))
    return broker.tenants.get(tenant_id)


def get_tenant(broker: "Broker", command: GetTenant) -> Tenant:
    return broker.tenants.get(command.tenant_id)


def list_tenants(broker: "Broker", command: ListTenants) -> list[Tenant]:
    """All tenants, the broker's own first, or those of one status."""
    return [tenant for tenant in broker.tenants.all() if command.status in (None, tenant.status)]


async def change_tenant(broker: "Broker", command: ChangeTenant) -> Tenant:
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: broker.tenants.change(command, now_ms=now_ms))
    return broker.tenants.get(command.tenant_id)


async def restore_tenant(broker: "Broker", command: RestoreTenant) -> None:
    """Bring a tenant back as a backup has kept it."""
    await _make(broker, lambda: TenantSet(command.tenant))


async def set_quotas(broker: "Broker", command: SetQuotas) -> Tenant:
    """Other quotas from now on. What there is already stays, also when it is more than they allow."""
    now_ms = broker.clock.wall_ms()
    await _make(broker, lambda: broker.tenants.set_quotas(command.tenant_id, command.quotas, now_ms=now_ms))
    return broker.tenants.get(command.tenant_id)


async def set_status(broker: "Broker", command: SetStatus) -> Tenant:
    """Suspend, disable, or let work again. Readers that wait hear of it at once."""
    now_ms = broker.clock.wall_ms()
    await _make(
        broker,
        lambda: broker.tenants.set_status(
            command.tenant_id, command.status, reason=command.reason, now_ms=now_ms
        ),
    )
    tell_in_turn(broker.waiting_reads, ReadWaiter.wake)
    return broker.tenants.get(command.tenant_id)


async def delete_tenant(broker: "Broker", command: DeleteTenant) -> None:
    """Forget a tenant. Its topics stay, and belong to nobody."""

    def decide() -> TenantDeleted:
        topic_count = len(tenant_topics(broker, ListTenantTopics(tenant_id=command.tenant_id)))
        return broker.tenants.delete(command.tenant_id, topic_count=topic_count, is_forced=command.is_forced)

    await _make(broker, decide)


def tenant_topics(broker: "Broker", command: ListTenantTopics) -> list[TopicName]:
    """The topics of a tenant, by name."""
    if command.tenant_id == SYSTEM_TENANT:
        return sorted({p.source.topic for p in broker.all_partitions() if is_internal(p.source.topic)})
    return topics_owned(broker, broker.tenants.account(command.tenant_id))


def tenant_groups(broker: "Broker", command: ListTenantGroups) -> list[str]:
    """The consumer groups of a tenant, by name."""
    return (
        []
        if command.tenant_id == SYSTEM_TENANT
        else groups_owned(broker, broker.tenants.account(command.tenant_id))
    )


def tenant_usage(broker: "Broker", command: DescribeUsage) -> TenantUsage:
    """What a tenant has moved, and what it holds now. What the broker moves for itself is not counted."""
    topics = tenant_topics(broker, ListTenantTopics(tenant_id=command.tenant_id))
    if command.tenant_id == SYSTEM_TENANT:
        totals, violations, connections = UsageTotals(), dict[str, int](), 0
        partitions = [p for p in broker.all_partitions() if is_internal(p.source.topic)]
    else:
        account = broker.tenants.account(command.tenant_id)
        totals, violations, connections = account.totals, dict(account.violations), account.connections
        partitions = [p for topic in topics for p in broker.topic(topic).partitions]
    return TenantUsage(
        tenant=broker.tenants.get(command.tenant_id),
        totals=totals,
        storage_bytes=size_of(partitions),
        topic_count=len(topics),
        partition_count=len(partitions),
        group_count=len(tenant_groups(broker, ListTenantGroups(tenant_id=command.tenant_id))),
        counted_ms=broker.clock.wall_ms(),
        connection_count=connections,
        violations=violations,
    )


def usage_hours(broker: "Broker", command: DescribeUsageHours) -> dict[int, UsageHour]:
    """What a tenant has used hour by hour, as this node has noted it."""
    broker.tenants.get(command.tenant_id)
    return broker.usage_hours.hours(command.tenant_id, first_hour=command.first_hour)


async def reset_usage(broker: "Broker", command: ResetUsage) -> TenantUsage:
    """Begin to count from 0 again what a tenant moves. What it holds is what it is."""
    await note_usage(broker)  # by hour it stays counted
    await _make(broker, lambda: broker.tenants.reset_usage(command.tenant_id))
    # What others have noted is their count; this one is begun anew here.
    broker.tenants.apply(broker.tenants.reset_usage(command.tenant_id))
    return tenant_usage(broker, DescribeUsage(tenant_id=command.tenant_id))


def tell_holdings(broker: "Broker", command: TellHoldings) -> dict[str, Holding]:
    """What this node holds of each tenant: partitions that it leads, groups that it coordinates."""
    measure_storage(broker)
    return {
        account.tenant.tenant_id: Holding(
            account.storage_bytes - account.stored_elsewhere_bytes, len(groups_owned(broker, account))
        )
        for account in broker.tenants.accounts.values()
    }


async def learn_holdings(broker: "Broker") -> None:
    """Hear what the other nodes hold. While one of them does not answer, what they told last counts."""
    if broker.forwarding is None:
        return
    command = TellHoldings()
    own = tell_holdings(broker, command)

    async def told(broker: "Broker", command: TellHoldings) -> dict[str, Holding]:
        return tell_holdings(broker, command)

    try:
        everywhere = await broker.forwarding.run(told, command)
    except GoQueueError as error:
        log.info("holdings_not_heard reason=%s", error)
        return
    for tenant_id, total in everywhere.items():
        account = broker.tenants.accounts.get(TenantId(tenant_id))
        if account is not None:
            mine = own.get(tenant_id, Holding(0, 0))
            account.stored_elsewhere_bytes = max(total.storage_bytes - mine.storage_bytes, 0)
            account.groups_elsewhere = max(total.group_count - mine.group_count, 0)
    measure_storage(broker)


def share_rates(broker: "Broker") -> None:
    """Each of the nodes that are ready lets through its share of what tenants may move in a second."""
    ready = sum(node.state is NodeState.READY for node in broker.metadata.nodes.values())
    if broker.tenants.shares != max(ready, 1):
        broker.tenants.share(max(ready, 1))


def attach_tenants(broker: "Broker") -> None:
    """Tell every partition whose it is."""
    for name, topic in broker.topics.items():
        account = broker.tenants.owner(name)
        for partition in topic.partitions:
            partition.account = account
    measure_storage(broker)


async def keep_up_tenants(broker: "Broker") -> None:
    """Measure what tenants hold, and now and then write down what they have moved."""
    if not broker.tenants.accounts:
        return
    await learn_holdings(broker)
    measure_storage(broker)
    now_ns = broker.clock.monotonic_ns()
    if now_ns - broker.tenants.usage_noted_ns >= USAGE_NOTED_MS * _NS_PER_MS:
        broker.tenants.usage_noted_ns = now_ns
        await note_usage(broker)
        if broker.journal is not None:
            await broker.journal.shorten()


async def note_usage(broker: "Broker") -> None:
    """Write down what tenants have moved, if that has changed."""
    noted = broker.tenants.note_usage() or UsageNoted({})
    accounts = broker.tenants.accounts
    by_hour = broker.usage_hours.note(
        broker.tenants.moved_since_noted(noted),
        {key: account.storage_bytes - account.stored_elsewhere_bytes for key, account in accounts.items()},
        now_ms=broker.clock.wall_ms(),
        there=accounts.keys(),
    )
    step = _step(broker, noted)
    if not (step.puts or by_hour.puts or by_hour.drops):
        return
    try:
        await broker.store.change(step.guards, {**step.puts, **by_hour.puts}, (*step.drops, *by_hour.drops))
        broker.tenants.confirm_noted(noted)
    except (OSError, GoQueueError) as error:
        log.warning("usage_not_noted reason=%s", error)


async def _make(broker: "Broker", decide: Callable[[], Event]) -> None:
    """Have what was decided agreed on; returns when it is, and is seen here."""
    if not broker.is_open:
        raise ShuttingDown
    await broker.agreement.make(lambda: _step(broker, decide()))


def _step(broker: "Broker", event: Event) -> Step[None]:
    """A change of what is agreed of tenants, as they are known here."""
    puts, drops = changes(event)
    guards = {broker.metadata.guard(tenant_key(key.partition("/")[2])) for key in (*puts, *drops)}
    return Step(None, tuple(sorted(guards)), puts, drops)
