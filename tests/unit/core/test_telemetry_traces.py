"""Recorded events: the ring, which offsets are sampled, and how events are looked through and counted."""

import gc
from collections.abc import Generator
from itertools import pairwise
from random import Random
from typing import TypeVar

from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.ring_search import Found, Run, covering, covering_all, messages_of, take_unseen
from goqueue.core.telemetry.telemetry import PartitionTelemetry, Telemetry
from goqueue.core.telemetry.traces import Drained, Event, Kind, Sampling, Traces, sampling_of
from goqueue.model.delivery import Action
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings, TracingConfig
from goqueue.model.telemetry import TraceStatus

T = TypeVar("T")
ORDERS_0 = TopicPartition(TopicName("orders"), 0)


def event(first: int, end: int, *, kind: str = Kind.STORED, place: int = 0, time_us: int = 0) -> Event:
    return (time_us, kind, place, first, end, "", "", 0)


def done(steps: Generator[None, None, T]) -> T:
    """What work in steps comes to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # as the generator says


def listening(*, sampling: float = 1.0, events_max: int = 100) -> tuple[Telemetry, PartitionTelemetry]:
    telemetry = Telemetry(Counters(), TracingConfig(events_max=events_max), "cluster", began_us=0)
    return telemetry, telemetry.watch(ORDERS_0, TopicSettings(tracing_sampling=sampling))


def test_a_reader_of_the_ring_gets_each_event_once_and_hears_what_it_missed() -> None:
    traces = Traces(3)
    for number in range(2):
        traces.record(event(number, number + 1))
    assert traces.after(0, 1) == Drained([event(0, 1)], 1, 0)
    assert traces.after(1, 10) == Drained([event(1, 2)], 2, 0)
    assert traces.after(2, 10) == Drained([], 2, 0)
    for number in range(2, 7):
        traces.record(event(number, number + 1))
    assert traces.after(2, 2) == Drained([event(4, 5), event(5, 6)], 6, 2)
    assert traces.after(6, 2) == Drained([event(6, 7)], 7, 0)
    assert traces.at(3) is None
    assert traces.at(4) == event(4, 5)


def test_one_of_so_many_offsets_is_sampled_and_a_run_is_recorded_if_it_holds_one() -> None:
    telemetry, listener = listening(sampling=0.1)
    sampled = [offset for offset in range(100) if listener.samples(offset)]
    assert len(sampled) == 10
    assert {late - early for early, late in pairwise(sampled)} == {10}
    for first in range(0, 99, 3):
        listener.stored(first, first + 3, 3, 1, 0)
    runs = [(first, end) for _, _, _, first, end, *_ in telemetry.traces.snapshot()]
    assert runs == [(n, n + 3) for n in range(0, 99, 3) if any(n <= one < n + 3 for one in sampled)]
    assert list(telemetry.traces.sampled(listener.place, 0, 100)) == sampled
    thinned = list(telemetry.traces.sampled(listener.place, 0, 100, thinned=4))
    assert 2 <= len(thinned) <= 3 and set(thinned) < set(sampled)


def test_a_rate_becomes_one_of_so_many() -> None:
    everys = [sampling_of(ORDERS_0, rate).every for rate in (0, 0.001, 0.01, 0.4, 0.5, 1)]
    assert everys == [0, 1000, 100, 2, 2, 1]


def test_without_sampling_nothing_is_recorded_but_all_is_counted() -> None:
    telemetry, listener = listening(sampling=0)
    listener.stored(0, 5, 5, 500, 0)
    listener.flushed(0, 5, 0)
    listener.settled(Action.ACK, "workers", "ann", [(0, 5)], count=5, told="", time_us=0)
    listener.due(5, [1, 2], 0)
    assert len(telemetry.traces) == 0
    assert telemetry.counters.topic("orders").published == 5
    assert telemetry.counters.group_topic("workers", "orders").acked == 5


def test_a_long_reason_does_not_fill_the_memory_and_events_are_no_work_for_the_collector() -> None:
    telemetry, listener = listening()
    listener.settled(Action.NACK, "workers", "ann", [(0, 5)], count=5, told="x" * 10_000, time_us=0)
    listener.refused("invalid", "y" * 10_000, 0)
    listener.stored(5, 9, 4, 100, 1)
    texts = [event[7] for event in telemetry.traces.snapshot()[:2]]
    assert [len(str(text)) for text in texts] == [300, 300]
    gc.collect()
    assert not any(map(gc.is_tracked, telemetry.traces.snapshot()))


def test_delayed_messages_that_follow_each_other_are_one_event() -> None:
    telemetry, listener = listening()
    listener.due(10, [7, 8, 9, 3, 4, 20], 0)
    runs = [(first, end, extra) for _, kind, _, first, end, _, _, extra in telemetry.traces.snapshot()]
    assert runs == [(10, 13, 7), (13, 15, 3), (15, 16, 20)]
    assert {kind for _, kind, *_ in telemetry.traces.snapshot()} == {Kind.DUE}


def test_a_topic_that_is_made_anew_does_not_inherit_events() -> None:
    telemetry, listener = listening()
    listener.stored(0, 1, 1, 1, 0)
    again = telemetry.watch(ORDERS_0, TopicSettings())
    assert telemetry.traces.source_of(listener.place) is None
    assert done(covering(telemetry.traces.snapshot(), again.place, 0)) == []
    telemetry.forget(ORDERS_0)
    telemetry.of(ORDERS_0).stored(0, 1, 1, 1, 0)
    assert len(telemetry.traces) == 1, "what is told of a partition that is gone goes nowhere"


def test_parts_of_runs_that_are_new_are_found_as_a_set_would() -> None:
    random = Random(1)
    seen: list[Run] = []
    known: set[int] = set()
    for _ in range(500):
        first = random.randrange(300)
        run = range(first, first + random.randrange(1, 20))
        new = {offset for part in take_unseen(seen, run.start, run.stop) for offset in range(*part)}
        assert new == set(run) - known
        known |= set(run)
        assert seen == sorted(seen) and {offset for one in seen for offset in range(*one)} == known
        assert all(early[1] < late[0] for early, late in pairwise(seen))


def test_messages_come_newest_first_and_once() -> None:
    events = [event(0, 3), event(3, 5), event(0, 5, kind=Kind.FLUSHED), event(1, 2, kind=Kind.ACKED)]
    places = {0: (ORDERS_0, Sampling(1, 0))}
    found = messages_of(events, len(events), places, {}, {}, frozenset(), lambda *_: True)
    assert [one.offset for one in found if one] == [1, 4, 3, 2, 0]
    left = messages_of(events, len(events), places, {0: 2}, {}, frozenset(), lambda *_: True)
    assert [one.offset for one in left if one] == [4, 3, 2], "what retention has taken is not told of"


def test_a_search_looks_at_what_events_or_journals_may_tell_of() -> None:
    events = [event(0, 9), event(0, 9, kind=Kind.FLUSHED), event(6, 7, kind=Kind.ACKED)]
    places = {0: (ORDERS_0, Sampling(1, 0))}

    def looked_at(*, untold_end: int, status: TraceStatus) -> list[int]:
        statuses = frozenset({status})
        found = messages_of(events, 3, places, {}, {0: [(0, untold_end)]}, statuses, lambda *_: True)
        return [one.offset for one in found if one]

    assert looked_at(untold_end=0, status=TraceStatus.COMPLETED) == [6]
    assert looked_at(untold_end=2, status=TraceStatus.COMPLETED) == [6, 1, 0]
    assert looked_at(untold_end=2, status=TraceStatus.FAILED) == [1, 0], "a transaction may have ended so"
    assert looked_at(untold_end=0, status=TraceStatus.FAILED) == []
    assert len(looked_at(untold_end=0, status=TraceStatus.IN_PROGRESS)) == 9


def test_events_of_many_messages_are_found_in_one_pass() -> None:
    random = Random(2)
    events = [
        event(first, first + random.randrange(1, 9), place=random.randrange(3), time_us=at)
        for at, first in enumerate(random.randrange(50) for _ in range(300))
    ]
    wanted = {Found(random.randrange(3), random.randrange(55)) for _ in range(40)}
    told = done(covering_all(events, wanted))
    assert told == {found: done(covering(events, found.place, found.offset)) for found in wanted}


def test_events_that_tell_of_many_messages_each_are_looked_at_in_more_steps() -> None:
    events = [event(0, 1_000, time_us=at) for at in range(500)]
    steps = covering_all(events, [Found(0, offset) for offset in range(1_000)])

    assert sum(1 for _ in steps) == 500, "each event is noted for a thousand messages, which is a step"
