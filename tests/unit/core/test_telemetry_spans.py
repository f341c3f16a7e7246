"""Spans: what an event about a run tells of one message, and how the story of a message stands."""

from collections.abc import Mapping

import pytest

from goqueue.core.telemetry.spans import SpanMaker, in_order, spans_of, status_of
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import (
    NO_OFFSET,
    NO_PARTITION,
    Fact,
    Span,
    Stage,
    TraceContext,
    TraceStatus,
    Witness,
)

ORDERS_0 = TopicPartition(TopicName("orders"), 0)
DELAYED = TopicPartition(TopicName("__delayed"), 0)
MADE = TraceContext("a" * 16 + "b" * 16, None)
BROUGHT = TraceContext("c" * 32, "d" * 16)
MAKER = SpanMaker(MADE, ORDERS_0, 5)


def event(kind: str, extra: int | str = 0, *, first: int = 3, end: int = 9, group: str = "g") -> Event:
    return (1_000, kind, 0, first, end, group, "ann", extra)


@pytest.mark.parametrize(
    ("kind", "extra", "stage", "error", "facts"),
    [
        (Kind.FLUSHED, 0, Stage.PERSISTED, "", {}),
        (Kind.READ, 77, Stage.FETCHED, "", {"batch_bytes": 77}),
        (Kind.LEASED, 9_000, Stage.FETCHED, "", {"lease_until_ms": 9_000}),
        (Kind.ACKED, "", Stage.ACKED, "", {}),
        (Kind.NACKED, "later", Stage.NACKED, "later", {}),
        (Kind.REJECTED, "broken", Stage.REJECTED, "broken", {}),
        (Kind.EXTENDED, 9_500, Stage.EXTENDED, "", {"lease_until_ms": 9_500}),
        (Kind.EXPIRED, "", Stage.EXPIRED, "", {}),
        (Kind.OUTDATED, "", Stage.OUTDATED, "", {}),
        (Kind.PASSED_OVER, "corrupt", Stage.PASSED_OVER, "corrupt", {}),
        (Kind.DEAD_LETTERED, "orders.dlq/0@4", Stage.DEAD_LETTERED, "", {"to": "orders.dlq/0@4"}),
        (Kind.REDRIVEN, "orders/0@8", Stage.REDRIVEN, "", {"to": "orders/0@8"}),
        (Kind.DUE, 40, Stage.FIRED, "", {"number": 42}),
    ],
)
def test_an_event_tells_one_span_of_each_of_its_messages(
    kind: str, extra: int | str, stage: Stage, error: str, facts: Mapping[str, Fact]
) -> None:
    (span,) = spans_of(event(kind, extra), ORDERS_0, 5, MADE)

    assert (span.stage, span.error, span.facts) == (stage, error, facts)
    assert (span.topic, span.partition, span.offset, span.time_us) == ("orders", 0, 5, 1_000)
    assert (span.group, span.consumer, span.witness) == ("g", "ann", Witness.RING)


def test_a_stored_message_was_received_and_got_its_partition() -> None:
    received, stored = spans_of(event(Kind.STORED, 600, group=""), ORDERS_0, 5, MADE)

    assert (received.stage, received.facts) == (Stage.RECEIVED, {})
    assert (stored.stage, stored.facts) == (Stage.PARTITIONED, {"batch_messages": 6, "batch_bytes": 600})
    assert stored.parent_span_id == received.span_id


def test_a_refused_message_was_received_and_tells_the_code_of_the_error() -> None:
    told = spans_of(event(Kind.REFUSED, "too big", group="message_too_large"), ORDERS_0, 5, MADE)

    received, refused = told
    assert (received.stage, refused.stage) == (Stage.RECEIVED, Stage.REFUSED)
    assert (refused.group, refused.error) == ("", "too big")
    assert refused.facts == {"code": "message_too_large"}


@pytest.mark.parametrize("kind", [Kind.POSTPONED, Kind.CANCELLED])
def test_a_message_that_waits_is_told_by_where_it_goes_and_by_its_number(kind: str) -> None:
    (span,) = spans_of(event(kind, "orders", group=""), DELAYED, 5, MADE)

    assert (span.topic, span.partition, span.offset) == ("orders", NO_PARTITION, NO_OFFSET)
    assert (span.consumer, span.facts) == ("", {"number": 5})


def test_the_spans_of_a_message_hang_on_its_first_and_that_on_the_producers() -> None:
    maker = SpanMaker(BROUGHT, ORDERS_0, 5)

    first = maker.make(Stage.RECEIVED, 1, Witness.LOG)
    later = [maker.make(stage, 2, Witness.RING) for stage in (Stage.PARTITIONED, Stage.ACKED)]

    assert first.parent_span_id == BROUGHT.parent_span_id
    assert {span.parent_span_id for span in later} == {first.span_id}
    assert len({first.span_id, *(span.span_id for span in later)}) == 3


def test_in_a_made_trace_the_first_span_is_the_second_half_of_the_id() -> None:
    for stage in (Stage.RECEIVED, Stage.SCHEDULED):
        first = MAKER.make(stage, 1, Witness.RING)
        assert (first.span_id, first.parent_span_id) == ("b" * 16, None)


@pytest.mark.parametrize("stage", list(Stage))
def test_only_what_can_happen_again_is_told_apart_by_its_time(stage: Stage) -> None:
    early, late = (MAKER.make(stage, time_us, Witness.RING) for time_us in (1, 2))
    once = {
        Stage.RECEIVED,
        Stage.SCHEDULED,
        Stage.REFUSED,
        Stage.PARTITIONED,
        Stage.PERSISTED,
        Stage.FIRED,
    }

    assert (early.span_id == late.span_id) is (stage in once)


