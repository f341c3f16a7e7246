"""Backups of several nodes: whole through whichever is asked, and found through any."""

import json

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
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.verbs import delete_group
from goqueue.broker.read.read import read_messages
from goqueue.broker.schemas.verbs import delete_subject, register_schema
from goqueue.broker.tenants.verbs import create_tenant, delete_tenant
from goqueue.broker.topics.verbs import delete_topic
from goqueue.core.cluster.values import Topic
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
from goqueue.model.cluster import NodeId
from goqueue.model.commands import ReadMessages
from goqueue.model.errors import (
    BackupExists,
    BackupNotFound,
    NodeUnreachable,
    NoLeader,
    NotSupported,
    RestoreConflict,
)
from goqueue.model.group_commands import CommitOffsets, DeleteGroup
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.schema_commands import DeleteSubject, RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.tenant_commands import CreateTenant, DeleteTenant
from goqueue.model.topics import DeleteTopic
from tests.unit.broker.remote.several import ORDERS, Several, several

GROUPS = [f"workers-{number}" for number in range(9)]
NUMBER = SchemaText(SchemaKind.AVRO, '"long"')
PARTITIONS = 6


async def furnish(world: Several) -> None:
    """A topic led by all nodes, groups coordinated by all, a schema, a tenant."""
    await world.create(partitions=PARTITIONS, copies=2)
    for number in range(PARTITIONS):
        await world.put(*"x" * (number + 1), number=number)
    first = next(iter(world.nodes))
    for number, group in enumerate(GROUPS):
        rows = [(number % PARTITIONS, 1, -1, "one")]
        command = CommitOffsets(Membership(group, "", NO_GENERATION), [TopicCommit(ORDERS, rows)])
        assert not await world.run(first, commit_offsets, command)
    await world.run(first, register_schema, RegisterSchema(subject="number", schema=NUMBER))
    await world.run(first, create_tenant, CreateTenant(name="Acme", tenant_id="acme"))


def test_a_backup_made_through_any_node_holds_what_all_of_them_know() -> None:
    async def story(world: Several) -> None:
        await furnish(world)
        assert len({world.leader(ORDERS, number) for number in range(PARTITIONS)}) == 3
        assert len({world.coordinator(group) for group in GROUPS}) == 3

        for name in world.nodes:
            backup = (await world.run(name, create_backup, CreateBackup())).backup

            [topic] = backup.topics
            assert [partition.end_offset for partition in topic.partitions] == [1, 2, 3, 4, 5, 6]
            assert (topic.name, topic.replication_factor) == (ORDERS, 2)
            assert [group.group_id for group in backup.consumer_groups] == GROUPS
            assert [group.offsets for group in backup.consumer_groups] == [
                {ORDERS: {number % PARTITIONS: 1}} for number in range(len(GROUPS))
            ]
            assert [schema.subject for schema in backup.schemas] == ["number"]
            assert [tenant.tenant_id for tenant in backup.tenants] == ["acme"]
            assert backup.stats.total_messages == 21

    several(story)


def test_only_what_is_wanted_is_in_it() -> None:
    async def story(world: Several) -> None:
        await furnish(world)
        for only in ("topics", "offsets", "schemas", "config"):
            parts = {f"include_{part}": part == only for part in ("topics", "offsets", "schemas", "config")}
            backup = (await world.run(next(iter(world.nodes)), create_backup, CreateBackup(**parts))).backup
            has = [backup.topics, backup.consumer_groups, backup.schemas, backup.config]
            assert [bool(one) for one in has] == list(parts.values())
            assert bool(backup.tenants) == (only == "topics")

    several(story)


