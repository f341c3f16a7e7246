"""Tenants in a broker: quotas that hold, work that is refused, and what is used, after a crash too."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.groups.verbs import join_group
from goqueue.broker.opening import close_broker
from goqueue.broker.producers import init_producer
from goqueue.broker.queue.poll import poll
from goqueue.broker.queue.settle import settle
from goqueue.broker.read.read import read_messages
from goqueue.broker.sinks.verbs import stage, take_generation
from goqueue.broker.tenants.verbs import (
    USAGE_NOTED_MS,
    create_tenant,
    delete_tenant,
    get_tenant,
    list_tenants,
    reset_usage,
    set_quotas,
    set_status,
    tenant_groups,
    tenant_topics,
    tenant_usage,
)
from goqueue.broker.topics.verbs import (
    add_partitions,
    alter_settings,
    create_topic,
    delete_records,
    describe_topic,
)
from goqueue.broker.write.append import append
from goqueue.broker.write.append_entries import append_entries
from goqueue.broker.write.publish import publish
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.commands import Append, AppendEntries, Placed, Publish, ReadMessages
from goqueue.model.delays import Postponed
from goqueue.model.delivery import Action, Poll, Settle
from goqueue.model.errors import (
    GroupFull,
    GroupSuspended,
    MessageTooLarge,
    QuotaExceeded,
    RateExceeded,
    StorageQuotaExceeded,
    TopicSuspended,
)
from goqueue.model.group_commands import CommitOffsets, FetchOffsets, JoinGroup
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import HOUR_MS, MINUTE_MS, BrokerConfig, GroupConfig
from goqueue.model.sinks import StageBatches, TakeGeneration
from goqueue.model.tenant_commands import (
    CreateTenant,
    DeleteTenant,
    DescribeUsage,
    GetTenant,
    ListTenantGroups,
    ListTenants,
    ListTenantTopics,
    ResetUsage,
    SetQuotas,
    SetStatus,
)
from goqueue.model.tenants import UNLIMITED_QUOTAS, Quotas, TenantStatus
from goqueue.model.topics import (
    AddPartitions,
    AlterSettings,
    CreateTopic,
    DeleteRecords,
    DescribeTopic,
    SettingChange,
)
from goqueue.model.transaction_commands import PublishOnce, TakeProducerId
from goqueue.model.transactions import ProducerEpoch
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import Consumer, join
from tests.unit.broker.running import running

CONFIG = BrokerConfig(groups=GroupConfig(initial_delay_ms=0, session_ms_min=1))
TOPIC = TopicName("acme.orders")
TOPIC_0 = TopicPartition(TOPIC, 0)
FREE = TopicName("orders")
FREE_0 = TopicPartition(FREE, 0)
TEN = [Message(b"x" * 10) for _ in range(10)]


async def acme(broker: Broker, **quotas: int) -> None:
    """A tenant without limits but those named, with a topic of one partition, and a topic of nobody."""
    await create_tenant(broker, CreateTenant(name="acme", quotas=replace(UNLIMITED_QUOTAS, **quotas)))
    for name in (TOPIC, FREE):
        await create_topic(broker, CreateTopic(name=name, partitions=1))


async def put(broker: Broker, *messages: Message, topic: TopicName = TOPIC) -> list[object]:
    return list(await publish(broker, Publish(topic=topic, messages=messages)))


async def look(broker: Broker, limit: int = 100) -> int:
    read = await read_messages(broker, ReadMessages(source=TOPIC_0, limit=limit))
    return len(read.messages)


def batch(*messages: Message) -> memoryview:
    [(body, _)] = encode(messages, now_ms=1_750_000_000_000)
    return memoryview(body)


def live(folder: Path, work: Callable[[Broker], Awaitable[None]]) -> None:
    """Run some work in a broker on a real disk, with nothing simulated."""

    async def walk() -> None:
        async with running(FolderDisk(folder), CONFIG) as broker:
            await work(broker)

    asyncio.run(walk())


def test_a_tenant_adopts_topics_and_groups_that_bear_its_name(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await create_topic(broker, CreateTopic(name=TOPIC, partitions=2))
        await create_topic(broker, CreateTopic(name="acme", partitions=1))
        await put(broker, *TEN)
        member = Membership("acme.workers", "", NO_GENERATION)
        await commit_offsets(broker, CommitOffsets(member, [TopicCommit(TOPIC, [(0, 1, -1, "")])]))

        await create_tenant(broker, CreateTenant(name="acme"))

        assert tenant_topics(broker, ListTenantTopics(tenant_id="acme")) == [TOPIC]
        assert tenant_groups(broker, ListTenantGroups(tenant_id="acme")) == ["acme.workers"]
        usage = tenant_usage(broker, DescribeUsage(tenant_id="acme"))
        assert (usage.topic_count, usage.partition_count, usage.group_count) == (1, 2, 1)
        sizes = [
            view.size_bytes for view in (await describe_topic(broker, DescribeTopic(name=TOPIC))).partitions
        ]
        assert usage.storage_bytes == sum(sizes) > 100
        assert usage.totals.messages_published == 0, "what came before belongs to nobody"
        await put(broker, *TEN)
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_published == 10
        await delete_tenant(broker, DeleteTenant(tenant_id="acme", is_forced=True))
        await put(broker, *TEN)
        assert [tenant.tenant_id for tenant in list_tenants(broker, ListTenants())] == ["__system"]

    live(tmp_path, work)


def test_too_fast_is_refused_before_anything_is_stored_and_taken_again_in_time() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, publish_rate_limit=20)
        await put(broker, *TEN)
        await put(broker, *TEN)
        with pytest.raises(RateExceeded) as refused:
            await put(broker, *TEN)
        assert await look(broker) == 20
        wait_ms = refused.value.retry_after_ms
        assert 400 < wait_ms <= 500
        await asyncio.sleep((wait_ms - 20) / 1_000)
        with pytest.raises(RateExceeded):
            await put(broker, *TEN)
        await asyncio.sleep(0.02)
        await put(broker, *TEN)
        assert await look(broker) == 30
        for _ in range(10):
            await put(broker, *TEN, topic=FREE)

    Lives(1).live(work)


def test_bytes_have_a_rate_of_their_own() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, publish_bytes_rate_limit=100)
        await put(broker, *TEN)
        with pytest.raises(RateExceeded) as refused:
            await put(broker, Message(b"x" * 50))
        assert 400 < refused.value.retry_after_ms <= 500

    Lives(1).live(work)


def test_batches_of_kafka_producers_are_taken_and_leave_a_debt() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, publish_rate_limit=10)
        for _ in range(3):
            append(broker, Append(TOPIC_0, batch(*TEN), Acks.LEADER))
        assert broker.topic(TOPIC).partitions[0].log.end_offset == 30
        with pytest.raises(RateExceeded) as refused:
            await put(broker, Message(b"x"))
        assert refused.value.retry_after_ms == 2_100

    Lives(1).live(work)


def test_bulk_writes_stages_and_numbered_messages_are_held_to_the_quotas_too() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, publish_rate_limit=10, max_message_size_bytes=500)
        await create_tenant(broker, CreateTenant(name="beta", quotas=UNLIMITED_QUOTAS))
        await create_topic(broker, CreateTopic(name="beta.orders", partitions=1))
        await take_generation(broker, TakeGeneration(sink="lake"))
        producer = ProducerEpoch(await init_producer(broker, TakeProducerId()), 0)
        numbered = PublishOnce(producer=producer, topic=TOPIC, message=Message(b"x"), sequence=0)

        with pytest.raises(MessageTooLarge):
            await append_entries(
                broker, AppendEntries(entries=_entries(batch(Message(b"x" * 501))), acks=Acks.ALL)
            )
        await append_entries(broker, AppendEntries(entries=_entries(batch(*TEN)), acks=Acks.ALL))

        for refused in (
            append_entries(broker, AppendEntries(entries=_entries(batch(*TEN)), acks=Acks.ALL)),
            stage(
                broker,
                StageBatches(sink="lake", generation=1, epoch=0, stage_id="a", entries=_entries(batch(*TEN))),
            ),
            publish_once(broker, numbered),
        ):
            with pytest.raises(RateExceeded):
                await refused
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_published == 10
        assert tenant_usage(broker, DescribeUsage(tenant_id="beta")).totals.messages_published == 1, (
            "all or none"
        )
        failed = broker.counters.topics[TOPIC].failed
        assert failed == {MessageTooLarge.code: 1, RateExceeded.code: 3}, "a batch counts once"
        await asyncio.sleep(0.1)
        await publish_once(broker, numbered)
        with pytest.raises(MessageTooLarge):
            await publish_once(broker, replace(numbered, message=Message(b"x" * 501)))

    Lives(1).live(work)


def _entries(body: memoryview) -> memoryview:
    """A bulk write to a topic of each tenant."""
    others = encode_entry(TopicPartition(TopicName("beta.orders"), 0), 2, batch(Message(b"y")))
    return memoryview(bytearray(others + encode_entry(TOPIC_0, 2, body)))


def test_readers_and_polls_share_what_a_second_allows() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, consume_rate_limit=10)
        await put(broker, *TEN, *TEN)
        consumer = await join(broker, group="acme.workers", topic=TOPIC)
        assert await look(broker, limit=6) == 6
        polled = await poll(broker, _poll(consumer))
        assert [len(part.messages) for part in polled.parts] == [4]
        await asyncio.sleep(0.05)
        assert await look(broker) == 1, "whoever is not in debt gets at least one"
        with pytest.raises(RateExceeded) as refused:
            await look(broker)
        assert 0 < refused.value.retry_after_ms <= 50
        with pytest.raises(RateExceeded):
            await poll(broker, _poll(consumer))

        before_ms = broker.clock.wall_ms()
        polled = await poll(broker, _poll(consumer, wait_ms=5_000))

        assert [len(part.messages) for part in polled.parts] == [1]
        assert broker.clock.wall_ms() - before_ms <= 50
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_consumed == 12

    Lives(1).live(work)


def _poll(consumer: Consumer, wait_ms: int = 0) -> Poll:
    return Poll(group=consumer.group, member_id=consumer.member_id, limit=100, wait_ms=wait_ms)


def test_messages_above_the_tenants_size_are_refused_at_both_ways_in(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_message_size_bytes=200)
        small, large = Message(b"x" * 150), Message(b"x" * 201)
        fits, refused = await put(broker, small, large)
        assert isinstance(fits, Placed) and isinstance(refused, MessageTooLarge)
        append(broker, Append(TOPIC_0, batch(small, small, small), Acks.LEADER))
        append(broker, Append(TOPIC_0, batch(Message(b"x" * 200)), Acks.LEADER))
        with pytest.raises(MessageTooLarge):
            append(broker, Append(TOPIC_0, batch(small, large), Acks.LEADER))
        with pytest.raises(MessageTooLarge):
            append(broker, Append(TOPIC_0, batch(large), Acks.LEADER))
        append(broker, Append(FREE_0, batch(large), Acks.LEADER))

    live(tmp_path, work)


def test_headers_count_as_much_as_what_they_go_with(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_message_size_bytes=200, publish_bytes_rate_limit=150)
        hidden = Message(b"", None, (("h", b"x" * 200),))
        [refused] = await put(broker, hidden)
        assert isinstance(refused, MessageTooLarge)
        with pytest.raises(MessageTooLarge):
            append(broker, Append(TOPIC_0, batch(hidden), Acks.LEADER))
        with pytest.raises(RateExceeded):
            await put(broker, Message(b"", None, (("h", b"x" * 100),)))
        append(broker, Append(FREE_0, batch(hidden), Acks.LEADER))

    live(tmp_path, work)


def test_a_tenant_stores_what_it_may_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_storage_bytes=5_000)
        await alter_settings(
            broker, AlterSettings(name=TOPIC, changes=[SettingChange("segment.bytes", "4096")])
        )
        while tenant_usage(broker, DescribeUsage(tenant_id="acme")).storage_bytes < 5_000:
            await put(broker, Message(b"x" * 500))
        with pytest.raises(StorageQuotaExceeded):
            await put(broker, Message(b"x"))
        with pytest.raises(StorageQuotaExceeded):
            append(broker, Append(TOPIC_0, batch(Message(b"x")), Acks.LEADER))
        await put(broker, Message(b"x" * 500), topic=FREE)

        await delete_records(broker, DeleteRecords(target=TOPIC_0, before_offset=-1))

        [placed] = await put(broker, Message(b"x"))
        assert isinstance(placed, Placed)

    live(tmp_path, work)


def test_topics_and_partitions_are_counted(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_topics=3, max_partitions_per_topic=4, max_total_partitions=6)
        with pytest.raises(QuotaExceeded, match="4 partitions in a topic"):
            await create_topic(broker, CreateTopic(name="acme.wide", partitions=5))
        await create_topic(broker, CreateTopic(name="acme.two", partitions=4))
        with pytest.raises(QuotaExceeded, match="6 partitions"):
            await create_topic(broker, CreateTopic(name="acme.three", partitions=2, validate_only=True))
        with pytest.raises(QuotaExceeded, match="6 partitions"):
            await add_partitions(broker, AddPartitions(name=TOPIC, total=3))
        await create_topic(broker, CreateTopic(name="acme.three", partitions=1))
        with pytest.raises(QuotaExceeded, match="3 topics"):
            await create_topic(broker, CreateTopic(name="acme.four", partitions=1))
        await create_topic(broker, CreateTopic(name="acmes.four", partitions=9))

    live(tmp_path, work)


def test_retention_is_cut_to_the_quota_and_a_wish_for_more_is_refused(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_retention_ms=HOUR_MS)
        assert (await describe_topic(broker, DescribeTopic(name=TOPIC))).settings.retention_ms == HOUR_MS
        for wish in ("-1", str(HOUR_MS + 1)):
            with pytest.raises(QuotaExceeded):
                await alter_settings(
                    broker, AlterSettings(name=TOPIC, changes=[SettingChange("retention.ms", wish)])
                )
            settings = {"retention.ms": wish}
            with pytest.raises(QuotaExceeded):
                await create_topic(broker, CreateTopic(name="acme.long", partitions=1, settings=settings))
        await alter_settings(
            broker, AlterSettings(name=TOPIC, changes=[SettingChange("retention.ms", "60000")])
        )
        await alter_settings(broker, AlterSettings(name=TOPIC, changes=[SettingChange("retention.ms", None)]))
        assert (await describe_topic(broker, DescribeTopic(name=TOPIC))).settings.retention_ms == HOUR_MS
        assert (await describe_topic(broker, DescribeTopic(name=FREE))).settings.retention_ms == 168 * HOUR_MS

    live(tmp_path, work)


def test_messages_wait_no_longer_than_the_quota_allows(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_delay_ms=MINUTE_MS)
        now_ms = broker.clock.wall_ms()
        soon, late = (Message(b"x", due_ms=now_ms + wait_ms) for wait_ms in (MINUTE_MS // 2, 2 * MINUTE_MS))
        kept, refused = await put(broker, soon, late)
        assert isinstance(kept, Postponed) and isinstance(refused, QuotaExceeded)
        delayed = Message(b"x", headers=(("goqueue-delay-ms", b"120000"),))
        with pytest.raises(QuotaExceeded):
            append(broker, Append(TOPIC_0, batch(delayed), Acks.LEADER))

    live(tmp_path, work)


def test_groups_and_their_members_are_counted(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_consumer_groups=2, max_consumers_per_group=2)
        for name in ("ann", "bob"):
            await join(broker, name, group="acme.workers", topic=TOPIC)
        with pytest.raises(GroupFull):
            await join(broker, "cid", group="acme.workers", topic=TOPIC)
        await commit_offsets(
            broker,
            CommitOffsets(
                Membership("acme.readers", "", NO_GENERATION), [TopicCommit(TOPIC, [(0, 0, -1, "")])]
            ),
        )
        with pytest.raises(QuotaExceeded, match="2 consumer groups"):
            await join(broker, group="acme.third", topic=TOPIC)
        with pytest.raises(QuotaExceeded):
            await join_group(broker, _join("acme.third"))
        with pytest.raises(QuotaExceeded):
            await commit_offsets(
                broker,
                CommitOffsets(
                    Membership("acme.third", "", NO_GENERATION), [TopicCommit(TOPIC, [(0, 0, -1, "")])]
                ),
            )
        assert tenant_groups(broker, ListTenantGroups(tenant_id="acme")) == ["acme.readers", "acme.workers"]
        for name in ("ann", "bob", "cid"):
            await join(broker, name, group="workers", topic=TOPIC)

    live(tmp_path, work)


def test_a_member_that_comes_back_or_takes_its_own_place_is_not_one_too_many(tmp_path: Path) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_consumers_per_group=1)
        first = await join_group(broker, _join("acme.workers", instance_id="one"))

        with pytest.raises(GroupFull, match="as many as its tenant's quota allows"):
            await join_group(broker, _join("acme.workers"))
        with pytest.raises(GroupFull):
            await join_group(broker, _join("acme.workers", instance_id="two"))
        again = await join_group(broker, _join("acme.workers", member_id=first.member_id, instance_id="one"))
        assert again.member_id == first.member_id
        replaced = await join_group(broker, _join("acme.workers", instance_id="one"))
        assert replaced.member_id != first.member_id

    live(tmp_path, work)


def _join(group: str, *, member_id: str = "", instance_id: str | None = None) -> JoinGroup:
    return JoinGroup(
        group=group,
        member_id=member_id,
        instance_id=instance_id,
        client_id="ann",
        client_host="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        is_id_required=False,
    )


@pytest.mark.parametrize("status", [TenantStatus.SUSPENDED, TenantStatus.DISABLED])
def test_a_tenant_that_is_not_active_is_refused_everything_and_keeps_its_data(
    tmp_path: Path, status: TenantStatus
) -> None:
    async def work(broker: Broker) -> None:
        await acme(broker)
        await put(broker, *TEN)
        insider = await join(broker, group="acme.workers", topic=TOPIC)
        outsider = await join(broker, group="workers", topic=TOPIC)
        polled = await poll(broker, _poll(outsider))
        part = polled.parts[0]
        receipt = f"{TOPIC}:0:{part.messages[0].offset}:1:{part.nonce:016x}"

        await set_status(broker, SetStatus(tenant_id="acme", status=status, reason="bill"))

        with pytest.raises(TopicSuspended):
            await put(broker, *TEN)
        with pytest.raises(TopicSuspended):
            append(broker, Append(TOPIC_0, batch(*TEN), Acks.LEADER))
        with pytest.raises(TopicSuspended):
            await look(broker)
        with pytest.raises(TopicSuspended):
            await create_topic(broker, CreateTopic(name="acme.more"))
        with pytest.raises(TopicSuspended):
            await poll(broker, _poll(outsider))
        with pytest.raises(TopicSuspended):
            await settle(broker, Settle(action=Action.ACK, receipts=[receipt]))
        with pytest.raises(GroupSuspended):
            await poll(broker, _poll(insider))
        with pytest.raises(GroupSuspended):
            await join(broker, group="acme.workers", topic=FREE)
        with pytest.raises(GroupSuspended):
            await fetch_offsets(broker, FetchOffsets(group="acme.workers", wanted=None))
        await put(broker, *TEN, topic=FREE)
        await set_status(broker, SetStatus(tenant_id="acme", status=TenantStatus.ACTIVE))
        assert await look(broker) == 10
        settled = await settle(broker, Settle(action=Action.ACK, receipts=[receipt]))
        assert not settled.refusals

    live(tmp_path, work)


def test_a_poll_that_waits_hears_of_a_suspension_at_once() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker)
        consumer = await join(broker, group="acme.workers", topic=TOPIC)
        waiting = asyncio.ensure_future(poll(broker, _poll(consumer, wait_ms=60_000)))
        await asyncio.sleep(1)
        before_ms = broker.clock.wall_ms()

        await set_status(broker, SetStatus(tenant_id="acme", status=TenantStatus.SUSPENDED, reason="bill"))

        with pytest.raises(GroupSuspended):
            await waiting
        assert broker.clock.wall_ms() - before_ms < 1_000

    Lives(1).live(work)


def test_dead_letters_of_a_full_tenant_are_kept_and_counted() -> None:
    async def work(broker: Broker) -> None:
        await acme(broker, max_topics=1, max_total_partitions=1)
        await put(broker, Message(b"bad"))
        consumer = await join(broker, group="acme.workers", topic=TOPIC)
        part = (await poll(broker, _poll(consumer))).parts[0]
        await set_quotas(
            broker,
            SetQuotas(
                tenant_id="acme", quotas=Quotas(max_topics=1, max_storage_bytes=1, publish_rate_limit=1)
            ),
        )

        receipt = f"{TOPIC}:0:0:1:{part.nonce:016x}"
        await settle(broker, Settle(action=Action.REJECT, receipts=[receipt], reason="no"))

        assert tenant_topics(broker, ListTenantTopics(tenant_id="acme")) == [TOPIC, f"{TOPIC}.dlq"]
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_published == 2

    Lives(1).live(work)


@pytest.mark.parametrize("is_closed", [True, False])
def test_tenants_survive_a_crash_and_what_they_moved_is_known_up_to_the_last_note(is_closed: bool) -> None:
    lives = Lives(1)

    async def begin(broker: Broker) -> None:
        await acme(broker, max_topics=7)
        await set_status(broker, SetStatus(tenant_id="acme", status=TenantStatus.SUSPENDED, reason="bill"))
        await set_status(broker, SetStatus(tenant_id="acme", status=TenantStatus.ACTIVE))
        await put(broker, *TEN)
        await asyncio.sleep((USAGE_NOTED_MS + 2 * broker.config.upkeep_interval_ms) / 1_000)
        await put(broker, *TEN)
        assert await look(broker) == 20
        if is_closed:
            await close_broker(broker)

    async def look_again(broker: Broker) -> None:
        tenant = get_tenant(broker, GetTenant(tenant_id="acme"))
        assert (tenant.quotas.max_topics, tenant.status) == (7, TenantStatus.ACTIVE)
        usage = tenant_usage(broker, DescribeUsage(tenant_id="acme"))
        assert usage.totals.messages_published == (20 if is_closed else 10)
        assert usage.totals.messages_consumed == (20 if is_closed else 0)
        assert usage.topic_count == 1 and usage.storage_bytes > 0
        assert (await reset_usage(broker, ResetUsage(tenant_id="acme"))).totals.messages_published == 0

    async def look_last(broker: Broker) -> None:
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_published == 0
        await put(broker, *TEN)
        assert tenant_usage(broker, DescribeUsage(tenant_id="acme")).totals.messages_published == 10

    lives.live(begin)
    lives.live(look_again)
    lives.live(look_last)


def test_a_journal_that_is_shortened_keeps_the_tenants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goqueue.broker.storage.state_journal.EVENTS_MAX", 20)

    async def work(broker: Broker) -> None:
        await acme(broker)
        for number in range(30):
            await set_quotas(broker, SetQuotas(tenant_id="acme", quotas=Quotas(max_topics=number + 1)))
        assert broker.journal is not None
        await broker.journal.shorten()
        assert broker.journal.event_count < 15

    live(tmp_path, work)

    async def look_again(broker: Broker) -> None:
        assert get_tenant(broker, GetTenant(tenant_id="acme")).quotas.max_topics == 30
        assert tenant_topics(broker, ListTenantTopics(tenant_id="acme")) == [TOPIC]
        assert get_tenant(broker, GetTenant(tenant_id="__system")).quotas == UNLIMITED_QUOTAS
        system = tenant_usage(broker, DescribeUsage(tenant_id="__system"))
        assert system.topic_count >= 1 and system.storage_bytes > 0

    live(tmp_path, look_again)
