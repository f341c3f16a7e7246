"""Space kept back on the data disk, so that a full disk does not lock out those who would make room.

To start, to delete a topic and to apply retention the broker must first write a little: an epoch, an event,
a recovery point. On a disk without a free byte none of that would succeed, and it would stay full. So a file
of the broker's own holds some space, and gives it up for as long as such work takes.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from goqueue.model.ports import Disk, Threads, is_disk_full
from goqueue.model.settings import KiB

log = logging.getLogger(__name__)

RESERVE_FILE = "reserve"
_PIECE_BYTES = 64 * KiB


class Reserve:
    """A file that is there only to be removed. Of 0 bytes it is none."""

    def __init__(self, disk: Disk, threads: Threads, *, size_bytes: int) -> None:
        self._disk = disk
        self._threads = threads
        self._size_bytes = size_bytes
        self._borrowers = 0

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Within it even a full disk has some room; what is left of it is taken back behind."""
        if not self._size_bytes:
            yield
            return
        self._borrowers += 1
        try:
            await self._threads.run(self._give_up_if_short)
            yield
        finally:
            self._borrowers -= 1
            if not self._borrowers:
                await self._threads.run(self._take)

    def _give_up_if_short(self) -> None:
        try:
            if self._disk.space().free_bytes < self._size_bytes:
                self._disk.remove(RESERVE_FILE)
        except OSError as error:
            # Whoever borrows may not need it, and hears of a bad disk soon enough.
            log.warning("reserve_not_lent reason=%s", error)

    def _take(self) -> None:
        """Fill the file up to its size, or as far as the disk lets us."""
        # Bytes that no file system can make smaller: a reserve of zeros might hold no space at all.
        chance = Random(0)
        try:
            file = self._disk.open(RESERVE_FILE)
            try:
                while (missing := self._size_bytes - file.size()) > 0:
                    file.append([chance.randbytes(min(missing, _PIECE_BYTES))])
                file.sync()
            finally:
                file.close()
        except OSError as error:
            if not is_disk_full(error):
                log.warning("reserve_not_taken reason=%s", error)
