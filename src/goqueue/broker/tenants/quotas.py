"""What tenants' quotas ask of the walk: refuse what is too much, count what was taken.

A client over HTTP that goes too fast is refused before anything is stored. A client of Kafka is never
refused for that: what it sends is taken, its tenant is in debt, and the door tells it to wait and lets it.
What the broker writes for itself (dead letters, redriven and due messages) is counted and never refused.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from goqueue.core.access.account import Account
from goqueue.core.access.rates import Rate
from goqueue.model.commands import PartitionRead
from goqueue.model.delays import ScheduledMessage
from goqueue.model.errors import (
    GroupFull,
    GroupSuspended,
    MessageTooLarge,
    QuotaExceeded,
    StorageQuotaExceeded,
    TopicSuspended,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message, StoredMessage, headers_bytes
from goqueue.model.settings import UNLIMITED, TopicSettings
from goqueue.model.tenant_commands import ConsumeWait, LimitReads, PublishWait
from goqueue.records.batch import open_batch
from goqueue.records.layout import BatchHeader

if TYPE_CHECKING:  # the broker itself admits topics through this module
    from goqueue.broker.broker import Broker
    from goqueue.broker.storage.partition import Partition

_NS_PER_MS = 1_000_000


def admit_owner(account: Account, topic: str) -> None:
    """Refuse everything on a topic whose tenant is not active."""
    if not account.is_active:
        raise TopicSuspended(topic, account.tenant.tenant_id, account.tenant.status.value)


def admit_topic_owner(broker: "Broker", topic: str) -> None:
    """The same for a topic by its name, which is nobody's on most brokers."""
    if broker.tenants.accounts and (account := broker.tenants.owner(topic)) is not None:
        admit_owner(account, topic)


def admit_group_owner(broker: "Broker", group: str) -> None:
    """Refuse everything on a group whose tenant is not active."""
    account = broker.tenants.owner(group)
    if account is not None and not account.is_active:
        raise GroupSuspended(group, account.tenant.tenant_id, account.tenant.status.value)


def admit_delivery(broker: "Broker", group: str, topic: str) -> None:
    """Refuse to deliver or settle where the tenant of the group or of the topic is not active."""
    admit_group_owner(broker, group)
    admit_topic_owner(broker, topic)


def admit_new_group(broker: "Broker", group: str) -> None:
    """Refuse to begin a group when its tenant has as many as it may have."""
    account = broker.tenants.owner(group)
    if account is None or broker.coordinator.journals.record(group) is not None:
        return
    limit = account.quotas.max_consumer_groups
    if limit and len(groups_owned(broker, account)) + account.groups_elsewhere >= limit:
        raise _too_many(account, "consumer_groups", f"{limit} consumer groups")


def admit_member(
    broker: "Broker",
    group: str,
    members: Collection[str],
    instances: Iterable[str | None],
    newcomer: tuple[str, str | None],
) -> None:
    """Refuse a new member of a group that has as many as its tenant allows.

    Members are known by their ids, and the newcomer by its own; one that comes as an instance that is there
    takes its place.
    """
    member_id, instance_id = newcomer
    account = broker.tenants.owner(group)
    limit = 0 if account is None else account.quotas.max_consumers_per_group
    if not limit or len(members) < limit or member_id in members:
        return
    if account is not None and (instance_id is None or instance_id not in instances):
        account.note_violation("consumers_per_group")
        raise GroupFull(f"group {group} has {limit} members, as many as its tenant's quota allows")


def admit_messages(broker: "Broker", account: Account, messages: Sequence[Message]) -> None:
    """Refuse messages that come too fast, or when there is no room for more. Else they are counted."""
    # Headers count: whoever has a small rate would send everything in them.
    size = sum(
        len(value or b"") + len(key or b"") + (headers_bytes(headers) if headers else 0)
        for value, key, headers, *_ in messages
    )
    admit_amounts(broker, {account: (len(messages), size)})


def admit_amounts(broker: "Broker", amounts: Mapping[Account, tuple[int, int]]) -> None:
    """The same for so many messages and bytes of several tenants: all or none."""
    now_ns = broker.clock.monotonic_ns()
    for account, (count, size) in amounts.items():
        _admit_storage(broker, account)
        account.check_publishing(count, size, now_ns=now_ns)
    for account, (count, size) in amounts.items():
        account.publishing.take(count, size, now_ns=now_ns)


