"""When a partition is due for compaction, and how far it may go."""

import pytest

from goqueue.core.compaction.due import CleanMark, SegmentFacts, grouped, look
from goqueue.model.settings import CleanupPolicy, TopicSettings

NOW_MS = 1_000_000
SEGMENTS = [
    SegmentFacts(0, 10, 100, 1_000),
    SegmentFacts(10, 20, 100, 2_000),
    SegmentFacts(20, 30, 200, 900_000),
]


def settings(**chosen: float) -> TopicSettings:
    return TopicSettings(cleanup_policy=CleanupPolicy.COMPACT, **chosen)  # type: ignore[arg-type]


def due(
    mark: CleanMark, *, end_offset: int = 30, since_ms: int | None = 2_000, **chosen: float
) -> tuple[int, bool]:
    found = look(
        SEGMENTS, settings(**chosen), mark, end_offset=end_offset, dirty_since_ms=since_ms, now_ms=NOW_MS
    )
    return found.segment_count, found.is_due


@pytest.mark.parametrize(("end_offset", "count"), [(30, 3), (29, 2), (10, 1), (9, 0)])
def test_what_does_not_count_or_is_undecided_is_left_alone(end_offset: int, count: int) -> None:
    assert due(CleanMark(), end_offset=end_offset)[0] == count


@pytest.mark.parametrize(("lag_ms", "count"), [(0, 3), (100_000, 3), (100_001, 2), (999_500, 0)])
def test_what_is_younger_than_the_shortest_lag_stays(lag_ms: int, count: int) -> None:
    assert due(CleanMark(), min_compaction_lag_ms=lag_ms)[0] == count


def test_a_round_is_due_when_enough_is_new() -> None:
    assert due(CleanMark(20), min_cleanable_dirty_ratio=0.5) == (3, True)
    assert due(CleanMark(20), min_cleanable_dirty_ratio=0.51) == (3, False)
    assert due(CleanMark(30), min_cleanable_dirty_ratio=0) == (3, False)


def test_a_round_is_due_when_something_new_has_waited_for_the_longest_lag() -> None:
    chosen = {"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 998_000}
    assert due(CleanMark(20), since_ms=2_000, **chosen)[1]
    assert not due(CleanMark(20), since_ms=2_001, **chosen)[1]


def test_a_round_is_due_when_what_deletes_keys_may_go() -> None:
    assert due(CleanMark(30, NOW_MS), since_ms=None)[1]
    assert not due(CleanMark(30, NOW_MS + 1), since_ms=None)[1]


def test_neighbours_that_fit_together_become_one() -> None:
    assert grouped(SEGMENTS, segment_bytes=200) == [range(2), range(2, 3)]
    assert grouped(SEGMENTS, segment_bytes=10) == [range(1), range(1, 2), range(2, 3)]
    assert grouped([], segment_bytes=10) == []
