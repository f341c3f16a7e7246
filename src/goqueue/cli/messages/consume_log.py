"""Messages looked at where they lie: which offsets of which partitions, and in which order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from goqueue.cli.messages.view import Found
from goqueue.client import GoQueue
from goqueue.client.log import Extent
from goqueue.model.errors import NotFound

EVERY_PARTITION = -1
PAGE_COUNT = 1_000
WAIT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is asked for, the same for every partition."""

    offset: int = 0
    """Below 0: so many before the end."""
    from_time: datetime | None = None
    to_time: datetime | None = None
    is_new_only: bool = False
    is_followed: bool = False


@dataclass(slots=True)
class Range:
    """Offsets of a partition that are still to be read; without an end, whatever comes."""

    partition: int
    offset: int
    end_offset: int | None

    @property
    def is_done(self) -> bool:
        return self.end_offset is not None and self.offset >= self.end_offset

    def go_on_at(self, next_offset: int) -> None:
        """Read on there. A node that stays where it is has no more to show of a range that ends."""
        if self.end_offset is not None and next_offset <= self.offset:
            next_offset = self.end_offset
        self.offset = next_offset


def pages(queue: GoQueue, topic: str, partition: int, span: Span, count: int | None) -> Iterator[Found]:
    """The messages of a span, at most so many."""
    left = count
    waiting = _ranges_of(queue, topic, partition, span)
    while waiting:
        for each in waiting:
            if left == 0:
                return
            limit = PAGE_COUNT if left is None else min(left, PAGE_COUNT)
            # All that are followed share the time to wait for the next message.
            wait_s = WAIT_S / len(waiting) if each.end_offset is None else 0.0
            page = queue.read_page(topic, each.partition, offset=each.offset, limit=limit, wait=wait_s)
            messages = [
                message
                for message in page.messages
                if each.end_offset is None or message.offset < each.end_offset
            ]
            if messages:
                yield Found(messages)
            each.go_on_at(page.next_offset)
            left = None if left is None else left - len(messages)
        waiting = [each for each in waiting if not each.is_done]


def _ranges_of(queue: GoQueue, topic: str, partition: int, span: Span) -> list[Range]:
    extents = queue.extents([topic])[topic]
    if partition != EVERY_PARTITION:
        if str(partition) not in extents:
            raise NotFound(f"topic {topic} has no partition {partition}, but 0 to {len(extents) - 1}")
        extents = {str(partition): extents[str(partition)]}
    starts = None if span.from_time is None else queue.offsets_at([topic], span.from_time)[topic]
    ends = None if span.to_time is None else queue.offsets_at([topic], span.to_time)[topic]
    return [each for each in ranges(extents, span, starts=starts, ends=ends) if not each.is_done]


def ranges(
    extents: Mapping[str, Extent],
    span: Span,
    *,
    starts: Mapping[str, int] | None = None,
    ends: Mapping[str, int] | None = None,
) -> list[Range]:
    """A range a partition, from its extent and from the offsets at the times that were asked for."""
    found = []
    for number in sorted(extents, key=int):
        extent = extents[number]
        first = span.offset if span.offset >= 0 else extent.end + span.offset
        if starts is not None:
            first = starts[number]
        elif span.is_new_only:
            first = extent.end
        end = None if span.is_followed else extent.end
        if ends is not None:
            end = ends[number]
        found.append(Range(int(number), max(first, extent.start), end))
    return found
