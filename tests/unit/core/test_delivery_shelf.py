"""The shelf: what can be handed out, by lane, as far as the scan has come."""

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.runs import Run, runs_of
from goqueue.core.delivery.shelf import Shelf
from goqueue.model.messages import Lane

WEIGHTS = (50, 25, 15, 7, 3)


def take(shelf: Shelf, limit: int) -> list[Run]:
    return shelf.take(limit, weights=WEIGHTS, wait_ms_max=30_000, now_ms=0)


def two_lanes() -> Shelf:
    """Three normal messages, two critical ones, five normal ones."""
    shelf = Shelf(0)
    shelf.learn(0, 3, Lane.NORMAL, [(0, 3)])
    shelf.learn(3, 5, Lane.CRITICAL, [(3, 5)])
    shelf.learn(5, 10, Lane.NORMAL, [(5, 10)])
    return shelf


def test_what_the_scan_meets_is_kept_by_lane() -> None:
    shelf = two_lanes()

    assert shelf.scan_offset == 10
    assert shelf.counts == [2, 0, 8, 0, 0]
    assert shelf.count == 10
    assert shelf.oldest == [3, None, 0, None, None]


def test_only_what_is_free_of_a_batch_can_be_handed_out() -> None:
    shelf = Shelf(0)

    shelf.learn(0, 10, Lane.HIGH, [(2, 4), (8, 9)])

    assert list(shelf.ready[Lane.HIGH]) == [(2, 4), (8, 9)]
    assert shelf.count_by_lane(0, 10) == [0, 10, 0, 0, 0], "all of it is of the lane, free or not"


def test_a_more_urgent_lane_is_taken_from_first() -> None:
    assert take(two_lanes(), 4) == [(3, 5), (0, 2)]


def test_what_is_taken_is_on_the_shelf_no_more() -> None:
    shelf = two_lanes()

    take(shelf, 4)

    assert (shelf.counts, shelf.oldest[Lane.NORMAL]) == ([0, 0, 6, 0, 0], 2)
    assert take(shelf, 100) == [(2, 3), (5, 10)]
    assert take(shelf, 100) == []


def test_what_comes_back_goes_into_the_lanes_it_is_of() -> None:
    shelf = two_lanes()
    take(shelf, 10)

    shelf.put(1, 7)

    assert list(shelf.ready[Lane.CRITICAL]) == [(3, 5)]
    assert list(shelf.ready[Lane.NORMAL]) == [(1, 3), (5, 7)]


def test_what_the_scan_has_not_met_yet_is_left_to_it() -> None:
    shelf = Shelf(5)

    shelf.put(5, 9)
    shelf.put(3, 9)

    assert list(shelf.ready[Lane.NORMAL]) == [(3, 5)]


def test_messages_can_be_taken_off_the_shelf_whatever_their_lane() -> None:
    shelf = two_lanes()

    shelf.drop(2, 4)

    assert list(shelf.ready[Lane.CRITICAL]) == [(4, 5)]
    assert list(shelf.ready[Lane.NORMAL]) == [(0, 2), (5, 10)]


def test_what_is_settled_has_no_lane_any_more() -> None:
    shelf = two_lanes()

    shelf.forget_below(4)

    assert (shelf.counts, shelf.scan_offset) == ([1, 0, 5, 0, 0], 10)
    assert shelf.count_by_lane(0, 10) == [1, 0, 9, 0, 0]


def test_the_scan_passes_what_is_settled_before_it_comes_there() -> None:
    shelf = two_lanes()

    shelf.forget_below(25)

    assert (shelf.scan_offset, shelf.count) == (25, 0)


def test_a_run_is_counted_by_lane_as_far_as_it_goes() -> None:
    shelf = two_lanes()

    assert shelf.count_by_lane(0, 10) == [2, 0, 8, 0, 0]
    assert shelf.count_by_lane(4, 6) == [1, 0, 1, 0, 0]
    assert shelf.count_by_lane(6, 6) == [0, 0, 0, 0, 0]


@given(
    batches=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(Lane)), max_size=8),
    limits=st.lists(st.integers(0, 12), max_size=6),
)
def test_what_is_taken_and_put_back_is_where_it_was(
    batches: list[tuple[int, Lane]], limits: list[int]
) -> None:
    shelf, lane_of = Shelf(0), list[Lane]()
    for count, lane in batches:
        first = len(lane_of)
        lane_of += [lane] * count
        shelf.learn(first, len(lane_of), lane, [(first, len(lane_of))])
    before = [list(runs) for runs in shelf.ready]

    taken = [take(shelf, limit) for limit in limits]
    out = [offset for runs in taken for run in runs for offset in range(*run)]
    assert len(out) == len(set(out)) == min(sum(limits), len(lane_of)), "each once, as many as were asked for"
    for lane in Lane:
        mine = [offset for offset in range(len(lane_of)) if lane_of[offset] == lane]
        assert [offset for offset in out if lane_of[offset] == lane] == mine[: len(mine) - shelf.counts[lane]]
        assert shelf.count_by_lane(0, len(lane_of))[lane] == len(mine)
    for run in runs_of(sorted(out)):
        shelf.put(*run)

    assert [list(runs) for runs in shelf.ready] == before
