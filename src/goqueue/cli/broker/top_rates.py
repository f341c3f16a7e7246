"""What `top` shows: two looks at a broker, and what has happened between them. Plain values, no requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from goqueue.client.calls.groups import GroupLag
from goqueue.client.log import Extent
from goqueue.model.delivery import DEAD_LETTER_SUFFIX, REDRIVE_GROUP_PREFIX


@dataclass(frozen=True, slots=True)
class TopicLook:
    """A topic at one moment: sums over its partitions."""

    partitions: int
    messages: int
    end_offsets: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GroupLook:
    """A group in one topic at one moment: sums over the partitions it has committed for."""

    settled: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A broker at one moment of a clock that only goes forward."""

    time_ns: int
    topics: Mapping[str, TopicLook]
    groups: Mapping[str, Mapping[str, GroupLook]] = field(default_factory=dict)
    """By group and topic."""
    dead_letters: Mapping[str, int] = field(default_factory=dict)
    """By the topic they came from; those that were sent back are not counted."""
    delayed: Mapping[str, int] = field(default_factory=dict)


class TopRow(msgspec.Struct, kw_only=True):
    """A topic in the table. Rates are unknown before the second look."""

    topic: str
    partitions: int
    messages: int
    size_bytes: int
    in_per_second: float | None
    out_per_second: float | None
    groups: int | None
    lag: int
    dead_letters: int
    delayed: int


def look_of(
    *,
    time_ns: int,
    extents: Mapping[str, Mapping[str, Extent]],
    lags: Sequence[GroupLag],
    delayed: Mapping[str, int],
) -> Look:
    """What a broker has answered, in sums."""
    topics = {
        name: TopicLook(
            len(partitions),
            sum(each.end - each.start for each in partitions.values()),
            sum(each.end for each in partitions.values()),
            sum(each.size_bytes for each in partitions.values()),
        )
        for name, partitions in extents.items()
    }
    groups: dict[str, dict[str, GroupLook]] = {}
    for behind in lags:
        if behind.group_id.startswith(REDRIVE_GROUP_PREFIX):
            continue
        for topic in {row.topic for row in behind.partitions}:
            rows = [row for row in behind.partitions if row.topic == topic]
            groups.setdefault(behind.group_id, {})[topic] = GroupLook(
                sum(max(row.offset, 0) for row in rows), sum(max(row.lag, 0) for row in rows)
            )
    return Look(
        time_ns=time_ns,
        topics=topics,
        groups=groups,
        dead_letters=_dead_letters(extents, lags),
        delayed=delayed,
    )


def _dead_letters(extents: Mapping[str, Mapping[str, Extent]], lags: Sequence[GroupLag]) -> dict[str, int]:
    """Messages in the topics of dead letters, without those before the first that was not sent back."""
    sent_back = {
        (row.topic, str(row.partition)): row.offset
        for behind in lags
        if behind.group_id.startswith(REDRIVE_GROUP_PREFIX)
        for row in behind.partitions
    }
    return {
        name.removesuffix(DEAD_LETTER_SUFFIX): sum(
            max(extent.end - max(extent.start, sent_back.get((name, number), 0)), 0)
            for number, extent in partitions.items()
        )
        for name, partitions in extents.items()
        if name.endswith(DEAD_LETTER_SUFFIX)
    }


def top_rows(now: Look, before: Look | None = None) -> list[TopRow]:
    """A row a topic, the busiest first; dead letters stand with the topic they came from."""
    rows = [
        _row(name, now, before)
        for name in now.topics
        if not (name.endswith(DEAD_LETTER_SUFFIX) and name.removesuffix(DEAD_LETTER_SUFFIX) in now.topics)
    ]
    return sorted(rows, key=lambda row: (-(row.in_per_second or 0), -(row.out_per_second or 0), row.topic))


def _row(topic: str, now: Look, before: Look | None) -> TopRow:
    look = now.topics[topic]
    readers = _readers(topic, now)
    return TopRow(
        topic=topic,
        partitions=look.partitions,
        messages=look.messages,
        size_bytes=look.size_bytes,
        in_per_second=_in_rate(topic, now, before),
        out_per_second=_out_rate(topic, now, before),
        groups=len(readers),
        # Every group reads the whole topic: the one that is furthest behind tells how late things are.
        lag=max((each.lag for each in readers.values()), default=0),
        dead_letters=now.dead_letters.get(topic, 0),
        delayed=now.delayed.get(topic, 0),
    )


def _readers(topic: str, look: Look) -> dict[str, GroupLook]:
    return {name: topics[topic] for name, topics in look.groups.items() if topic in topics}


def _in_rate(topic: str, now: Look, before: Look | None) -> float | None:
    if before is None or topic not in before.topics:
        return None
    return _rate(now.topics[topic].end_offsets - before.topics[topic].end_offsets, now, before)


def _out_rate(topic: str, now: Look, before: Look | None) -> float | None:
    if before is None or topic not in before.topics:
        return None
    earlier = _readers(topic, before)
    settled = sum(
        # A group that was set back has settled nothing in the meantime.
        max(each.settled - earlier[name].settled, 0)
        for name, each in _readers(topic, now).items()
        if name in earlier
    )
    return _rate(settled, now, before)


def _rate(count: int, now: Look, before: Look) -> float:
    # A topic that was made anew under its old name begins at 0 again.
    return max(count, 0) * 1e9 / max(now.time_ns - before.time_ns, 1)


def total_of(rows: Sequence[TopRow]) -> TopRow:
    """All rows in one."""
    return TopRow(
        topic="all",
        partitions=sum(row.partitions for row in rows),
        messages=sum(row.messages for row in rows),
        size_bytes=sum(row.size_bytes for row in rows),
        in_per_second=_sum([row.in_per_second for row in rows]),
        out_per_second=_sum([row.out_per_second for row in rows]),
        # The same group may read many topics, and is still one.
        groups=None,
        lag=max((row.lag for row in rows), default=0),
        dead_letters=sum(row.dead_letters for row in rows),
        delayed=sum(row.delayed for row in rows),
    )


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
