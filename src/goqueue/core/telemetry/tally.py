"""How many messages the recorded events tell of, and how they fared: counted by runs, not by messages.

A ring may tell of a hundred million messages, so none of them is looked at.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from goqueue.core.telemetry.ring_search import STEP_COUNT, Places, Run, take_unseen
from goqueue.core.telemetry.traces import Event, Kind, Sampling
from goqueue.model.ids import TopicName

_FAILED = frozenset({Kind.DEAD_LETTERED, Kind.REJECTED, Kind.PASSED_OVER, Kind.OUTDATED})
"""Nobody of the group gets them any more."""
_first_of = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Tally:
    """Sampled messages by how they stand."""

    topics: Mapping[TopicName, int]
    completed: int
    failed: int
    delayed: int
    active: int
    latency_us: float | None
    """From the log to the first acknowledgement, on average; None: there was none."""


@dataclass(slots=True)
class _Tale:
    """What is told of one place, as runs that are sorted and apart."""

    heard: list[Run] = field(default_factory=list)
    done: list[Run] = field(default_factory=list)
    failed: list[Run] = field(default_factory=list)
    stored: list[tuple[int, int, int]] = field(default_factory=list)
    """First offset, end offset and time, rising."""


def tally(events: Sequence[Event], places: Places, delayed_place: int) -> Generator[None, None, Tally]:
    """Count what events tell of the places that are still there, in steps."""
    tales: dict[int, _Tale] = defaultdict(_Tale)
    refused = 0
    waited_us, acked = 0, 0
    for number, (time_us, kind, place, first, end, _, consumer, extra) in enumerate(events):
        if number % STEP_COUNT == 0:
            yield
        if place not in places or (place == delayed_place and int(consumer) not in places):
            continue
        if kind == Kind.REFUSED:
            refused += 1
            continue
        tale = tales[place]
        take_unseen(tale.heard, first, end)
        if kind == Kind.STORED:
            tale.stored.append((first, end, time_us))
        elif kind in (Kind.ACKED, Kind.READ, Kind.CANCELLED):
            for run in take_unseen(tale.done, first, end):
                if kind == Kind.ACKED:
                    count, sum_us = _waited(tale.stored, *run, time_us)
                    acked, waited_us = acked + count, waited_us + sum_us
        elif kind in _FAILED:
            take_unseen(tale.failed, first, end)
        elif kind == Kind.DUE:
            take_unseen(tales[delayed_place].done, int(extra), int(extra) + end - first)
    topics: Counter[TopicName] = Counter()
    completed = failed = delayed = 0
    for place, tale in tales.items():
        yield
        source, sampling = places[place]
        if place == delayed_place:
            waiting = [gap for run in tale.heard for gap in take_unseen(tale.done, *run)]
            delayed = _sampled(sampling, waiting)
            continue
        topics[source.topic] += _sampled(sampling, tale.heard)
        completed += _sampled(sampling, tale.done)
        given_up = [gap for run in tale.failed for gap in take_unseen(tale.done, *run)]
        failed += _sampled(sampling, given_up)
    active = sum(topics.values()) - completed - failed
    latency_us = waited_us / acked if acked else None
    return Tally(dict(topics), completed, failed + refused, delayed, max(active, 0), latency_us)


def _sampled(sampling: Sampling, runs: Iterable[Run]) -> int:
    return sum(len(sampling.offsets(*run)) for run in runs)


def _waited(stored: list[tuple[int, int, int]], first: int, end: int, time_us: int) -> tuple[int, int]:
    """Of how many messages of a run it is known when they were stored, and how long they waited in all."""
    count = sum_us = 0
    begin = max(bisect_right(stored, first, key=_first_of) - 1, 0)
    for at in range(begin, len(stored)):
        stored_first, stored_end, stored_us = stored[at]
        if stored_first >= end:
            break
        shared = min(stored_end, end) - max(stored_first, first)
        if shared > 0:
            count += shared
            sum_us += shared * (time_us - stored_us)
    return count, sum_us
