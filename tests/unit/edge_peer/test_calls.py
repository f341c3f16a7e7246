"""A command, its reply and its error cross to another node and are there what they were here."""

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.wire import HEAD, MESSAGE_BYTES_MAX, Malformed, checked_head
from goqueue.model import errors
from goqueue.model.commands import Append, ReadMessages
from goqueue.model.errors import GoQueueError, every_error
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.peers import Answered
from goqueue.model.ports import Buffer

ORDERS_0 = TopicPartition(TopicName("orders"), 0)


@dataclass(frozen=True)
class Came:
    """A reply that may hold an error, as those of verbs on many things do."""

    offset: int
    problem: GoQueueError | None = None


CODEC = CallCodec([Shape(Append, Came), Shape(ReadMessages, list[bytes])])


def body(buffers: list[Buffer]) -> memoryview:
    message = bytearray(b"".join(buffers))
    size, _, number = checked_head(memoryview(message), 0, is_known=True)
    assert (size, number) == (len(message) - HEAD.size, 5)
    return memoryview(message)[HEAD.size :]


def test_a_command_arrives_with_its_tail_and_its_deadline() -> None:
    asked = CODEC.asked(body(CODEC.call(5, ReadMessages(source=ORDERS_0), 1_500, [b"ta", b"il"])))
    assert asked.command == ReadMessages(source=ORDERS_0)
    assert (bytes(asked.tail), asked.wait_ms) == (b"tail", 1_500)


def test_a_batch_arrives_where_it_can_be_patched() -> None:
    batch = b"x" * 100_000
    asked = CODEC.asked(body(CODEC.call(5, Append(ORDERS_0, memoryview(batch), Acks.LEADER), 10, ())))
    assert isinstance(asked.command, Append)
    arrived = asked.command.batches
    assert isinstance(arrived, memoryview)
    assert not arrived.readonly
    assert arrived == batch


def test_a_large_tail_is_not_copied() -> None:
    tail = memoryview(bytearray(1_000_000))
    assert CODEC.call(5, ReadMessages(source=ORDERS_0), 10, [tail])[-1] is tail
    assert CODEC.reply(5, Append, Answered(Came(1), [tail]))[-1] is tail


def test_a_reply_comes_back_with_its_tail_and_with_the_errors_in_it() -> None:
    lost = Came(3, errors.OffsetOutOfRange(9, start_offset=0, end_offset=4))
    answered = CODEC.answered(Append, body(CODEC.reply(5, Append, Answered(lost, [b"tail"]))))
    assert isinstance(answered.reply, Came)
    problem = answered.reply.problem
    assert isinstance(problem, errors.OffsetOutOfRange)
    assert (answered.reply.offset, problem.end_offset, str(problem)) == (3, 4, str(lost.problem))
    assert b"".join(answered.tail) == b"tail"
    assert CODEC.answered(Append, body(CODEC.reply(5, Append, Answered(Came(1))))) == Answered(Came(1))


@pytest.mark.parametrize("kind", list(every_error()), ids=lambda kind: kind.code)
def test_every_error_of_the_house_comes_out_as_its_own_class(kind: type[GoQueueError]) -> None:
    error = kind.__new__(kind, "what happened")
    error.node, error.odd = "n1", object()  # type: ignore[attr-defined]
    raised = CODEC.raised(body(CODEC.error(5, error)))
    assert type(raised) is kind
    assert (str(raised), raised.code, raised.node) == ("what happened", kind.code, "n1")  # type: ignore[attr-defined]


def test_facts_of_an_error_are_there_again() -> None:
    mismatch = errors.SchemaMismatch({3: "no name", 4: "no age"})
    raised = CODEC.raised(body(CODEC.error(5, mismatch)))
    assert vars(raised) == vars(mismatch)
    assert str(raised) == str(mismatch)


def test_an_error_that_only_a_later_version_knows_is_its_nearest_family() -> None:
    for codes, kind in (
        (["too_fuzzy", "lease_lost", "fenced"], errors.LeaseLost),
        (["quite_new"], errors.CallFailed),
    ):
        assert type(CODEC.raised(memoryview(msgspec.msgpack.encode([codes, "text", {}])))) is kind
    assert msgspec.msgpack.decode(body(CODEC.error(5, errors.LeaseLost("r"))))[0] == ["lease_lost", "fenced"]


def test_a_command_that_nobody_knows_is_answered_and_not_a_reason_to_part() -> None:
    stranger = CallCodec([Shape(TopicPartition, None)])
    sent = body(stranger.call(5, TopicPartition(TopicName("a"), 1), 1, ()))  # type: ignore[arg-type]
    with pytest.raises(errors.NotSupported, match="TopicPartition"):
        CODEC.asked(sent)


def test_a_command_or_a_reply_that_cannot_be_read_is_an_error_of_the_house() -> None:
    sent = body(CODEC.call(5, ReadMessages(source=ORDERS_0), 1, ()))
    sent[-1] = 0xC1
    with pytest.raises(errors.Invalid, match="ReadMessages"):
        CODEC.asked(sent)
    with pytest.raises(errors.CallFailed):
        CODEC.answered(Append, body(CODEC.reply(5, Append, Answered("no such thing"))))


def test_what_is_too_large_for_one_message_is_refused_before_it_is_sent() -> None:
    tail = [b"x" * 1024] * (MESSAGE_BYTES_MAX // 1024)
    with pytest.raises(errors.RequestTooLarge):
        CODEC.call(5, ReadMessages(source=ORDERS_0), 1, tail)


@given(st.binary(max_size=60))
def test_whatever_comes_as_a_call_is_understood_or_refused(sent: bytes) -> None:
    for take in (CODEC.asked, lambda body: CODEC.answered(Append, body), CODEC.raised):
        try:
            take(memoryview(sent))
        except (Malformed, GoQueueError):
            continue
