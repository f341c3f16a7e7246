"""The tally: how many messages recorded events tell of, and how they stand, counted by runs."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.telemetry import ring_search
from goqueue.core.telemetry import tally as tally_module
from goqueue.core.telemetry.tally import Tally, tally
from goqueue.core.telemetry.traces import Event, Kind, Sampling
from goqueue.model.ids import TopicName, TopicPartition

ORDERS, LATE = TopicName("orders"), TopicName("late")
EVERY = Sampling(1, 0)
DELAYED_PLACE = 9
PLACES = {
    0: (TopicPartition(ORDERS, 0), EVERY),
    1: (TopicPartition(ORDERS, 1), EVERY),
    2: (TopicPartition(LATE, 0), EVERY),
    DELAYED_PLACE: (TopicPartition(TopicName("__delayed"), 0), EVERY),
}


def told(
    kind: str,
    first: int,
    end: int,
    *,
    place: int = 0,
    time_us: int = 0,
    consumer: str = "ann",
    extra: int | str = 0,
) -> Event:
    return (time_us, kind, place, first, end, "g", consumer, extra)


def tally_of(*events: Event, places: ring_search.Places = PLACES) -> Tally:
    steps = tally(events, places, DELAYED_PLACE)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result = end.value
            assert isinstance(result, Tally)
            return result


def test_nothing_told_is_nothing_counted() -> None:
    assert tally_of() == Tally({}, 0, 0, 0, 0, None)


def test_messages_are_counted_once_by_topic_however_much_is_told_of_them() -> None:
    counted = tally_of(
        told(Kind.STORED, 0, 10),
        told(Kind.FLUSHED, 0, 10),
        told(Kind.LEASED, 5, 15),
        told(Kind.STORED, 0, 3, place=1),
        told(Kind.STORED, 0, 4, place=2),
    )

    assert counted.topics == {ORDERS: 18, LATE: 4}
    assert (counted.active, counted.completed, counted.failed) == (22, 0, 0)


@pytest.mark.parametrize("kind", [Kind.ACKED, Kind.READ])
def test_what_was_taken_for_good_is_completed_once(kind: str) -> None:
    counted = tally_of(told(Kind.STORED, 0, 10), told(kind, 2, 5), told(kind, 4, 7))

    assert (counted.completed, counted.active) == (5, 5)


@pytest.mark.parametrize("kind", [Kind.REJECTED, Kind.DEAD_LETTERED, Kind.PASSED_OVER, Kind.OUTDATED])
def test_what_is_given_up_has_failed_unless_another_group_has_done_it(kind: str) -> None:
    counted = tally_of(told(Kind.STORED, 0, 10), told(kind, 2, 6), told(kind, 3, 4), told(Kind.ACKED, 5, 8))

    assert (counted.failed, counted.completed, counted.active) == (3, 3, 4)


def test_refused_messages_have_failed_and_belong_to_no_topic() -> None:
    counted = tally_of(told(Kind.REFUSED, -1, -1), told(Kind.REFUSED, -1, -1), told(Kind.STORED, 0, 1))

    assert (counted.failed, counted.topics, counted.active) == (2, {ORDERS: 1}, 1)


def test_events_of_places_that_are_gone_are_not_counted() -> None:
    counted = tally_of(
        told(Kind.STORED, 0, 10, place=5),
        told(Kind.REFUSED, -1, -1, place=5),
        told(Kind.POSTPONED, 0, 4, place=DELAYED_PLACE, consumer="5", extra="gone"),
    )

    assert counted == Tally({}, 0, 0, 0, 0, None)


def test_messages_that_wait_are_delayed_until_they_are_due_or_cancelled() -> None:
    counted = tally_of(
        told(Kind.POSTPONED, 10, 20, place=DELAYED_PLACE, consumer="0", extra="orders"),
        told(Kind.DUE, 100, 103, extra=10),
        told(Kind.CANCELLED, 15, 16, place=DELAYED_PLACE, consumer="0", extra="orders"),
    )

    assert counted.delayed == 6
    assert (counted.topics, counted.active) == ({ORDERS: 3}, 3)


def test_the_latency_is_from_the_log_to_the_first_acknowledgement() -> None:
    counted = tally_of(
        told(Kind.STORED, 0, 2, time_us=100),
        told(Kind.STORED, 2, 6, time_us=200),
        told(Kind.ACKED, 1, 4, time_us=500),
        told(Kind.ACKED, 0, 4, time_us=900),
    )

    assert counted.latency_us == (400 + 300 + 300 + 800) / 4


def test_a_message_of_which_nobody_knows_when_it_was_stored_has_no_latency() -> None:
    assert tally_of(told(Kind.ACKED, 0, 4, time_us=500)).latency_us is None
    counted = tally_of(told(Kind.STORED, 2, 3, time_us=100), told(Kind.ACKED, 0, 4, time_us=500))
    assert counted.latency_us == 400


def test_a_message_that_was_only_read_has_no_latency() -> None:
    assert tally_of(told(Kind.STORED, 0, 2), told(Kind.READ, 0, 2, time_us=9)).latency_us is None


def test_only_sampled_messages_are_counted() -> None:
    places = {**PLACES, 0: (TopicPartition(ORDERS, 0), Sampling(10, 3))}
    counted = tally_of(
        told(Kind.STORED, 0, 100), told(Kind.ACKED, 0, 34), told(Kind.REJECTED, 90, 100), places=places
    )

    assert (counted.topics, counted.completed, counted.failed, counted.active) == ({ORDERS: 10}, 4, 1, 5)


def test_whoever_counts_pauses_after_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally_module, "STEP_COUNT", 10)
    steps = tally([told(Kind.STORED, n, n + 1) for n in range(95)], PLACES, DELAYED_PLACE)

    assert sum(1 for _ in steps) == 10 + 1, "and once for each place"


KINDS = (Kind.STORED, Kind.ACKED, Kind.READ, Kind.REJECTED, Kind.DEAD_LETTERED, Kind.LEASED)
EVENTS = st.lists(
    st.builds(
        lambda kind, first, count, place: told(kind, first, first + count, place=place),
        st.sampled_from(KINDS),
        st.integers(0, 30),
        st.integers(1, 8),
        st.integers(0, 3),
    ),
    max_size=25,
)


@given(EVENTS, st.integers(1, 5))
def test_runs_are_counted_as_message_by_message(events: Sequence[Event], every: int) -> None:
    places = {place: (source, Sampling(every, 2)) for place, (source, _) in PLACES.items()}
    stages: dict[tuple[int, int], set[str]] = {}
    for _, kind, place, first, end, *_ in events:
        for offset in range(first, end):
            if place in places and offset % every == 2 % every:
                stages.setdefault((place, offset), set()).add(kind)
    done = {one for one, kinds in stages.items() if kinds & {Kind.ACKED, Kind.READ}}
    given_up = {one for one, kinds in stages.items() if kinds & {Kind.REJECTED, Kind.DEAD_LETTERED}}

    counted = tally_of(*events, places=places)

    assert counted.completed == len(done)
    assert counted.failed == len(given_up - done)
    assert counted.active == len(stages.keys() - done - given_up)
    assert sum(counted.topics.values()) == len(stages)
