"""fdatasync done by a worker of the kernel, which tells the loop: nobody's thread waits for the disk.

Linux takes the order by `io_submit` at once and writes to an eventfd when it is done. A commit then costs the
loop one call to order it and one wake-up, where a thread costs two hand-overs, each with a fight for the
interpreter's lock. The calls have no wrapper in libc, so they go by their numbers. Where they are missing
(another system, a sandbox that refuses them) `open_kernel_syncs` says so, and threads do the work as before.
"""

import asyncio
import ctypes
import logging
import os
import platform
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

log = logging.getLogger(__name__)
_DEPTH = 16
"""So many syncs may be under way at once; there is one commit log, so more than one is rare."""
_DATA_SYNC = 3
_TELL_BY_EVENTFD = 1


class _Numbers(NamedTuple):
    """What the calls are called in the kernel."""

    setup: int
    destroy: int
    get_events: int
    submit: int


_NUMBERS = {"x86_64": _Numbers(206, 207, 208, 209), "aarch64": _Numbers(0, 1, 4, 2)}


class _Order(ctypes.Structure):
    """`struct iocb`, as machines with the low byte first lay it out."""

    _fields_ = (
        ("number", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("call_flags", ctypes.c_int32),
        ("what", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("position", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("told_by", ctypes.c_uint32),
    )


class _Done(ctypes.Structure):
    """`struct io_event`."""

    _fields_ = (
        ("number", ctypes.c_uint64),
        ("order", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result_2", ctypes.c_int64),
    )


class KernelSyncs:
    """For use from one loop, and closed before it ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[..., int], numbers: _Numbers) -> None:
        self.loop = loop
        self._call = call
        self._numbers = numbers
        self._context = ctypes.c_ulong(0)
        self._checked(call(numbers.setup, _DEPTH, ctypes.byref(self._context)))
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._orders = [
            _Order(what=_DATA_SYNC, flags=_TELL_BY_EVENTFD, told_by=self._event) for _ in range(_DEPTH)
        ]
        self._addresses = [(ctypes.c_void_p * 1)(ctypes.addressof(order)) for order in self._orders]
        self._free = list(range(_DEPTH))
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._done = (_Done * _DEPTH)()
        for number, order in enumerate(self._orders):
            order.number = number
        loop.add_reader(self._event, self._tell)

    @property
    def is_busy(self) -> bool:
        return not self._free

    def begin(self, descriptor: int) -> "asyncio.Future[None]":
        """Done when all that was written to a file before is on the disk. Raises OSError when not taken."""
        number = self._free.pop()
        self._orders[number].descriptor = descriptor
        try:
            self._checked(self._call(self._numbers.submit, self._context, _ONE, self._addresses[number]))
        except OSError:
            self._free.append(number)
            raise
        done = self._waiting[number] = self.loop.create_future()
        return done

    def _tell(self) -> None:
        os.eventfd_read(self._event)
        count = self._checked(
            self._call(self._numbers.get_events, self._context, _NONE, _DEPTH_LONG, self._done, None)
        )
        for event in self._done[:count]:
            self.end(event.number, event.result)

    def end(self, number: int, result: int) -> None:
        """The kernel tells what came of an order: 0, or the number of an error below it."""
        self._free.append(number)
        done = self._waiting.pop(number)
        if done.cancelled():
            return
        if result < 0:
            done.set_exception(OSError(-result, os.strerror(-result)))
        else:
            done.set_result(None)

    def close(self) -> None:
        """Wait for what is under way, and end."""
        if not self.loop.is_closed():
            self.loop.remove_reader(self._event)
        self._call(self._numbers.destroy, self._context)
        os.close(self._event)

    def _checked(self, result: int) -> int:
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return result


_ONE = ctypes.c_long(1)
_NONE = ctypes.c_long(0)
_DEPTH_LONG = ctypes.c_long(_DEPTH)


def open_kernel_syncs(loop: asyncio.AbstractEventLoop) -> KernelSyncs | None:
    """None where the kernel does not take such orders."""
    numbers = _NUMBERS.get(platform.machine())
    if sys.platform != "linux" or numbers is None:
        return None
    # Not one of these calls waits, but `destroy` at the very end: to let go of the interpreter's lock for
    # them would cost more than they do.
    call: Any = ctypes.PyDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    try:
        return KernelSyncs(loop, call, numbers)
    except OSError as error:
        log.info("kernel_syncs_missing reason=%s", error)
        return None
