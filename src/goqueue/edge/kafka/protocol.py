"""Bytes between a socket and its connection.

Small frames are cut out of one scratch buffer that all connections share, since only one of them is ever
being read: an idle connection holds no buffer. A frame that is larger than what has arrived gets memory
of its own and the socket is read straight into it, so its batches go from the network to the disk
without a copy. When a client does not take its replies, or has enough requests under way, it is not
read from until that changes.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from goqueue.edge.kafka.connection import Connection
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.frame_memory import FrameMemory
from goqueue.edge.kafka.frames import SIZE
from goqueue.edge.kafka.sasl import STRANGER_BYTES_MAX, STRANGER_S, Sasl
from goqueue.edge.limited_log import LimitedLog
from goqueue.model.errors import TooManyConnections
from goqueue.model.ports import Buffer
from goqueue.model.settings import KiB, MiB

SCRATCH_BYTES = 256 * KiB
WRITE_BUFFER_BYTES = MiB
"""With more than this unsent a client counts as one that does not take its replies."""
_scratch = memoryview(bytearray(SCRATCH_BYTES))


class Lobby(Protocol):
    """Who is let in, who has left, and the memory that all share."""

    memory: FrameMemory
    log: LimitedLog

    def admit(self, client: "KafkaProtocol") -> str | None:
        """Let one more in; why not, if there is no room for it."""

    def context_for(self, transport: asyncio.Transport) -> Context:
        """What this client's requests may look at."""

    def know(self, client: "KafkaProtocol") -> None:
        """A client has said who it is."""

    def leave(self, client: "KafkaProtocol") -> None: ...


