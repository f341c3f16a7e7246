"""Whether a data folder was ever worked on: then the metadata journal must be in it.

That journal is made first, and safely, before anything else is written. So a folder that holds logs, or what
only a broker at work leaves beside them, and no metadata, has lost something: a broker that began anew there
would say that all is well. Empty folders, the lock and the reserve tell nothing, nor do backups, which people
copy to where a new broker is to restore them; nor does any file that is not the broker's.
"""

from goqueue.log.commit_log import COMMIT_FOLDER, is_commit_file
from goqueue.log.segment import LOG_SUFFIX
from goqueue.log.snapshot import SUFFIX as SNAPSHOT_SUFFIX
from goqueue.model.ports import Disk

LOGS_FOLDER = "logs"
DELAYS_FOLDER = "delays"
STAGES_FOLDER = "stages"
CHECKPOINT_FILE = "checkpoint"


def has_logs(disk: Disk) -> bool:
    """Whether partitions lie in the data folder. Waits for the disk."""
    return any(
        name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX))
        for topic in disk.list(LOGS_FOLDER)
        for partition in disk.list(f"{LOGS_FOLDER}/{topic}")
        for name in disk.list(f"{LOGS_FOLDER}/{topic}/{partition}")
    )


def left_beside_logs(disk: Disk) -> str:
    """A file beside the logs that a broker at work has left; empty: there is none. Waits for the disk."""
    for name in disk.list(COMMIT_FOLDER):
        if is_commit_file(name):
            return f"{COMMIT_FOLDER}/{name}"
    if CHECKPOINT_FILE in disk.list(DELAYS_FOLDER):
        return f"{DELAYS_FOLDER}/{CHECKPOINT_FILE}"
    return ""


def is_used(disk: Disk) -> bool:
    """Whether a broker has worked on this data folder before. Waits for the disk."""
    return has_logs(disk) or bool(left_beside_logs(disk))