def take_batches(
    broker: "Broker",
    account: Account,
    headers: Sequence[BatchHeader],
    bodies: Sequence[memoryview],
    *,
    size: int,
) -> None:
    """Count batches of a Kafka producer against its rate, by the size sent; refuse them only for it."""
    check_message_sizes(account, bodies)
    _admit_storage(broker, account)
    count = sum(header.record_count for header in headers)
    account.publishing.take(count, size, now_ns=broker.clock.monotonic_ns())


def check_message_sizes(account: Account, bodies: Sequence[memoryview]) -> None:
    """Refuse batches with a message that is too large. One that fits as a whole is not opened for it."""
    limit = account.quotas.max_message_size_bytes
    for body in bodies:
        if not limit or len(body) <= limit:
            continue
        largest = max(map(_size_of, open_batch(body, 0)), default=0)
        if largest > limit:
            account.note_violation("message_size")
            raise MessageTooLarge(
                f"a message of {largest} bytes is over the limit of {limit} of tenant "
                f"{account.tenant.tenant_id}"
            )


def message_bytes_max(broker: "Broker", settings: TopicSettings, account: Account | None) -> int:
    """How many bytes value and key of a message may have, a tenant's with headers: what broker, topic and
    tenant allow.

    Batches that a client built are held to the topic's limit as a whole, as in Kafka.
    """
    limit = min(broker.config.limits.message_bytes, settings.max_message_bytes)
    return limit if account is None else min(limit, account.quotas.max_message_size_bytes or limit)


def too_large(account: Account | None, size: int, limit: int) -> MessageTooLarge:
    """What to say to a message over the limit; noted if it is over its tenant's."""
    if account is not None and size > (account.quotas.max_message_size_bytes or size):
        account.note_violation("message_size")
    return MessageTooLarge(f"a message of {size} bytes is over the limit of {limit}")


def check_message_size(broker: "Broker", topic: str, message: Message | ScheduledMessage) -> None:
    """Refuse a message of a topic that is too large."""
    account = broker.tenants.owner(topic)
    size = len(message.value or b"") + len(message.key or b"") if account is None else _size_of(message)
    limit = message_bytes_max(broker, broker.metadata.topic(topic).settings, account)
    if size > limit:
        raise too_large(account, size, limit)


def overdue(account: Account, due_ms: int, *, now_ms: int) -> QuotaExceeded | None:
    """What to say to a message that is to wait longer than the tenant's messages may."""
    limit_ms = account.quotas.max_delay_ms
    if not limit_ms or due_ms - now_ms <= limit_ms:
        return None
    tenant_id = account.tenant.tenant_id
    account.note_violation("delay")
    return QuotaExceeded(f"messages of tenant {tenant_id} wait at most {limit_ms} ms", tenant=tenant_id)


def check_due(broker: "Broker", topic: str, due_ms: int) -> None:
    """Refuse such a message."""
    account = broker.tenants.owner(topic)
    if account is not None and (too_late := overdue(account, due_ms, now_ms=broker.clock.wall_ms())):
        raise too_late


def admit_partitions(broker: "Broker", name: str, partitions: int) -> None:
    """Refuse a topic that would be one too many for its tenant, or have too many partitions."""
    account = broker.tenants.owner(name)
    if account is None:
        return
    quotas = account.quotas
    others = [
        len(broker.topics[topic].partitions) for topic in topics_owned(broker, account) if topic != name
    ]
    if name not in broker.topics and quotas.max_topics and len(others) >= quotas.max_topics:
        raise _too_many(account, "topics", f"{quotas.max_topics} topics")
    if quotas.max_partitions_per_topic and partitions > quotas.max_partitions_per_topic:
        what = f"{quotas.max_partitions_per_topic} partitions in a topic"
        raise _too_many(account, "partitions_per_topic", what)
    if quotas.max_total_partitions and sum(others) + partitions > quotas.max_total_partitions:
        raise _too_many(account, "partitions", f"{quotas.max_total_partitions} partitions")


def within_retention(
    broker: "Broker", name: str, settings: TopicSettings, *, is_given: bool
) -> TopicSettings:
    """A topic's settings with retention as the quota allows: the broker's default is cut, a wish refused."""
    account = broker.tenants.owner(name)
    limit_ms = 0 if account is None else account.quotas.max_retention_ms
    if account is None or not limit_ms or UNLIMITED < settings.retention_ms <= limit_ms:
        return settings
    if is_given:
        account.note_violation("retention")
        raise QuotaExceeded(
            f"topics of tenant {account.tenant.tenant_id} keep messages at most {limit_ms} ms, "
            f"not {settings.retention_ms}",
            tenant=account.tenant.tenant_id,
        )
    return replace(settings, retention_ms=limit_ms)