def test_a_backup_is_found_and_deleted_through_any_node_and_no_id_is_given_twice() -> None:
    async def story(world: Several) -> None:
        names = list(world.nodes)
        await world.create(partitions=3)
        ids = [(await world.run(name, create_backup, CreateBackup())).backup_id for name in names]
        assert len(set(ids)) == 3

        for at, name in enumerate(names):
            listed = await world.run(name, list_backups, ListBackups())
            assert sorted(one.backup_id for one in listed) == sorted(ids[at:])
            document = await world.run(name, backup_document, FetchBackup(backup_id=ids[at]))
            assert [topic["name"] for topic in json.loads(document)["topics"]] == [ORDERS]
            kept = await world.run(name, get_backup, GetBackup(backup_id=ids[at]))
            assert kept.backup_id == ids[at]
            with pytest.raises(BackupExists):
                await world.run(name, bring_backup, BringBackup(backup_id=ids[at], document=document))

            await world.run(names[at - 1], delete_backup, DeleteBackup(backup_id=ids[at]))

            with pytest.raises(BackupNotFound):
                await world.run(name, get_backup, GetBackup(backup_id=ids[at]))
            with pytest.raises(BackupNotFound):
                await world.run(name, delete_backup, DeleteBackup(backup_id=ids[at]))

    several(story)


def test_backups_lie_where_they_were_made_when_another_node_decides_by_now() -> None:
    async def story(world: Several) -> None:
        image = next(iter(world.nodes.values())).broker.metadata
        keeper = image.controller
        assert keeper is not None
        other = next(name for name in world.nodes if name != keeper)
        made = await world.run(other, create_backup, CreateBackup())
        assert made.backup.broker_id == keeper

        world.kill(keeper)
        await world.until(
            lambda: (
                world.nodes[other].broker.metadata.controller not in (None, keeper)
                and keeper not in world.nodes[other].broker.metadata.nodes
            )
        )
        assert await world.run(other, list_backups, ListBackups()) == []
        world.start(keeper)
        await world.until(lambda: world.nodes[keeper].is_ready)
        await world.until(world.has_journals)

        found = await world.run(other, get_backup, GetBackup(backup_id=made.backup_id))
        assert (found.backup.timestamp, found.backup.broker_id) == (made.backup.timestamp, keeper)
        document = await world.run(other, backup_document, FetchBackup(backup_id=made.backup_id))
        with pytest.raises(BackupExists):
            await world.run(other, bring_backup, BringBackup(backup_id=made.backup_id, document=document))

    several(story)


def test_there_is_no_backup_while_nobody_tells_of_a_partition() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=3, copies=1)
        gone = next(name for name in world.nodes if name != world.nodes[name].broker.metadata.controller)
        world.kill(gone)
        name = next(iter(world.nodes))

        with pytest.raises((NoLeader, NodeUnreachable)):
            await world.run(name, create_backup, CreateBackup())
        await world.until(lambda: gone not in world.nodes[name].broker.metadata.nodes)
        with pytest.raises(NoLeader):
            await world.run(name, create_backup, CreateBackup())

    several(story)


def test_what_was_deleted_comes_back_through_any_node_and_no_offset_is_given_twice() -> None:
    async def story(world: Several) -> None:
        await furnish(world)
        first, second, third = world.nodes
        made = await world.run(first, create_backup, CreateBackup())
        await world.run(first, delete_topic, DeleteTopic(name=ORDERS))
        await world.run(first, delete_subject, DeleteSubject(subject="number"))
        await world.run(first, delete_subject, DeleteSubject(subject="number", is_permanent=True))
        await world.run(first, delete_tenant, DeleteTenant(tenant_id="acme"))
        for group in GROUPS:
            await world.run(first, delete_group, DeleteGroup(group=group))
        await world.until(lambda: all(ORDERS not in node.broker.topics for node in world.nodes.values()))

        restored = await world.run(second, restore_backup, RestoreBackup(backup_id=made.backup_id))

        assert restored == Restored(
            backup_id=made.backup_id,
            topics_restored=1,
            groups_restored=len(GROUPS),
            schemas_restored=1,
            tenants_restored=1,
            skipped=(),
        )
        again = (await world.run(third, create_backup, CreateBackup())).backup
        [was], [now] = made.backup.topics, again.topics
        ends = [partition.end_offset for partition in was.partitions]
        assert [(part.first_offset, part.end_offset) for part in now.partitions] == [
            (end, end) for end in ends
        ]
        assert (now.settings, now.created_at, now.replication_factor) == (was.settings, was.created_at, 2)
        assert again.schemas == made.backup.schemas
        assert again.tenants == made.backup.tenants
        assert [group.offsets for group in again.consumer_groups] == [
            {ORDERS: {number % PARTITIONS: ends[number % PARTITIONS]}} for number in range(len(GROUPS))
        ]
        done = await world.run(third, restore_backup, RestoreBackup(backup_id=made.backup_id))
        assert (done.topics_restored, done.groups_restored, done.schemas_restored) == (0, 0, 0)

    several(story)


