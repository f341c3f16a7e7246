"""Looking through recorded events: in steps, each message once, and no more of a story than anybody reads."""

from collections.abc import Generator, Sequence
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.telemetry import ring_search
from goqueue.core.telemetry.ring_search import (
    Found,
    Run,
    covering,
    covering_all,
    first_offsets,
    is_heard_of,
    messages_of,
)
from goqueue.core.telemetry.traces import Event, Kind, Sampling
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import TraceStatus

T = TypeVar("T")
ORDERS_0, ORDERS_1 = (TopicPartition(TopicName("orders"), partition) for partition in (0, 1))
PLACES = {0: (ORDERS_0, Sampling(1, 0)), 1: (ORDERS_1, Sampling(1, 0))}


def event(kind: str, first: int, end: int, *, place: int = 0, group: str = "") -> Event:
    return (0, kind, place, first, end, group, "", 0)


def done(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What work in steps comes to, and how many pauses it made."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def found(
    events: Sequence[Event],
    *,
    statuses: frozenset[TraceStatus] = frozenset(),
    starts: dict[int, int] | None = None,
    untold: dict[int, list[Run]] | None = None,
    places: ring_search.Places = PLACES,
) -> list[Found | None]:
    return list(
        messages_of(
            events, len(events), places, starts or {}, untold or {}, statuses, lambda event, source: True
        )
    )


def test_the_events_of_a_message_are_those_whose_run_it_is_in() -> None:
    events = [
        event(Kind.STORED, 0, 5),
        event(Kind.STORED, 5, 9),
        event(Kind.STORED, 0, 9, place=1),
        event(Kind.ACKED, 4, 5),
    ]

    assert done(covering(events, 0, 4))[0] == [events[0], events[3]]
    assert done(covering(events, 0, 5))[0] == [events[1]]
    assert done(covering(events, 0, 9))[0] == []


def test_of_very_many_events_of_one_message_the_first_and_the_newest_are_told() -> None:
    events = [(time_us, Kind.READ, 0, 0, 1, "", "", 0) for time_us in range(500)]

    told, _ = done(covering(events, 0, 0))

    assert [one[0] for one in told] == [*range(20), *range(420, 500)]
    many, _ = done(covering_all(events, [Found(0, 0)]))
    assert [one[0] for one in many[Found(0, 0)]] == [*range(20), *range(420, 500)]


@pytest.mark.parametrize("count", [99, 100, 101])
def test_a_story_of_a_hundred_events_is_told_as_a_whole(count: int) -> None:
    events = [(time_us, Kind.READ, 0, 0, 1, "", "", 0) for time_us in range(count)]

    told, _ = done(covering(events, 0, 0))

    assert len(told) == min(count, 100)


def test_whoever_looks_pauses_after_so_many_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_search, "STEP_COUNT", 10)
    events = [event(Kind.STORED, n, n + 1) for n in range(35)]

    assert done(covering(events, 0, 4))[1] == 4
    assert done(is_heard_of(events, "g"))[1] == 4
    assert done(first_offsets(events))[1] == 4
    assert done(covering_all(events, []))[1] == 3
    assert found(events).count(None) == 3


def test_an_event_that_tells_of_many_that_are_wanted_counts_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ring_search, "STEP_COUNT", 10)
    wanted = [Found(0, offset) for offset in range(9)]

    told, pauses = done(covering_all([event(Kind.READ, 0, 9)] * 3, wanted))

    assert pauses == 3
    assert all(len(events) == 3 for events in told.values())


def test_a_group_is_heard_of_when_an_event_names_it() -> None:
    events = [event(Kind.STORED, 0, 5), event(Kind.ACKED, 0, 1, group="g")]

    assert done(is_heard_of(events, "g"))[0]
    assert not done(is_heard_of(events, "h"))[0]
    assert not done(is_heard_of([], "g"))[0]


def test_where_the_ring_begins_to_tell_of_each_place() -> None:
    events = [
        event(Kind.ACKED, 7, 8),
        event(Kind.STORED, 3, 5, place=1),
        event(Kind.STORED, 2, 5),
    ]

    assert done(first_offsets(events))[0] == {0: 7, 1: 3}


