"""Whole backups over HTTP: begin one, see how far it is, delete one. They are brought back by a tool."""

from typing import Annotated

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import PathParameter

from goqueue.broker.backup.whole.verbs import begin_whole_backup, delete_whole_backup, list_whole_backups
from goqueue.broker.broker import Broker
from goqueue.broker.forwarding.at_home import here
from goqueue.edge.http.backup.bodies import BackupDeleted
from goqueue.edge.http.parts.openapi import errors
from goqueue.edge.http.parts.times import format_time
from goqueue.model.whole_backups import BeginWholeBackup, DeleteWholeBackup, ListWholeBackups, WholeListing
from goqueue.wire import backups as wire

_TAGS = ["backups"]
_PATH = "/admin/backup/whole"
_Id = Annotated[str, PathParameter(description="The backup's id, like 2026-01-31-120000.")]


@post(
    _PATH,
    status_code=202,
    operation_id="beginWholeBackup",
    summary="Begin to copy all that the node holds, as of now",
    description="Messages, offsets, leases, delays, transactions, schemas, tenants, users and rules. What "
    "earlier backups have is not copied again.",
    tags=_TAGS,
    responses=errors(400, 409, 500, 503, 507),
)
async def begin_whole_backup_route(broker: NamedDependency[Broker]) -> wire.WholeBackup[str]:
    return _told(await here(broker, begin_whole_backup, BeginWholeBackup()))


@get(
    _PATH,
    operation_id="listWholeBackups",
    summary="All whole backups, the newest first, and how far the one is that is being made",
    tags=_TAGS,
    responses=errors(400, 500, 503),
)
async def list_whole_backups_route(broker: NamedDependency[Broker]) -> wire.WholeBackupList[str]:
    listings = await here(broker, list_whole_backups, ListWholeBackups())
    return wire.WholeBackupList([_told(listing) for listing in listings])


@delete(
    f"{_PATH}/{{backup_id:str}}",
    status_code=200,
    operation_id="deleteWholeBackup",
    summary="Delete a whole backup, with what no other refers to",
    tags=_TAGS,
    responses=errors(400, 404, 409, 500, 503),
)
async def delete_whole_backup_route(broker: NamedDependency[Broker], backup_id: _Id) -> BackupDeleted:
    await here(broker, delete_whole_backup, DeleteWholeBackup(backup_id=backup_id))
    return BackupDeleted(backup_id, message=f"backup {backup_id} is deleted")


def _told(listing: WholeListing) -> wire.WholeBackup[str]:
    return wire.WholeBackup(
        listing.backup_id,
        listing.state.value,
        format_time(listing.taken_ms),
        listing.partition_count,
        listing.size_bytes,
        listing.new_bytes,
        listing.total_bytes,
        listing.failure,
    )


ROUTES = [begin_whole_backup_route, list_whole_backups_route, delete_whole_backup_route]
