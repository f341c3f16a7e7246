"""The greeting: only who knows the secret and is registered gets a connection."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.edge.peer.hello import NONCE_BYTES, Greeting, Hello, Stranger
from goqueue.edge.peer.wire import HEAD, Kind, Malformed, checked_head
from goqueue.model.cluster import Incarnation, NodeId
from goqueue.model.peers import Pace, Peer
from goqueue.model.ports import Buffer

A, B = Peer(NodeId("a"), Incarnation(7)), Peer(NodeId("b"), Incarnation(9))
SECRET = b"known to all of us"


def anybody(peer: Peer) -> bool:
    return True


def dialer(
    *,
    me: Peer = A,
    cluster_id: str = "c",
    secret: bytes = SECRET,
    nonce: int = 1,
    expected: Peer = B,
    is_registered: Callable[[Peer], bool] = anybody,
) -> Greeting:
    return Greeting(
        me,
        cluster_id,
        secret,
        bytes([nonce]) * NONCE_BYTES,
        expected=expected,
        pace=Pace.CATCH_UP,
        is_registered=is_registered,
    )


def acceptor(
    *, secret: bytes = SECRET, nonce: int = 2, is_registered: Callable[[Peer], bool] = anybody
) -> Greeting:
    nonce_bytes = bytes([nonce]) * NONCE_BYTES
    return Greeting(B, "c", secret, nonce_bytes, expected=None, is_registered=is_registered)


def take(greeting: Greeting, messages: list[Buffer]) -> list[Buffer]:
    """Hand over messages one by one; what is said to them."""
    said: list[Buffer] = []
    for message in messages:
        _, kind, _ = checked_head(memoryview(message), 0, is_known=False)
        said += greeting.take(kind, bytes(message)[HEAD.size :])
    return said


def greet(one: Greeting, other: Greeting) -> None:
    assert other.begin() == []
    assert take(other, take(one, take(other, one.begin()))) == []


def test_two_nodes_of_a_cluster_know_each_other_and_what_the_connection_is_for() -> None:
    one, other = dialer(), acceptor()
    greet(one, other)
    assert (one.peer, other.peer) == (B, A)
    assert (one.pace, other.pace) == (Pace.CATCH_UP, Pace.CATCH_UP)


def test_nobody_is_known_before_the_proof() -> None:
    one, other = dialer(), acceptor()
    hello, proof = take(other, one.begin())
    take(one, [hello])
    assert [one.peer, other.peer] == [None, None]
    take(one, [proof])
    assert [one.peer, other.peer] == [B, None]


@pytest.mark.parametrize("secret", [b"", b"another", SECRET + b"!"])
def test_who_does_not_know_the_secret_is_cut_off_by_whoever_does(secret: bytes) -> None:
    with pytest.raises(Stranger, match="secret"):
        greet(dialer(secret=secret), acceptor())  # the dialer sees that its own is not the other's
    one, other, knowing = dialer(secret=secret), acceptor(), acceptor(secret=secret)
    answer = take(one, take(knowing, one.begin()))
    take(other, dialer(secret=secret).begin())
    with pytest.raises(Stranger, match="secret"):
        take(other, answer)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (dialer(cluster_id="d"), "cluster 'd'"),
        (dialer(me=Peer(NodeId("x"), Incarnation(7))), "not registered"),
        (dialer(me=Peer(A.node, Incarnation(6))), "not registered"),
    ],
)
def test_a_stranger_and_an_old_incarnation_are_cut_off_before_they_hear_anything(
    wrong: Greeting, problem: str
) -> None:
    other = acceptor(is_registered=lambda peer: peer == A)
    with pytest.raises(Stranger, match=problem):
        take(other, wrong.begin())
    assert other.peer is None


def test_who_dials_a_node_and_finds_another_there_hangs_up() -> None:
    with pytest.raises(Stranger, match="node 'b' of 9 and not node 'b' of 10"):
        greet(dialer(expected=Peer(B.node, Incarnation(10))), acceptor())
    with pytest.raises(Stranger, match="not registered"):
        greet(dialer(is_registered=lambda peer: False), acceptor())


def test_a_greeting_that_was_heard_is_of_no_use_again() -> None:
    one, other = dialer(), acceptor()
    hello = one.begin()
    proof = take(one, take(other, hello))
    later = acceptor(nonce=3)
    take(later, hello)
    with pytest.raises(Stranger, match="secret"):
        take(later, proof)


def test_a_node_that_is_shown_its_own_greeting_does_not_believe_it() -> None:
    one = dialer(expected=A)
    with pytest.raises(Malformed, match="nonce of its own"):
        take(one, one.begin())
    other = acceptor()
    _, proof = take(other, dialer().begin())
    with pytest.raises(Stranger, match="secret"):
        take(other, [proof])  # what it said itself is no proof of the dialer's


def test_what_comes_out_of_turn_is_malformed() -> None:
    hello = dialer().begin()
    with pytest.raises(Malformed, match="out of turn"):
        acceptor().take(Kind.PROOF, b"x" * 32)
    other = acceptor()
    take(other, hello)
    with pytest.raises(Malformed, match="out of turn"):
        take(other, hello)


def test_an_older_protocol_is_refused_and_a_later_one_is_understood() -> None:
    def said(protocol: int, *more: object) -> bytes:
        hello = Hello(protocol, "c", A.node, A.incarnation, 0, b"n" * NONCE_BYTES)
        return msgspec.msgpack.encode([*msgspec.to_builtins(hello, builtin_types=(bytes,)), *more])

    with pytest.raises(Stranger, match="protocol 0"):
        acceptor().take(Kind.HELLO, said(0))
    assert len(acceptor().take(Kind.HELLO, said(2, "something new"))) == 2
    with pytest.raises(Malformed, match="kind 9"):
        wrong = Hello(1, "c", A.node, A.incarnation, 9, b"n" * NONCE_BYTES)
        acceptor().take(Kind.HELLO, msgspec.msgpack.encode(wrong))


@given(st.sampled_from((Kind.HELLO, Kind.PROOF)), st.binary(max_size=120))
def test_nonsense_is_refused_on_both_sides(kind: Kind, body: bytes) -> None:
    for greeting in (dialer(), acceptor()):
        with pytest.raises((Malformed, Stranger)):
            greeting.take(kind, body)
