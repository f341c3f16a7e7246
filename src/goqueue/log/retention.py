"""Retention: which segments at the start of a log age or size no longer covers. Decides; removes nothing.

Only whole segments go, the oldest first, never the last one, and never one that does not count yet: what
groups have of a partition never runs ahead of its commit mark, so neither does its start.
"""

from collections.abc import Sequence

from goqueue.log.segment import Segment
from goqueue.model.settings import UNLIMITED, TopicSettings


def is_past(segment: Segment, settings: TopicSettings, *, now_ms: int) -> bool:
    """Whether every message of a segment is older than what is kept."""
    return settings.retention_ms != UNLIMITED and segment.max_timestamp_ms < now_ms - settings.retention_ms


def count_expired(
    segments: Sequence[Segment], settings: TopicSettings, *, now_ms: int, end_offset: int
) -> int:
    """How many of the first segments are to be given up. At least the bytes that were asked for stay."""
    if not settings.is_deleting:
        return 0
    is_bounded = settings.retention_bytes != UNLIMITED
    surplus_bytes = sum(segment.size for segment in segments) - settings.retention_bytes if is_bounded else 0
    count = 0
    for segment in segments[:-1]:
        is_surplus = is_bounded and surplus_bytes >= segment.size
        if not (is_surplus or is_past(segment, settings, now_ms=now_ms)):
            break
        if segment.end_offset > end_offset:
            break
        surplus_bytes -= segment.size
        count += 1
    return count
