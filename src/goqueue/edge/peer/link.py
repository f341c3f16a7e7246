"""One connection between two nodes: first a greeting, then sessions and calls.

Whoever dialled follows and calls, the other leads and answers; what comes from the wrong side is malformed.
A session that was closed here may still be spoken to by the other side, which has not heard of it yet: that
is dropped.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from goqueue.edge.limited_log import LimitedLog
from goqueue.edge.peer.calling import Answering, Asking
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.hello import Greeting, Stranger
from goqueue.edge.peer.messages import (
    FRAMES_BYTES,
    decode_ack,
    decode_follow,
    decode_following,
    decode_frames,
)
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
_IDLE = head_of(Kind.IDLE, 0, 0)
_NOTHING = memoryview(b"")
Take = Callable[[int, memoryview, bool], None]
"""What is done with a message: its id, its body, and whether that is nobody else's."""


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
    _asking: Asking
    _answering: Answering

    def __init__(self, house: House, greeting: Greeting, *, is_dialler: bool) -> None:
        self._house = house
        self._greeting = greeting
        self.is_dialler = is_dialler
        self._takers: Mapping[int, Take] = {}
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
        stream = PeerStream(self.peer, message.session, self._outbox, self._forget)
        stream.user = user
        self._streams[message.session] = stream
        stream.send(message)
        return stream

    async def call(self, command: Command, wait_ms: int, tail: Sequence[Buffer]) -> Answered:
        if self.is_lost:
            raise NodeUnreachable(self.peer.node)
        if self._outbox.unsent_bytes >= LINK_UNSENT_BYTES_MAX:
            raise NodeBusy(self.peer.node)
        return await self._asking.call(command, wait_ms, tail)

    def receive(self, kind: int, number: int, body: memoryview, *, is_kept: bool) -> None:
        if not self.is_known:
            self._greet(kind, body)
            return
        take = self._takers.get(kind)
        if take is None:
            raise Malformed(f"{Kind(kind).name} from the wrong side")
        take(number, body, is_kept)

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
        if self.is_known:
            (self._asking if self.is_dialler else self._answering).lose()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.end()
        self._house.leave(self)
        if not self.greeted.done():
            self.greeted.set_result(self._reason or "the other side has hung up")
        for stream in streams.values():
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
            self._takers = self._takers_of_dialler()
            self._asking = Asking(house.codec, peer, self._outbox.say)
        else:
            self._takers = self._takers_of_acceptor()
            rate = house.config.catch_up_bytes_per_s if self.pace is Pace.CATCH_UP else 0
            self._outbox.throttle(rate)
            self._answering = Answering(house.codec, peer, house.me, self._outbox.say, house.user, house.log)
        house.welcome(self)
        self.greeted.set_result("")

    def _takers_of_dialler(self) -> Mapping[int, Take]:
        return {
            Kind.FRAMES: self._take_frames,
            Kind.FOLLOWING: self._take_following,
            Kind.REPLY: self._take_reply,
            Kind.ERROR: self._take_error,
            Kind.IDLE: self._take_idle,
            Kind.END: self._take_end,
        }

    def _takers_of_acceptor(self) -> Mapping[int, Take]:
        return {
            Kind.ACK: self._take_ack,
            Kind.CALL: self._take_call,
            Kind.FOLLOW: self._take_follow,
            Kind.CANCEL: self._take_cancel,
            Kind.IDLE: self._take_idle,
            Kind.END: self._take_end,
        }

    def _take_frames(self, session: int, body: memoryview, is_kept: bool) -> None:
        message = decode_frames(session, body)
        if (stream := self._stream(session)) is None:
            return
        frames = body[FRAMES_BYTES:]
        stream.user.received(message, frames if is_kept else memoryview(bytes(frames)))

    def _take_following(self, session: int, body: memoryview, is_kept: bool) -> None:
        message = decode_following(session, body)
        if (stream := self._stream(session)) is not None:
            stream.user.received(message, _NOTHING)

    def _take_ack(self, session: int, body: memoryview, is_kept: bool) -> None:
        message = decode_ack(session, body)
        if (stream := self._stream(session)) is not None:
            stream.user.received(message, _NOTHING)

    def _take_call(self, number: int, body: memoryview, is_kept: bool) -> None:
        # What stands in a command is patched in place: it needs memory of its own.
        self._answering.asked(number, body if is_kept else memoryview(bytearray(body)))

    def _take_reply(self, number: int, body: memoryview, is_kept: bool) -> None:
        self._asking.replied(number, body if is_kept else memoryview(bytes(body)))

    def _take_error(self, number: int, body: memoryview, is_kept: bool) -> None:
        self._asking.refused(number, body)

    def _take_cancel(self, number: int, body: memoryview, is_kept: bool) -> None:
        _check_empty(body)
        self._answering.cancelled(number)

    def _take_idle(self, number: int, body: memoryview, is_kept: bool) -> None:
        _check_empty(body)

    def _take_end(self, session: int, body: memoryview, is_kept: bool) -> None:
        _check_empty(body)
        if (stream := self._stream(session)) is not None:
            del self._streams[session]
            stream.end()
            stream.user.ended()

    def _take_follow(self, session: int, body: memoryview, is_kept: bool) -> None:
        message = decode_follow(session, body)
        if session <= self._newest_session:
            raise Malformed(f"session {session} is opened behind {self._newest_session}")
        self._newest_session = session
        stream = PeerStream(self.peer, session, self._outbox, self._forget)
        user = self._house.user.followed(stream, message)
        if user is None:
            stream.close()
        elif not stream.is_over:
            stream.user = user
            self._streams[session] = stream

    def _stream(self, session: int) -> PeerStream | None:
        """Whom a message is for; None: it was closed here, which the other side did not know yet."""
        if session > self._newest_session:
            raise Malformed(f"a message for session {session}, which was not opened")
        return self._streams.get(session)

    def _forget(self, stream: PeerStream) -> None:
        self._streams.pop(stream.session, None)


def _check_empty(body: memoryview) -> None:
    if body:
        raise Malformed(f"{len(body)} bytes where there are none")
