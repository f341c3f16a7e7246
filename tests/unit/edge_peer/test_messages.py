"""Messages of replication come out as they went in, and whatever is not one is refused."""

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.edge.peer.messages import (
    FRAMES_BYTES,
    decode_ack,
    decode_follow,
    decode_following,
    decode_frames,
    encode,
)
from goqueue.edge.peer.wire import HEAD, MESSAGE_BYTES_MAX, Kind, Malformed, checked_head
from goqueue.model.replication import Ack, Answer, Follow, Following, Frames, Message

DECODE: dict[int, Callable[[int, bytes], Message]] = {
    Kind.FOLLOW: decode_follow,
    Kind.FOLLOWING: decode_following,
    Kind.FRAMES: decode_frames,
    Kind.ACK: decode_ack,
}
offsets = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 2**31 - 1)
sessions = st.integers(0, 2**64 - 1)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    session = draw(sessions)
    low, middle, high = sorted(draw(st.tuples(offsets, offsets, offsets)))
    match draw(st.sampled_from(("follow", "following", "frames", "ack"))):
        case "follow":
            return Follow(
                session=session,
                topic_id=draw(st.uuids()),
                partition=draw(st.integers(0, 2**32 - 1)),
                epoch=draw(epochs),
                start_offset=low,
                end_offset=high,
                durable_offset=middle,
                last_epoch=draw(st.integers(-1, 2**31 - 1)),
            )
        case "following":
            return Following(
                session=session,
                answer=draw(st.sampled_from(Answer)),
                epoch=draw(epochs),
                end_offset=high,
                start_offset=low,
                commit_mark=middle,
            )
        case "frames":
            return Frames(
                session=session, base_offset=low, end_offset=high, commit_mark=middle, start_offset=low
            )
        case _:
            return Ack(session=session, written_offset=high, durable_offset=low)


def decoded(message: bytes, frames: bytes = b"") -> Message:
    size, kind, session = checked_head(memoryview(message), 0, is_known=True)
    body = message[HEAD.size :] + frames
    assert size == len(body)
    return DECODE[kind](session, body)


@given(messages())
def test_a_message_comes_out_as_it_went_in(message: Message) -> None:
    has_frames = isinstance(message, Frames) and message.end_offset > message.base_offset
    frames = b"frames" if has_frames else b""
    assert decoded(encode(message, len(frames)), frames) == message


@given(messages(), st.data())
def test_a_message_with_a_byte_too_few_or_too_many_is_refused(message: Message, data: st.DataObject) -> None:
    kind = HEAD.unpack_from(encode(message))[1]
    body = encode(message)[HEAD.size :]
    other = data.draw(st.sampled_from((body[:-1], body + b"x", b"")))
    if isinstance(message, Frames) and message.end_offset > message.base_offset and len(other) > len(body):
        return  # these are frames
    with pytest.raises(Malformed):
        DECODE[kind](1, other)


@given(st.sampled_from(sorted(DECODE)), st.binary(max_size=80))
def test_whatever_comes_is_a_message_or_malformed(kind: int, body: bytes) -> None:
    try:
        message = DECODE[kind](7, body)
    except Malformed:
        return
    frames = body[FRAMES_BYTES:] if kind == Kind.FRAMES else b""
    assert encode(message, len(frames))[HEAD.size :] + frames == body


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (Kind.ACK, Ack(session=1, written_offset=1, durable_offset=2)),
        (Kind.ACK, Ack(session=1, written_offset=-1, durable_offset=-2)),
        (Kind.FRAMES, Frames(session=1, base_offset=2, end_offset=1, commit_mark=0, start_offset=0)),
        (Kind.FRAMES, Frames(session=1, base_offset=1, end_offset=2, commit_mark=0, start_offset=0)),
        (Kind.FRAMES, Frames(session=1, base_offset=1, end_offset=1, commit_mark=-1, start_offset=0)),
        (Kind.FOLLOWING, Following(session=1, answer=Answer.GO, epoch=-2)),
        (
            Kind.FOLLOW,
            Follow(
                session=1,
                topic_id=UUID(int=1),
                partition=0,
                epoch=0,
                start_offset=2,
                end_offset=1,
                durable_offset=0,
                last_epoch=-1,
            ),
        ),
    ],
)
def test_numbers_that_no_log_has_are_refused(kind: Kind, wrong: Message) -> None:
    with pytest.raises(Malformed):
        DECODE[kind](1, encode(wrong)[HEAD.size :])


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (HEAD.pack(MESSAGE_BYTES_MAX + 1, Kind.FRAMES, 0, 0, 1), "bytes"),
        (HEAD.pack(1, 0, 0, 0, 1), "kind 0"),
        (HEAD.pack(1, 200, 0, 0, 1), "kind 200"),
        (HEAD.pack(1, Kind.ACK, 1, 0, 1), "flags 1"),
        (HEAD.pack(1, Kind.ACK, 0, 9, 1), "9 in the reserved"),
        (HEAD.pack(1, Kind.HELLO, 0, 0, 0), "HELLO behind the greeting"),
    ],
)
def test_a_wrong_head_is_refused_with_what_is_wrong(head: bytes, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        checked_head(memoryview(head), 0, is_known=True)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (HEAD.pack(4097, Kind.HELLO, 0, 0, 0), "4097 bytes"),
        (b"GET / HTTP/1.1\r\n", "bytes"),
        (HEAD.pack(0, Kind.IDLE, 0, 0, 0), "IDLE before the greeting"),
    ],
)
def test_a_stranger_may_say_little(head: bytes, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        checked_head(memoryview(head), 0, is_known=False)
