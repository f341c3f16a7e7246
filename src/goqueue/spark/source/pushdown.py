"""Filters that narrow a batch read before it begins.

Topic, partition and offset are taken over wholly. A lower bound on the timestamp only says where to begin:
times need not rise with offsets, so Spark keeps that filter, and an upper bound says nothing at all.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from goqueue.client.connection import Client
from goqueue.client.log import offsets_at
from goqueue.spark.codec.columns import Columns
from goqueue.spark.source.batch import TopicReader
from goqueue.spark.source.offsets import Place, flat
from goqueue.spark.source.options import SourceOptions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Value = TypeVar("Value")


class FilteringTopicReader(TopicReader):
    """A reader that leaves out what the query's filters would drop."""

    def __init__(self, options: SourceOptions, columns: Columns) -> None:
        super().__init__(options, columns)
        self._topics: set[str] | None = None
        self._numbers: set[int] | None = None
        self._first_offset = 0
        self._end_offset = 2**63 - 1
        self._time_min_ms: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Take what can be taken; what comes back is left to Spark."""
        for each in filters:
            if not self._take(each):
                yield each

    def _take(self, each: Filter) -> bool:
        """Whether Spark may forget this filter."""
        match each:
            case EqualTo(("topic",), str(topic)):
                self._topics = _both(self._topics, {topic})
            case In(("topic",), topics):
                self._topics = _both(self._topics, set(topics))
            case EqualTo(("partition",), int(number)):
                self._numbers = _both(self._numbers, {number})
            case In(("partition",), numbers):
                self._numbers = _both(self._numbers, set(numbers))
            case EqualTo(("offset",), int(offset)):
                self._first_offset = max(self._first_offset, offset)
                self._end_offset = min(self._end_offset, offset + 1)
            case GreaterThan(("offset",), int(offset)):
                self._first_offset = max(self._first_offset, offset + 1)
            case GreaterThanOrEqual(("offset",), int(offset)):
                self._first_offset = max(self._first_offset, offset)
            case LessThan(("offset",), int(offset)):
                self._end_offset = min(self._end_offset, offset)
            case LessThanOrEqual(("offset",), int(offset)):
                self._end_offset = min(self._end_offset, offset + 1)
            case (
                EqualTo(("timestamp",), datetime() as time)
                | GreaterThan(("timestamp",), datetime() as time)
                | GreaterThanOrEqual(("timestamp",), datetime() as time)
            ):
                self._begin_at(time)
                return False
            case _:
                return False
        return True

    def _begin_at(self, time: datetime) -> None:
        # Without a zone nobody knows which time is meant; Spark's own filter does.
        if time.tzinfo is not None:
            time_ms = (time - _EPOCH) // timedelta(milliseconds=1)
            self._time_min_ms = max(time_ms, self._time_min_ms if self._time_min_ms is not None else time_ms)

    def _narrowed(
        self, client: Client, start: dict[Place, int], end: dict[Place, int]
    ) -> tuple[dict[Place, int], dict[Place, int]]:
        start = {place: max(offset, self._first_offset) for place, offset in start.items()}
        end = {place: min(offset, self._end_offset) for place, offset in end.items() if self._has(place)}
        if self._time_min_ms is not None and end:
            topics = sorted({place.topic for place in end})
            found = flat(offsets_at(client, topics, time_ms=self._time_min_ms))
            start |= {place: max(start[place], found[place]) for place in end}
        return start, end

    def _has(self, place: Place) -> bool:
        is_topic = self._topics is None or place.topic in self._topics
        return is_topic and (self._numbers is None or int(place.partition) in self._numbers)


def _both(known: set[Value] | None, more: set[Value]) -> set[Value]:
    """Filters are joined by AND."""
    return more if known is None else known & more
