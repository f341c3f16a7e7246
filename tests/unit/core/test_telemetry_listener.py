"""The listener of a partition: each event of the walk is counted, and told if a sampled message is in it."""

from collections.abc import Callable

import pytest

from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.telemetry import DELAYED, PartitionTelemetry, Telemetry
from goqueue.core.telemetry.traces import Event, Kind
from goqueue.model.delivery import Action
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import AS_THE_NODE, TopicSettings, TracingConfig
from goqueue.model.telemetry import NO_OFFSET

ORDERS_0 = TopicPartition(TopicName("orders"), 0)
DEAD_0 = TopicPartition(TopicName("orders.dlq"), 0)
Listened = Callable[[PartitionTelemetry], None]


def listening(rate: float = 1.0) -> tuple[Telemetry, PartitionTelemetry]:
    telemetry = Telemetry(Counters(), TracingConfig(events_max=100), "cluster", began_us=0)
    return telemetry, telemetry.watch(ORDERS_0, TopicSettings(tracing_sampling=rate))


def told(telemetry: Telemetry) -> list[tuple[str, int, int, str, str, int | str]]:
    """Kind, first, end, group, consumer and what else there is, of each event."""
    return [
        (kind, first, end, group, consumer, extra)
        for _, kind, _, first, end, group, consumer, extra in telemetry.traces.snapshot()
    ]


@pytest.mark.parametrize(
    ("happen", "event"),
    [
        (lambda it: it.stored(2, 6, 3, 50, 9), (Kind.STORED, 2, 6, "", "", 50)),
        (lambda it: it.flushed(2, 6, 9), (Kind.FLUSHED, 2, 6, "", "", 0)),
        (lambda it: it.read(2, 6, 50, "kafka", 9), (Kind.READ, 2, 6, "", "kafka", 50)),
        (
            lambda it: it.leased("g", "ann", [(2, 6)], count=4, size=50, until_ms=70, time_us=9),
            (Kind.LEASED, 2, 6, "g", "ann", 70),
        ),
        (
            lambda it: it.settled(Action.ACK, "g", "ann", [(2, 6)], count=4, told="", time_us=9),
            (Kind.ACKED, 2, 6, "g", "ann", ""),
        ),
        (
            lambda it: it.settled(Action.NACK, "g", "ann", [(2, 6)], count=4, told="later", time_us=9),
            (Kind.NACKED, 2, 6, "g", "ann", "later"),
        ),
        (
            lambda it: it.settled(Action.REJECT, "g", "ann", [(2, 6)], count=4, told="no", time_us=9),
            (Kind.REJECTED, 2, 6, "g", "ann", "no"),
        ),
        (
            lambda it: it.settled(Action.EXTEND, "g", "ann", [(2, 6)], count=4, told=70, time_us=9),
            (Kind.EXTENDED, 2, 6, "g", "ann", 70),
        ),
        (
            lambda it: it.expired("g", "ann", [(2, 6)], count=4, time_us=9),
            (Kind.EXPIRED, 2, 6, "g", "ann", ""),
        ),
        (lambda it: it.outdated("g", [(2, 6)], count=4, time_us=9), (Kind.OUTDATED, 2, 6, "g", "", "")),
        (
            lambda it: it.passed_over("g", [(2, 6)], count=4, reason="corrupt", time_us=9),
            (Kind.PASSED_OVER, 2, 6, "g", "", "corrupt"),
        ),
        (
            lambda it: it.refused("too_large", "5 bytes too many", 9),
            (Kind.REFUSED, NO_OFFSET, NO_OFFSET, "too_large", "", "5 bytes too many"),
        ),
    ],
)
def test_what_happens_to_a_run_is_told_in_one_event(happen: Listened, event: tuple[object, ...]) -> None:
    telemetry, listener = listening()

    happen(listener)

    assert told(telemetry) == [event]
    assert telemetry.traces.snapshot()[0][:3] == (9, event[0], listener.place)


def test_every_run_of_a_lease_is_told_by_itself() -> None:
    telemetry, listener = listening()

    listener.expired("g", "ann", [(0, 2), (5, 6)], count=3, time_us=9)

    assert [one[1:3] for one in told(telemetry)] == [(0, 2), (5, 6)]


def test_what_is_told_is_counted_for_the_topic() -> None:
    telemetry, listener = listening()
    listener.stored(0, 9, 7, 500, 0)
    listener.read(0, 4, 80, "kafka", 0)
    listener.postponed(3, telemetry.delayed, 10, 20, 0)
    listener.due(9, [10, 11], 0)
    listener.cancelled(telemetry.delayed, 12, 0)

    topic = telemetry.counters.topic("orders")

    assert (topic.published, topic.published_bytes) == (7, 500), "messages, not offsets"
    assert (topic.read, topic.read_bytes) == (4, 80)
    assert (topic.delayed, topic.delays_fired, topic.delays_cancelled) == (3, 2, 1)


def test_what_is_told_of_a_lease_is_counted_for_the_group() -> None:
    telemetry, listener = listening()
    runs = [(0, 9)]
    listener.leased("g", "ann", runs, count=9, size=90, until_ms=1, time_us=0)
    for count, action in enumerate((Action.ACK, Action.NACK, Action.REJECT, Action.EXTEND), 1):
        listener.settled(action, "g", "ann", runs, count=count, told="", time_us=0)
    listener.expired("g", "ann", runs, count=5, time_us=0)
    listener.outdated("g", runs, count=6, time_us=0)
    listener.passed_over("g", runs, count=7, reason="", time_us=0)
    listener.dead_lettered("g", "ann", 3, telemetry.of(DEAD_0), 0, 0)

    pair = telemetry.counters.group_topic("g", "orders")

    assert (pair.consumed, pair.consumed_bytes) == (9, 90)
    assert (pair.acked, pair.nacked, pair.rejected, pair.extended) == (1, 2, 3, 4)
    assert (pair.expired, pair.outdated, pair.passed_over, pair.dead_letters) == (5, 6, 7, 1)