def test_groups_and_messages_have_spans_of_their_own() -> None:
    makers = (MAKER, SpanMaker(MADE, ORDERS_0, 6), SpanMaker(MADE, TopicPartition(TopicName("orders"), 1), 5))
    spans = [
        maker.make(Stage.ACKED, 1, Witness.RING, group=group) for maker in makers for group in ("a", "b")
    ]

    assert len({span.span_id for span in spans}) == 6


def spans(*told: tuple[Stage, str] | Stage) -> list[Span]:
    return [
        MAKER.make(one, time_us, Witness.RING)
        if isinstance(one, Stage)
        else MAKER.make(one[0], time_us, Witness.RING, group=one[1])
        for time_us, one in enumerate(told)
    ]


def test_what_happened_in_one_moment_is_told_in_the_order_of_a_life() -> None:
    told = [
        MAKER.make(stage, 7, Witness.RING)
        for stage in (Stage.ACKED, Stage.FETCHED, Stage.PARTITIONED, Stage.RECEIVED, Stage.PERSISTED)
    ]
    early = MAKER.make(Stage.ACKED, 6, Witness.RING)

    assert [span.stage for span in in_order([*told, early])] == [
        Stage.ACKED,
        Stage.RECEIVED,
        Stage.PARTITIONED,
        Stage.PERSISTED,
        Stage.FETCHED,
        Stage.ACKED,
    ]


OUT, ACKED = (Stage.FETCHED, "a"), (Stage.ACKED, "a")


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ([], TraceStatus.IN_PROGRESS),
        ([Stage.RECEIVED, Stage.PARTITIONED], TraceStatus.IN_PROGRESS),
        ([Stage.RECEIVED, Stage.REFUSED], TraceStatus.FAILED),
        ([Stage.RECEIVED, Stage.ABORTED, OUT, ACKED], TraceStatus.FAILED),
        ([OUT], TraceStatus.IN_PROGRESS),
        ([OUT, (Stage.EXTENDED, "a")], TraceStatus.IN_PROGRESS),
        ([OUT, ACKED], TraceStatus.COMPLETED),
        ([Stage.FETCHED], TraceStatus.COMPLETED),
        ([OUT, (Stage.NACKED, "a")], TraceStatus.RETRYING),
        ([OUT, (Stage.EXPIRED, "a")], TraceStatus.RETRYING),
        ([OUT, (Stage.NACKED, "a"), OUT], TraceStatus.IN_PROGRESS),
        ([OUT, (Stage.NACKED, "a"), OUT, ACKED], TraceStatus.COMPLETED),
        ([OUT, (Stage.REJECTED, "a")], TraceStatus.FAILED),
        ([(Stage.PASSED_OVER, "a")], TraceStatus.FAILED),
        ([(Stage.OUTDATED, "a")], TraceStatus.EXPIRED),
        ([(Stage.OUTDATED, "a"), (Stage.DEAD_LETTERED, "a")], TraceStatus.FAILED),
        ([(Stage.OUTDATED, "a"), (Stage.FETCHED, "b")], TraceStatus.IN_PROGRESS),
        ([(Stage.OUTDATED, "a"), (Stage.ACKED, "b")], TraceStatus.EXPIRED),
        ([(Stage.REJECTED, "a"), (Stage.NACKED, "b")], TraceStatus.FAILED),
        ([(Stage.NACKED, "a"), (Stage.FETCHED, "b")], TraceStatus.RETRYING),
        ([ACKED, (Stage.FETCHED, "b")], TraceStatus.IN_PROGRESS),
        ([(Stage.DEAD_LETTERED, "a"), Stage.REDRIVEN], TraceStatus.IN_PROGRESS),
        ([(Stage.DEAD_LETTERED, "a"), Stage.REDRIVEN, OUT, ACKED], TraceStatus.COMPLETED),
        ([(Stage.ACKED, "b"), (Stage.REJECTED, "a"), Stage.REDRIVEN], TraceStatus.IN_PROGRESS),
        ([(Stage.NACKED, "b"), (Stage.REJECTED, "a"), Stage.REDRIVEN], TraceStatus.RETRYING),
        ([Stage.SCHEDULED], TraceStatus.DELAYED),
        ([Stage.SCHEDULED, Stage.CANCELLED], TraceStatus.COMPLETED),
        ([Stage.SCHEDULED, Stage.FIRED], TraceStatus.IN_PROGRESS),
        ([Stage.SCHEDULED, Stage.FIRED, OUT, ACKED], TraceStatus.COMPLETED),
    ],
)
def test_of_several_groups_the_one_that_is_worst_off_tells_how_a_story_stands(
    told: list[tuple[Stage, str] | Stage], status: TraceStatus
) -> None:
    assert status_of(spans(*told)) is status


@pytest.mark.parametrize("told", [[OUT, ACKED], [Stage.FETCHED]])
def test_a_story_is_not_at_its_end_while_a_group_has_still_to_come(
    told: list[tuple[Stage, str] | Stage],
) -> None:
    assert status_of(spans(*told), is_awaited=True) is TraceStatus.IN_PROGRESS


def test_a_failure_is_told_although_a_group_has_still_to_come() -> None:
    assert status_of(spans(OUT, (Stage.REJECTED, "a")), is_awaited=True) is TraceStatus.FAILED
