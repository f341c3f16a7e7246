"""Where a read begins and ends: options and extents become offsets; messages that are gone are noticed."""

from collections.abc import Mapping

from goqueue.client.connection import Client, Refused
from goqueue.client.log import Extent, Extents, Which, extents, offsets_at
from goqueue.model.errors import Invalid, NotFound, TopicNotFound
from goqueue.spark.source.offsets import Offsets, Place, flat, places
from goqueue.spark.source.options import EARLIEST, EARLIEST_OFFSET, LATEST_OFFSET, Edge, SourceOptions

_NEVER = 2**63 - 1


class Partitions:
    """The partitions that a read is about, as the node tells them."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._ignored: dict[Place, int] = {}

    def now(self, client: Client, *, may_be_gone: bool = False) -> dict[Place, Extent]:
        """The partitions as they are. A topic that was there once may be gone, if the options allow it."""
        try:
            return self._chosen(extents(client, self._options.which))
        except Refused as refused:
            if not may_be_gone or refused.code != TopicNotFound.code:
                raise
            if self._options.fail_on_data_loss:
                raise gone(str(refused)) from refused
        found: Extents = {}
        for topic in self._options.which.topics:
            try:
                found |= extents(client, Which(topics=(topic,)))
            except Refused as refused:
                if refused.code != TopicNotFound.code:
                    raise
        return self._chosen(found, may_be_gone=True)

    def behind(
        self, client: Client, start: Mapping[str, Mapping[str, int]], *, wait_ms: int
    ) -> dict[Place, Extent]:
        """The partitions as soon as one has more than at the start, or when the time is up."""
        past: Offsets = {topic: dict(partitions) for topic, partitions in start.items()}
        for (topic, partition), never in self._ignored.items():
            past.setdefault(topic, {})[partition] = never
        try:
            return self._chosen(extents(client, self._options.which, past=past, wait_ms=wait_ms))
        except Refused as refused:
            if refused.code != TopicNotFound.code:
                raise
            return self.now(client, may_be_gone=True)

    def _chosen(self, found: Extents, *, may_be_gone: bool = False) -> dict[Place, Extent]:
        chosen = places(found)
        if self._options.assigned is None:
            return chosen
        assigned = {
            Place(topic, str(number))
            for topic, numbers in self._options.assigned.items()
            for number in numbers
        }
        if not may_be_gone and (missing := sorted(assigned - chosen.keys())):
            raise Invalid(f"assign: there is no {', '.join(map(str, missing))}")
        # A long poll answers at once where it knows of a partition that we do not: tell it of all.
        self._ignored = dict.fromkeys(chosen.keys() - assigned, _NEVER)
        return {place: extent for place, extent in chosen.items() if place in assigned}


def resolve(
    client: Client, edge: Edge, extents: Mapping[Place, Extent], *, fail_on_data_loss: bool
) -> dict[Place, int]:
    """The offset of an edge in each partition."""
    wanted = flat(edge.offsets)
    times_ms = flat(edge.times_ms)
    if edge.time_ms is not None:
        times_ms = dict.fromkeys(extents, edge.time_ms)
    if unknown := sorted((wanted.keys() | times_ms.keys()) - extents.keys()):
        raise Invalid(f"an offset is given for {', '.join(map(str, unknown))}, which is not read")
    offsets = {
        place: extent.start if edge.word == EARLIEST else extent.end for place, extent in extents.items()
    }
    for time_ms in sorted(set(times_ms.values())):
        asked = [place for place, each_ms in times_ms.items() if each_ms == time_ms]
        found = flat(offsets_at(client, sorted({place.topic for place in asked}), time_ms=time_ms))
        offsets |= {place: found[place] for place in asked}
    for place, offset in wanted.items():
        offsets[place] = _checked(place, offset, extents[place], fail_on_data_loss=fail_on_data_loss)
    return offsets


def check_not_gone(
    start: Mapping[Place, int], extents: Mapping[Place, Extent], *, fail_on_data_loss: bool
) -> None:
    """Fail, if that is wanted, when messages behind the start are no longer there to be read."""
    if not fail_on_data_loss:
        return
    for place, offset in start.items():
        extent = extents.get(place)
        if extent is None:
            raise gone(f"{place} is gone; its next offset was {offset}")
        if not extent.start <= offset <= extent.end:
            raise gone(
                f"{place} holds offsets {extent.start} to {extent.end} (exclusive); the next was {offset}"
            )


def gone(story: str) -> NotFound:
    """The error for messages that were to be read and are not there."""
    return NotFound(
        f"messages are gone: {story}. They were deleted, by retention or with their topic, before they were "
        "read; failOnDataLoss=false goes on behind them"
    )


def _checked(place: Place, offset: int, extent: Extent, *, fail_on_data_loss: bool) -> int:
    if offset == EARLIEST_OFFSET:
        return extent.start
    if offset == LATEST_OFFSET:
        return extent.end
    if offset < 0 or offset > extent.end:
        raise Invalid(f"offset {offset} of {place} is not in {extent.start} to {extent.end}, nor -1 or -2")
    if offset < extent.start and fail_on_data_loss:
        raise gone(f"{place} begins at offset {extent.start} now, not at {offset}")
    return max(offset, extent.start)
