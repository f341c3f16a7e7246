"""When a partition is due for compaction, and how far it may go. Decides from plain values.

Only sealed segments are compacted, from the log's start on: those before the offset up to which all is
decided and counts, and whose messages are all older than `min.compaction.lag.ms`. A round is due when enough
of that is new since the last one, when something new has waited for `max.compaction.lag.ms`, or when what
deletes keys may go.
"""

from collections.abc import Sequence
from typing import NamedTuple

from goqueue.model.settings import TopicSettings


class SegmentFacts(NamedTuple):
    """A sealed segment."""

    base_offset: int
    end_offset: int
    size: int
    max_timestamp_ms: int


class CleanMark(NamedTuple):
    """What is known of earlier rounds."""

    end_offset: int = 0
    """Before it no key has two messages."""
    horizon_ms: int | None = None
    """When the first of what deletes a key may go; None: there is nothing of the kind."""


class Due(NamedTuple):
    """A round, if there is one to be made."""

    segment_count: int
    """So many segments, from the first on, may be compacted."""
    dirty_bytes: int
    dirty_ratio: float
    is_due: bool


def look(
    segments: Sequence[SegmentFacts],
    settings: TopicSettings,
    mark: CleanMark,
    *,
    end_offset: int,
    dirty_since_ms: int | None,
    now_ms: int,
) -> Due:
    """What of a partition can be compacted, and whether it should be now.

    `end_offset`: what lies before it counts, and no transaction there is open. `dirty_since_ms`: the time of
    the first message that no round has seen; None: there is none.
    """
    newest_ms = now_ms - settings.min_compaction_lag_ms
    count = 0
    for segment in segments:
        if segment.end_offset > end_offset or segment.max_timestamp_ms > newest_ms:
            break
        count += 1
    total_bytes = sum(segment.size for segment in segments[:count])
    dirty_bytes = sum(segment.size for segment in segments[:count] if segment.end_offset > mark.end_offset)
    ratio = dirty_bytes / total_bytes if total_bytes else 0.0
    has_waited = dirty_since_ms is not None and dirty_since_ms <= now_ms - settings.max_compaction_lag_ms
    is_forgotten = mark.horizon_ms is not None and mark.horizon_ms <= now_ms
    is_worth_it = dirty_bytes > 0 and (ratio >= settings.min_cleanable_dirty_ratio or has_waited)
    return Due(count, dirty_bytes, ratio, is_worth_it or (count > 0 and is_forgotten))


def grouped(segments: Sequence[SegmentFacts], *, segment_bytes: int) -> list[range]:
    """Which segments are written anew into one, by their places: neighbours that fit together."""
    groups: list[range] = []
    size = 0
    for at, segment in enumerate(segments):
        if groups and size + segment.size <= segment_bytes:
            groups[-1] = range(groups[-1].start, at + 1)
            size += segment.size
        else:
            groups.append(range(at, at + 1))
            size = segment.size
    return groups
