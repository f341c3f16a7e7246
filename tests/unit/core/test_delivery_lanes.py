"""Lanes take turns by their weights, and none waits for ever."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from goqueue.core.delivery.lane_turns import LANE_COUNT, LaneTurns

WEIGHTS = (50, 25, 15, 7, 3)
MANY = [1_000_000] * LANE_COUNT


def share(turns: LaneTurns, ready: list[int], limit: int, now_ms: int = 0) -> list[tuple[int, int]]:
    return turns.share(ready, limit, weights=WEIGHTS, wait_ms_max=30_000, now_ms=now_ms)


def test_lanes_that_all_have_messages_share_by_weight_also_one_message_at_a_time() -> None:
    turns = LaneTurns()
    lanes = Counter(share(turns, MANY, 1)[0][0] for _ in range(1_000))

    assert [lanes[lane] for lane in range(LANE_COUNT)] == [10 * weight for weight in WEIGHTS]


def test_a_lane_alone_gets_everything() -> None:
    assert share(LaneTurns(), [0, 0, 0, 0, 900], 500) == [(4, 500)]


def test_what_a_visit_leaves_the_next_poll_goes_on_with() -> None:
    turns = LaneTurns()

    assert share(turns, MANY, 40) == [(0, 40)]
    assert share(turns, MANY, 40) == [(0, 10), (1, 25), (2, 5)]


def test_a_lane_that_has_waited_too_long_goes_first() -> None:
    turns = LaneTurns()
    share(turns, [1_000, 0, 0, 0, 1_000], 1, now_ms=0)

    assert share(turns, [999, 0, 0, 0, 1_000], 1, now_ms=29_999) == [(0, 1)]
    assert share(turns, [998, 0, 0, 0, 1_000], 1, now_ms=30_000) == [(4, 1)]
    assert share(turns, [998, 0, 0, 0, 999], 1, now_ms=30_001) == [(0, 1)]


def test_a_lane_that_has_waited_as_long_as_one_above_it_goes_before_it() -> None:
    """The one above was served in the moment in which the other began to wait."""
    turns = LaneTurns()
    share(turns, [1_000, 0, 0, 5, 0], 10, now_ms=0)

    assert share(turns, [990, 0, 0, 5, 0], 10, now_ms=30_000) == [(3, 5), (0, 5)]


@given(
    ready=st.lists(st.integers(0, 300), min_size=LANE_COUNT, max_size=LANE_COUNT),
    limits=st.lists(st.integers(1, 200), min_size=1, max_size=10),
)
def test_as_much_is_handed_out_as_there_is_and_was_asked_for(ready: list[int], limits: list[int]) -> None:
    turns = LaneTurns()
    for now_ms, limit in enumerate(limits):
        left = list(ready)
        for lane, count in share(turns, ready, limit, now_ms):
            assert 0 < count <= left[lane]
            left[lane] -= count
        assert sum(ready) - sum(left) == min(limit, sum(ready))
        ready = left
