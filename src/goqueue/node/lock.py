"""One broker a data folder: a lock that dies with its process.

The lock is the kernel's (flock on goqueue.lock), so a killed broker leaves none behind. The process id
is kept in a file of its own, goqueue.pid, for the message a second broker gives and for people's scripts.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from goqueue.model.ports import is_disk_full

LOCK_FILE = "goqueue.lock"
PID_FILE = "goqueue.pid"


class FolderInUse(Exception):
    """Another broker works on this data folder."""

    def __init__(self, folder: Path, pid: str) -> None:
        owner = f"process {pid}" if pid else "another process"
        super().__init__(
            f"data folder {folder} is in use by {owner}; "
            "stop that broker first, or give this one another folder (GOQUEUE_BROKER_DATADIR)"
        )
        self.folder = folder
        self.pid = pid


class FolderLock:
    """Holds a data folder, creating it when absent, for as long as the `with` block lasts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> "FolderLock":
        self._folder.mkdir(exist_ok=True, mode=0o750)
        descriptor = os.open(self._folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FolderInUse(self._folder, self._owner()) from None
        self._descriptor = descriptor
        try:
            (self._folder / PID_FILE).write_text(f"{os.getpid()}\n", encoding="ascii")
        except OSError as error:
            # Only people read it: a full disk is no reason not to start.
            if not is_disk_full(error):
                os.close(descriptor)
                raise
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        (self._folder / PID_FILE).unlink(missing_ok=True)
        # The lock file itself stays: removing it would let a third broker lock a new one of the same name
        # while a second still holds the old.
        os.close(self._descriptor)

    def _owner(self) -> str:
        try:
            return (self._folder / PID_FILE).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""
