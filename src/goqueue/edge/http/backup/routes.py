"""Backups over HTTP: make them, look at them, take them elsewhere and bring them back."""

from typing import Annotated

import msgspec
from litestar import Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, RawBody

from goqueue.broker.backup.restore import restore_backup
from goqueue.broker.backup.store import KeptBackup
from goqueue.broker.backup.verbs import (
    backup_document,
    bring_backup,
    create_backup,
    delete_backup,
    get_backup,
    list_backups,
)
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import at_home, here
from goqueue.edge.http.backup.bodies import BackupDeleted, CreateBackupBody, RestoreBody, RestoredBody
from goqueue.edge.http.parts.decoding import decode_if_any
from goqueue.edge.http.parts.openapi import BYTES, TakingBytes, errors, takes
from goqueue.edge.http.parts.times import format_duration, format_time
from goqueue.model.backups import (
    Backup,
    BackupListing,
    BackupStats,
    BringBackup,
    CreateBackup,
    DeleteBackup,
    FetchBackup,
    GetBackup,
    ListBackups,
    RestoreBackup,
)
from goqueue.wire import backups as wire

_create_decoder = msgspec.json.Decoder(CreateBackupBody)
_restore_decoder = msgspec.json.Decoder(RestoreBody)
_TAGS = ["backups"]
_Id = Annotated[str, PathParameter(description="The backup's id, like 2026-01-31-120000.")]
_DOCUMENT = ResponseSpec(
    bytes, generate_examples=False, media_type=BYTES, description="metadata.json, as it lies on the disk."
)


@post(
    "/admin/backup",
    status_code=200,
    operation_id="createBackup",
    summary="Keep what the broker knows of topics, groups and schemas",
    description="Messages are not in it. The newest ones are kept, as many as a setting says.",
    tags=_TAGS,
    operation_class=takes(CreateBackupBody, is_required=False),
    responses=errors(400, 413, 503, 507),
)
async def create_backup_route(broker: NamedDependency[Broker], body: RawBody) -> wire.BackupCreated[str]:
    wanted = decode_if_any(_create_decoder, body)
    command = CreateBackup(
        include_topics=wanted.include_topics,
        include_offsets=wanted.include_offsets,
        include_schemas=wanted.include_schemas,
        include_config=wanted.include_config,
    )
    return _created(await at_home(broker, create_backup, command))


@get(
    "/admin/backup",
    operation_id="listBackups",
    summary="All backups, the newest first",
    tags=_TAGS,
    responses=errors(503),
)
async def list_backups_route(broker: NamedDependency[Broker]) -> wire.BackupList[str]:
    return wire.BackupList(
        [
            wire.BackupListed(
                listing.backup_id,
                _time(listing),
                listing.broker_id,
                listing.topic_count,
                listing.group_count,
                listing.schema_count,
            )
            for listing in await at_home(broker, list_backups, ListBackups())
        ]
    )


@get(
    "/admin/backup/{backup_id:str}",
    operation_id="describeBackup",
    summary="What a backup holds, by name",
    tags=_TAGS,
    responses=errors(400, 404, 500, 503),
)
async def describe_backup_route(broker: NamedDependency[Broker], backup_id: _Id) -> wire.Backup[str]:
    backup = (await at_home(broker, get_backup, GetBackup(backup_id=backup_id))).backup
    return wire.Backup(
        backup_id,
        backup.version,
        _time(backup),
        backup.broker_id,
        backup.cluster_id,
        [wire.BackupTopic(topic.name, topic.num_partitions) for topic in backup.topics],
        [wire.BackupGroup(group.group_id, group.state) for group in backup.consumer_groups],
        [wire.BackupSchema(schema.subject, schema.version) for schema in backup.schemas],
        _stats(backup.stats),
    )


@get(
    "/admin/backup/{backup_id:str}/metadata",
    operation_id="downloadBackup",
    summary="The file of a backup, to be kept elsewhere",
    tags=_TAGS,
    responses={200: _DOCUMENT} | errors(400, 404, 500, 503),
)
async def download_backup_route(broker: NamedDependency[Broker], backup_id: _Id) -> Response[bytes]:
    return Response(
        await at_home(broker, backup_document, FetchBackup(backup_id=backup_id)), media_type=BYTES
    )


@put(
    "/admin/backup/{backup_id:str}",
    status_code=201,
    operation_id="uploadBackup",
    summary="Bring the file of a backup that was kept elsewhere",
    tags=_TAGS,
    operation_class=TakingBytes,
    responses=errors(400, 409, 413, 503, 507),
)
async def upload_backup_route(
    broker: NamedDependency[Broker], backup_id: _Id, body: RawBody
) -> wire.BackupCreated[str]:
    return _created(await at_home(broker, bring_backup, BringBackup(backup_id=backup_id, document=body)))


@delete(
    "/admin/backup/{backup_id:str}",
    status_code=200,
    operation_id="deleteBackup",
    summary="Delete a backup",
    tags=_TAGS,
    responses=errors(400, 404, 503, 507),
)
async def delete_backup_route(broker: NamedDependency[Broker], backup_id: _Id) -> BackupDeleted:
    await at_home(broker, delete_backup, DeleteBackup(backup_id=backup_id))
    return BackupDeleted(backup_id, f"backup {backup_id} is deleted")


@post(
    "/admin/backup/{backup_id:str}/restore",
    status_code=200,
    operation_id="restoreBackup",
    summary="Bring back topics, schemas and offsets that are not there",
    description="What is there and differs is refused, all of it in one answer and before anything is "
    "changed. A restore that was broken off is finished by doing it again.",
    tags=_TAGS,
    operation_class=takes(RestoreBody, is_required=False),
    responses=errors(400, 404, 409, 413, 500, 503, 507),
)
async def restore_backup_route(
    broker: NamedDependency[Broker], backup_id: _Id, body: RawBody
) -> RestoredBody:
    wanted = decode_if_any(_restore_decoder, body)
    restored = await here(
        broker,
        restore_backup,
        RestoreBackup(
            backup_id=backup_id, skip_existing=wanted.skip_existing, data_follows=wanted.data_follows
        ),
    )
    return RestoredBody(
        backup_id,
        restored.topics_restored,
        restored.groups_restored,
        restored.schemas_restored,
        restored.tenants_restored,
        list(restored.skipped),
        message=f"backup {backup_id} is restored",
    )


def _created(kept: KeptBackup) -> wire.BackupCreated[str]:
    backup = kept.backup
    return wire.BackupCreated(
        kept.backup_id, _time(backup), backup.broker_id, backup.cluster_id, _stats(backup.stats)
    )


def _time(backup: Backup | BackupListing) -> str:
    return format_time(int(backup.timestamp.timestamp() * 1000))


def _stats(stats: BackupStats) -> wire.BackupStats:
    return wire.BackupStats(
        topic_count=stats.topic_count,
        partition_count=stats.partition_count,
        total_messages=stats.total_messages,
        total_bytes=stats.total_bytes,
        consumer_group_count=stats.consumer_group_count,
        schema_count=stats.schema_count,
        tenant_count=stats.tenant_count,
        duration_ns=stats.duration_ns,
        duration_human=format_duration(stats.duration_ns // 1_000_000),
    )


ROUTES = [
    create_backup_route,
    list_backups_route,
    describe_backup_route,
    download_backup_route,
    upload_backup_route,
    delete_backup_route,
    restore_backup_route,
]
