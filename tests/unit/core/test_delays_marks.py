"""Sequence numbers of delayed messages: nothing is delayed twice, and what they leave out is no gap."""

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