class KafkaProtocol(asyncio.BufferedProtocol):
    """One socket of the Kafka door."""

    __slots__ = (
        "_connection",
        "_filled",
        "_frame",
        "_gathered",
        "_head",
        "_is_paused",
        "_is_writable",
        "_known_bytes_max",
        "_lobby",
        "_login",
        "_memory",
        "_request_bytes_max",
        "_set_aside",
        "_transport",
        "last_received_s",
        "sasl",
    )

    _transport: asyncio.Transport
    _connection: Connection
    _request_bytes_max: int
    _known_bytes_max: int
    sasl: Sasl | None
    last_received_s: float

    def __init__(self, lobby: Lobby) -> None:
        self._lobby = lobby
        self._memory = lobby.memory
        self._frame: memoryview | None = None
        self._filled = 0
        self._gathered: list[Buffer] | None = None
        self._head = b""
        self._set_aside = b""
        self._is_paused = False
        self._is_writable = True
        self._login: asyncio.TimerHandle | None = None

    @property
    def is_shut_out(self) -> bool:
        """Whether its client would not be let in now."""
        return self._connection.is_shut_out

    @property
    def is_as_known(self) -> bool:
        """Whether its client is still of the tenant that it was of when it was let in."""
        return self._connection.is_as_known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.last_received_s = asyncio.get_running_loop().time()
        context = self._lobby.context_for(self._transport)
        self._connection = Connection(context, self, self._memory)
        self._known_bytes_max = self._request_bytes_max = context.config.limits.request_bytes
        self.sasl = context.sasl
        if context.sasl is not None:
            self._request_bytes_max = STRANGER_BYTES_MAX
            self._login = asyncio.get_running_loop().call_later(STRANGER_S, self._give_up_login)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        refusal = self._lobby.admit(self) or self._sit()
        if refusal is not None:
            self._connection.lose()
            self.abort("kafka_connection_refused", refusal)

    def _sit(self) -> str | None:
        try:
            self._connection.sit()
        except TooManyConnections as error:
            return str(error)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._frame is not None:
            self._memory.abandon(len(self._frame))
            self._frame = None
        self._gathered = None  # nobody is there to take it
        self._connection.lose()
        self._end_login()
        self._lobby.leave(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return self._frame[self._filled :]
        if not self._head:
            return _scratch
        # The start of a size field came alone: what follows is read behind it.
        _scratch[: len(self._head)] = self._head
        return _scratch[len(self._head) :]

    def buffer_updated(self, nbytes: int) -> None:
        # The replies to requests that came together leave together: a write costs more than a reply.
        if self._gathered is None:
            self._gathered = []
        try:
            self._take_in(nbytes)
        finally:
            self._send_gathered()

    def eof_received(self) -> None:
        """A client that says goodbye waits for nothing more: the transport closes itself."""

    def pause_writing(self) -> None:
        self._is_writable = False
        self._connection.hold()
        self._pause()

    def resume_writing(self) -> None:
        self._is_writable = True
        self._connection.go_on()

    def send(self, buffers: Sequence[Buffer]) -> None:
        if self._gathered is None:
            self._transport.writelines(buffers)
        else:
            self._gathered += buffers

    def gather(self) -> None:
        # One round of the disk answers requests that came one behind the other.
        if self._gathered is None:
            self._gathered = []
            asyncio.get_running_loop().call_soon(self._send_gathered)

    def make_room(self) -> None:
        if not self._is_paused or not self._connection.has_room or self._transport.is_closing():
            return
        self._is_paused = False
        set_aside, self._set_aside = self._set_aside, b""
        if set_aside:
            self._cut(memoryview(set_aside))
        # Cutting may have paused the client again.
        if not self._is_paused:
            self._transport.resume_reading()

    def give_up(self, event: str, reason: str, fields: Mapping[str, object]) -> None:
        self._lobby.log.write(logging.WARNING, event, {"peer": self.peer, "reason": reason, **fields})
        self.finish()

    def trust(self) -> None:
        self._request_bytes_max = self._known_bytes_max
        self._end_login()
        self._lobby.know(self)

    def report(self, error: BaseException, fields: Mapping[str, object]) -> None:
        self._lobby.log.write(logging.ERROR, "kafka_request_failed", fields, error=error)

    def finish(self) -> None:
        self._send_gathered()
        self._transport.close()

    def stop(self) -> None:
        """Take nothing more in, and close when the replies under way are sent."""
        self._pause()
        self._connection.stop()

    def abort(self, event: str, reason: str) -> None:
        """Close without waiting for anything."""
        self._lobby.log.write(logging.INFO, event, {"peer": self.peer, "reason": reason})
        self._transport.abort()

    @property
    def transport(self) -> asyncio.Transport:
        return self._transport

    @property
    def address(self) -> str:
        """The host that the client comes from."""
        return str((self._transport.get_extra_info("peername") or ("unknown",))[0])

    @property
    def peer(self) -> str:
        host, port, *_ = self._transport.get_extra_info("peername") or ("unknown", 0)
        return f"{host}:{port}"

    @property
    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_idle_since(self, time_s: float) -> bool:
        """Whether nothing has come since then and nothing is owed, or what is owed is not taken."""
        return self.last_received_s < time_s and (self._connection.is_at_rest or not self._is_writable)

    def _give_up_login(self) -> None:
        self.abort("kafka_login_refused", f"it has not said who it is for {STRANGER_S} s")

    def _end_login(self) -> None:
        if self._login is not None:
            self._login.cancel()
            self._login = None

    def _take_in(self, nbytes: int) -> None:
        if self._frame is None:
            end = len(self._head) + nbytes
            self._head = b""
            self._cut(_scratch[:end])
            return
        self._filled += nbytes
        if self._filled == len(self._frame):
            frame, self._frame = self._frame, None
            self._receive(frame)
            if not self._connection.has_room:
                self._pause()

    def _send_gathered(self) -> None:
        gathered, self._gathered = self._gathered, None
        if gathered:
            self._transport.writelines(gathered)

    def _cut(self, received: memoryview) -> None:
        """Hand over the whole frames in what was received; keep the start of the one that is not whole."""
        position, end = 0, len(received)
        while position < end and not self._transport.is_closing():
            if self._is_paused:
                self._set_aside = bytes(received[position:])
                return
            if end - position < SIZE.size:
                self._head = bytes(received[position:])
                return
            (size,) = SIZE.unpack_from(received, position)
            if not 0 < size <= self._request_bytes_max:
                self._connection.lose()
                self.give_up("kafka_frame_refused", f"a frame of {size} bytes", {})
                return
            if not self._memory.has_room(size):
                self._connection.lose()
                self.give_up("kafka_memory_full", f"no room for {size} bytes beside the others", {})
                return
            position += SIZE.size
            frame = self._memory.take(size)
            here = min(size, end - position)
            frame[:here] = received[position : position + here]
            position += here
            if here < size:
                self._frame, self._filled = frame, here
                return
            self._receive(frame)
            if not self._connection.has_room:
                self._pause()

    def _receive(self, frame: memoryview) -> None:
        self.last_received_s = asyncio.get_running_loop().time()
        self._connection.receive(frame)

    def _pause(self) -> None:
        if not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()
