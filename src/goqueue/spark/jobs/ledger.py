"""The manifest of a job: what is done, in one JSON file that is always whole.

A step that also commits somewhere else (a lake table, a sink) is noted twice: as pending before that
commit, and as done after it. A job that was killed in between asks the other side whether the epoch is
there, and so neither repeats nor loses it.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec

from goqueue.model.errors import Busy, Invalid
from goqueue.spark.lake.files import write_durably

VERSION = 1
Row = TypeVar("Row", bound=msgspec.Struct)


class _Step(msgspec.Struct, kw_only=True):
    """What one wave of work comes to."""

    epoch: int
    positions: dict[str, int]
    rows: list[msgspec.Raw]


class _Content(msgspec.Struct, kw_only=True):
    """The file."""

    version: int = VERSION
    id: str = msgspec.field(default_factory=lambda: uuid4().hex)
    """Tells this run of a job, however often it is resumed, from all others."""
    job: str
    about: dict[str, str]
    """What the job is about; a run about something else must not go on with this file."""
    epoch: int = -1
    positions: dict[str, int] = {}
    """How far the job has come in each of its inputs."""
    rows: list[msgspec.Raw] = []
    """One a work item."""
    pending: _Step | None = None


_decoder = msgspec.json.Decoder(_Content)


class Ledger:
    """The manifest of one job, open for its run."""

    def __init__(self, path: Path, content: _Content) -> None:
        self.path = path
        self._content = content

    @property
    def id(self) -> str:
        return self._content.id

    @property
    def positions(self) -> Mapping[str, int]:
        return self._content.positions

    @property
    def epoch(self) -> int:
        """The newest one that is done."""
        return self._content.epoch

    @property
    def pending_epoch(self) -> int | None:
        """One whose commit somewhere else may have happened."""
        return None if self._content.pending is None else self._content.pending.epoch

    def rows(self, kind: type[Row]) -> list[Row]:
        """What the items told."""
        return [msgspec.json.decode(row, type=kind) for row in self._content.rows]

    def pending_rows(self, kind: type[Row]) -> list[Row]:
        """What a step that may have happened is about."""
        step = self._content.pending
        return [] if step is None else [msgspec.json.decode(row, type=kind) for row in step.rows]

    def raw_rows(self) -> list[bytes]:
        """What the items told, as they told it."""
        return [bytes(row) for row in self._content.rows]

    def prepare(self, epoch: int, positions: Mapping[str, int], rows: Sequence[bytes]) -> None:
        """Note what is about to be committed somewhere else."""
        step = _Step(epoch=epoch, positions=dict(positions), rows=[msgspec.Raw(row) for row in rows])
        self._content.pending = step
        self.save()

    def finish(self, *, is_done: bool) -> None:
        """The pending step is done, or is forgotten."""
        step = self._content.pending
        assert step is not None, "nothing is pending"
        if is_done:
            self._content.epoch = step.epoch
            self._content.positions |= step.positions
            self._content.rows += step.rows
        self._content.pending = None
        self.save()

    def note(self, epoch: int, positions: Mapping[str, int], rows: Sequence[bytes]) -> None:
        """Note a step that this file alone commits."""
        self._content.pending = _Step(
            epoch=epoch, positions=dict(positions), rows=[msgspec.Raw(row) for row in rows]
        )
        self.finish(is_done=True)

    def save(self) -> None:
        """Write the file; it is whole at every moment."""
        write_durably(self.path, msgspec.json.encode(self._content), replace=True)


@contextmanager
def open_ledger(path: Path, *, job: str, about: Mapping[str, str]) -> Iterator[Ledger]:
    """The manifest of a job, begun if there is none; Busy while another run has it open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_CREAT | os.O_RDWR)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"another run works on {path}: wait for it, or stop it") from error
        content = _read(path) or _Content(job=job, about=dict(about))
        if (content.job, content.about) != (job, dict(about)):
            was = ", ".join(f"{name} {value}" for name, value in content.about.items())
            raise Invalid(f"{path} is the manifest of a job {content.job} with {was}: name another file")
        ledger = Ledger(path, content)
        # The id must be the same for the run that resumes this one, even if this one does nothing more.
        ledger.save()
        yield ledger
    finally:
        os.close(lock)


def read_ledger(path: Path) -> Ledger | None:
    """A manifest to look at; None where there is none."""
    content = _read(path)
    return None if content is None else Ledger(path, content)


def _read(path: Path) -> _Content | None:
    try:
        content = _decoder.decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Invalid(f"{path} is not the manifest of a job: {error}") from error
    if content.version != VERSION:
        raise Invalid(f"{path} is of version {content.version}; this one reads version {VERSION}")
    return content
