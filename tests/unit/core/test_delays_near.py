"""The near future is a copy of what the disk holds, up to a horizon."""

from goqueue.core.delays import near as near_module
from goqueue.core.delays.near import Near


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
