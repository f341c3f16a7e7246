"""Bytes between a socket and its link.

Messages are cut out of one scratch buffer that all connections share, since only one of them is ever being
read. One that is larger than what has arrived gets memory of its own and the socket is read straight into
it, so its frames go from the network to the disk without a copy; the start of a small one is put before
what comes next.
"""

import asyncio
import mmap
from collections.abc import Sequence
from typing import Protocol, cast

from goqueue.edge.peer.wire import HEAD, checked_head
from goqueue.model.ports import Buffer
from goqueue.model.settings import KiB, MiB

SCRATCH_BYTES = 256 * KiB
CARRIED_BYTES_MAX = 32 * KiB
"""A message up to this size is not read into memory of its own: a few bytes are copied instead."""
PLAIN_BYTES_MAX = 2 * MiB
"""What is larger takes memory only as its bytes arrive, whatever size the other side claims."""
WRITE_BUFFER_BYTES = MiB
"""With more than this unsent the socket is full, and messages wait in the outbox."""
_scratch = memoryview(bytearray(SCRATCH_BYTES))


class Receiver(Protocol):
    """What the bytes are for."""

    is_known: bool
    """Whether it is known who is at the other end."""

    def connect(self, pipe: "PeerProtocol") -> None: ...

    def receive(self, kind: int, number: int, body: memoryview, *, is_kept: bool) -> None:
        """A message came. `is_kept`: its body is nobody else's; otherwise it is gone when this returns.

        Raises Malformed, and then nothing more is received.
        """

    def fail(self, error: Exception) -> None:
        """What came could not be taken in; the connection is to be ended."""

    def hold(self) -> None:
        """The socket takes no more for now."""

    def go_on(self) -> None:
        """It does again."""

    def lose(self) -> None:
        """The connection has ended, whoever ended it."""


class PeerProtocol(asyncio.BufferedProtocol):
    """One socket of the peer door."""

    __slots__ = (
        "_carried",
        "_filled",
        "_head",
        "_is_ended",
        "_message",
        "_receiver",
        "_transport",
        "received",
    )

    _transport: asyncio.Transport

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._carried = b""
        self._message: memoryview | None = None
        self._head = (0, 0)
        self._filled = 0
        self._is_ended = False
        self.received = False
        """Whether any bytes came since somebody last set this to False."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._receiver.connect(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended = True
        self._message = None
        self._receiver.lose()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._message is not None:
            return self._message[self._filled :]
        if not self._carried:
            return _scratch
        _scratch[: len(self._carried)] = self._carried
        return _scratch[len(self._carried) :]

    def buffer_updated(self, nbytes: int) -> None:
        self.received = True
        try:
            self._take_in(nbytes)
        except Exception as error:
            self._receiver.fail(error)

    def eof_received(self) -> None:
        """A node that says nothing more is gone: the transport closes itself."""

    def pause_writing(self) -> None:
        self._receiver.hold()

    def resume_writing(self) -> None:
        self._receiver.go_on()

    def write(self, buffers: Sequence[Buffer]) -> None:
        if not self._is_ended:
            self._transport.writelines(buffers)

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    @property
    def address(self) -> str:
        """Where the other side is."""
        host, port, *_ = self._transport.get_extra_info("peername") or ("unknown", 0)
        return f"{host}:{port}"

    def end(self) -> None:
        """Close at once. Nothing more is received or sent; its receiver loses it later, from the loop."""
        self._is_ended = True
        self._transport.abort()

    def finish(self) -> None:
        """Close when all is sent that was written."""
        if not self._is_ended:
            self._is_ended = True
            self._transport.close()

    def _take_in(self, nbytes: int) -> None:
        if self._message is None:
            end = len(self._carried) + nbytes
            self._carried = b""
            self._cut(_scratch[:end])
            return
        self._filled += nbytes
        if self._filled == len(self._message):
            message, self._message = self._message, None
            kind, number = self._head
            self._receiver.receive(kind, number, message, is_kept=True)

    def _cut(self, received: memoryview) -> None:
        """Hand over the whole messages in what was received; keep the start of the one that is not whole."""
        position, end = 0, len(received)
        receiver, head_size = self._receiver, HEAD.size
        while not self._is_ended:
            begin = position + head_size
            if begin > end:
                self._carried = bytes(received[position:])
                return
            size, kind, number = checked_head(received, position, is_known=receiver.is_known)
            stop = begin + size
            if stop <= end:
                receiver.receive(kind, number, received[begin:stop], is_kept=False)
                position = stop
            elif size <= CARRIED_BYTES_MAX:
                self._carried = bytes(received[position:])
                return
            else:
                message = _memory(size)
                message[: end - begin] = received[begin:]
                self._message, self._filled, self._head = message, end - begin, (kind, number)
                return


def _memory(size: int) -> memoryview:
    return memoryview(bytearray(size) if size <= PLAIN_BYTES_MAX else mmap.mmap(-1, size))
