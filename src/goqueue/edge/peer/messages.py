"""Messages of replication as bytes. The session is the id of the message; the rest has a fixed length.

Behind FRAMES come the frames, as they lie in the file. Numbers that no log can have are refused here, so that
the machines behind it need not think of them.
"""

from struct import Struct
from uuid import UUID

from goqueue.edge.peer.wire import Kind, Malformed, head_of
from goqueue.model.ports import Buffer
from goqueue.model.replication import Ack, Answer, Follow, Following, Frames, Message

_FOLLOW = Struct(">16sIiqqqi")
_FOLLOWING = Struct(">Biqqq")
_FRAMES = Struct(">qqqq")
_ACK = Struct(">qq")
FRAMES_BYTES = _FRAMES.size
"""Behind these bytes of a FRAMES the frames begin."""

_CODE_OF = {Answer.GO: 0, Answer.CUT: 1, Answer.BEGIN: 2, Answer.FENCED: 3, Answer.LATER: 4}
_ANSWER_OF = {code: answer for answer, code in _CODE_OF.items()}


def encode(message: Message, frames_bytes: int = 0) -> bytes:
    """A message with its head, up to where its frames begin, of which there are so many bytes."""
    match message:
        case Frames():
            return head_of(Kind.FRAMES, message.session, FRAMES_BYTES + frames_bytes) + _FRAMES.pack(
                message.base_offset, message.end_offset, message.commit_mark, message.start_offset
            )
        case Ack():
            return head_of(Kind.ACK, message.session, _ACK.size) + _ACK.pack(
                message.written_offset, message.durable_offset
            )
        case Follow():
            return head_of(Kind.FOLLOW, message.session, _FOLLOW.size) + _FOLLOW.pack(
                message.topic_id.bytes,
                message.partition,
                message.epoch,
                message.start_offset,
                message.end_offset,
                message.durable_offset,
                message.last_epoch,
            )
        case Following():
            return head_of(Kind.FOLLOWING, message.session, _FOLLOWING.size) + _FOLLOWING.pack(
                _CODE_OF[message.answer],
                message.epoch,
                message.end_offset,
                message.start_offset,
                message.commit_mark,
            )


def decode_follow(session: int, body: Buffer) -> Follow:
    topic_id, partition, epoch, start, end, durable, last_epoch = _FOLLOW.unpack(_sized(_FOLLOW, body))
    if epoch < 0 or not 0 <= start <= end or not 0 <= durable <= end or last_epoch < -1:
        raise Malformed(f"a follower in epoch {epoch} with {start}..{end}, {durable} durable")
    return Follow(
        session=session,
        topic_id=UUID(bytes=topic_id),
        partition=partition,
        epoch=epoch,
        start_offset=start,
        end_offset=end,
        durable_offset=durable,
        last_epoch=last_epoch,
    )


def decode_following(session: int, body: Buffer) -> Following:
    code, epoch, end, start, commit_mark = _FOLLOWING.unpack(_sized(_FOLLOWING, body))
    answer = _ANSWER_OF.get(code)
    if answer is None or epoch < -1 or end < 0 or start < 0 or commit_mark < 0:
        raise Malformed(f"an answer {code} of epoch {epoch} with {start}..{end}, mark {commit_mark}")
    return Following(
        session=session,
        answer=answer,
        epoch=epoch,
        end_offset=end,
        start_offset=start,
        commit_mark=commit_mark,
    )


def decode_frames(session: int, body: Buffer) -> Frames:
    """The message alone; its frames are what stands in the body behind FRAMES_BYTES."""
    if len(body) < FRAMES_BYTES:
        raise Malformed(f"frames in a body of {len(body)} bytes")
    base, end, commit_mark, start = _FRAMES.unpack_from(body)
    if not 0 <= base <= end or commit_mark < 0 or start < 0:
        raise Malformed(f"frames of {base}..{end}, mark {commit_mark}, start {start}")
    if (base == end) is not (len(body) == FRAMES_BYTES):
        raise Malformed(f"frames of {base}..{end} in {len(body) - FRAMES_BYTES} bytes")
    return Frames(
        session=session, base_offset=base, end_offset=end, commit_mark=commit_mark, start_offset=start
    )


def decode_ack(session: int, body: Buffer) -> Ack:
    written, durable = _ACK.unpack(_sized(_ACK, body))
    if not 0 <= durable <= written:
        raise Malformed(f"an ack of {written} with {durable} durable")
    return Ack(session=session, written_offset=written, durable_offset=durable)


def _sized(shape: Struct, body: Buffer) -> Buffer:
    if len(body) != shape.size:
        raise Malformed(f"{len(body)} bytes where there are always {shape.size}")
    return body
