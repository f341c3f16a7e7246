"""What can be asked about each kind of thing, in both forms: `queue.topics.create(…)`, awaited or not.

A method is a call's own function with somebody behind it who carries the call out, so that there is nothing
to say twice: a new call is one line in each form.
"""

from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from goqueue.client.call import Call
from goqueue.client.calls import (
    access,
    admin,
    backups,
    cluster,
    dead_letters,
    delayed,
    groups,
    identities,
    messages,
    schedules,
    schemas,
    tenants,
    topics,
    traces,
    transactions,
)
from goqueue.client.methods import shown_as

T = TypeVar("T")
P = ParamSpec("P")


class Carrier(Protocol):
    """Whoever carries calls out."""

    def carry(self, call: Call[T]) -> T: ...


class AsyncCarrier(Protocol):
    """The same, to be awaited."""

    async def carry(self, call: Call[T]) -> T: ...


class Noun:
    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier


class AsyncNoun:
    def __init__(self, carrier: AsyncCarrier) -> None:
        self._carrier = carrier


def carried(make: Callable[P, Call[T]]) -> Callable[Concatenate[Noun, P], T]:
    """A method that makes a call and gives what it gives."""

    @shown_as(make)
    def carry(noun: Noun, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return noun._carrier.carry(make(*args, **kwargs))

    return carry


def awaited(make: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncNoun, P], Awaitable[T]]:
    """The same, to be awaited."""

    @shown_as(make)
    async def carry(noun: AsyncNoun, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await noun._carrier.carry(make(*args, **kwargs))

    return carry


class Topics(Noun):
    create = carried(topics.create)
    list = carried(topics.list_topics)
    describe = carried(topics.describe)
    partitions = carried(topics.partitions)
    alter = carried(topics.alter)
    add_partitions = carried(topics.add_partitions)
    compact = carried(topics.compact)
    accept_loss = carried(topics.accept_loss)
    delete = carried(topics.delete)


class AsyncTopics(AsyncNoun):
    create = awaited(topics.create)
    list = awaited(topics.list_topics)
    describe = awaited(topics.describe)
    partitions = awaited(topics.partitions)
    alter = awaited(topics.alter)
    add_partitions = awaited(topics.add_partitions)
    compact = awaited(topics.compact)
    accept_loss = awaited(topics.accept_loss)
    delete = awaited(topics.delete)


class Messages(Noun):
    """The part of a queue that speaks of messages without leases."""

    publish = carried(messages.publish)
    publish_many = carried(messages.publish_many)
    read_page = carried(messages.read_page)
    extents = carried(messages.extents)
    offsets_at = carried(messages.offsets_at)


class AsyncMessages(AsyncNoun):
    publish = awaited(messages.publish)
    publish_many = awaited(messages.publish_many)
    read_page = awaited(messages.read_page)
    extents = awaited(messages.extents)
    offsets_at = awaited(messages.offsets_at)


class Groups(Noun):
    list = carried(groups.list_groups)
    describe = carried(groups.describe)
    delete = carried(groups.delete)
    lag = carried(groups.lag)
    offsets = carried(groups.offsets)
    commit_offsets = carried(groups.commit_offsets)
    reset_offsets = carried(groups.reset_offsets)


class AsyncGroups(AsyncNoun):
    list = awaited(groups.list_groups)
    describe = awaited(groups.describe)
    delete = awaited(groups.delete)
    lag = awaited(groups.lag)
    offsets = awaited(groups.offsets)
    commit_offsets = awaited(groups.commit_offsets)
    reset_offsets = awaited(groups.reset_offsets)


class DeadLetters(Noun):
    list = carried(dead_letters.list_letters)
    redrive = carried(dead_letters.redrive)


class AsyncDeadLetters(AsyncNoun):
    list = awaited(dead_letters.list_letters)
    redrive = awaited(dead_letters.redrive)


class Delayed(Noun):
    list = carried(delayed.list_delayed)
    get = carried(delayed.get)
    cancel = carried(delayed.cancel)
    move = carried(delayed.move)
    stats = carried(delayed.stats)


class AsyncDelayed(AsyncNoun):
    list = awaited(delayed.list_delayed)
    get = awaited(delayed.get)
    cancel = awaited(delayed.cancel)
    move = awaited(delayed.move)
    stats = awaited(delayed.stats)


class Schedules(Noun):
    create = carried(schedules.create)
    list = carried(schedules.list_schedules)
    get = carried(schedules.get)
    pause = carried(schedules.pause)
    resume = carried(schedules.resume)
    delete = carried(schedules.delete)


class AsyncSchedules(AsyncNoun):
    create = awaited(schedules.create)
    list = awaited(schedules.list_schedules)
    get = awaited(schedules.get)
    pause = awaited(schedules.pause)
    resume = awaited(schedules.resume)
    delete = awaited(schedules.delete)


class Transactions(Noun):
    list = carried(transactions.list_transactions)
    stats = carried(transactions.stats)
    abort = carried(transactions.abort_open)


class AsyncTransactions(AsyncNoun):
    list = awaited(transactions.list_transactions)
    stats = awaited(transactions.stats)
    abort = awaited(transactions.abort_open)


class Traces(Noun):
    list = carried(traces.list_traces)
    search = carried(traces.search)
    get = carried(traces.get)
    of = carried(traces.of)
    stats = carried(traces.stats)


class AsyncTraces(AsyncNoun):
    list = awaited(traces.list_traces)
    search = awaited(traces.search)
    get = awaited(traces.get)
    of = awaited(traces.of)
    stats = awaited(traces.stats)


class Schemas(Noun):
    subjects = carried(schemas.subjects)
    versions = carried(schemas.versions)
    get = carried(schemas.get)
    by_id = carried(schemas.by_id)
    register = carried(schemas.register)
    check = carried(schemas.check)
    delete = carried(schemas.delete)
    compatibility = carried(schemas.compatibility)
    set_compatibility = carried(schemas.set_compatibility)


class AsyncSchemas(AsyncNoun):
    subjects = awaited(schemas.subjects)
    versions = awaited(schemas.versions)
    get = awaited(schemas.get)
    by_id = awaited(schemas.by_id)
    register = awaited(schemas.register)
    check = awaited(schemas.check)
    delete = awaited(schemas.delete)
    compatibility = awaited(schemas.compatibility)
    set_compatibility = awaited(schemas.set_compatibility)


class Admin(Noun):
    health = carried(admin.health)
    ready = carried(admin.ready)
    version = carried(admin.version)
    stats = carried(admin.stats)
    cluster_state = carried(admin.cluster_state)
    cluster_health = carried(admin.cluster_health)
    reliability_stats = carried(admin.reliability_stats)
    priority_stats = carried(admin.priority_stats)
    metrics = carried(admin.metrics)


class AsyncAdmin(AsyncNoun):
    health = awaited(admin.health)
    ready = awaited(admin.ready)
    version = awaited(admin.version)
    stats = awaited(admin.stats)
    cluster_state = awaited(admin.cluster_state)
    cluster_health = awaited(admin.cluster_health)
    reliability_stats = awaited(admin.reliability_stats)
    priority_stats = awaited(admin.priority_stats)
    metrics = awaited(admin.metrics)


class Cluster(Noun):
    partition = carried(cluster.partition)
    reassign = carried(cluster.reassign)
    reassignments = carried(cluster.reassignments)
    reassignment = carried(cluster.reassignment)
    cancel_reassignment = carried(cluster.cancel_reassignment)
    decommission = carried(cluster.decommission)
    retirement = carried(cluster.retirement)
    cancel_decommission = carried(cluster.cancel_decommission)
    elect_leaders = carried(cluster.elect_leaders)


class AsyncCluster(AsyncNoun):
    partition = awaited(cluster.partition)
    reassign = awaited(cluster.reassign)
    reassignments = awaited(cluster.reassignments)
    reassignment = awaited(cluster.reassignment)
    cancel_reassignment = awaited(cluster.cancel_reassignment)
    decommission = awaited(cluster.decommission)
    retirement = awaited(cluster.retirement)
    cancel_decommission = awaited(cluster.cancel_decommission)
    elect_leaders = awaited(cluster.elect_leaders)


class Backups(Noun):
    create = carried(backups.create)
    list = carried(backups.list_backups)
    get = carried(backups.get)
    download = carried(backups.download)
    upload = carried(backups.upload)
    delete = carried(backups.delete)
    restore = carried(backups.restore)
    begin_whole = carried(backups.begin_whole)
    list_whole = carried(backups.list_whole)
    delete_whole = carried(backups.delete_whole)


class AsyncBackups(AsyncNoun):
    create = awaited(backups.create)
    list = awaited(backups.list_backups)
    get = awaited(backups.get)
    download = awaited(backups.download)
    upload = awaited(backups.upload)
    delete = awaited(backups.delete)
    restore = awaited(backups.restore)
    begin_whole = awaited(backups.begin_whole)
    list_whole = awaited(backups.list_whole)
    delete_whole = awaited(backups.delete_whole)


class Access(Noun):
    add_rule = carried(access.add_rule)
    rules = carried(access.rules)
    remove_rule = carried(access.remove_rule)
    bind_role = carried(access.bind_role)
    roles = carried(access.roles)
    unbind_role = carried(access.unbind_role)


class AsyncAccess(AsyncNoun):
    add_rule = awaited(access.add_rule)
    rules = awaited(access.rules)
    remove_rule = awaited(access.remove_rule)
    bind_role = awaited(access.bind_role)
    roles = awaited(access.roles)
    unbind_role = awaited(access.unbind_role)


class Identities(Noun):
    create_key = carried(identities.create_key)
    keys = carried(identities.keys)
    rotate_key = carried(identities.rotate_key)
    revoke_key = carried(identities.revoke_key)
    create_user = carried(identities.create_user)
    users = carried(identities.users)
    change_password = carried(identities.change_password)
    disable_user = carried(identities.disable_user)
    enable_user = carried(identities.enable_user)
    delete_user = carried(identities.delete_user)


class AsyncIdentities(AsyncNoun):
    create_key = awaited(identities.create_key)
    keys = awaited(identities.keys)
    rotate_key = awaited(identities.rotate_key)
    revoke_key = awaited(identities.revoke_key)
    create_user = awaited(identities.create_user)
    users = awaited(identities.users)
    change_password = awaited(identities.change_password)
    disable_user = awaited(identities.disable_user)
    enable_user = awaited(identities.enable_user)
    delete_user = awaited(identities.delete_user)


class Tenants(Noun):
    create = carried(tenants.create)
    list = carried(tenants.list_tenants)
    get = carried(tenants.get)
    update = carried(tenants.update)
    delete = carried(tenants.delete)
    suspend = carried(tenants.suspend)
    activate = carried(tenants.activate)
    disable = carried(tenants.disable)
    quotas = carried(tenants.quotas)
    set_quotas = carried(tenants.set_quotas)
    usage = carried(tenants.usage)
    usage_hours = carried(tenants.usage_hours)
    reset_usage = carried(tenants.reset_usage)
    stats = carried(tenants.stats)
    topics = carried(tenants.topics)
    groups = carried(tenants.groups)


class AsyncTenants(AsyncNoun):
    create = awaited(tenants.create)
    list = awaited(tenants.list_tenants)
    get = awaited(tenants.get)
    update = awaited(tenants.update)
    delete = awaited(tenants.delete)
    suspend = awaited(tenants.suspend)
    activate = awaited(tenants.activate)
    disable = awaited(tenants.disable)
    quotas = awaited(tenants.quotas)
    set_quotas = awaited(tenants.set_quotas)
    usage = awaited(tenants.usage)
    usage_hours = awaited(tenants.usage_hours)
    reset_usage = awaited(tenants.reset_usage)
    stats = awaited(tenants.stats)
    topics = awaited(tenants.topics)
    groups = awaited(tenants.groups)
