"""Errors about backups."""

from collections.abc import Sequence

from goqueue.model.errors.families import Busy, NotFound


class BackupNotFound(NotFound):
    """There is no backup of that id."""

    code = "backup_not_found"

    def __init__(self, backup_id: str) -> None:
        super().__init__(f"there is no backup {backup_id}; `goqueue-admin backup list` shows those there are")
        self.backup_id = backup_id


class BackupExists(Busy):
    """A backup of that id is kept already."""

    code = "backup_exists"

    def __init__(self, backup_id: str) -> None:
        super().__init__(f"there is a backup {backup_id} already; delete it first")
        self.backup_id = backup_id


class BackupUnderWay(Busy):
    """A whole backup is being made: there is one at a time."""

    code = "backup_under_way"


class RestoreConflict(Busy):
    """A backup speaks of things that are here already and are different. Nothing was changed."""

    code = "restore_conflict"

    def __init__(self, backup_id: str, conflicts: Sequence[str]) -> None:
        super().__init__(
            f"backup {backup_id} was not restored, and nothing was changed: {'; '.join(conflicts)}. "
            "Leave these as they are with skip_existing, or take them away first"
        )
        self.backup_id = backup_id
        self.conflicts = tuple(conflicts)