def test_a_restored_topic_is_written_to_and_goes_on_when_its_leader_dies() -> None:
    async def story(world: Several) -> None:
        await world.create(partitions=1, copies=3)
        await world.put(*"abc")
        first = next(iter(world.nodes))
        made = await world.run(first, create_backup, CreateBackup())
        await world.run(first, delete_topic, DeleteTopic(name=ORDERS))
        await world.until(lambda: all(ORDERS not in node.broker.topics for node in world.nodes.values()))
        await world.run(first, restore_backup, RestoreBackup(backup_id=made.backup_id))
        await world.put(*"de")
        copies = [node.broker.topics[ORDERS].partitions[0] for node in world.nodes.values()]
        # Had one been there before and lost its folder, this is how that would be noticed.
        assert [(copy.was_made_anew, copy.log.start_offset) for copy in copies] == [(True, 3)] * 3

        leader = world.leader()
        assert leader is not None
        world.kill(leader)
        other = next(iter(world.nodes))
        await world.until(lambda: world.leader() not in (None, leader))
        await world.put("f")

        command = ReadMessages(source=TopicPartition(ORDERS, 0), offset=3)
        read = await world.run(other, read_messages, command)
        assert [(one.offset, one.value) for one in read.messages] == [(3, b"d"), (4, b"e"), (5, b"f")]
        world.start(leader)
        await world.until(lambda: world.nodes[leader].is_ready)
        await world.until(
            lambda: leader in world.nodes[other].broker.metadata.record(image_topic(world, other), 0).isr
        )
        [partition] = world.nodes[leader].broker.topics[ORDERS].partitions
        assert (partition.log.start_offset, partition.log.end_offset) == (3, 6)
        assert not partition.was_made_anew

    several(story)


def image_topic(world: Several, name: NodeId) -> Topic:
    return world.nodes[name].broker.metadata.topic(ORDERS)


def test_what_stands_in_the_way_is_told_whichever_node_has_it_and_nothing_is_changed() -> None:
    async def story(world: Several) -> None:
        await furnish(world)
        first, second, _ = world.nodes
        made = await world.run(first, create_backup, CreateBackup())
        for group in GROUPS:
            rows = [(0, 0, -1, "")]
            command = CommitOffsets(Membership(group, "", NO_GENERATION), [TopicCommit(ORDERS, rows)])
            assert not await world.run(first, commit_offsets, command)
        await world.run(first, delete_tenant, DeleteTenant(tenant_id="acme"))

        with pytest.raises(RestoreConflict, match="group workers-0 stands at 0 in orders/0 here, not at 1"):
            await world.run(second, restore_backup, RestoreBackup(backup_id=made.backup_id))
        assert "acme" not in world.nodes[second].broker.tenants.accounts
        with pytest.raises(NotSupported, match="cluster"):
            following = RestoreBackup(backup_id=made.backup_id, data_follows=True)
            await world.run(second, restore_backup, following)
        with pytest.raises(BackupNotFound):
            await world.run(second, restore_backup, RestoreBackup(backup_id="2020-01-01-000000"))

        restored = await world.run(
            second, restore_backup, RestoreBackup(backup_id=made.backup_id, skip_existing=True)
        )
        assert (restored.topics_restored, restored.tenants_restored) == (0, 1)
        assert any("workers-0 stands at 0" in skipped for skipped in restored.skipped)

    several(story)
