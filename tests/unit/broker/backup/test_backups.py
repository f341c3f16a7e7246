"""Backups: what the broker knows, kept as of one moment, and brought back whole or not at all."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.backup.restore import restore_backup
from goqueue.broker.backup.verbs import (
    backup_document,
    bring_backup,
    create_backup,
    delete_backup,
    get_backup,
    list_backups,
)
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets, fetch_offsets
from goqueue.broker.schemas.verbs import (
    delete_schema_version,
    register_schema,
    set_compatibility,
    set_registry_mode,
    set_validation,
)
from goqueue.broker.tenants.verbs import create_tenant, get_tenant, set_status
from goqueue.broker.topics.verbs import create_topic, delete_records, delete_topic, describe_topic
from goqueue.broker.write.publish import publish
from goqueue.model.backups import (
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
    RestoreBackup,
    Restored,
)
from goqueue.model.commands import Publish
from goqueue.model.errors import (
    BackupExists,
    BackupNotFound,
    Corrupt,
    Invalid,
    RestoreConflict,
    StorageFull,
)
from goqueue.model.group_commands import CommitOffsets, FetchOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.schema_commands import (
    DeleteSchemaVersion,
    RegisterSchema,
    SetCompatibility,
    SetRegistryMode,
    SetValidation,
)
from goqueue.model.schemas import Compatibility, RegistryMode, SchemaKind, SchemaReference, SchemaText
from goqueue.model.settings import BrokerConfig
from goqueue.model.tenant_commands import CreateTenant, GetTenant, SetStatus
from goqueue.model.tenants import Quotas, TenantStatus
from goqueue.model.topics import CreateTopic, DeleteRecords, DeleteTopic, DescribeTopic
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.disk import SimulatedDisk
from tests.unit.broker.lives import Lives, PowerLost
from tests.unit.broker.queue.queue_steps import ack, join, take
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until

ADDRESS = SchemaText(
    SchemaKind.AVRO, '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
)
ORDER = SchemaText(
    SchemaKind.AVRO,
    '{"type":"record","name":"Order","fields":[{"name":"to","type":"Address"}]}',
    (SchemaReference("Address", "address", 1),),
)
NUMBER = SchemaText(SchemaKind.AVRO, '"long"')
EVERYTHING = CreateBackup()


async def furnish(broker: Broker) -> None:
    """Two topics, one that has lost its beginning, a group that has read a part, and schemas."""
    await create_topic(broker, CreateTopic(name="orders", partitions=2, settings={"retention.ms": "5000"}))
    await create_topic(broker, CreateTopic(name="empty", partitions=1))
    await put(broker, 10)
    await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=3))
    await commit(broker, "workers", 7, text="seven")
    # The address is the second to come by its id, and is wanted by the one before: ids alone are no order.
    await register_schema(broker, RegisterSchema(subject="number", schema=NUMBER))
    await register_schema(broker, RegisterSchema(subject="address", schema=ADDRESS))
    await register_schema(broker, RegisterSchema(subject="order", schema=ORDER))
    await delete_schema_version(broker, DeleteSchemaVersion(subject="number", version=1))
    await set_compatibility(broker, SetCompatibility(subject="order", level=Compatibility.FULL))
    await set_registry_mode(broker, SetRegistryMode(subject="address", mode=RegistryMode.READONLY))
    await set_validation(broker, SetValidation(subject="number", is_enabled=False))


async def put(broker: Broker, count: int) -> None:
    await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=0)] * count))


async def commit(broker: Broker, group: str, offset: int, *, text: str = "") -> None:
    who = Membership(group, "", NO_GENERATION)
    assert not await commit_offsets(
        broker, CommitOffsets(who, [TopicCommit(ORDERS, [(0, offset, -1, text)])])
    )


async def stands_at(broker: Broker, group: str = "workers") -> int:
    [found] = await fetch_offsets(broker, FetchOffsets(group=group, wanted=[(ORDERS, [0])]))
    return found.rows[0][1]


async def extent(broker: Broker) -> tuple[int, int]:
    view = (await describe_topic(broker, DescribeTopic(name="orders"))).partitions[0]
    return view.start_offset, view.end_offset


async def move(source: Broker, target: Broker) -> str:
    """Take a backup from one broker to another."""
    backup_id = (await create_backup(source, EVERYTHING)).backup_id
    await bring_backup(
        target,
        BringBackup(
            backup_id=backup_id, document=await backup_document(source, FetchBackup(backup_id=backup_id))
        ),
    )
    return backup_id


def between(tmp_path: Path, work: Callable[[Broker, Broker], Awaitable[None]]) -> None:
    """Work with a furnished broker and an empty one."""

    async def walk() -> None:
        async with (
            running(FolderDisk(tmp_path / "old")) as old,
            running(FolderDisk(tmp_path / "new")) as new,
        ):
            await furnish(old)
            await work(old, new)

    asyncio.run(walk())


def test_a_backup_tells_everything_but_the_messages(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await furnish(broker)
            kept = await create_backup(broker, EVERYTHING)
            assert await get_backup(broker, GetBackup(backup_id=kept.backup_id)) == kept

    asyncio.run(walk())

    [folder] = (tmp_path / "backups").iterdir()
    told = json.loads((folder / "metadata.json").read_text())
    assert told["version"] == "1.1"
    orders = next(topic for topic in told["topics"] if topic["name"] == "orders")
    assert orders["settings"]["retention.ms"] == "5000"
    [first, second] = orders["partitions"]
    assert (first["first_offset"], first["last_offset"], first["message_count"]) == (3, 9, 7)
    assert first["size_bytes"] > 0
    assert (second["first_offset"], second["last_offset"]) == (0, -1)
    [group] = told["consumer_groups"]
    assert (group["group_id"], group["offsets"]) == ("workers", {"orders": {"0": 7}})
    assert group["offset_metadata"] == {"orders": {"0": "seven"}}
    assert [(each["subject"], each["id"], each["is_deleted"]) for each in told["schemas"]] == [
        ("number", 1, True),
        ("address", 2, False),
        ("order", 3, False),
    ]
    assert told["config"]["broker_config"]["node_id"] == "node-1"
    assert told["stats"]["total_messages"] == 7


def test_an_empty_broker_becomes_what_the_other_was(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        backup_id = await move(old, new)

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id))

        assert restored == Restored(
            backup_id=backup_id,
            topics_restored=2,
            groups_restored=1,
            schemas_restored=3,
            tenants_restored=0,
            skipped=(),
        )
        was, now = (
            await describe_topic(old, DescribeTopic(name="orders")),
            await describe_topic(new, DescribeTopic(name="orders")),
        )
        assert (now.settings, now.created_ms, len(now.partitions)) == (was.settings, was.created_ms, 2)
        assert new.schemas.registry.all_versions() == old.schemas.registry.all_versions()
        assert new.schemas.registry.settings.compatibility("order") is Compatibility.FULL
        assert new.schemas.registry.settings.mode("address") is RegistryMode.READONLY
        assert not new.schemas.registry.settings.is_validating("number")
        [offsets] = await fetch_offsets(new, FetchOffsets(group="workers", wanted=[(ORDERS, [0])]))
        assert offsets.rows[0][3] == "seven"

    between(tmp_path, work)


def test_without_its_messages_a_topic_begins_where_it_ended_and_groups_go_on_there(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await restore_backup(new, RestoreBackup(backup_id=await move(old, new)))

        assert await extent(new) == (10, 10)
        assert await stands_at(new) == 10
        await put(new, 1)
        assert await extent(new) == (10, 11)

    between(tmp_path, work)


def test_when_messages_follow_a_topic_begins_where_it_began_and_groups_stand_where_they_stood(
    tmp_path: Path,
) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await restore_backup(new, RestoreBackup(backup_id=await move(old, new), data_follows=True))

        assert await extent(new) == (3, 3)
        assert await stands_at(new) == 7

    between(tmp_path, work)


def test_where_a_restored_topic_begins_survives_a_restart(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await restore_backup(new, RestoreBackup(backup_id=await move(old, new)))

    between(tmp_path, work)

    async def look() -> None:
        async with running(FolderDisk(tmp_path / "new")) as broker:
            assert await extent(broker) == (10, 10)
            await put(broker, 2)
        async with running(FolderDisk(tmp_path / "new")) as broker:
            assert await extent(broker) == (10, 12)

    asyncio.run(look())


def test_what_is_there_already_as_it_was_is_passed_over(tmp_path: Path) -> None:
    async def work(old: Broker, _: Broker) -> None:
        backup_id = (await create_backup(old, EVERYTHING)).backup_id
        await put(old, 1)

        restored = await restore_backup(old, RestoreBackup(backup_id=backup_id))

        assert (restored.topics_restored, restored.groups_restored, restored.schemas_restored) == (0, 0, 0)
        assert "topic orders is here already" in restored.skipped
        assert "offsets of group workers are here already" in restored.skipped

    between(tmp_path, work)


def test_all_that_is_in_the_way_is_told_and_nothing_is_changed(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await create_topic(new, CreateTopic(name="empty", partitions=5))
        await register_schema(new, RegisterSchema(subject="order", schema=NUMBER))
        await set_compatibility(new, SetCompatibility(subject="order", level=Compatibility.NONE))
        backup_id = await move(old, new)

        with pytest.raises(RestoreConflict) as refusal:
            await restore_backup(new, RestoreBackup(backup_id=backup_id))

        told = refusal.value.conflicts
        assert len(told) == 3
        assert "topic empty is another one here" in told[0]
        assert told[1] == "schema order version 1 is another one here"
        assert told[2] == "compatibility of subject order is NONE here, not FULL"
        assert ORDERS not in new.topics
        assert await fetch_offsets(new, FetchOffsets(group="workers", wanted=None)) == []

    between(tmp_path, work)


def test_what_is_in_the_way_can_be_left_as_it_is(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await create_topic(new, CreateTopic(name="empty", partitions=5))
        backup_id = await move(old, new)

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id, skip_existing=True))

        assert (restored.topics_restored, restored.groups_restored, restored.schemas_restored) == (1, 1, 3)
        [skipped] = restored.skipped
        assert skipped.startswith("topic empty is another one here")
        assert len((await describe_topic(new, DescribeTopic(name="empty"))).partitions) == 5

    between(tmp_path, work)


def test_offsets_of_a_topic_that_is_another_one_here_are_not_taken_over(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await create_topic(new, CreateTopic(name="orders", partitions=2))
        await put(new, 20)
        backup_id = await move(old, new)

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id, skip_existing=True))

        assert restored.groups_restored == 0
        assert await stands_at(new) == -1

    between(tmp_path, work)


def test_a_group_that_has_gone_on_is_not_set_back(tmp_path: Path) -> None:
    async def work(old: Broker, _: Broker) -> None:
        backup_id = (await create_backup(old, EVERYTHING)).backup_id
        await commit(old, "workers", 9)

        with pytest.raises(RestoreConflict, match="stands at 9 in orders/0 here, not at 7"):
            await restore_backup(old, RestoreBackup(backup_id=backup_id))

        await restore_backup(old, RestoreBackup(backup_id=backup_id, skip_existing=True))
        assert await stands_at(old) == 9

    between(tmp_path, work)


def test_a_group_with_members_is_left_to_them(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        backup_id = await move(old, new)
        await create_topic(new, CreateTopic(name="other", partitions=1))
        await join(new, topic="other")

        with pytest.raises(RestoreConflict, match="group workers has members"):
            await restore_backup(new, RestoreBackup(backup_id=backup_id))

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id, skip_existing=True))
        assert (restored.topics_restored, restored.groups_restored) == (2, 0)

    between(tmp_path, work)


def test_a_restored_topic_delivers_to_queues_and_after_delays(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await restore_backup(new, RestoreBackup(backup_id=await move(old, new)))
        due_ms = new.clock.wall_ms() + 5
        late = Message(b"late", partition=0, due_ms=due_ms)
        await publish(new, Publish(topic=ORDERS, messages=[late]))
        consumer, newcomer = await join(new), await join(new, group="new ones")

        [taken] = await take(new, consumer, wait_ms=20_000)

        assert (taken.offset, taken.value) == (10, "late")
        assert not (await ack(new, [taken])).refusals
        assert await stands_at(new) == 11
        assert [one.offset for one in await take(new, newcomer)] == [10]

    between(tmp_path, work)


def test_a_full_disk_refuses_a_backup_and_leaves_none_by_half() -> None:
    async def walk() -> None:
        disk = SimulatedDisk(Random(1))
        async with running(disk) as broker:
            await furnish(broker)
            disk.fill_up(after_bytes=100)
            with pytest.raises(StorageFull):
                await create_backup(broker, EVERYTHING)
            assert await list_backups(broker, ListBackups()) == []
            disk.faults.heal()
            kept = await create_backup(broker, EVERYTHING)
            assert [one.backup_id for one in await list_backups(broker, ListBackups())] == [kept.backup_id]
            assert disk.list("backups") == [kept.backup_id]

    asyncio.run(walk())


def test_a_deleted_topic_comes_back_as_another_one_of_the_same_birth(tmp_path: Path) -> None:
    async def work(old: Broker, _: Broker) -> None:
        was = await describe_topic(old, DescribeTopic(name="orders"))
        backup_id = (await create_backup(old, EVERYTHING)).backup_id
        await delete_topic(old, DeleteTopic(name="orders"))

        await restore_backup(old, RestoreBackup(backup_id=backup_id))

        now = await describe_topic(old, DescribeTopic(name="orders"))
        assert now.created_ms == was.created_ms
        # What was kept about the first, like its delayed messages, must not be taken for the second's.
        assert now.topic_id != was.topic_id
        assert await stands_at(old) == 10

    between(tmp_path, work)


def test_a_schema_that_cannot_have_its_id_is_not_restored_under_another(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await register_schema(
            new, RegisterSchema(subject="other", schema=SchemaText(SchemaKind.AVRO, '"string"'))
        )
        backup_id = await move(old, new)

        with pytest.raises(RestoreConflict, match="has id 1, which stands for another schema here"):
            await restore_backup(new, RestoreBackup(backup_id=backup_id))

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id, skip_existing=True))
        assert restored.schemas_restored == 2
        assert new.schemas.registry.version("order", 1).schema_id == 3

    between(tmp_path, work)


def test_the_id_of_a_schema_that_is_gone_for_good_is_not_given_again(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await delete_schema_version(old, DeleteSchemaVersion(subject="order", version=1))
        await delete_schema_version(old, DeleteSchemaVersion(subject="order", version=1, is_permanent=True))
        await restore_backup(new, RestoreBackup(backup_id=await move(old, new)))

        place = await register_schema(
            new, RegisterSchema(subject="other", schema=SchemaText(SchemaKind.AVRO, '"string"'))
        )

        assert place.schema_id == 4

    between(tmp_path, work)


def test_only_what_is_asked_for_is_kept(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        command = CreateBackup(include_topics=False, include_schemas=False, include_config=False)
        kept = await create_backup(old, command)

        assert (kept.backup.topics, kept.backup.schemas, kept.backup.config) == ((), (), {})
        assert kept.backup.consumer_groups[0].offsets == {"orders": {0: 7}}
        await bring_backup(
            new,
            BringBackup(
                backup_id=kept.backup_id,
                document=await backup_document(old, FetchBackup(backup_id=kept.backup_id)),
            ),
        )
        with pytest.raises(RestoreConflict, match="the backup's orders/0 is not here"):
            await restore_backup(new, RestoreBackup(backup_id=kept.backup_id))

    between(tmp_path, work)


def test_the_newest_are_kept_and_two_of_a_second_have_ids_of_their_own(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(backup_count_max=2)) as broker:
            made = [(await create_backup(broker, EVERYTHING)).backup_id for _ in range(4)]
            assert len(set(made)) == 4
            assert [kept.backup_id for kept in await list_backups(broker, ListBackups())] == [
                made[3],
                made[2],
            ]

    asyncio.run(walk())


def test_a_backup_that_was_just_made_is_kept_also_where_others_are_of_a_later_time(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path), BrokerConfig(backup_count_max=2)) as broker:
            first = (await create_backup(broker, EVERYTHING)).backup_id
            document = json.loads(await backup_document(broker, FetchBackup(backup_id=first)))
            await delete_backup(broker, DeleteBackup(backup_id=first))
            for day in ("01", "02"):  # as after the clock was set back
                document["timestamp"] = f"2099-01-{day}T00:00:00Z"
                await bring_backup(
                    broker,
                    BringBackup(backup_id=f"2099-01-{day}-000000", document=json.dumps(document).encode()),
                )

            made = (await create_backup(broker, EVERYTHING)).backup_id

            assert [kept.backup_id for kept in await list_backups(broker, ListBackups())] == [
                "2099-01-02-000000",
                made,
            ]

    asyncio.run(walk())


def test_backups_are_deleted_and_unknown_ones_are_told(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            backup_id = (await create_backup(broker, EVERYTHING)).backup_id
            await delete_backup(broker, DeleteBackup(backup_id=backup_id))
            assert await list_backups(broker, ListBackups()) == []
            for unknown in (backup_id, "..", "../logs", "", "2026-01-31"):
                with pytest.raises(BackupNotFound):
                    await get_backup(broker, GetBackup(backup_id=unknown))
                with pytest.raises(BackupNotFound):
                    await delete_backup(broker, DeleteBackup(backup_id=unknown))
                with pytest.raises(BackupNotFound):
                    await restore_backup(broker, RestoreBackup(backup_id=unknown))

    asyncio.run(walk())


def test_a_file_that_is_no_backup_is_refused_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            kept = await create_backup(broker, EVERYTHING)
            document = await backup_document(broker, FetchBackup(backup_id=kept.backup_id))
            with pytest.raises(BackupExists):
                await bring_backup(broker, BringBackup(backup_id=kept.backup_id, document=document))
            for backup_id, bad in (
                ("2026-01-31-120000", b"[]"),
                ("2026-01-31-120000", document.replace(b'"1.1"', b'"7.0"')),
                ("../../etc", document),
            ):
                with pytest.raises(Invalid):
                    await bring_backup(broker, BringBackup(backup_id=backup_id, document=bad))
            path = tmp_path / "backups" / kept.backup_id / "metadata.json"
            path.write_bytes(document[:-100])
            with pytest.raises(Corrupt, match="cannot be understood"):
                await get_backup(broker, GetBackup(backup_id=kept.backup_id))
            assert await list_backups(broker, ListBackups()) == []
            await delete_backup(broker, DeleteBackup(backup_id=kept.backup_id))

    asyncio.run(walk())


def test_a_file_of_the_go_edition_can_be_restored(tmp_path: Path) -> None:
    document = {
        "version": "1.0",
        "timestamp": "2026-01-31T12:00:00.123456789Z",
        "broker_id": "node-1",
        "topics": [
            {
                "name": "orders",
                "num_partitions": 1,
                "replication_factor": 1,
                "retention_hours": 5,
                "compaction_enabled": False,
                "created_at": "0001-01-01T00:00:00Z",
                "partitions": [
                    {"id": 0, "first_offset": 0, "last_offset": 4, "message_count": 5, "size_bytes": 99}
                ],
            }
        ],
        "consumer_groups": [{"group_id": "workers", "state": "Stable", "offsets": {"orders": {"0": 2}}}],
        "schemas": [{"subject": "n", "version": 1, "id": 9, "schema_type": "avro", "schema": '"long"'}],
    }

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await bring_backup(
                broker, BringBackup(backup_id="2026-01-31-120000", document=json.dumps(document).encode())
            )
            command = RestoreBackup(backup_id="2026-01-31-120000", data_follows=True)

            await restore_backup(broker, command)

            assert (
                await describe_topic(broker, DescribeTopic(name="orders"))
            ).settings.retention_ms == 5 * 3_600_000
            assert await stands_at(broker) == 2
            assert broker.schemas.registry.version("n", 1).schema_id == 9

    asyncio.run(walk())


def test_tenants_come_back_as_they_were_above_their_quotas_and_suspended(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        await create_topic(old, CreateTopic(name="acme.a", partitions=1))
        await create_topic(old, CreateTopic(name="acme.b", partitions=1))
        await create_tenant(old, CreateTenant(tenant_id="acme", name="Acme", quotas=Quotas(max_topics=1)))
        kept = await set_status(
            old, SetStatus(tenant_id="acme", status=TenantStatus.SUSPENDED, reason="unpaid")
        )
        backup_id = await move(old, new)

        restored = await restore_backup(new, RestoreBackup(backup_id=backup_id))

        assert (restored.topics_restored, restored.tenants_restored) == (4, 1)
        assert get_tenant(new, GetTenant(tenant_id="acme")) == kept
        again = await restore_backup(new, RestoreBackup(backup_id=backup_id))
        assert (again.tenants_restored, "tenant acme is here already" in again.skipped) == (0, True)

    between(tmp_path, work)


def test_a_tenant_that_is_another_one_here_is_in_the_way(tmp_path: Path) -> None:
    async def work(old: Broker, new: Broker) -> None:
        first = await create_tenant(old, CreateTenant(tenant_id="acme", name="Acme"))
        await until(lambda: new.clock.wall_ms() > first.created_ms)
        await create_tenant(new, CreateTenant(tenant_id="acme", name="Acme"))

        with pytest.raises(RestoreConflict, match="tenant acme cannot be made here"):
            await restore_backup(new, RestoreBackup(backup_id=await move(old, new)))

    between(tmp_path, work)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_stops_a_restore_the_next_one_finishes_it(seed: int) -> None:
    old = Lives(seed)

    async def keep(broker: Broker) -> tuple[str, bytes]:
        await furnish(broker)
        backup_id = (await create_backup(broker, EVERYTHING)).backup_id
        return backup_id, await backup_document(broker, FetchBackup(backup_id=backup_id))

    backup_id, document = old.live(keep)
    new = Lives(seed)

    async def restore(broker: Broker) -> Restored:
        with suppress(BackupExists):
            await bring_backup(broker, BringBackup(backup_id=backup_id, document=document))
        return await restore_backup(broker, RestoreBackup(backup_id=backup_id))

    cuts = 0
    for cut_after in range(1, 400, 7):
        try:
            new.live(restore, cut_after=cut_after)
        except PowerLost:
            cuts += 1
        else:
            break

    async def look(broker: Broker) -> None:
        assert sorted(broker.topics) == [TopicName("empty"), ORDERS]
        assert await extent(broker) == (10, 10)
        assert await stands_at(broker) == 10
        assert [place.schema_id for place in broker.schemas.registry.all_versions()] == [1, 2, 3]

    new.live(look)
    assert cuts > 3
