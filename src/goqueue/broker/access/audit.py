"""The audit log: who was refused, who changed what, in files of lines that hold each other.

Whoever has something to say puts it into a bounded queue, and never waits. One task writes what is there,
in a thread; when the queue was full it says how much was left out, so that a gap shows. A file that is full
is followed by another, and the oldest goes.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from goqueue.core.access.audit_chain import Chain, last_link
from goqueue.model.audit import AuditEvent
from goqueue.model.ports import Clock, Disk, Threads
from goqueue.model.settings import AuditConfig

log = logging.getLogger(__name__)
FOLDER = "audit"
SUFFIX = ".jsonl"
QUEUE_MAX = 10_000
"""So many events wait to be written at most; what comes beyond is counted."""
_PIECE = 500
_PAUSE_S = 0.2


class Published(Protocol):
    """The lines as a topic."""

    published: int
    dropped: int

    async def drain(self) -> None: ...


class AuditLog:
    def __init__(self, config: AuditConfig, node: str, *, disk: Disk, clock: Clock, threads: Threads) -> None:
        self._config = config
        self._node = node
        self._disk = disk
        self._clock = clock
        self._threads = threads
        self._waiting: deque[tuple[int, AuditEvent]] = deque()
        self._wanted = asyncio.Event()
        self._writing = asyncio.Lock()
        self._chain = Chain()
        self._path = ""
        self.written = 0
        self.dropped = 0
        """Events that nobody will read of: the queue was full."""
        self._dropped_told = 0
        self.on_written: Callable[[Sequence[bytes]], None] = lambda _: None
        """Hears the lines that are in the files now."""
        self.topic: Published | None = None
        """Who publishes them; None: nobody."""

    @property
    def is_on(self) -> bool:
        return self._config.is_on

    def note(self, event: AuditEvent) -> None:
        """Have something written down, soon."""
        if not self._config.is_on:
            return
        if len(self._waiting) >= QUEUE_MAX:
            self.dropped += 1
            return
        self._waiting.append((self._clock.wall_ms(), event))
        self._wanted.set()

    async def open(self) -> None:
        """Go on where the last life of the node has ended."""
        if self._config.is_on:
            await self._threads.run(self._find_end)

    async def write_on(self) -> None:
        """Write what comes, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.drain()
            except OSError as error:
                log.warning("audit_not_written reason=%s", error)
                self._wanted.set()
                await asyncio.sleep(_PAUSE_S)

    async def close(self) -> None:
        """Write what was said before the end."""
        try:
            await self.drain()
        except OSError as error:
            log.warning("audit_not_written reason=%s", error)

    async def drain(self) -> None:
        """Return when all is written that was said before."""
        async with self._writing:
            await self._drain()

    async def _drain(self) -> None:
        while self._waiting or self.dropped > self._dropped_told:
            taken = min(len(self._waiting), _PIECE)
            piece = [self._waiting[at] for at in range(taken)]
            dropped = self.dropped
            if dropped > self._dropped_told:
                left_out = dropped - self._dropped_told
                event = AuditEvent("audit_dropped", "", "", "audit log", f"{left_out} events were left out")
                piece.append((self._clock.wall_ms(), event))
            self._chain, lines = await self._threads.run(self._write, piece)
            self.on_written(lines)
            self.written += len(piece)
            self._dropped_told = dropped
            for _ in range(taken):  # and none of those that have come meanwhile
                self._waiting.popleft()

    def _write(self, piece: list[tuple[int, AuditEvent]]) -> tuple[Chain, list[bytes]]:
        """In a thread: all of a piece, or an error; what a crash tears is cut off when it is opened again."""
        chain = Chain(self._chain.number, self._chain.digest)
        first = chain.number + 1
        lines = [chain.link(event, time=_written(time_ms), node=self._node) for time_ms, event in piece]
        path = self._path or self._begin_file(first)
        file = self._disk.open(path)
        try:
            size = file.size()
            try:
                file.append([line + b"\n" for line in lines])
            except OSError:
                file.truncate(size)  # it is written once more as a whole
                raise
            file.sync()
            size = file.size()
        finally:
            file.close()
        self._path = path if size < self._config.file_bytes else ""
        if not self._path:
            self._remove_old()
        return chain, lines

    def _begin_file(self, first: int) -> str:
        self._disk.make_folder(FOLDER)
        return f"{FOLDER}/{first:020d}{SUFFIX}"

    def _remove_old(self) -> None:
        names = [name for name in self._disk.list(FOLDER) if name.endswith(SUFFIX)]
        for name in names[: max(len(names) - self._config.files_max, 0)]:
            self._disk.remove(f"{FOLDER}/{name}")

    def _find_end(self) -> None:
        names = [name for name in self._disk.list(FOLDER) if name.endswith(SUFFIX)]
        for name in reversed(names):
            path = f"{FOLDER}/{name}"
            whole, torn, rest = (self._disk.read_whole(path) or b"").rpartition(b"\n")
            if rest:
                log.warning("audit_log_torn path=%s bytes=%d", path, len(rest))
                self._disk.replace(path, whole + torn)
            if whole:
                try:
                    self._chain = last_link(whole.rpartition(b"\n")[2])
                except ValueError:
                    log.warning("audit_log_broken path=%s", path)
                return


def _written(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
