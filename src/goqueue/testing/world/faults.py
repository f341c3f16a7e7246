"""What can go wrong with a simulated disk, and when: the simulation sets the faults, the disk meets them."""

import errno
import os
from collections.abc import Callable


class PowerCut(BaseException):
    """The power fails in the middle of a call. No error of the house: nobody may catch it and go on."""


class Faults:
    """Faults that lie ahead. A fault strikes once and is then forgotten."""

    def __init__(self) -> None:
        self.capacity_bytes: int | None = None
        """The disk is full when its files hold so many bytes; None: never."""
        self._changes_left: int | None = None
        self._on_power_cut: Callable[[], None] | None = None
        self._failing_syncs: list[str] = []
        self._failing_reads: list[str] = []
        self._pause: Callable[[], None] | None = None

    def cut_power(self, *, after_changes: int, on_power_cut: Callable[[], None] | None = None) -> None:
        """Let so many more changes through, and cut the power before the next."""
        self._changes_left = after_changes
        self._on_power_cut = on_power_cut
        self._tell_power_cut()

    def fail_syncs(self, count: int = 1, *, under: str = "") -> None:
        """Let the next syncs of files below a folder fail with EIO, as often as told."""
        self._failing_syncs += [under] * count

    def fail_reads(self, count: int = 1, *, under: str = "") -> None:
        """Let the next reads of files below a folder fail with EIO, as often as told."""
        self._failing_reads += [under] * count

    def slow_syncs(self, pause: Callable[[], None]) -> None:
        """Let each sync take as long as `pause` does, until the faults heal."""
        self._pause = pause

    def heal(self) -> None:
        """Forget the faults that have not struck yet. What is spoilt stays spoilt."""
        self.capacity_bytes = None
        self._changes_left = None
        self._pause = None
        self._failing_syncs.clear()
        self._failing_reads.clear()

    def forget(self, folder: str) -> None:
        """The files below a folder are gone, and with them the faults that awaited them."""
        for failing in (self._failing_syncs, self._failing_reads):
            failing[:] = [under for under in failing if not under.startswith(f"{folder}/")]

    @property
    def has_power(self) -> bool:
        return self._changes_left != 0

    def meet_change(self) -> None:
        if self._changes_left == 0:
            raise PowerCut
        if self._changes_left is not None:
            self._changes_left -= 1
            self._tell_power_cut()

    def meet_sync(self, path: str) -> None:
        if self._pause is not None:
            self._pause()
        _strike(self._failing_syncs, path)

    def meet_read(self, path: str) -> None:
        _strike(self._failing_reads, path)

    def _tell_power_cut(self) -> None:
        if self._changes_left == 0 and self._on_power_cut is not None:
            self._on_power_cut()


def failure(number: int, path: str) -> OSError:
    """An error as the OS would raise it."""
    return OSError(number, os.strerror(number), path)


def _strike(failing: list[str], path: str) -> None:
    for under in failing:
        if path.startswith(under):
            failing.remove(under)
            raise failure(errno.EIO, path)
