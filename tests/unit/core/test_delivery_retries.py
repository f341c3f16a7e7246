"""Messages that come back: another try after a while, the dead letters when there are enough."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.events import MovesBegun, Returned, Settled
from goqueue.core.delivery.lease import NO_LEASE
from goqueue.core.delivery.retries import RetryPolicy, Story, bury, expire, give_back
from goqueue.model.delivery import Move, Reason
from tests.unit.core.delivery_desk import BEGIN_MS, DEAD, NUMBER, POLICY, VISIBILITY_MS, ready, stocked

STORY = Story(Reason.REJECTED, "ann", "no stock", BEGIN_MS)


@pytest.mark.parametrize(
    ("attempts", "delay_ms"),
    [(1, 1_000), (2, 2_000), (3, 4_000), (6, 32_000), (7, 60_000), (8, 60_000), (500, 60_000)],
)
def test_the_wait_doubles_with_every_try_up_to_a_limit(attempts: int, delay_ms: int) -> None:
    assert POLICY.delay_ms(attempts) == delay_ms


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**7))
def test_no_wait_is_longer_than_the_limit_or_shorter_than_the_one_before(
    attempts: int, backoff_ms: int, backoff_max_ms: int
) -> None:
    policy = RetryPolicy(3, backoff_ms, backoff_max_ms, None)

    assert 0 <= policy.delay_ms(attempts) <= policy.delay_ms(attempts + 1) <= backoff_max_ms


def test_a_message_that_failed_waits_by_the_back_off() -> None:
    desk = stocked(5)
    leased = desk.poll(3)

    events = give_back(desk.delivery, leased.lease, [(1, 3)], POLICY, STORY, due_ms=None)

    assert events == [Returned(NUMBER, leased.lease, ((1, 3),), BEGIN_MS + 1_000)]


def test_a_message_that_failed_waits_as_its_consumer_says() -> None:
    desk = stocked(5)
    leased = desk.poll(3)

    events = give_back(desk.delivery, leased.lease, [(1, 3)], POLICY, STORY, due_ms=BEGIN_MS + 7)

    assert events == [Returned(NUMBER, leased.lease, ((1, 3),), BEGIN_MS + 7)]


def test_messages_that_failed_before_wait_longer_than_the_others() -> None:
    desk = stocked(5)
    desk.give_back(desk.poll(5), (1, 2), (3, 4))
    desk.wait(VISIBILITY_MS)
    desk.delivery.attempts.update({0: 0, 2: 0, 4: 0})

    events = give_back(desk.delivery, 9, [(0, 5)], POLICY, STORY, due_ms=None)

    assert events == [
        Returned(NUMBER, 9, ((0, 1), (2, 3), (4, 5)), BEGIN_MS + 1_000),
        Returned(NUMBER, 9, ((1, 2), (3, 4)), BEGIN_MS + 2_000),
    ]


def test_a_message_has_as_many_tries_as_the_policy_says_and_one_more() -> None:
    desk = stocked(1)
    tries = 0
    while runs := desk.poll(1).runs:
        tries += 1
        events = give_back(desk.delivery, desk.leases, runs, POLICY, STORY, due_ms=desk.now_ms)
        desk.commit(*events)
        desk.wait(0)

    assert tries == POLICY.retries_max + 1
    assert [(one.offset, one.attempts, one.error) for one, _ in desk.delivery.moves.pending()] == [
        (0, 3, "no stock")
    ]


def test_the_dead_are_told_apart_from_those_with_a_try_left() -> None:
    desk = stocked(4)
    leased = desk.poll(4)
    desk.delivery.attempts.update({1: 2, 2: 1})

    events = give_back(desk.delivery, leased.lease, [(0, 4)], POLICY, STORY, due_ms=5)

    returned, dead = events
    assert returned == Returned(NUMBER, leased.lease, ((0, 1), (2, 4)), 5)
    assert isinstance(dead, MovesBegun)
    assert [one.offset for one in dead.moves] == [1]


def test_a_policy_without_retries_buries_at_once() -> None:
    desk = stocked(2)
    leased = desk.poll(2)

    (event,) = give_back(
        desk.delivery, leased.lease, leased.runs, replace(POLICY, retries_max=0), STORY, due_ms=None
    )

    assert isinstance(event, MovesBegun)
    assert [one.offset for one in event.moves] == [0, 1]


def test_the_story_goes_with_a_message_to_the_dead_letters() -> None:
    desk = stocked(3)
    leased = desk.poll(3)
    desk.delivery.attempts[2] = 4

    event = bury(desk.delivery, leased.lease, [(0, 1), (2, 3)], POLICY, STORY)

    assert event == MovesBegun(
        NUMBER,
        leased.lease,
        (
            Move(0, DEAD, 0, Reason.REJECTED, 1, "ann", "no stock", BEGIN_MS),
            Move(2, DEAD, 0, Reason.REJECTED, 5, "ann", "no stock", BEGIN_MS),
        ),
    )


def test_a_message_that_is_not_out_was_not_tried_once_more() -> None:
    desk = stocked(3)
    desk.delivery.attempts[1] = 2

    event = bury(desk.delivery, NO_LEASE, [(0, 2)], POLICY, STORY)

    assert isinstance(event, MovesBegun)
    assert [one.attempts for one in event.moves] == [0, 2]


def test_a_message_that_cannot_be_delivered_from_the_dead_letters_stays_there_settled() -> None:
    desk = stocked(3)
    leased = desk.poll(3)
    last = replace(POLICY, retries_max=0, dead_letters=None)

    assert bury(desk.delivery, leased.lease, [(0, 2)], last, STORY) == Settled(
        NUMBER, leased.lease, ((0, 2),)
    )
    assert give_back(desk.delivery, leased.lease, [(1, 3)], last, STORY, due_ms=None) == [
        Settled(NUMBER, leased.lease, ((1, 3),))
    ]


def test_a_message_whose_consumer_fell_silent_comes_back_at_once() -> None:
    desk = stocked(4)
    leased = desk.poll(2)
    assert desk.wait(VISIBILITY_MS - 1) == []

    events = desk.wait(1)

    assert events == [Returned(NUMBER, leased.lease, ((0, 2),), desk.now_ms)]
    assert ready(desk.delivery) == [(0, 4)]
    assert desk.delivery.delivery_count(0) == 2


def test_a_message_that_kills_its_consumers_is_dead_at_last() -> None:
    desk = stocked(1)
    for _ in range(POLICY.retries_max):
        desk.poll(1, "ben")
        desk.wait(VISIBILITY_MS)
    desk.poll(1, "ben")

    (event,) = desk.wait(VISIBILITY_MS)

    assert isinstance(event, MovesBegun)
    assert event.moves == (
        Move(
            0,
            DEAD,
            0,
            Reason.MAX_RETRIES_EXCEEDED,
            3,
            "ben",
            "the consumer did not settle it in time",
            desk.now_ms,
        ),
    )
    assert desk.delivery.in_flight("ben") == 0


def test_events_of_what_ran_out_tell_wall_time_although_running_time_decides() -> None:
    desk = stocked(2)
    leased = desk.poll(2)
    wall_ms = 77

    events = expire(desk.delivery, POLICY, now_ms=BEGIN_MS + VISIBILITY_MS, wall_ms=wall_ms)

    assert events == [Returned(NUMBER, leased.lease, ((0, 2),), wall_ms)]
