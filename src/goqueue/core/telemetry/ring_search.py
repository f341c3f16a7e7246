"""Looking through recorded events: which tell of a message, and which messages they tell of.

There are a hundred thousand of them, and whoever looks has others to serve: all that goes through them stops
after some, to be asked to go on.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from goqueue.core.telemetry.traces import Event, Kind, Sampling
from goqueue.model.ids import TopicPartition
from goqueue.model.telemetry import TraceStatus

Places = Mapping[int, tuple[TopicPartition, Sampling]]
Run = tuple[int, int]

STEP_COUNT = 1_000
"""Events that are looked at in one step: a tenth of a millisecond to one."""
_EVENTS_MAX = 100
_EVENTS_FIRST = 20
_TELLING = {
    TraceStatus.COMPLETED: frozenset({Kind.ACKED, Kind.READ, Kind.CANCELLED}),
    TraceStatus.FAILED: frozenset({Kind.DEAD_LETTERED, Kind.REJECTED, Kind.PASSED_OVER, Kind.REFUSED}),
    TraceStatus.RETRYING: frozenset({Kind.NACKED, Kind.EXPIRED}),
    TraceStatus.DELAYED: frozenset({Kind.POSTPONED}),
    TraceStatus.EXPIRED: frozenset({Kind.OUTDATED}),
}
"""Without one of these a story cannot stand so, unless log or journals tell it: a search for few among many
need not look at the others."""


class Found(NamedTuple):
    """A message that events tell of."""

    place: int
    offset: int
    """Of a refused message the running number of its event."""
    is_refused: bool = False


def covering(events: Sequence[Event], place: int, offset: int) -> Generator[None, None, list[Event]]:
    """The events that tell of one message; of very many the first and the newest."""
    told: list[Event] = []
    for first in range(0, len(events), STEP_COUNT):
        step = events[first : first + STEP_COUNT]
        told += [event for event in step if event[2] == place and event[3] <= offset < event[4]]
        yield
    _shorten(told, _EVENTS_MAX)
    return told


def is_heard_of(events: Sequence[Event], group: str) -> Generator[None, None, bool]:
    """Whether any event tells of a group."""
    for first in range(0, len(events), STEP_COUNT):
        if any(event[5] == group for event in events[first : first + STEP_COUNT]):
            return True
        yield
    return False


def first_offsets(events: Sequence[Event]) -> Generator[None, None, dict[int, int]]:
    """By place, where the oldest event that tells of it begins."""
    found: dict[int, int] = {}
    for first in range(0, len(events), STEP_COUNT):
        for event in events[first : first + STEP_COUNT]:
            found.setdefault(event[2], event[3])
        yield
    return found


def covering_all(
    events: Iterable[Event], wanted: Iterable[Found]
) -> Generator[None, None, dict[Found, list[Event]]]:
    """The same for many, in one pass."""
    told: dict[Found, list[Event]] = {found: [] for found in wanted}
    offsets: dict[int, list[int]] = defaultdict(list)
    for found in told:
        if not found.is_refused:
            offsets[found.place].append(found.offset)
    for known in offsets.values():
        known.sort()
    step_count = 0
    for event in events:
        place, first, end = event[2], event[3], event[4]
        known = offsets[place]
        begin = bisect_left(known, first)
        behind = bisect_left(known, end, begin)
        for offset in known[begin:behind]:
            events_of_one = told[Found(place, offset)]
            events_of_one.append(event)
            _shorten(events_of_one, 2 * _EVENTS_MAX)
        # One event may tell of all that are wanted: those that it is noted for count as well.
        step_count += 1 + behind - begin
        if step_count >= STEP_COUNT:
            step_count = 0
            yield
    for events_of_one in told.values():
        _shorten(events_of_one, _EVENTS_MAX)
    return told


def _shorten(told: list[Event], count_max: int) -> None:
    """A message that is read again and again has a story with a middle that nobody misses."""
    if len(told) > count_max:
        del told[_EVENTS_FIRST : _EVENTS_FIRST - _EVENTS_MAX]


def messages_of(
    events: Sequence[Event],
    next_number: int,
    places: Places,
    starts: Mapping[int, int],
    untold: Mapping[int, Sequence[Run]],
    statuses: frozenset[TraceStatus],
    is_wanted: Callable[[Event, TopicPartition], bool],
) -> Iterator[Found | None]:
    """The sampled messages that wanted events tell of, each once, those of the newest event first.

    None, now and then, is no message but the end of a step.
    `starts` tells for places where what is left of them begins, `untold` what of them may stand as wanted
    though no event tells so; sorted and disjoint.
    """
    kinds = _kinds(statuses)
    seen: dict[int, list[Run]] = defaultdict(list)
    for back, event in enumerate(reversed(events), 1):
        if back % STEP_COUNT == 0:
            yield None
        _, kind, place, first, end, *_ = event
        known = places.get(place)
        if known is None or not is_wanted(event, known[0]):
            continue
        is_telling = kinds is None or kind in kinds
        if kind == Kind.REFUSED:
            if is_telling:
                yield Found(place, next_number - back, is_refused=True)
            continue
        parts: Iterable[Run] = [(first, end)]
        if not is_telling:
            parts = _shared(untold.get(place, ()), first, end)
        for part_first, part_end in parts:
            part_first = max(part_first, starts.get(place, 0))
            if part_first >= part_end:
                continue
            for run_first, run_end in take_unseen(seen[place], part_first, part_end):
                for offset in reversed(known[1].offsets(run_first, run_end)):
                    yield Found(place, offset)


def _shared(runs: Sequence[Run], first: int, end: int) -> Iterator[Run]:
    """The parts of a run that lie in others, the last first."""
    at = bisect_left(runs, (end, end)) - 1
    while at >= 0 and runs[at][1] > first:
        yield max(first, runs[at][0]), min(end, runs[at][1])
        at -= 1


def _kinds(statuses: frozenset[TraceStatus]) -> frozenset[str] | None:
    """The kinds of events to look at; None: all."""
    if not statuses or not statuses <= _TELLING.keys():
        return None
    return frozenset().union(*(_TELLING[status] for status in statuses))


def take_unseen(seen: list[Run], first: int, end: int) -> list[Run]:
    """The parts of a run, the last first, that are new; then they are seen. `seen` is sorted and disjoint."""
    at = bisect_left(seen, (first, first))
    if at and seen[at - 1][1] >= first:
        at -= 1
    gaps, position, behind = [], first, at
    joined_first, joined_end = first, end
    while behind < len(seen) and seen[behind][0] <= end:
        seen_first, seen_end = seen[behind]
        if position < seen_first:
            gaps.append((position, seen_first))
        position = max(position, seen_end)
        joined_first, joined_end = min(joined_first, seen_first), max(joined_end, seen_end)
        behind += 1
    if position < end:
        gaps.append((position, end))
    seen[at:behind] = [(joined_first, joined_end)]
    gaps.reverse()
    return gaps
