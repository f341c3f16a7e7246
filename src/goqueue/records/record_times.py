"""The times that producers give their messages, against the bounds of a topic that has any."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from goqueue.model.errors import InvalidRecord, InvalidTimestamp
from goqueue.model.settings import TopicSettings
from goqueue.records.layout import BatchHeader
from goqueue.records.record_places import find_places
from goqueue.records.varints import read_varints

NO_TIME_MS = -1
"""A message without a time, as Kafka writes it: it has none that could be wrong."""
_INT64 = np.iinfo(np.int64)
_TOLD_MAX = 1_000
"""Of so many wrong messages it is told what is wrong; of the others that they are not taken."""


def require_times(
    batches: Sequence[tuple[BatchHeader, memoryview]], settings: TopicSettings, *, now_ms: int
) -> None:
    """Refuse batches with a message out of time. Raises InvalidTimestamp, and InvalidRecord."""
    places = find_places(batches)
    try:
        deltas, _ = read_varints(places.raw, places.bodies + 1)
    except IndexError as error:
        raise InvalidRecord("the records of a batch are cut off by its end") from error
    earliest_ms, latest_ms = (
        now_ms - settings.timestamp_before_max_ms,
        now_ms + settings.timestamp_after_max_ms,
    )
    wrong: list[tuple[int, int]] = []
    for (header, _), (first, end) in zip(batches, pairwise(places.firsts), strict=True):
        # Bounds are moved to where the batch counts from: what its records say may be any number.
        base_ms = header.first_timestamp_ms
        given = deltas[first:end]
        is_wrong = (given < _clipped(earliest_ms - base_ms)) | (given > _clipped(latest_ms - base_ms))
        is_wrong &= given != _clipped(NO_TIME_MS - base_ms)
        wrong += [(first + at, base_ms + int(given[at])) for at in np.flatnonzero(is_wrong).tolist()]
    if wrong:
        problems = {index: _text(time_ms, settings, now_ms) for index, time_ms in wrong[:_TOLD_MAX]}
        raise InvalidTimestamp(next(iter(problems.values())), problems)


def _text(time_ms: int, settings: TopicSettings, now_ms: int) -> str:
    if time_ms > now_ms:
        name, bound_ms = "after", settings.timestamp_after_max_ms
    else:
        name, bound_ms = "before", settings.timestamp_before_max_ms
    return (
        f"timestamp {time_ms} is {abs(time_ms - now_ms)} ms {'ahead' if time_ms > now_ms else 'ago'}: "
        f"message.timestamp.{name}.max.ms is {bound_ms}"
    )


def _clipped(number: int) -> int:
    return max(min(number, int(_INT64.max)), int(_INT64.min))
