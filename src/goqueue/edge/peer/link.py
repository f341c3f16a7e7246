"""One connection between two nodes: first a greeting, then sessions and calls.

Whoever dialled follows and calls, the other leads and answers; what comes from the wrong side is malformed.
A session that was closed here may still be spoken to by the other side, which has not heard of it yet: that
is dropped.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.peer.calling import Answering, Asking
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.hello import Greeting, Stranger
from goqueue.edge.peer.messages import DECODE, FRAMES_BYTES, decode_follow
from goqueue.edge.peer.outbox import Outbox
from goqueue.edge.peer.protocol import PeerProtocol
from goqueue.edge.peer.stream import PeerStream
from goqueue.edge.peer.wire import Kind, Malformed, head_of
from goqueue.model.errors import NodeBusy, NodeUnreachable
from goqueue.model.peers import LINK_UNSENT_BYTES_MAX, Answered, Loss, Pace, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, PeerUser, StreamUser
from goqueue.model.replication import Follow

CLOGGED_BYTES = 2 * LINK_UNSENT_BYTES_MAX
"""With so much unsent a link is given up: answers and acks pile up before a node that takes nothing."""
_TO_DIALER = frozenset((Kind.FOLLOWING, Kind.FRAMES, Kind.END, Kind.REPLY, Kind.ERROR, Kind.IDLE))
_TO_ACCEPTOR = frozenset((Kind.FOLLOW, Kind.ACK, Kind.END, Kind.CALL, Kind.CANCEL, Kind.IDLE))
_IDLE = head_of(Kind.IDLE, 0, 0)
_NOTHING = memoryview(b"")


class House(Protocol):
    """Where a link belongs: what all links of a node share."""

    me: Peer
    user: PeerUser
    codec: CallCodec
    config: PeerConfig
    log: LimitedLog

    def enter(self, link: "PeerLink") -> None:
        """A connection is made, with whom is to be seen."""

    def welcome(self, link: "PeerLink") -> None:
        """It is known who is at the other end."""

    def leave(self, link: "PeerLink") -> None:
        """The connection has ended."""


class PeerLink:
    """The port's `Link`, and the other end of one."""

    peer: Peer
    _pipe: PeerProtocol
    _outbox: Outbox

    def __init__(self, house: House, greeting: Greeting, *, is_dialler: bool) -> None:
        self._house = house
        self._greeting = greeting
        self.is_dialler = is_dialler
        self._taken = _TO_DIALER if is_dialler else _TO_ACCEPTOR
        self.is_known = False
        self.is_lost = False
        self.pace = greeting.pace
        self.loss = Loss.RESET
        self.heard_s = asyncio.get_running_loop().time()
        """When something was last heard, as seen by the door's clockwork."""
        self.greeted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Done with the greeting: why it came to nothing, or an empty text."""
        self._streams: dict[int, PeerStream] = {}
        self._newest_session = -1
        self._asking: Asking | None = None
        self._answering: Answering | None = None
        self._reason = ""
        self._is_connected = False

    def connect(self, pipe: PeerProtocol) -> None:
        if self.is_lost:
            pipe.end()
            return
        self._is_connected = True
        self._pipe = pipe
        self._outbox = Outbox(pipe)
        self._house.enter(self)
        if said := self._greeting.begin():
            pipe.write(said)

    def follow(self, message: Follow, user: StreamUser) -> PeerStream:
        assert self.is_dialler, "only who dialled follows"
        if self.is_lost:
            raise NodeUnreachable(self.peer.node)
        assert message.session > self._newest_session, "sessions of a link have growing numbers"
        self._newest_session = message.session
        stream = self._opened(message.session)
        stream.user = user
        stream.send(message)
        return stream

    async def call(self, command: Command, wait_ms: int, tail: Sequence[Buffer]) -> Answered:
        if self.is_lost or self._asking is None:
            raise NodeUnreachable(self.peer.node)
        if self._outbox.unsent_bytes >= LINK_UNSENT_BYTES_MAX:
            raise NodeBusy(self.peer.node)
        return await self._asking.call(command, wait_ms, tail)

    def receive(self, kind: int, number: int, body: memoryview, *, is_kept: bool) -> None:
        if not self.is_known:
            self._greet(kind, body)
            return
        if kind not in self._taken:
            raise Malformed(f"{Kind(kind).name} from the wrong side")
        if kind in DECODE:
            self._receive_for_session(kind, number, body, is_kept=is_kept)
        elif kind == Kind.CALL:
            assert self._answering is not None
            # What stands in a command is patched in place: it needs memory of its own.
            self._answering.asked(number, body if is_kept else memoryview(bytearray(body)))
        elif kind == Kind.REPLY:
            assert self._asking is not None
            self._asking.replied(number, body if is_kept else memoryview(bytes(body)))
        elif kind == Kind.ERROR:
            assert self._asking is not None
            self._asking.refused(number, body)
        elif body:
            raise Malformed(f"{Kind(kind).name} with {len(body)} bytes")
        elif kind == Kind.END:
            self._end_session(number)
        elif kind == Kind.CANCEL:
            assert self._answering is not None
            self._answering.cancelled(number)

    def fail(self, error: Exception) -> None:
        if isinstance(error, Malformed):
            self.cut("peer_message_refused", str(error))
        elif isinstance(error, Stranger):
            self.cut("peer_refused", str(error))
        else:
            fields = {"peer": self._pipe.address, **self._named()}
            self._house.log.write(logging.ERROR, "peer_message_failed", fields, error=error)
            self.cut("peer_cut", "a message could not be taken in")

    def hold(self) -> None:
        self._outbox.hold()

    def go_on(self) -> None:
        self._outbox.go_on()

    def lose(self) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        if not self._is_connected:
            return
        self._pipe.end()
        self._outbox.close()
        if self._asking is not None:
            self._asking.lose()
        if self._answering is not None:
            self._answering.lose()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end()
        self._house.leave(self)
        if not self.greeted.done():
            self.greeted.set_result(self._reason or "the other side has hung up")
        for stream in streams.values():
            if stream.user is not None:
                stream.user.ended()

    def look(self, now_s: float) -> None:
        """Say that one is alive, and see whether the other is; called every so often."""
        if self._pipe.received:
            self._pipe.received = False
            self.heard_s = now_s
        config = self._house.config
        silence_ms = config.silence_ms if self.is_known else config.greeting_ms
        if now_s - self.heard_s > silence_ms / 1_000:
            self.cut("peer_silent", f"nothing was heard for {silence_ms} ms", loss=Loss.SILENT)
        elif self.is_known:
            if self._outbox.unsent_bytes > CLOGGED_BYTES:
                self.cut("peer_clogged", f"{self._outbox.unsent_bytes} bytes are not taken")
            elif not self._outbox.has_spoken:
                self._outbox.say([_IDLE])
            self._outbox.has_spoken = False

    def cut(self, event: str, reason: str, *, loss: Loss = Loss.CUT) -> None:
        """End it from this side, and say why in the log."""
        if self._reason:
            return
        self._reason, self.loss = reason, loss
        fields = {"peer": self._pipe.address, "reason": reason, **self._named()}
        self._house.log.write(logging.WARNING, event, fields)
        self._pipe.end()

    def finish(self) -> None:
        """End it because this node stops: what is written is sent."""
        self._reason, self.loss = "this node stops", Loss.CUT
        self._pipe.finish()

    def abort(self) -> None:
        """End it because this node stops, and wait for nothing."""
        self._reason, self.loss = "this node stops", Loss.CUT
        self._pipe.end()

    def _named(self) -> Mapping[str, object]:
        return {"node": self.peer.node, "incarnation": self.peer.incarnation} if self.is_known else {}

    def _greet(self, kind: int, body: memoryview) -> None:
        said = self._greeting.take(kind, body)
        if said:
            self._pipe.write(said)
        if (peer := self._greeting.peer) is None:
            return
        house = self._house
        self.peer, self.is_known, self.pace = peer, True, self._greeting.pace
        if self.is_dialler:
            self._asking = Asking(house.codec, peer, self._outbox.say)
        else:
            rate = house.config.catch_up_bytes_per_s if self.pace is Pace.CATCH_UP else 0
            self._outbox.throttle(rate)
            self._answering = Answering(house.codec, peer, house.me, self._outbox.say, house.user, house.log)
        house.welcome(self)
        self.greeted.set_result("")

    def _receive_for_session(self, kind: int, session: int, body: memoryview, *, is_kept: bool) -> None:
        stream = self._streams.get(session)
        if kind == Kind.FOLLOW:
            self._be_followed(decode_follow(session, body))
            return
        if stream is None and session > self._newest_session:
            raise Malformed(f"{Kind(kind).name} for session {session}, which was not opened")
        message = DECODE[kind](session, body)
        if stream is None:
            return
        frames = _NOTHING
        if kind == Kind.FRAMES and len(body) > FRAMES_BYTES:
            frames = body[FRAMES_BYTES:] if is_kept else memoryview(bytes(body[FRAMES_BYTES:]))
        assert stream.user is not None
        stream.user.received(message, frames)

    def _be_followed(self, message: Follow) -> None:
        if message.session <= self._newest_session:
            raise Malformed(f"session {message.session} is opened behind {self._newest_session}")
        self._newest_session = message.session
        stream = self._opened(message.session)
        stream.user = self._house.user.followed(stream, message)
        if stream.user is None:
            stream.close()

    def _opened(self, session: int) -> PeerStream:
        stream = PeerStream(self.peer, session, self._outbox, self._forget)
        self._streams[session] = stream
        return stream

    def _end_session(self, session: int) -> None:
        if session > self._newest_session:
            raise Malformed(f"the end of session {session}, which was not opened")
        if (stream := self._streams.pop(session, None)) is not None:
            stream.end()
            if stream.user is not None:
                stream.user.ended()

    def _forget(self, stream: PeerStream) -> None:
        self._streams.pop(stream.session, None)
