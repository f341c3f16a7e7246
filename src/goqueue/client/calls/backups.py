"""Backups of what a broker knows of topics, groups and schemas: make them, look at them, bring them back."""

from datetime import datetime

from goqueue.client.call import BYTES, Call, body_of, json_of, path
from goqueue.wire import backups as wire
from goqueue.wire.backups import BackupRestored

Backup = wire.Backup[datetime]
BackupCreated = wire.BackupCreated[datetime]
BackupListed = wire.BackupListed[datetime]
WholeBackup = wire.WholeBackup[datetime]


def create(
    *, topics: bool = True, offsets: bool = True, schemas: bool = True, config: bool = True
) -> Call[BackupCreated]:
    """Keep what the broker knows now. Twice makes two, of which the older goes first."""
    return Call(
        method="POST",
        path="/admin/backup",
        decode=json_of(BackupCreated),
        body=body_of(
            include_topics=topics, include_offsets=offsets, include_schemas=schemas, include_config=config
        ),
        is_repeatable=False,
    )


def list_backups() -> Call[list[BackupListed]]:
    """All backups, the newest first."""
    decode = json_of(wire.BackupList[datetime])
    return Call(method="GET", path="/admin/backup", decode=lambda reply: decode(reply).backups)


def get(backup_id: str) -> Call[Backup]:
    """What a backup holds, by name."""
    return Call(method="GET", path=path("admin", "backup", backup_id), decode=json_of(Backup))


def download(backup_id: str) -> Call[bytes]:
    """The file of a backup, to be kept elsewhere."""
    return Call(
        method="GET", path=path("admin", "backup", backup_id, "metadata"), decode=lambda reply: reply.body
    )


def upload(backup_id: str, document: bytes) -> Call[BackupCreated]:
    """Bring the file of a backup that was kept elsewhere."""
    return Call(
        method="PUT",
        path=path("admin", "backup", backup_id),
        decode=json_of(BackupCreated),
        body=document,
        content_type=BYTES,
        is_repeatable=False,
    )


def delete(backup_id: str) -> Call[None]:
    """Delete a backup."""
    return Call(
        method="DELETE",
        path=path("admin", "backup", backup_id),
        decode=lambda reply: None,
        is_repeatable=False,
    )


def restore(
    backup_id: str, *, skip_existing: bool = False, data_follows: bool = False
) -> Call[BackupRestored]:
    """Bring back what is not there. What is there and differs is in the way, or left as it is.

    `data_follows`: messages will be restored into the topics before anybody uses them, so partitions begin
    where they began and groups stand where they stood.
    """
    return Call(
        method="POST",
        path=path("admin", "backup", backup_id, "restore"),
        decode=json_of(BackupRestored),
        body=body_of(skip_existing=skip_existing, data_follows=data_follows),
    )


def begin_whole() -> Call[WholeBackup]:
    """Begin to copy all that the node holds, as of now: see `list_whole` for how far it is."""
    return Call(method="POST", path="/admin/backup/whole", decode=json_of(WholeBackup), is_repeatable=False)


def list_whole() -> Call[list[WholeBackup]]:
    """All whole backups, the newest first; before them the one that is being made, or failed last."""
    decode = json_of(wire.WholeBackupList[datetime])
    return Call(method="GET", path="/admin/backup/whole", decode=lambda reply: decode(reply).backups)


def delete_whole(backup_id: str) -> Call[None]:
    """Delete a whole backup, with what no other refers to."""
    return Call(
        method="DELETE",
        path=path("admin", "backup", "whole", backup_id),
        decode=lambda _: None,
        is_repeatable=False,
    )
