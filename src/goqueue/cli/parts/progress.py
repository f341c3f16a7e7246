"""How far long work has come: a bar on standard error where that is a terminal, and silence elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bar:
    """Hears how much has been done."""

    def __init__(self, bar: Progress | None = None, task: TaskID | None = None) -> None:
        self._bar = bar
        self._task = task

    @property
    def is_shown(self) -> bool:
        """Whether anybody sees it: what only the bar wants to know need not be asked otherwise."""
        return self._bar is not None

    def advance(self, amount: int, note: str) -> None:
        """So much more of the total is done."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=amount, description=note)

    def expect(self, total: int) -> None:
        """So much is there to do in all."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=total)


@contextmanager
def progress(note: str, total: int | None = None) -> Iterator[Bar]:
    """A bar for as long as the work takes. It goes away at the end: what came of it is told elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Bar()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Bar(bar, bar.add_task(note, total=total))
