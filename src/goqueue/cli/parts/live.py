"""A picture that is drawn anew until its user has seen enough and presses `q` or Ctrl-C."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from goqueue.model.errors import Unavailable

Sample = TypeVar("Sample")
Pause = Callable[[float], bool]
"""Waits for so many seconds; true when the user has seen enough."""


def watch(
    take: Callable[[], Sample],
    draw: Callable[[Sample], RenderableType],
    tell: Callable[[Sample], None],
    *,
    interval_s: float,
    on_screen: bool,
    pause: Pause | None = None,
) -> None:
    """Take a sample again and again: drawn in one place on a screen, told one behind the other elsewhere."""
    try:
        with keyboard() as waiting:
            if on_screen:
                _draw_on_screen(take, draw, interval_s, pause or waiting)
            else:
                _tell_each(take, tell, interval_s, pause or waiting)
    except KeyboardInterrupt:
        # The usual way to end it, and no failure.
        return


def _draw_on_screen(
    take: Callable[[], Sample], draw: Callable[[Sample], RenderableType], interval_s: float, pause: Pause
) -> None:
    # Before the screen is taken: a broker that was never there is an error like any other.
    last = take()
    with Live(draw(last), console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        live.refresh()
        while not pause(interval_s):
            try:
                last = take()
                live.update(draw(last), refresh=True)
            except Unavailable as problem:
                # Who watches a broker wants to see it come back.
                live.update(Group(draw(last), Text(f"{problem}", style="red")), refresh=True)


def _tell_each(
    take: Callable[[], Sample], tell: Callable[[Sample], None], interval_s: float, pause: Pause
) -> None:
    has_begun = False
    while True:
        try:
            tell(take())
            has_begun = True
        except Unavailable as problem:
            if not has_begun:
                raise
            print(problem, file=sys.stderr)
        # Whoever reads along in a pipe is to see it now.
        sys.stdout.flush()
        if pause(interval_s):
            return


@contextmanager
def keyboard() -> Iterator[Pause]:
    """A pause that a pressed `q` ends, where there is a keyboard."""
    if not sys.stdin.isatty():
        yield _sleep
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    # Keys come one by one and are not shown; Ctrl-C stays Ctrl-C.
    tty.setcbreak(descriptor)
    try:
        yield _wait_for_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _wait_for_key(seconds: float) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        readable, _, _ = select.select([sys.stdin], [], [], left)
        # Nothing to read though it is readable: the terminal is gone.
        if readable and ((keys := os.read(sys.stdin.fileno(), 64)) == b"" or b"q" in keys.lower()):
            return True
    return False
