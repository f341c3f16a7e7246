"""What has been delivered is a few steps, whatever the number of messages."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delays.delivered import Delivered, Step
from goqueue.core.delays.entries import Fresh


def test_a_step_covers_what_was_due_by_then_and_lay_before_its_end() -> None:
    delivered = Delivered([Step(due_ms=100, end_offset=8)])

    assert delivered.covers(100, 7)
    assert not delivered.covers(101, 7)
    assert not delivered.covers(100, 8)


def test_later_steps_take_the_place_of_earlier_ones() -> None:
    delivered = Delivered([Step(100, 8), Step(100, 9), Step(250, 9)])

    assert delivered.steps == (Step(250, 9),)


def test_a_clock_that_is_set_back_leaves_a_second_step_until_time_has_passed_it() -> None:
    delivered = Delivered([Step(1_000, 8)])

    delivered.add(Step(500, 12))

    assert delivered.covers(900, 7)
    assert not delivered.covers(900, 8), "it came after the clock was set back, and is not due"
    delivered.add(Step(1_001, 14))
    assert delivered.steps == (Step(1_001, 14),)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), max_size=8),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30),
)
def test_many_entries_are_judged_as_each_by_itself(
    steps: list[tuple[int, int]], entries: list[tuple[int, int]]
) -> None:
    delivered = Delivered(Step(*step) for step in steps)
    fresh = Fresh()
    for due_ms, offset in entries:
        fresh.add(due_ms, offset, 0)

    naive = [any(due <= d and offset < end for d, end in steps) for due, offset in entries]

    assert [delivered.covers(*entry) for entry in entries] == naive
    assert delivered.covered(fresh.entries()).tolist() == naive


def test_a_step_that_says_no_more_than_another_is_dropped() -> None:
    delivered = Delivered([Step(100, 8)])

    for step in (Step(100, 8), Step(99, 8), Step(100, 7), Step(50, 2)):
        delivered.add(step)

    assert delivered.steps == (Step(100, 8),)


def test_a_copy_goes_its_own_way() -> None:
    delivered = Delivered([Step(100, 8)])

    copy = delivered.copy()
    copy.add(Step(200, 9))

    assert (delivered.steps, copy.steps) == ((Step(100, 8),), (Step(200, 9),))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), max_size=10))
def test_no_step_is_kept_that_another_one_says_too(steps: list[tuple[int, int]]) -> None:
    kept = Delivered(Step(*step) for step in steps).steps

    for one in kept:
        assert not any(
            one != other and one.due_ms <= other.due_ms and one.end_offset <= other.end_offset
            for other in kept
        )
