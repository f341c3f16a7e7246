"""How far a job has come: a bar on a terminal, a line now and then elsewhere."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class _Counted(msgspec.Struct):
    """What rows of manifests have in common; each kind tells its messages under one of these names."""

    rows: int = 0
    messages: int = 0
    files: list[msgspec.Raw] = []


class JobProgress:
    """Hears what a job plans and does, and counts along."""

    def __init__(self, name: str, bar: Progress | None) -> None:
        self._name = name
        self._bar = bar
        self._task = None if bar is None else bar.add_task(name, total=None)
        self.items_total = 0
        self.items = 0
        self.messages = 0

    def planned(self, items: int, messages: int) -> None:
        """The job is about to begin."""
        self.items_total = items
        about = f", about {messages:,} messages" if messages else ""
        self._tell(f"{items:,} pieces to do{about}")

    def told(self, items: int, rows: Sequence[bytes]) -> None:
        """A wave of items is done."""
        self.items += items
        self.messages += sum(map(_messages, rows))
        self._tell(f"{self.items:,} of {self.items_total:,} pieces done, {self.messages:,} messages")

    def _tell(self, text: str) -> None:
        if self._bar is None:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)
            return
        assert self._task is not None
        self._bar.update(
            self._task,
            total=self.items_total,
            completed=self.items,
            description=f"{self._name}  {self.messages:,} messages",
        )


@contextmanager
def job_progress(name: str) -> Iterator[JobProgress]:
    """Progress on standard error, so that answers on standard output stay clean."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield JobProgress(name, None)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        yield JobProgress(name, bar)


def _messages(row: bytes) -> int:
    counted = msgspec.json.decode(row, type=_Counted)
    if counted.files:
        return sum(msgspec.json.decode(file, type=_Counted).rows for file in counted.files)
    return counted.rows or counted.messages
