"""Entries of pending messages: twenty bytes each, told in the order of delivery."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delays.entries import ENTRY, NO_ENTRIES, Fresh, in_order, rows


def fresh_of(*entries: tuple[int, int, int]) -> Fresh:
    fresh = Fresh()
    for entry in entries:
        fresh.add(*entry)
    return fresh


def test_entries_are_numbered_from_the_first_there_ever_was() -> None:
    fresh = fresh_of((50, 0, 1), (40, 1, 1), (60, 2, 2))
    assert (fresh.end, len(fresh)) == (3, 3)

    fresh.drop(2)

    assert (fresh.end, len(fresh), fresh.dropped) == (3, 1, 2)
    fresh.add(70, 3, 1)
    assert fresh.end == 4
    assert list(rows(fresh.entries())) == [(60, 2, 2), (70, 3, 1)]


def test_entries_can_be_had_from_a_number_on() -> None:
    fresh = fresh_of((50, 0, 1), (40, 1, 1), (60, 2, 2), (45, 3, 1))
    fresh.drop(1)

    assert list(rows(fresh.entries(2))) == [(60, 2, 2), (45, 3, 1)]
    assert list(rows(fresh.entries(0))) == [(40, 1, 1), (60, 2, 2), (45, 3, 1)]
    assert list(rows(fresh.entries(4))) == []


def test_entries_are_a_copy_that_nothing_changes_later() -> None:
    fresh = fresh_of((50, 0, 1))
    entries = fresh.entries()

    fresh.add(40, 1, 1)
    fresh.drop(1)

    assert list(rows(entries)) == [(50, 0, 1)]


def test_an_entry_takes_twenty_bytes() -> None:
    assert (ENTRY.itemsize, NO_ENTRIES.nbytes) == (20, 0)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 50), st.integers(0, 3)), max_size=30))
def test_entries_are_delivered_by_due_time_and_then_as_they_lie(entries: list[tuple[int, int, int]]) -> None:
    ordered = list(rows(in_order(fresh_of(*entries).entries())))

    assert [row[:2] for row in ordered] == sorted(entry[:2] for entry in entries)
    assert sorted(ordered) == sorted(entries)


def test_times_far_away_fit() -> None:
    far_ms = 2**62
    entries = fresh_of((far_ms, far_ms, 2**31 - 1)).entries()

    assert list(rows(entries)) == [(far_ms, far_ms, 2**31 - 1)]
    assert entries.dtype == np.dtype(ENTRY)
