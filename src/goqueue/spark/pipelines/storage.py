"""The folder in which pipelines keep what they know: checkpoints, status, and what people ask of them.

    {storage}/{pipeline}/{sink}/           the checkpoint of one query
    {storage}/{pipeline}/.status.json      what the driver last said; replaced as a whole
    {storage}/{pipeline}/.stop             while it is there, the pipeline rests
    {storage}/{pipeline}/.reset            sinks to begin anew; the driver removes it when that is done
    {storage}/{pipeline}/.lock             locked by the driver for as long as it lives

Driver and command line meet here and nowhere else, so either may be killed at any moment.
"""

import fcntl
import os
import shutil
from collections.abc import Collection
from pathlib import Path

import msgspec

from goqueue.model.errors import Busy, NotFound
from goqueue.spark.pipelines.status import PipelineStatus

DEFAULT_STORAGE = "goqueue-pipelines"
_status_decoder = msgspec.json.Decoder(PipelineStatus)
_reset_decoder = msgspec.json.Decoder(list[str])


class Storage:
    """All pipelines that have ever run here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def pipeline(self, name: str) -> "PipelineFolder":
        return PipelineFolder(self.folder / name)

    def known(self, name: str) -> "PipelineFolder":
        """The folder of a pipeline that has run here."""
        found = self.pipeline(name)
        if not found.path.is_dir():
            names = ", ".join(self.names()) or "none"
            raise NotFound(f"no pipeline {name} has run with {self.folder} (there is {names})")
        return found

    def names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        return sorted(each.name for each in self.folder.iterdir() if each.is_dir())


class PipelineFolder:
    """What is kept of one pipeline."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._status = path / ".status.json"
        self._stop = path / ".stop"
        self._reset = path / ".reset"

    def checkpoint(self, sink_id: str) -> Path:
        return self.path / sink_id

    def sink_ids(self) -> list[str]:
        """The sinks that have a checkpoint."""
        return sorted(each.name for each in self.path.iterdir() if each.is_dir())

    def read_status(self) -> PipelineStatus | None:
        try:
            return _status_decoder.decode(self._status.read_bytes())
        except FileNotFoundError:
            return None

    def write_status(self, status: PipelineStatus) -> None:
        _replace(self._status, msgspec.json.encode(status))

    def ask_to_stop(self) -> None:
        _replace(self._stop, b"")

    def ask_to_start(self) -> None:
        self._stop.unlink(missing_ok=True)

    @property
    def is_to_rest(self) -> bool:
        return self._stop.exists()

    def ask_to_reset(self, sink_ids: Collection[str]) -> None:
        _replace(self._reset, msgspec.json.encode(sorted(sink_ids)))

    def asked_to_reset(self) -> list[str] | None:
        """The sinks that somebody wants to begin anew; None when nobody asked."""
        try:
            return _reset_decoder.decode(self._reset.read_bytes())
        except FileNotFoundError:
            return None

    def reset_is_done(self) -> None:
        self._reset.unlink(missing_ok=True)

    def forget(self, sink_ids: Collection[str]) -> None:
        """Delete checkpoints: their queries begin anew. Only for the one who holds the lock."""
        for sink_id in sink_ids:
            shutil.rmtree(self.checkpoint(sink_id), ignore_errors=True)


class PipelineLock:
    """Keeps two drivers from one checkpoint. The system takes it back from a process that was killed."""

    def __init__(self, folder: PipelineFolder) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether it is ours."""
        return self._descriptor is not None

    def take(self) -> None:
        """Take the lock, unless it is ours already; Busy tells who has it."""
        if self.is_held:
            return
        self._folder.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            status = self._folder.read_status()
            who = f"process {status.process_id}" if status else "another process"
            raise Busy(
                f"pipeline {self._folder.path.name} is being run by {who}; "
                f"`goqueue-cli pipeline stop {self._folder.path.name}` ends it"
            ) from None
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_running(folder: PipelineFolder) -> bool:
    """Whether a driver lives that holds the pipeline."""
    lock = PipelineLock(folder)
    try:
        lock.take()
    except Busy:
        return True
    lock.release()
    return False


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)
