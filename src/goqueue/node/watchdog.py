"""Ends a process whose loop no longer turns, so that a supervisor can start it anew (ADR 29).

While C code holds the interpreter no line of Python runs, in no thread; so nothing here is Python once a
timer has run out. The kernel keeps the timers, and the handlers of their signals are functions of libc:

    beat ──1 s──▶ beat ──1 s──▶ beat …                 each winds the first timer up again
    silence ──▶ SIGUSR2: alarm(12) ──▶ SIGALRM: stacks to standard error, _exit(14)

The second timer runs only from the first one's signal on. A process that was stopped, frozen or moved for
an hour finds its first timer run out when it goes on; then the loop has twelve seconds for one beat. And
the first timer repeats: should nobody read standard error, the second SIGALRM ends the process without
waiting for the stacks to be written.
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import signal
import sys
import time
from collections.abc import AsyncIterator

EXIT_CODE = int(signal.SIGALRM)
"""`_exit` is the handler of the last signal, and what a handler is handed is the signal's number."""
SECOND_CHANCE_MS = int(signal.SIGUSR2) * 1_000
"""For the same reason: `alarm` is handed the number of its signal, as seconds."""
_AGAIN_S = 2 * int(signal.SIGUSR2)
"""Later than the alarm that the first signal has set, or it would be put off each time."""
_BEAT_S = 1.0
_IS_LINUX = sys.platform == "linux"
_MS_PER_S = 1_000
_NS_PER_MS = 1_000_000


class _Notice(ctypes.Structure):
    """libc's `struct sigevent`, of 64 bytes: which signal a timer sends."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal_number", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("unused", ctypes.c_char * (64 - ctypes.sizeof(ctypes.c_void_p) - 2 * ctypes.sizeof(ctypes.c_int))),
    )


class _Times(ctypes.Structure):
    """libc's `struct itimerspec`: how often after the first time, and when first."""

    _fields_ = (
        ("again_s", ctypes.c_long),
        ("again_ns", ctypes.c_long),
        ("first_s", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class LoopWatchdog:
    """Wound up by `beat`; whoever stops to beat is ended after `stuck_ms`. One a process."""

    def __init__(self, *, stuck_ms: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        assert stuck_ms > SECOND_CHANCE_MS, (
            "the settings refuse a time that leaves nothing to the first timer"
        )
        seconds, rest_ms = divmod(stuck_ms - SECOND_CHANCE_MS, _MS_PER_S)
        self._wound_up = _Times(_AGAIN_S, 0, seconds, rest_ms * _NS_PER_MS)

    def start(self) -> None:
        """Raises OSError when the system has no timer left."""
        self._libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._libc.signal.restype = ctypes.c_void_p
        for number, handler in ((signal.SIGUSR2, self._libc.alarm), (signal.SIGALRM, self._libc._exit)):
            self._libc.signal(number, ctypes.cast(handler, ctypes.c_void_p))
        # The stacks are written first; the handler that stood there before is called next.
        faulthandler.register(signal.SIGALRM, file=sys.stderr, all_threads=True, chain=True)
        notice = _Notice(None, signal.SIGUSR2, 0, b"")
        made = self._libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(notice), ctypes.byref(self._timer))
        self._check(made)
        self.beat()

    def beat(self) -> None:
        """The loop turns."""
        self._wind(self._wound_up)

    def stop(self) -> None:
        """From now on nobody is ended."""
        self._wind(_Times(0, 0, 0, 0))

    def _wind(self, times: _Times) -> None:
        self._check(self._libc.timer_settime(self._timer, 0, ctypes.byref(times), None))
        self._libc.alarm(0)

    def _check(self, answer: int) -> None:
        if answer:
            number = ctypes.get_errno()
            raise OSError(number, "the loop's timer cannot be set")


@contextlib.asynccontextmanager
async def watched_loop(*, stuck_ms: int) -> AsyncIterator[None]:
    """While this lasts, a loop that does not turn for `stuck_ms` ends the process. 0: it does not."""
    if not stuck_ms or not _IS_LINUX:
        # Elsewhere libc has no such timers; a watchdog that ends what was only stopped is worse than none.
        yield
        return
    watchdog = LoopWatchdog(stuck_ms=stuck_ms)
    watchdog.start()
    beating = asyncio.create_task(_beat(watchdog))
    try:
        yield
    finally:
        beating.cancel()
        watchdog.stop()


async def _beat(watchdog: LoopWatchdog) -> None:
    while True:
        await asyncio.sleep(_BEAT_S)
        watchdog.beat()
