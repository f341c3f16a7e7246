"""One end of a session on a link."""

from collections.abc import Callable, Sequence

from goqueue.edge.peer.messages import encode
from goqueue.edge.peer.outbox import Outbox, Turn
from goqueue.edge.peer.wire import Kind, head_of
from goqueue.model.peers import Peer
from goqueue.model.ports import Buffer, StreamUser
from goqueue.model.replication import Message


class PeerStream:
    """The port's `Stream`. Its link hands over what comes for it, until it is over."""

    user: StreamUser
    """Set before anything can come for it."""

    __slots__ = ("_forget", "_outbox", "_turn", "is_over", "peer", "session", "user")

    def __init__(
        self, peer: Peer, session: int, outbox: Outbox, forget: Callable[["PeerStream"], None]
    ) -> None:
        self.peer = peer
        self.session = session
        self.is_over = False
        self._outbox = outbox
        self._turn = Turn(self._has_room_again)
        self._forget = forget

    @property
    def has_room(self) -> bool:
        return not self.is_over and self._outbox.has_room(self._turn)

    def send(self, message: Message, frames: Sequence[Buffer] = ()) -> None:
        assert message.session == self.session, f"a message of {message.session} in session {self.session}"
        if self.is_over:
            return
        if not frames:
            encoded = encode(message)
            self._outbox.send(self._turn, [encoded], len(encoded))
            return
        assert self.has_room, "frames are sent while there is room"
        size = sum(map(len, frames))
        encoded = encode(message, size)
        self._outbox.send(self._turn, [encoded, *frames], len(encoded) + size)

    def close(self) -> None:
        if not self.is_over:
            self.end()
            self._forget(self)
            self._outbox.say([head_of(Kind.END, self.session, 0)])

    def end(self) -> None:
        """It is over; what has not gone out is dropped."""
        self.is_over = True
        self._outbox.forget(self._turn)

    def _has_room_again(self) -> None:
        if not self.is_over:
            self.user.has_room_again()
