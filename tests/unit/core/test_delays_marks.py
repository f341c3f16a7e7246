"""Sequence numbers of delayed messages: nothing is delayed twice, and what they leave out is no gap."""

import pytest

from goqueue.core.delays.marks import WINDOW_MARKS, Mark, Marks
from goqueue.records.layout import SEQUENCE_MASK

TARGET, PRODUCER = 3, 77


def mark(first: int, length: int, trailing: int, *, epoch: int = 0) -> Mark:
    return Mark(TARGET, PRODUCER, epoch, first & SEQUENCE_MASK, length, trailing, seen_ms=1)


def marks_of(*marks: Mark) -> Marks:
    known = Marks()
    for one in marks:
        known.apply(one)
    return known


def test_a_batch_that_comes_again_is_known() -> None:
    marks = marks_of(mark(10, 5, 2))

    assert marks.holds(TARGET, PRODUCER, 0, 10)
    assert not marks.holds(TARGET, PRODUCER, 0, 15)
    assert not marks.holds(TARGET, PRODUCER, 1, 10), "another epoch counts anew"
    assert not marks.holds(TARGET + 1, PRODUCER, 0, 10)


def test_only_what_was_delayed_at_the_end_of_a_batch_explains_a_gap() -> None:
    marks = marks_of(mark(10, 5, 2))

    assert marks.explains(TARGET, PRODUCER, 0, expected=13, sequence=15)
    assert not marks.explains(TARGET, PRODUCER, 0, expected=12, sequence=15), "12 is lost"
    assert not marks.explains(TARGET, PRODUCER, 0, expected=13, sequence=16)


def test_a_producer_of_delayed_messages_alone_has_one_mark_however_many_it_sends() -> None:
    marks = marks_of(*(mark(first, 4, 4) for first in range(0, 4_000, 4)))

    assert len(list(marks)) == 1
    assert marks.explains(TARGET, PRODUCER, 0, expected=0, sequence=4_000)
    assert marks.holds(TARGET, PRODUCER, 0, 2_000)


def test_sequence_numbers_begin_again_behind_the_largest() -> None:
    marks = marks_of(mark(SEQUENCE_MASK - 1, 4, 4), mark(SEQUENCE_MASK + 3, 4, 4))

    assert marks.explains(TARGET, PRODUCER, 0, expected=SEQUENCE_MASK - 1, sequence=6)


def test_marks_that_are_read_back_twice_are_the_same() -> None:
    journal = [mark(0, 4, 1), mark(10, 4, 4), mark(14, 2, 2), mark(20, 3, 0)]
    marks = marks_of(*journal)
    before = list(marks)

    for again in journal:
        marks.apply(again)

    assert list(marks) == before


def test_old_marks_are_forgotten() -> None:
    marks = marks_of(*(mark(first * 10, 5, 1) for first in range(50)))

    assert len(list(marks)) == WINDOW_MARKS
    marks.expire(before_ms=2)
    assert not list(marks)


@pytest.mark.parametrize(("sequence", "is_held"), [(9, False), (10, True), (14, True), (15, False)])
def test_a_batch_is_known_by_any_number_in_it(sequence: int, is_held: bool) -> None:
    marks = marks_of(mark(10, 5, 2))

    assert marks.holds(TARGET, PRODUCER, 0, sequence) is is_held
    assert (marks.find(TARGET, PRODUCER, 0, sequence) == mark(10, 5, 2)) is is_held


def test_of_several_marks_the_one_with_the_number_is_found() -> None:
    marks = marks_of(mark(0, 5, 1), mark(5, 5, 2), mark(20, 5, 3))

    found = [marks.find(TARGET, PRODUCER, 0, sequence) for sequence in (4, 5, 12, 20)]

    assert found == [mark(0, 5, 1), mark(5, 5, 2), None, mark(20, 5, 3)]


def test_a_gap_is_explained_by_several_batches_one_behind_the_other() -> None:
    marks = marks_of(mark(0, 4, 2), mark(4, 3, 3), mark(7, 5, 5))

    assert marks.explains(TARGET, PRODUCER, 0, expected=2, sequence=12)
    assert not marks.explains(TARGET, PRODUCER, 0, expected=1, sequence=12)
    assert not marks.explains(TARGET, PRODUCER, 1, expected=2, sequence=12)
    assert not marks.explains(TARGET + 1, PRODUCER, 0, expected=2, sequence=12)


def test_where_there_is_no_gap_nothing_needs_to_be_explained() -> None:
    assert Marks().explains(TARGET, PRODUCER, 0, expected=5, sequence=5)
    assert not Marks().explains(TARGET, PRODUCER, 0, expected=5, sequence=6)


def test_a_new_epoch_of_a_producer_begins_anew() -> None:
    marks = marks_of(mark(0, 4, 4), mark(0, 2, 1, epoch=1))

    assert list(marks) == [mark(0, 2, 1, epoch=1)]
    assert not marks.holds(TARGET, PRODUCER, 0, 0)


def test_producers_and_targets_are_apart() -> None:
    other = mark(0, 4, 4)._replace(producer_id=78)
    elsewhere = mark(0, 4, 4)._replace(target=4)
    marks = marks_of(mark(0, 4, 4), other, elsewhere)

    assert len(list(marks)) == 3
    assert marks.find(4, PRODUCER, 0, 2) == elsewhere


def test_what_came_at_once_in_between_keeps_marks_apart() -> None:
    marks = marks_of(mark(0, 4, 4), mark(4, 4, 3), mark(8, 4, 4))

    assert list(marks) == [mark(0, 4, 4), mark(4, 4, 3), mark(8, 4, 4)]


def test_marks_that_become_one_are_as_young_as_the_last_of_them() -> None:
    old, young = mark(0, 4, 4), mark(4, 4, 4)._replace(seen_ms=9)
    marks = marks_of(old, young)

    assert list(marks) == [mark(0, 8, 8)._replace(seen_ms=9)]
    marks.expire(before_ms=9)
    assert list(marks)
    marks.expire(before_ms=10)
    assert not list(marks)


def test_one_mark_never_holds_more_than_half_of_all_numbers() -> None:
    """Else it could not be told what lies before it from what lies behind."""
    half = (SEQUENCE_MASK + 1) // 2
    first = mark(0, half - 10, half - 10)
    marks = marks_of(first, mark(half - 10, 30, 30))

    (only,) = marks

    assert (only.first, only.length, only.trailing, only.end) == (21, half - 1, half - 1, half + 20)


def test_the_newest_marks_are_the_ones_that_are_kept() -> None:
    marks = marks_of(*(mark(first * 10, 5, 1) for first in range(WINDOW_MARKS + 3)))

    assert [one.first for one in marks] == [first * 10 for first in range(3, WINDOW_MARKS + 3)]