def publish_wait_ms(broker: "Broker", command: PublishWait) -> int:
    """How long whoever published to these topics should wait, because their tenants are in debt."""
    return _longest_ms(broker, (account.publishing for account in _owners(broker, command.topics)))


def consume_wait_ms(broker: "Broker", command: ConsumeWait) -> int:
    """The same for whoever has read from them."""
    return _longest_ms(broker, (account.consuming for account in _owners(broker, command.topics)))


def admit_reader(broker: "Broker", source: TopicPartition, wanted: int) -> int:
    """How many of the messages wanted a reader over HTTP may have now.

    Refuses one whose tenant is not active, or has not paid for what it read before.
    """
    account = broker.tenants.owner(source.topic)
    if account is None:
        return wanted
    admit_owner(account, source.topic)
    now_ns = broker.clock.monotonic_ns()
    account.check_consuming(now_ns=now_ns)
    return account.consuming.messages_now(wanted, now_ns=now_ns)


def charge_reader(broker: "Broker", source: TopicPartition, count: int, size: int) -> None:
    """Count messages that were handed out."""
    account = broker.tenants.owner(source.topic)
    if account is not None:
        account.note_consumed(count, size, now_ns=broker.clock.monotonic_ns())


def within_rates(broker: "Broker", command: LimitReads) -> tuple[list[PartitionRead], int]:
    """What a Kafka client may have now of what it wants to read, and how long it should wait for the rest.

    Of tenants in debt it gets nothing, of others at most a second's worth a partition.
    """
    now_ns = broker.clock.monotonic_ns()
    longest_ns = 0
    allowed = []
    for part in command.parts:
        account = broker.tenants.owner(part.source.topic)
        if account is not None:
            wait_ns = account.consuming.wait_ns(now_ns=now_ns)
            longest_ns = max(longest_ns, wait_ns)
            size = 0 if wait_ns else account.consuming.bytes_now(part.max_bytes, now_ns=now_ns)
            part = part._replace(max_bytes=size)
        allowed.append(part)
    return allowed, -(-longest_ns // _NS_PER_MS)


def topics_owned(broker: "Broker", account: Account) -> list[TopicName]:
    """The topics of a tenant, by name."""
    return sorted(name for name, topic in broker.topics.items() if topic.partitions[0].account is account)


def groups_owned(broker: "Broker", account: Account) -> list[str]:
    """The groups of a tenant, by name."""
    names = (record.membership.name for journal in broker.coordinator.journals for record in journal.groups)
    return sorted(name for name in names if broker.tenants.owner(name) is account)


def measure_storage(broker: "Broker") -> None:
    """Look at what the partitions of each tenant take on the disk now."""
    sizes = dict.fromkeys(broker.tenants.accounts.values(), 0)
    for topic in broker.topics.values():
        account = topic.partitions[0].account
        if account is not None:
            sizes[account] += size_of(topic.partitions)
    for account, size in sizes.items():
        account.storage_bytes = size + account.stored_elsewhere_bytes


def size_of(partitions: "Iterable[Partition]") -> int:
    """What partitions take on the disk of whoever leads them; those left out that the disk has failed."""
    return sum(
        partition.log.size_bytes
        for partition in partitions
        if partition.is_leader and not partition.is_failed
    )


def _admit_storage(broker: "Broker", account: Account) -> None:
    limit = account.quotas.max_storage_bytes
    # Retention frees room without telling: before a tenant is refused, its room is measured.
    if limit and account.storage_bytes >= limit:
        measure_storage(broker)
    if limit and account.storage_bytes >= limit:
        account.note_violation("storage")
        raise StorageQuotaExceeded(
            f"tenant {account.tenant.tenant_id} stores {account.storage_bytes} bytes and may store {limit}",
            tenant=account.tenant.tenant_id,
        )


def _size_of(message: Message | StoredMessage | ScheduledMessage) -> int:
    return len(message.value or b"") + len(message.key or b"") + headers_bytes(message.headers)


def _owners(broker: "Broker", topics: Iterable[str]) -> set[Account]:
    return {account for topic in topics if (account := broker.tenants.owner(topic)) is not None}


def _longest_ms(broker: "Broker", rates: Iterable[Rate]) -> int:
    """How long until none of the rates is in debt."""
    now_ns = broker.clock.monotonic_ns()
    return -(-max((rate.wait_ns(now_ns=now_ns) for rate in rates), default=0) // _NS_PER_MS)


def _too_many(account: Account, quota: str, limit: str) -> QuotaExceeded:
    tenant_id = account.tenant.tenant_id
    account.note_violation(quota)
    return QuotaExceeded(f"tenant {tenant_id} may have {limit}, and no more", tenant=tenant_id)
