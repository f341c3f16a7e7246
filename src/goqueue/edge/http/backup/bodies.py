"""The JSON of backups."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from goqueue.wire.backups import BackupRestored


class CreateBackupBody(Struct):
    """What to keep; without a body everything is."""

    include_topics: bool = True
    include_offsets: bool = True
    include_schemas: bool = True
    include_config: Annotated[bool, Meta(description="The broker's settings, to be looked at.")] = True


class RestoreBody(Struct):
    skip_existing: Annotated[
        bool, Meta(description="Leave what is there and differs as it is, instead of refusing.")
    ] = False
    data_follows: Annotated[
        bool,
        Meta(
            description="Messages will be restored into the topics before anybody uses them: partitions "
            "begin where they began, not where they ended, and groups stand where they stood."
        ),
    ] = False


class BackupDeleted(Struct):
    backup_id: str
    message: str
    success: Literal[True] = True


class RestoredBody(BackupRestored, frozen=True, kw_only=True):
    """What a restore has brought back, and what it has left as it was, in words."""

    message: str
    success: Literal[True] = True