def test_a_dead_letter_tells_where_it_went_and_where_it_came_back_to() -> None:
    telemetry, listener = listening()
    dead = telemetry.watch(DEAD_0, TopicSettings())

    listener.dead_lettered("g", "ann", 3, dead, 11, 9)
    dead.redriven(11, listener, 40, 10)

    assert told(telemetry) == [
        (Kind.DEAD_LETTERED, 3, 4, "g", "ann", "orders.dlq/0@11"),
        (Kind.REDRIVEN, 11, 12, "", "", "orders/0@40"),
    ]
    assert telemetry.counters.topic("orders").redriven == 1
    assert telemetry.counters.topic("orders.dlq").redriven == 0


def test_a_message_that_waits_is_told_at_the_place_of_those_that_wait() -> None:
    telemetry, listener = listening()

    listener.postponed(2, telemetry.delayed, 4, 9, 7)
    listener.cancelled(telemetry.delayed, 5, 8)

    events: list[Event] = telemetry.traces.snapshot()
    assert events == [
        (7, Kind.POSTPONED, telemetry.delayed.place, 4, 9, "", str(listener.place), "orders"),
        (8, Kind.CANCELLED, telemetry.delayed.place, 5, 6, "", str(listener.place), "orders"),
    ]
    assert telemetry.traces.source_of(telemetry.delayed.place) == DELAYED


def test_messages_that_fell_due_in_several_runs_are_several_events() -> None:
    telemetry, listener = listening()

    listener.due(100, [7, 8, 9, 20, 3, 4], 9)

    assert [(first, end, extra) for _, first, end, _, _, extra in told(telemetry)] == [
        (100, 103, 7),
        (103, 104, 20),
        (104, 106, 3),
    ]


@pytest.mark.parametrize("text", ["x" * 300, "x" * 301, "x" * 10_000])
def test_of_a_text_that_somebody_chose_freely_only_the_beginning_is_kept(text: str) -> None:
    telemetry, listener = listening()

    listener.refused("code", text, 0)
    listener.passed_over("g", [(0, 1)], count=1, reason=text, time_us=0)
    listener.settled(Action.REJECT, "g", "ann", [(0, 1)], count=1, told=text, time_us=0)

    assert {extra for *_, extra in told(telemetry)} == {"x" * 300}


@pytest.mark.parametrize(
    ("is_enabled", "node", "topic", "rate"),
    [
        (True, 0.5, AS_THE_NODE, 0.5),
        (True, 0.5, 0.1, 0.1),
        (True, 0.5, 0.0, 0.0),
        (False, 0.5, 1.0, 0.0),
        (False, 0.5, AS_THE_NODE, 0.0),
    ],
)
def test_a_topic_is_sampled_as_it_says_or_as_the_node_does(
    is_enabled: bool, node: float, topic: float, rate: float
) -> None:
    config = TracingConfig(is_enabled=is_enabled, sampling=node)
    telemetry = Telemetry(Counters(), config, "cluster", began_us=0)

    assert telemetry.rate_of(TopicSettings(tracing_sampling=topic)) == rate


def test_another_rate_counts_from_now_on() -> None:
    telemetry, listener = listening(0.0)
    assert not listener.is_traced
    listener.flushed(0, 5, 0)

    telemetry.change(ORDERS_0, TopicSettings(tracing_sampling=1.0))
    listener.flushed(5, 9, 0)

    assert listener.is_traced
    assert [one[1:3] for one in told(telemetry)] == [(5, 9)]
    assert list(telemetry.traces.sampled(listener.place, 5, 8)) == [5, 6, 7]


@pytest.mark.parametrize("every", [1, 2, 7])
def test_a_run_is_told_exactly_when_a_sampled_message_is_in_it(every: int) -> None:
    telemetry, listener = listening(1 / every)
    runs = [(first, first + count) for first in range(20) for count in range(4)]

    for first, end in runs:
        listener.flushed(first, end, 0)
        listener.expired("g", "ann", [(first, end)], count=end - first, time_us=0)

    holding = [run for run in runs if any(listener.samples(offset) for offset in range(*run))]
    assert [one[1:3] for one in told(telemetry)][-100:] == [run for run in holding for _ in "12"][-100:]


def test_a_partition_that_is_gone_tells_its_tales_to_nobody() -> None:
    telemetry, listener = listening()
    listener.flushed(0, 5, 0)

    telemetry.forget(ORDERS_0)
    telemetry.of(ORDERS_0).flushed(5, 9, 0)
    telemetry.forget(ORDERS_0)

    assert [one[1:3] for one in told(telemetry)] == [(0, 5)]
    assert telemetry.traces.source_of(listener.place) is None
    assert listener.place not in telemetry.traces.places()
    assert list(telemetry.traces.sampled(listener.place, 0, 5)) == []


def test_a_refusal_is_counted_also_for_a_topic_that_is_not_there_and_told_for_one_that_is() -> None:
    telemetry, _ = listening()

    telemetry.refused("orders", "too_large", "why", count=3, time_us=9)
    telemetry.refused("ghost", "not_found", "why", time_us=9)

    assert telemetry.counters.topic("orders").failed == {"too_large": 3}
    assert telemetry.counters.other_topics.failed == {"not_found": 1}
    assert [one[3] for one in told(telemetry)] == ["too_large"]
