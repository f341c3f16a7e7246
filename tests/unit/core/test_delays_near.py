"""The near future is a copy of what the disk holds, up to a horizon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delays import near as near_module
from goqueue.core.delays.near import BEGINNING, Near, Row


def test_what_lies_behind_the_horizon_is_left_to_the_disk() -> None:
    near = Near()
    near.extend([(5, 0, 0)], horizon_ms=10)

    near.offer((9, 1, 0))
    near.offer((10, 2, 0))

    assert near.take(100, 100) == ([(5, 0, 0), (9, 1, 0)], 9)


def test_entries_of_one_due_time_are_taken_together() -> None:
    near = Near()
    near.extend([(3, 2, 0), (1, 0, 0), (3, 1, 0), (4, 3, 0)], horizon_ms=10)

    assert near.take(8, 2) == ([(1, 0, 0), (3, 1, 0), (3, 2, 0)], 3)
    assert near.take(8, 2) == ([(4, 3, 0)], 8)


def test_too_many_entries_draw_the_horizon_in() -> None:
    near = Near()
    near.extend([], horizon_ms=10**9)

    for due_ms in range(2 * near_module.ENTRIES_MAX + 1):
        near.offer((due_ms, due_ms, 0))

    assert len(near) == near.horizon_ms == near_module.ENTRIES_MAX
    near.offer((near_module.ENTRIES_MAX, 0, 0))
    assert len(near) == near_module.ENTRIES_MAX


def test_nothing_is_near_before_the_disk_was_asked() -> None:
    near = Near()

    near.offer((5, 0, 0))

    assert (len(near), near.next_due_ms, near.horizon_ms) == (0, None, BEGINNING)


def test_the_first_time_is_that_of_the_entry_that_falls_due_next() -> None:
    near = Near()
    near.extend([(7, 0, 0)], horizon_ms=10)
    near.offer((5, 1, 0))

    assert near.next_due_ms == 5
    near.take(5, 10)
    assert near.next_due_ms == 7
    near.take(9, 10)
    assert near.next_due_ms is None


@pytest.mark.parametrize(("limit_ms", "until_ms"), [(4, 4), (9, 9), (10, 9), (99, 9)])
def test_no_more_is_told_than_the_horizon_lets_one_see(limit_ms: int, until_ms: int) -> None:
    near = Near()
    near.extend([], horizon_ms=10)

    assert near.take(limit_ms, 5) == ([], until_ms)


def test_the_horizon_can_be_moved_on_with_what_lies_between() -> None:
    near = Near()
    near.extend([(5, 0, 0)], horizon_ms=10)

    near.extend([(15, 3, 0), (12, 2, 0)], horizon_ms=20)

    assert near.take(30, 10) == ([(5, 0, 0), (12, 2, 0), (15, 3, 0)], 19)


def test_as_many_entries_as_may_be_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_module, "ENTRIES_MAX", 3)
    near = Near()
    near.extend([], horizon_ms=10)

    for due_ms in range(6):
        near.offer((due_ms, due_ms, 0))
    assert (len(near), near.horizon_ms) == (6, 10)
    near.offer((6, 6, 0))

    assert (len(near), near.horizon_ms) == (3, 3)


def test_it_can_begin_again_from_the_disk() -> None:
    near = Near()
    near.extend([(5, 0, 0)], horizon_ms=10)

    near.clear()

    assert (len(near), near.horizon_ms) == (0, BEGINNING)
    near.offer((5, 0, 0))
    assert len(near) == 0


def test_entries_that_are_all_due_together_are_kept_together_however_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(near_module, "ENTRIES_MAX", 2)
    near = Near()
    near.extend([], horizon_ms=10)

    for offset in range(7):
        near.offer((3, offset, 0))

    assert (len(near), near.horizon_ms) == (7, 10)


@given(
    dues=st.lists(st.integers(0, 30), max_size=40),
    steps=st.lists(st.tuples(st.integers(0, 35), st.integers(1, 6)), max_size=12),
)
def test_with_the_disk_behind_it_every_entry_is_taken_once_and_in_order(
    dues: list[int], steps: list[tuple[int, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_module, "ENTRIES_MAX", 3)
        near = Near()
        near.extend([], horizon_ms=25)
        rows: list[Row] = [(due_ms, offset, 0) for offset, due_ms in enumerate(dues)]
        for row in rows:
            near.offer(row)
        assert near.horizon_ms <= 25
        taken: list[Row] = []
        done_ms = -1
        for limit_ms, count_max in steps:
            some, until_ms = near.take(limit_ms, count_max)
            taken += some
            done_ms = max(done_ms, until_ms)
            assert until_ms <= max(limit_ms, done_ms)

    assert taken == sorted(row for row in rows if row[0] <= done_ms), "all up to where it says, in order"
