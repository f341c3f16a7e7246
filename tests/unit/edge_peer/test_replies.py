"""Replies of verbs that nodes run for each other come back as they were."""

from goqueue.broker.forwarding.forwarding import PASSED_ON
from goqueue.edge.peer.calls import CallCodec
from goqueue.edge.peer.replies import shapes
from goqueue.edge.peer.wire import HEAD
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    FindOffsets,
    FoundOffset,
    MessagesRead,
    OffsetRange,
    Placed,
    Publish,
    Published,
    Quarantined,
    ReadFrames,
    ReadMessages,
    SplitRange,
    WatchOffsets,
)
from goqueue.model.delays import Postponed
from goqueue.model.errors import MessageTooLarge, OffsetOutOfRange
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane, StoredMessage
from goqueue.model.peers import Answered

CODEC = CallCodec(shapes((command, passed.reply) for command, passed in PASSED_ON.items()))


def travelled(asked: type, reply: object) -> object:
    buffers = CODEC.reply(1, asked, Answered(reply))
    return CODEC.answered(asked, memoryview(bytearray(b"".join(buffers)))[HEAD.size :]).reply


def test_every_command_that_is_passed_on_has_a_reply_that_comes_back() -> None:
    stored = StoredMessage(7, 1_000, None, b"value", (("h", None), ("i", b"x")), Lane.HIGH)
    batches = BatchesRead([memoryview(b"one"), memoryview(b"two")], 6, 9, 0, 9, [2, 1], 8, [(5, 3)])
    replies = {
        ReadMessages: MessagesRead(messages=[stored], next_offset=8),
        ReadFrames: batches,
        SplitRange: [0, 10, 20],
        FindOffset: FoundOffset(5, 1_000, 2),
        FindOffsets: {TopicPartition(TopicName("orders"), 1): 7},
        WatchOffsets: {TopicPartition(TopicName("orders"), 1): OffsetRange(0, 7, 1_000)},
        Publish: [Placed(0, 5), Placed(3, 2**40, Lane.CRITICAL)],
    }
    assert replies.keys() == PASSED_ON.keys()
    for asked, reply in replies.items():
        came = travelled(asked, reply)
        assert came == reply
        assert type(came) is type(reply)


def test_what_came_of_a_publish_is_of_four_kinds() -> None:
    refused = OffsetOutOfRange(9, start_offset=0, end_offset=4)
    published: Published = [
        Placed(0, 5, Lane.LOW),
        Postponed(1, 77, 4_000, Lane.HIGH),
        Quarantined(TopicName("orders.quarantine"), 2, 8, "no name"),
        MessageTooLarge("too large"),
        refused,
        Placed(1, 6),
    ]
    came = travelled(Publish, published)
    assert isinstance(came, list)
    assert came[:3] == published[:3]
    assert came[5] == published[5]
    assert [type(outcome) for outcome in came] == [type(outcome) for outcome in published]
    assert (str(came[3]), came[4].end_offset) == ("too large", 4)
