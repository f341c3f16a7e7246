"""Backups of several nodes: whole through whichever is asked, and found through any."""

import json

import pytest

from goqueue.broker.backup.verbs import (
    backup_document,
    bring_backup,
    create_backup,
    delete_backup,
    get_backup,
    list_backups,
)
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.tenants.verbs import create_tenant
from goqueue.model.backups import (
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
)
from goqueue.model.errors import BackupExists, BackupNotFound, NodeUnreachable, NoLeader
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.tenant_commands import CreateTenant
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
