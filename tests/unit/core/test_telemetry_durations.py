"""How long a stage took is told by the spans before it."""

from goqueue.core.telemetry.durations import with_durations
from goqueue.model.ids import TopicName
from goqueue.model.telemetry import Span, Stage, Witness


def span(stage: Stage, time_us: int, *, group: str = "", offset: int = 7) -> Span:
    return Span(stage, time_us, TopicName("orders"), 0, offset, Witness.RING, "aa", None, group=group)


def durations(*spans: Span) -> list[int | None]:
    return [timed.duration_us for timed in with_durations(spans)]


def test_an_fsync_took_as_long_as_since_the_write() -> None:
    assert durations(span(Stage.RECEIVED, 10), span(Stage.PARTITIONED, 10), span(Stage.PERSISTED, 35)) == [
        None,
        None,
        25,
    ]


def test_an_ack_took_as_long_as_since_the_lease_of_its_group() -> None:
    assert durations(
        span(Stage.FETCHED, 100, group="a"),
        span(Stage.FETCHED, 150, group="b"),
        span(Stage.ACKED, 300, group="a"),
        span(Stage.REJECTED, 310, group="b"),
    ) == [None, None, 200, 160]


def test_each_lease_counts_for_itself() -> None:
    assert durations(
        span(Stage.FETCHED, 100, group="a"),
        span(Stage.EXPIRED, 200, group="a"),
        span(Stage.FETCHED, 250, group="a"),
        span(Stage.ACKED, 260, group="a"),
    ) == [None, 100, None, 10]


def test_what_nobody_saw_begin_has_no_duration() -> None:
    assert durations(
        span(Stage.FETCHED, 100),  # a plain reader, who has no lease to end
        span(Stage.ACKED, 200, group="a"),
        span(Stage.PERSISTED, 300),
    ) == [None, None, None]


def test_messages_do_not_borrow_from_each_other() -> None:
    assert durations(
        span(Stage.FETCHED, 100, group="a", offset=1), span(Stage.ACKED, 200, group="a", offset=2)
    ) == [None, None]
