"""Which segments retention gives up: whole ones, the oldest first, and only what the disk has."""

from random import Random

import pytest

from goqueue.log.retention import count_expired, is_past
from goqueue.log.sealed_segment import SealedSegment
from goqueue.model.settings import UNLIMITED, TopicSettings
from goqueue.testing.world.disk import SimulatedDisk

NOW_MS = 10_000
NEWEST_MS = [1_000, 5_000, 3_000, 9_000]
SIZES = [100, 50, 100, 10]
END_OFFSET = 40


def made() -> list[SealedSegment]:
    """Segments of ten messages each."""
    disk = SimulatedDisk(Random(1))
    segments = []
    for at, (newest_ms, size) in enumerate(zip(NEWEST_MS, SIZES, strict=True)):
        segment = SealedSegment(disk, "logs", 10 * at, end_offset=10 * at + 10, size=size)
        segment.take_over(None, newest_ms, None)
        segments.append(segment)
    return segments


def expired(*, keep_ms: int = UNLIMITED, keep_bytes: int = UNLIMITED, end_offset: int = END_OFFSET) -> int:
    settings = TopicSettings(retention_ms=keep_ms, retention_bytes=keep_bytes)
    return count_expired(made(), settings, now_ms=NOW_MS, end_offset=end_offset)


def test_without_bounds_nothing_goes() -> None:
    assert expired() == 0
    assert not is_past(made()[0], TopicSettings(retention_ms=UNLIMITED), now_ms=2**62)


@pytest.mark.parametrize(
    ("keep_ms", "count"),
    [(9_000, 0), (8_999, 1), (5_000, 1), (4_999, 3), (1, 3)],
)
def test_age_takes_segments_up_to_the_first_that_has_a_message_to_keep(keep_ms: int, count: int) -> None:
    assert expired(keep_ms=keep_ms) == count


@pytest.mark.parametrize(
    ("keep_bytes", "count"),
    [(260, 0), (161, 0), (160, 1), (110, 2), (109, 2), (10, 3), (1, 3)],
)
def test_size_takes_segments_as_long_as_what_was_asked_for_stays(keep_bytes: int, count: int) -> None:
    assert expired(keep_bytes=keep_bytes) == count


def test_either_bound_is_enough() -> None:
    assert expired(keep_ms=8_999, keep_bytes=110) == 2


@pytest.mark.parametrize(("end_offset", "count"), [(9, 0), (10, 1), (29, 2), (40, 3)])
def test_what_does_not_count_yet_stays(end_offset: int, count: int) -> None:
    assert expired(keep_ms=1, end_offset=end_offset) == count


def test_a_log_without_segments_has_nothing_to_give_up() -> None:
    assert count_expired([], TopicSettings(retention_bytes=1), now_ms=NOW_MS, end_offset=0) == 0
