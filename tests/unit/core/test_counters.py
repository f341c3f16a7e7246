"""Counters and histograms: right numbers, and a bound on how many."""

import pytest

from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.histogram import Histogram
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import MetricsConfig

ORDERS_0 = TopicPartition(TopicName("orders"), 0)
ORDERS_1 = TopicPartition(TopicName("orders"), 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, [1, 0, 0]), (1.0, [1, 0, 0]), (1.1, [0, 1, 0]), (2.0, [0, 1, 0]), (2.5, [0, 0, 1])],
)
def test_a_range_includes_its_upper_bound(value: float, expected: list[int]) -> None:
    histogram = Histogram((1.0, 2.0))

    histogram.observe(value)

    assert (histogram.counts, histogram.total, histogram.count) == (expected, value, 1)


def test_what_is_told_of_a_histogram_rises() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.5, 1.5, 9.0):
        histogram.observe(value)

    assert list(histogram.rising()) == [(1.0, 1), (2.0, 3), (float("inf"), 4)]


def test_partitions_of_a_topic_are_counted_together() -> None:
    counters = Counters()
    counters.partition(ORDERS_0).stored(3, 300)
    counters.partition(ORDERS_1).stored(2, 200)

    topic = counters.topic("orders")

    assert (topic.published, topic.published_bytes) == (5, 500)


def test_groups_are_told_apart_by_topic() -> None:
    counters = Counters()
    counts = counters.partition(ORDERS_0)
    counts.leased("a", 5, 50)
    counts.acked("a", 3)
    counts.nacked("a", 1)
    counts.rejected("a", 1)
    counts.leased("b", 2, 20)

    a, b = counters.group_topic("a", "orders"), counters.group_topic("b", "orders")

    assert (a.consumed, a.consumed_bytes, a.acked, a.nacked, a.rejected) == (5, 50, 3, 1, 1)
    assert (b.consumed, b.acked) == (2, 0)


def test_totals_keep_what_groups_and_topics_did_that_are_gone() -> None:
    counters = Counters(MetricsConfig(groups_max=2))
    for group in ("a", "b", "c"):
        counters.partition(ORDERS_0).leased(group, 5, 50)
        counters.partition(ORDERS_0).acked(group, 3)

    counters.forget_groups({"b", "c"})
    counters.forget_topics(())

    totals = counters.queue_totals()
    assert (totals.consumed, totals.consumed_bytes, totals.acked, totals.nacked) == (15, 150, 9, 0)


def test_what_comes_when_all_places_are_taken_is_counted_together() -> None:
    counters = Counters(MetricsConfig(topics_max=2, groups_max=1))

    for name in ("a", "b", "c", "d"):
        counters.topic(name).published += 1
        counters.group(f"group-{name}").polls += 1
        counters.group_topic(f"group-{name}", name).acked += 1

    assert (list(counters.topics), counters.other_topics.published) == (["a", "b"], 2)
    assert (list(counters.groups), counters.other_groups.polls) == (["group-a"], 3)
    assert (list(counters.group_topics), counters.other_group_topics.acked) == ([("group-a", "a")], 3)


def test_journals_of_the_broker_take_nobodys_place() -> None:
    counters = Counters(MetricsConfig(topics_max=1))

    counters.topic("__metadata").written_bytes += 1
    counters.topic("orders").written_bytes += 1

    assert (list(counters.topics), list(counters.journals)) == (["orders"], ["__metadata"])
    assert not counters.has_other_topics


def test_a_topic_that_is_gone_frees_its_place() -> None:
    counters = Counters(MetricsConfig(topics_max=1))
    counters.topic("old").published += 7
    counters.group_topic("readers", "old").acked += 7

    counters.forget_topics({"new"})

    assert counters.topic("new").published == 0
    assert (list(counters.topics), counters.group_topics) == (["new"], {})


def test_a_group_that_is_gone_frees_its_place() -> None:
    counters = Counters(MetricsConfig(groups_max=1))
    counters.group("old").polls += 1
    counters.group_topic("old", "orders").acked += 1

    counters.forget_groups({"new"})

    counters.group("new")
    assert (list(counters.groups), counters.group_topics) == (["new"], {})


