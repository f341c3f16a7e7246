"""Spans that wait for a target: bounded, in order, every loss counted, and people told now and then."""

from goqueue.model.ids import TopicName
from goqueue.model.telemetry import ExportStatus, Span, Stage, Witness
from goqueue.node.tracing.outbox import ATTEMPTS_MAX, BATCH_COUNT_MAX, Outbox
from goqueue.node.tracing.outgoing import Outgoing


def span(offset: int) -> Outgoing:
    told = Span(Stage.RECEIVED, 1, TopicName("orders"), 0, offset, Witness.RING, f"{offset:016x}", None)
    return Outgoing("ab" * 16, told)


def spans(*offsets: int) -> list[Outgoing]:
    return [span(offset) for offset in offsets]


def outbox(waiting_max: int = 1000) -> Outbox:
    return Outbox(ExportStatus("file"), waiting_max=waiting_max)


def test_what_is_put_in_comes_out_in_order_and_is_counted_when_it_has_arrived() -> None:
    box = outbox()
    box.put(spans(1, 2))
    box.put(spans(3))

    assert box.batch() == spans(1, 2, 3)
    assert (box.status.sent, box.status.waiting) == (0, 3)
    box.succeed()
    assert (box.status.sent, box.status.waiting) == (3, 0)
    assert box.batch() == []


def test_a_large_heap_goes_out_in_batches() -> None:
    box = outbox()
    box.put(spans(*range(BATCH_COUNT_MAX + 1)))

    assert len(box.batch()) == BATCH_COUNT_MAX
    box.succeed()
    assert box.batch() == spans(BATCH_COUNT_MAX)


def test_a_batch_that_failed_is_the_next_one_again() -> None:
    box = outbox()
    box.put(spans(1))
    first = list(box.batch())
    box.put(spans(2))
    box.fail("gone", now_ms=0)

    assert box.batch() == first
    assert (box.status.failures, box.status.last_error) == (1, "gone")


def test_when_there_is_no_room_the_oldest_go_and_are_counted() -> None:
    box = outbox(waiting_max=2)
    box.put(spans(1, 2, 3))

    assert box.batch() == spans(2, 3)
    assert box.status.dropped == 1


def test_a_batch_that_is_refused_again_and_again_makes_way_for_the_next() -> None:
    box = outbox()
    box.put(spans(*range(BATCH_COUNT_MAX), 7777))
    for _ in range(ATTEMPTS_MAX):
        assert len(box.batch()) == BATCH_COUNT_MAX
        box.fail("400", now_ms=0)

    assert box.batch() == spans(7777)
    assert box.status.dropped == BATCH_COUNT_MAX


def test_people_are_told_of_a_failure_once_a_minute_and_of_its_end() -> None:
    box = outbox()
    box.put(spans(1))
    box.batch()

    assert [box.fail("gone", now_ms=now) for now in (0, 1_000, 59_999, 60_000)] == [True, False, False, True]
    assert box.succeed() is True
    assert box.succeed() is False


def test_a_target_is_left_alone_longer_after_each_failure() -> None:
    box = outbox()
    box.put(spans(1))
    waits = []
    for _ in range(ATTEMPTS_MAX - 1):
        box.batch()
        box.fail("gone", now_ms=0)
        waits.append(box.retry_ms())

    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