def test_messages_come_from_the_newest_event_back_and_the_last_of_a_run_first() -> None:
    events = [event(Kind.STORED, 0, 3), event(Kind.STORED, 8, 9, place=1), event(Kind.ACKED, 1, 2)]

    assert found(events) == [Found(0, 1), Found(1, 8), Found(0, 2), Found(0, 0)]


def test_only_sampled_messages_of_places_that_are_there_are_found() -> None:
    places = {0: (ORDERS_0, Sampling(3, 1))}

    assert found([event(Kind.STORED, 0, 8), event(Kind.STORED, 0, 8, place=1)], places=places) == [
        Found(0, 7),
        Found(0, 4),
        Found(0, 1),
    ]


def test_what_retention_has_taken_is_not_found() -> None:
    events = [event(Kind.STORED, 0, 4), event(Kind.STORED, 0, 2, place=1)]

    assert found(events, starts={0: 3, 1: 2}) == [Found(0, 3)]


def test_a_refused_message_is_known_by_the_number_of_its_event() -> None:
    events = [event(Kind.REFUSED, -1, -1), event(Kind.STORED, 0, 1), event(Kind.REFUSED, -1, -1)]

    assert found(events) == [Found(0, 2, True), Found(0, 0), Found(0, 0, True)]
    assert found(events, statuses=frozenset({TraceStatus.COMPLETED})) == []
    assert len(found(events, statuses=frozenset({TraceStatus.FAILED}))) == 2


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        (TraceStatus.COMPLETED, {Kind.ACKED, Kind.READ, Kind.CANCELLED}),
        (TraceStatus.FAILED, {Kind.DEAD_LETTERED, Kind.REJECTED, Kind.PASSED_OVER}),
        (TraceStatus.RETRYING, {Kind.NACKED, Kind.EXPIRED}),
        (TraceStatus.DELAYED, {Kind.POSTPONED}),
        (TraceStatus.EXPIRED, {Kind.OUTDATED}),
    ],
)
def test_a_search_for_one_status_looks_only_at_events_that_can_lead_to_it(
    status: TraceStatus, kinds: set[str]
) -> None:
    every = [value for name, value in vars(Kind).items() if name.isupper() and value != Kind.REFUSED]
    events = [event(kind, offset, offset + 1) for offset, kind in enumerate(every)]

    looked_at = {every[one.offset] for one in found(events, statuses=frozenset({status})) if one}

    assert looked_at == kinds


def test_a_search_for_what_is_in_progress_looks_at_everything() -> None:
    events = [event(Kind.STORED, 0, 1), event(Kind.ACKED, 1, 2)]

    both = frozenset({TraceStatus.IN_PROGRESS, TraceStatus.COMPLETED})

    assert len(found(events, statuses=both)) == 2


def test_what_log_or_journals_may_tell_of_is_found_though_no_event_tells_so() -> None:
    events = [event(Kind.STORED, 0, 20)]
    untold = {0: [(2, 4), (6, 7), (19, 25)]}

    offsets = [
        one.offset for one in found(events, statuses=frozenset({TraceStatus.FAILED}), untold=untold) if one
    ]

    assert offsets == [19, 6, 3, 2]


RUN = st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(st.tuples(RUN, st.integers(0, 1)), max_size=20), st.sets(st.integers(0, 26)))
def test_many_messages_are_found_in_one_pass_as_one_by_one(
    runs: list[tuple[Run, int]], offsets: set[int]
) -> None:
    events = [event(Kind.STORED, *run, place=place) for run, place in runs]
    wanted = [Found(place, offset) for offset in offsets for place in (0, 1)]

    told, _ = done(covering_all(events, wanted))

    assert told == {one: done(covering(events, one.place, one.offset))[0] for one in wanted}


@given(st.lists(st.tuples(RUN, st.integers(0, 1)), max_size=20))
def test_every_message_that_is_told_of_is_found_once(runs: list[tuple[Run, int]]) -> None:
    messages = found([event(Kind.STORED, *run, place=place) for run, place in runs])

    told = {Found(place, offset) for run, place in runs for offset in range(*run)}
    assert len(messages) == len(told)
    assert set(messages) == told
