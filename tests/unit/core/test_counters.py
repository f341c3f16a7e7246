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
