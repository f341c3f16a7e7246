"""Ways to share out partitions."""

import time
from collections.abc import Iterable, Mapping

import pytest

from goqueue.core.groups.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    Subscriptions,
    at_once,
    range_by_topic,
    round_robin,
    sticky,
)
from goqueue.model.ids import TopicName, TopicPartition

ORDERS, RETURNS = TopicName("orders"), TopicName("returns")
BOTH = (ORDERS, RETURNS)


def numbers(assignment: Assignment, topic: TopicName = ORDERS) -> dict[str, list[int]]:
    return {
        member: sorted(place.partition for place in places if place.topic == topic)
        for member, places in assignment.items()
    }


def moved(before: Assignment, after: Assignment) -> int:
    """How many partitions have another owner than they had."""
    owner = {place: member for member, places in before.items() for place in places}
    return sum(owner.get(place, member) != member for member, places in after.items() for place in places)


def shared_out(
    assignor: Assignor,
    subscriptions: Subscriptions,
    counts: Mapping[TopicName, int],
    previous: Mapping[str, frozenset[TopicPartition]],
) -> Assignment:
    return at_once(assignor(subscriptions, counts, previous))


def subscribe(
    members: Iterable[str], topics: Iterable[TopicName] = (ORDERS,)
) -> Mapping[str, frozenset[TopicName]]:
    return {member: frozenset(topics) for member in members}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_every_partition_has_one_owner_who_subscribes_to_its_topic(name: str) -> None:
    subscriptions = {**subscribe("ab", BOTH), **subscribe("c", (ORDERS,)), **subscribe("d", (RETURNS,))}

    assigned = shared_out(ASSIGNORS[name], subscriptions, {ORDERS: 7, RETURNS: 5}, {})

    places = [place for given in assigned.values() for place in given]
    assert len(places) == len(set(places)) == 12
    assert all(place.topic in subscriptions[member] for member, given in assigned.items() for place in given)


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_a_topic_that_does_not_exist_yet_is_nobodys(name: str) -> None:
    assert shared_out(ASSIGNORS[name], subscribe("ab", BOTH), {}, {}) == {"a": frozenset(), "b": frozenset()}


def test_range_gives_runs_to_members_in_order_of_their_names() -> None:
    assert numbers(shared_out(range_by_topic, subscribe("ba"), {ORDERS: 5}, {})) == {
        "a": [0, 1, 2],
        "b": [3, 4],
    }


def test_round_robin_deals_partitions_of_all_topics_in_turn() -> None:
    assigned = shared_out(round_robin, subscribe("ab", BOTH), {ORDERS: 3, RETURNS: 2}, {})

    assert numbers(assigned) == {"a": [0, 2], "b": [1]}
    assert numbers(assigned, RETURNS) == {"a": [1], "b": [0]}


def test_sticky_moves_no_more_than_a_newcomers_share() -> None:
    counts = {ORDERS: 10, RETURNS: 10}
    before = shared_out(sticky, subscribe("abc", BOTH), counts, {})
    after = shared_out(sticky, subscribe("abcd", BOTH), counts, before)

    assert sorted(map(len, after.values())) == [5, 5, 5, 5]
    assert moved(before, after) == 5


def test_sticky_gives_what_a_leaver_had_to_others_and_moves_nothing_else() -> None:
    counts = {ORDERS: 10}
    before = shared_out(sticky, subscribe("abcd"), counts, {})
    after = shared_out(sticky, subscribe("abc"), counts, before)

    assert sorted(map(len, after.values())) == [3, 3, 4]
    assert all(before[member] <= after[member] for member in "abc")


def test_sticky_forgets_partitions_that_are_gone_and_topics_no_longer_subscribed_to() -> None:
    before = {"a": frozenset({TopicPartition(ORDERS, 9), TopicPartition(RETURNS, 0)})}

    assert numbers(shared_out(sticky, subscribe("a"), {ORDERS: 2, RETURNS: 1}, before)) == {"a": [0, 1]}


def test_sticky_levels_loads_as_far_as_subscriptions_allow() -> None:
    subscriptions = {**subscribe("a", BOTH), **subscribe("b", (ORDERS,)), **subscribe("c", (RETURNS,))}
    counts = {ORDERS: 8, RETURNS: 4}
    everything_with_a = {
        "a": frozenset(TopicPartition(t, p) for t, total in counts.items() for p in range(total))
    }

    loads = {
        m: len(given) for m, given in shared_out(sticky, subscriptions, counts, everything_with_a).items()
    }

    assert loads == {"a": 4, "b": 4, "c": 4}


def test_a_hundred_members_and_a_thousand_partitions_are_assigned_in_no_time() -> None:
    counts = {TopicName(f"topic-{n}"): 100 for n in range(10)}
    members = [f"member-{n:03}" for n in range(101)]
    before = shared_out(sticky, subscribe(members[:100], counts), counts, {})
    begun_s = time.process_time()

    after = shared_out(sticky, subscribe(members, counts), counts, before)

    assert time.process_time() - begun_s < 0.5
    assert moved(before, after) <= 10
    assert {len(given) for given in after.values()} <= {9, 10}


def test_members_that_read_different_topics_of_thousands_of_partitions_take_few_steps() -> None:
    counts = {ORDERS: 5_000, RETURNS: 5_000}
    alone = shared_out(sticky, subscribe("a", BOTH), counts, {})
    assigning = sticky({**subscribe("a", BOTH), **subscribe("b", (ORDERS,))}, counts, alone)
    begun_s = time.process_time()

    steps = list(assigning)

    assert time.process_time() - begun_s < 0.2  # 0.5 s where every move looks through all that stays
    assert 50 < len(steps) < 100


def test_round_robin_passes_over_members_that_do_not_read_a_topic() -> None:
    subscriptions = {**subscribe("ac", (ORDERS,)), **subscribe("bd", (RETURNS,)), **subscribe("e", BOTH)}

    assigned = shared_out(round_robin, subscriptions, {ORDERS: 4, RETURNS: 4}, {})

    assert numbers(assigned) == {"a": [0, 3], "b": [], "c": [1], "d": [], "e": [2]}
    assert numbers(assigned, RETURNS) == {"a": [], "b": [0, 3], "c": [], "d": [1], "e": [2]}