def test_a_refusal_gives_no_place_to_a_name_that_anybody_can_make_up() -> None:
    counters = Counters()
    counters.topic("orders")

    counters.refused("orders", "message_too_large", 2)
    counters.refused("made-up", "topic_not_found")

    assert counters.topics["orders"].failed == {"message_too_large": 2}
    assert list(counters.topics) == ["orders"]
    assert counters.other_topics.failed == {"topic_not_found": 1}


def test_a_refused_commit_gives_no_place_either() -> None:
    counters = Counters()
    counters.group("readers")

    counters.commit_refused("readers", "illegal_generation")
    counters.commit_refused("made-up", "unknown_member")

    assert counters.groups["readers"].commit_errors == {"illegal_generation": 1}
    assert list(counters.groups) == ["readers"]
    assert counters.other_groups.commit_errors == {"unknown_member": 1}


def test_a_settlement_is_timed_by_what_was_asked_for() -> None:
    topic = Counters().topic("orders")

    topic.settled("ack", 0.002)
    topic.settled("ack", 0.004)
    topic.settled("nack", 1.5)

    assert {action: known.count for action, known in topic.ack_seconds.items()} == {"ack": 2, "nack": 1}
    assert topic.ack_seconds["ack"].total == pytest.approx(0.006)


def test_messages_that_were_checked_are_counted_by_whether_they_fitted_and_by_who_looked() -> None:
    topic = Counters().topic("orders")

    topic.checked(10, 3, 0.001)
    topic.checked(5, 0, 0.001)
    topic.checked_apart(4)
    topic.check_too_slow(2)

    assert (topic.valid, topic.misfits, topic.check_seconds.count) == (12, 3, 2)
    assert (topic.checked_elsewhere, topic.checks_too_slow) == (4, 2)


def test_polls_and_heartbeats_of_a_group_are_counted_and_timed() -> None:
    group = Counters().group("readers")

    for count in (0, 7, 0, 2_000):
        group.polled(count, 0.01)
    group.beaten(0.02)

    assert (group.polls, group.polls_empty, group.heartbeats) == (4, 2, 1)
    assert (group.poll_messages.total, group.poll_messages.counts[0]) == (2_007, 2)
    assert (group.poll_seconds.count, group.heartbeat_seconds.total) == (4, 0.02)


def test_whatever_becomes_of_messages_is_counted_under_its_own_name() -> None:
    counters = Counters()
    counts = counters.partition(ORDERS_0)
    verbs = {
        "acked": counts.acked,
        "nacked": counts.nacked,
        "rejected": counts.rejected,
        "expired": counts.expired,
        "extended": counts.extended,
        "outdated": counts.outdated,
        "passed_over": counts.passed_over,
        "dead_letters": counts.dead_lettered,
    }
    for number, verb in enumerate(verbs.values(), 1):
        verb("readers", number)
        verb("readers", 10)

    pair = counters.group_topic("readers", "orders")

    assert [getattr(pair, name) for name in verbs] == [10 + number for number in range(1, 9)]
    assert (pair.consumed, pair.commits) == (0, 0)


def test_delays_and_what_was_read_without_a_group_are_counted_for_the_topic() -> None:
    counters = Counters()
    counts = counters.partition(ORDERS_0)
    counts.read(3, 30)
    counts.redriven(1)
    counts.postponed(5)
    counts.due(2)
    counts.cancelled(4)

    topic = counters.topic("orders")

    assert (topic.read, topic.read_bytes, topic.redriven) == (3, 30, 1)
    assert (topic.delayed, topic.delays_fired, topic.delays_cancelled) == (5, 2, 4)


@pytest.mark.parametrize("places", [1, 2, 3])
def test_as_many_names_have_numbers_of_their_own_as_there_are_places(places: int) -> None:
    counters = Counters(MetricsConfig(topics_max=places, groups_max=places))
    for name in ("a", "b", "a", "c"):
        counters.topic(name)
        counters.group(name)
        counters.group_topic(name, "orders")

    assert len(counters.topics) == len(counters.groups) == len(counters.group_topics) == places
    assert counters.has_other_topics is counters.has_other_groups is (places < 3)
    assert counters.has_other_group_topics is (places < 3)


def test_a_refusal_of_somebody_without_a_place_is_told_as_one_of_others() -> None:
    counters = Counters()

    counters.refused("made-up", "topic_not_found", 3)
    counters.commit_refused("made-up", "unknown_member")

    assert counters.has_other_topics
    assert counters.has_other_groups
    assert counters.other_topics.failed == {"topic_not_found": 3}
