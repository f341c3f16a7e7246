"""What is removed while somebody still reads it: a second name for each file, before the first one goes.

A backup copies the files of one moment, while the broker goes on: retention removes segments, checkpoints
replace each other, topics are deleted. Nobody waits for the backup. Threads call this as they please.
"""

import itertools
import os
from pathlib import Path
from threading import Lock


class KeptFiles:
    """The first file that went from each path."""

    def __init__(self, root: Path, folder: str) -> None:
        self.folder = folder
        self._root = root
        self._numbers = itertools.count(1)
        self._lock = Lock()
        self._names: dict[str, str] = {}
        self._failure: OSError | None = None

    def keep(self, path: str) -> None:
        """It goes now. Never raises: who removes it has nothing to do with who wants it."""
        with self._lock:
            if path in self._names or path.startswith(f"{self.folder}/"):
                return
            kept = f"{self.folder}/{next(self._numbers):06}"
            try:
                os.link(self._root / path, self._root / kept)
            except FileNotFoundError:
                return
            except OSError as error:
                self._failure = error
                return
            self._names[path] = kept

    def keep_tree(self, folder: str) -> None:
        """The same for all files below a folder; for a file it is that file."""
        path = self._root / folder
        if path.is_file():
            self.keep(folder)
        for parent, _, names in os.walk(path):
            below = Path(parent).relative_to(self._root).as_posix()
            for name in names:
                self.keep(f"{below}/{name}")

    def names(self) -> dict[str, str]:
        """By the path from which it went. Raises OSError where one could not be kept."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return dict(self._names)
