"""Replies of verbs that nodes run for each other come back as they were."""

from typing import cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from goqueue.broker.forwarding.table import PASSED_ON
from goqueue.core.telemetry.spans import SpanMaker
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
from goqueue.model.delivery import (
    AppendMoved,
    CommitPolled,
    MovedTo,
    Poll,
    Polled,
    PolledPart,
    Settle,
    SettledPart,
    SettleOutcome,
)
from goqueue.model.errors import MessageTooLarge, OffsetOutOfRange
from goqueue.model.group_commands import (
    DescribeLag,
    FetchOffsets,
    HeartbeatAssigned,
    JoinAssigned,
    LeaveAssigned,
    RevokePartitions,
)
from goqueue.model.groups import (
    AssignedMember,
    GroupLag,
    PartitionLag,
    Reconciliation,
    ReconciliationState,
    TopicCommit,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.marks import Marks, MarksTold, ReadCommitted, TellMarks
from goqueue.model.messages import Lane, StoredMessage
from goqueue.model.peers import Answered
from goqueue.model.telemetry import Heard, HearOfTraces, Stage, TraceContext, Witness
from goqueue.model.transactions import OpenInPartition
from tests.unit.broker.drawn_values import values

CODEC = CallCodec(shapes((command, passed.reply) for command, passed in PASSED_ON.items()))


def travelled(asked: type, reply: object) -> object:
    buffers = CODEC.reply(1, asked, Answered(reply))
    return CODEC.answered(asked, memoryview(bytearray(b"".join(buffers)))[HEAD.size :]).reply


def replies_about_groups(stored: StoredMessage) -> dict[type, object]:
    orders = TopicName("orders")
    place = TopicPartition(orders, 1)
    reconciled = Reconciliation(
        member_id="ann-1",
        generation=3,
        state=ReconciliationState.PENDING_REVOKE,
        to_revoke=(place,),
        assigned=(),
        has_changed=True,
        revocation_deadline_ms=5_000,
        is_rebalancing=True,
    )
    return {
        JoinAssigned: AssignedMember(
            member_id="ann-1",
            generation=3,
            leader_id="ann-1",
            partitions=(place,),
            members=("ann-1",),
            is_rebalancing=False,
        ),
        HeartbeatAssigned: reconciled,
        RevokePartitions: reconciled,
        LeaveAssigned: None,
        Poll: Polled([PolledPart(place, 2**63, [stored], {7: 2})], {place: 6}, {place: 9}),
        CommitPolled: None,
        Settle: SettleOutcome({}, {0: SettledPart(place, 8, True, 2)}, {1: 5_000}, {2: "orders.dlq"}),
        DescribeLag: GroupLag("workers", (PartitionLag(orders, 1, 6, 9, 3, 250),)),
        FetchOffsets: [TopicCommit(orders, [(1, 6, -1, "noted")])],
    }


def test_a_refused_receipt_comes_back_with_its_error() -> None:
    came = travelled(Settle, SettleOutcome({3: OffsetOutOfRange(9, start_offset=0, end_offset=4)}))

    assert isinstance(came, SettleOutcome)
    refusal = came.refusals[3]
    assert isinstance(refusal, OffsetOutOfRange)
    assert str(refusal) == str(OffsetOutOfRange(9, start_offset=0, end_offset=4))


def test_a_span_without_facts_comes_back() -> None:
    context = TraceContext("ab" * 16, None)
    span = SpanMaker(context, TopicPartition(TopicName("orders"), 1), 7).make(Stage.ACKED, 5, Witness.RING)

    [came] = cast(list[Heard], travelled(HearOfTraces, [Heard([span], is_awaited=True)]))

    assert came == Heard([span], is_awaited=True)


def test_replies_come_back_as_the_same_values() -> None:
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
        TellMarks: MarksTold({1: Marks(3, 0, 9, 7, 1_000, OpenInPartition(5, 0, 7, 1_000))}),
        ReadCommitted: batches,
        AppendMoved: [MovedTo(7, True), MovedTo(3, False)],
        **replies_about_groups(stored),
    }
    for asked, reply in replies.items():
        came = travelled(asked, reply)
        assert came == reply
        assert type(came) is type(reply)


@pytest.mark.parametrize(
    "asked", [asked for asked in PASSED_ON if asked is not Publish], ids=lambda asked: asked.__name__
)
@given(data=st.data())
@settings(max_examples=5, deadline=None, phases=[Phase.generate])
def test_whatever_a_verb_may_give_comes_back(asked: type, data: st.DataObject) -> None:
    reply = data.draw(values(PASSED_ON[asked].reply))
    came = travelled(asked, reply)
    assert b"".join(CODEC.reply(1, asked, Answered(came))) == b"".join(CODEC.reply(1, asked, Answered(reply)))


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
