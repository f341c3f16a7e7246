"""A helper process: takes one job after the other from the broker, and never outlives it.

It is started by `node/workshop.py` with a socket. A job is the name of a function and bytes for it. Whatever
a job does, the kernel ends it: at a limit of CPU time (a timer whose signal nobody handles, so that it works
inside a library in C too), at one of memory, and with the broker.
"""

import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from struct import Struct

REQUEST_HEAD = Struct(">IHI")
"""CPU time in ms, lengths of the job's name and of its bytes."""
REPLY_HEAD = Struct(">BBI")
"""How it ended, whether this process is used up, length of what follows."""
DONE, OUT_OF_MEMORY, RAISED = range(3)
WALL_FACTOR = 10
"""A job that waits for a busy machine may take so much longer by the clock than it takes CPU time."""
READY = b"+"
_PR_SET_PDEATHSIG = 1
_NICENESS = 2
"""Whoever is served goes before those who ask for heavy work."""
_USED_UP = 0.5
"""Of its memory: what libraries keep adds up, and the next job should find room."""


def main() -> None:
    descriptor, memory_bytes, parent = map(int, sys.argv[1:4])
    _end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for the broker, which ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # not every system can
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(_NICENESS)
    # A broker that was killed is nobody to complain to.
    with suppress(ConnectionError), socket.socket(fileno=descriptor) as connection:
        connection.sendall(READY)
        while (head := _receive(connection, REQUEST_HEAD.size)) is not None:
            limit_ms, name_length, length = REQUEST_HEAD.unpack(head)
            words = _receive(connection, name_length + length)
            if words is None:
                return
            status, body = _work(words[:name_length].decode(), words[name_length:], limit_ms)
            connection.sendall(REPLY_HEAD.pack(status, _is_used_up(memory_bytes), len(body)) + body)


def _work(name: str, request: bytes, limit_ms: int) -> tuple[int, bytes]:
    try:
        job = _job(name)
        signal.setitimer(signal.ITIMER_PROF, limit_ms / 1_000)
        signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * limit_ms / 1_000)
        return DONE, job(request)
    except MemoryError:
        return OUT_OF_MEMORY, b""
    except Exception as error:  # whatever it is, the broker is told; the next job has nothing to do with it
        return RAISED, f"{type(error).__name__}: {error}"[:1_000].encode()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


@cache
def _job(name: str) -> Callable[[bytes], bytes]:
    """A function by its module and name. Importing it does not count as part of the first job."""
    module, _, function = name.partition(":")
    found: Callable[[bytes], bytes] = getattr(import_module(module), function)
    return found


def _end_with(parent: int) -> None:
    """See to it that the kernel ends this process with the broker, however that ends.

    Where the kernel cannot, the end of the socket and the limits of a job do it a little later.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before that was arranged
        os._exit(0)


def _is_used_up(memory_bytes: int) -> bool:
    return _held_bytes() > memory_bytes * _USED_UP


def _held_bytes() -> int:
    """What this process holds now.

    The most it ever held, as getrusage tells, begins on Linux with what the broker held that started it.
    """
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _receive(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None when the broker has let go of its end."""
    received = bytearray(size)
    view = memoryview(received)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            return None
        view = view[count:]
    return bytes(received)


if __name__ == "__main__":
    main()
