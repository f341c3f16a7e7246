"""The greeting: who is at the other end, shown by a secret that all nodes of a cluster share.

    dialer                       acceptor
    HELLO (nonce)          ─▶
                           ◀─    HELLO (nonce), PROOF over both greetings
    PROOF over both        ─▶

A proof is an HMAC over both HELLOs as they were sent, and over the side that gives it: both nonces are in
it, so one that was heard is of no use again, and one's own cannot be held up as the other's. What comes
before the proof is believed by nobody. Without a secret the key is empty and proves only that both speak
the same protocol.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256

import msgspec

from goqueue.edge.peer.wire import HELLO_BYTES_MAX, PROTOCOL, PROTOCOL_MIN, Kind, Malformed, head_of
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.peers import Pace, Peer
from goqueue.model.ports import Buffer

NONCE_BYTES = 32
_DIALER, _ACCEPTOR = b"dialer", b"acceptor"


class Stranger(Exception):
    """Whoever is at the other end is none of us, or not any more."""


class Hello(msgspec.Struct, array_like=True, frozen=True):
    """What each side tells of itself. Later protocols may tell more behind it."""

    protocol: int
    cluster_id: str
    node: str
    incarnation: int
    pace: int
    nonce: bytes


_HELLO = msgspec.msgpack.Decoder(Hello)
_PACES = {pace.value: pace for pace in Pace}


class Greeting:
    """One side of it, without a socket: messages in, messages out. Done when `peer` is known."""

    def __init__(
        self,
        me: Peer,
        cluster_id: str,
        secret: bytes,
        nonce: bytes,
        *,
        expected: Peer | None,
        pace: Pace = Pace.LIVE,
        is_registered: Callable[[Peer], bool],
    ) -> None:
        """`expected`: whom this side dials; None: it was dialled, and is told the pace by the other."""
        assert len(nonce) == NONCE_BYTES
        self._secret = secret
        self._expected = expected
        self._is_registered = is_registered
        self.pace = pace
        self._mine = msgspec.msgpack.encode(
            Hello(PROTOCOL, cluster_id, me.node, me.incarnation, pace.value, nonce)
        )
        self._nonce = nonce
        self._cluster_id = cluster_id
        self._theirs = b""
        self._claimed: Peer | None = None
        self.peer: Peer | None = None
        """Who is at the other end, once that is shown."""

    def begin(self) -> list[Buffer]:
        """What is said before anything is heard."""
        return [] if self._expected is None else [_message(Kind.HELLO, self._mine)]

    def take(self, kind: int, body: Buffer) -> list[Buffer]:
        """What is said to what was heard. Raises Stranger or Malformed, and then nothing is said."""
        if kind == Kind.HELLO and self._claimed is None:
            self._claimed = self._believe(bytes(body))
            if self._expected is not None:
                return []
            return [_message(Kind.HELLO, self._mine), _message(Kind.PROOF, self._proof(_ACCEPTOR))]
        if kind == Kind.PROOF and self._claimed is not None:
            other = _DIALER if self._expected is None else _ACCEPTOR
            if not hmac.compare_digest(self._proof(other), bytes(body)):
                raise Stranger("does not know the secret of the cluster")
            self.peer = self._claimed
            return [] if self._expected is None else [_message(Kind.PROOF, self._proof(_DIALER))]
        raise Malformed("a greeting out of turn")

    def _believe(self, body: bytes) -> Peer:
        """What the other side says of itself, if it can be; it is to be shown yet."""
        try:
            hello = _HELLO.decode(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise Malformed(f"a HELLO that cannot be read: {error}") from error
        if hello.protocol < PROTOCOL_MIN:
            raise Stranger(f"speaks protocol {hello.protocol}; the oldest known here is {PROTOCOL_MIN}")
        if hello.cluster_id != self._cluster_id:
            raise Stranger(f"is of cluster {hello.cluster_id[:100]!r}")
        if len(hello.nonce) != NONCE_BYTES or hello.nonce == self._nonce:
            raise Malformed("a HELLO without a nonce of its own")
        peer = Peer(NodeId(hello.node), Incarnation(hello.incarnation))
        if self._expected is not None and peer != self._expected:
            raise Stranger(f"is {_named(peer)} and not {_named(self._expected)}")
        if not self._is_registered(peer):
            raise Stranger(f"says to be {_named(peer)}, which is not registered")
        if self._expected is None:
            pace = _PACES.get(hello.pace)
            if pace is None:
                raise Malformed(f"a connection of kind {hello.pace}")
            self.pace = pace
        self._theirs = body
        return peer

    def _proof(self, side: bytes) -> bytes:
        if self._expected is None:
            dialer, acceptor = self._theirs, self._mine
        else:
            dialer, acceptor = self._mine, self._theirs
        said = b"".join((side, len(dialer).to_bytes(4), dialer, acceptor))
        return hmac.digest(self._secret, said, sha256)


def _message(kind: Kind, body: bytes) -> bytes:
    assert len(body) <= HELLO_BYTES_MAX
    return head_of(kind, 0, len(body)) + body


def _named(peer: Peer) -> str:
    return f"node {peer.node[:100]!r} of {peer.incarnation}"
