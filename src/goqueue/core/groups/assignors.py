"""Ways to share out partitions among members. Each looks at who subscribes to what, and decides nothing else.

`sticky` (Kafka calls it `uniform`) leaves partitions where they are and moves only what must move to bring
the loads within one of each other, as far as the subscriptions allow. `range` gives each member a run of
every topic, `roundrobin` deals all partitions in turn. There may be very many partitions, so each works in
steps: what a step leaves behind is nobody's business before the last.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from heapq import heapify, heapreplace
from itertools import cycle, islice

from goqueue.core.groups.levelling import level
from goqueue.model.ids import TopicName, TopicPartition, places_of

TopicCounts = Mapping[TopicName, int]
"""How many partitions each topic has."""
Subscriptions = Mapping[str, Collection[TopicName]]
"""The topics of each member; members in the order in which they came."""
Holdings = Mapping[str, Collection[TopicPartition]]
Assignment = dict[str, frozenset[TopicPartition]]
Assigning = Generator[None, None, Assignment]
Assignor = Callable[[Subscriptions, TopicCounts, Holdings], Assigning]


def sticky(subscriptions: Subscriptions, counts: TopicCounts, previous: Holdings) -> Assigning:
    """Everybody keeps what it has; what nobody has goes to whoever has least; then loads are levelled."""
    free = {topic: set(range(count)) for topic, count in counts.items()}
    held: dict[str, list[TopicPartition]] = {}
    for member, topics in subscriptions.items():
        left = {topic: free[topic] for topic in topics if topic in free}
        held[member] = [
            place for place in previous.get(member, ()) if place.partition in left.get(place.topic, ())
        ]
        for topic, partition in held[member]:
            left[topic].remove(partition)
        yield
    readers = _readers(subscriptions, {topic: len(numbers) for topic, numbers in free.items()})
    # Topics that few can read come first: the others can still make up for what those do to the loads.
    for topic in sorted(readers, key=lambda topic: (len(readers[topic]), topic)):
        _fill(topic, sorted(free[topic]), readers[topic], held)
        yield
    yield from level(subscriptions, held)
    return {member: frozenset(places) for member, places in held.items()}


def range_by_topic(subscriptions: Subscriptions, counts: TopicCounts, _previous: Holdings) -> Assigning:
    """Of each topic a run of partitions for each member, the first members having one more."""
    given: dict[str, set[TopicPartition]] = {member: set() for member in subscriptions}
    for topic, readers in _readers(subscriptions, counts).items():
        share, longer_count = divmod(counts[topic], len(readers))
        first = 0
        for position, member in enumerate(sorted(readers)):
            end = first + share + (position < longer_count)
            given[member].update(places_of(topic, range(first, end)))
            first = end
        yield
    return {member: frozenset(partitions) for member, partitions in given.items()}


def round_robin(subscriptions: Subscriptions, counts: TopicCounts, _previous: Holdings) -> Assigning:
    """All partitions in order, each to the next member that subscribes to its topic."""
    given: dict[str, set[TopicPartition]] = {member: set() for member in subscriptions}
    turns = {member: turn for turn, member in enumerate(sorted(subscriptions))}
    turn = 0
    for topic, readers in sorted(_readers(subscriptions, counts).items()):
        readers.sort()
        # Whoever does not read the topic is passed over, and that may be nearly everybody.
        first = bisect_left(readers, turn, key=turns.__getitem__)
        for place, member in zip(
            places_of(topic, range(counts[topic])), _rounds(readers, first), strict=False
        ):
            given[member].add(place)
        turn = turns[member] + 1
        yield
    return {member: frozenset(partitions) for member, partitions in given.items()}


ASSIGNORS: dict[str, Assignor] = {
    "sticky": sticky,
    "uniform": sticky,
    "range": range_by_topic,
    "roundrobin": round_robin,
}


def at_once(assigning: Assigning) -> Assignment:
    """All steps in one."""
    try:
        while True:
            next(assigning)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # as the generator says


def _rounds(readers: list[str], first: int) -> Iterator[str]:
    """One after the other and round again, beginning with one of them."""
    return islice(cycle(readers), first, None)


def _readers(subscriptions: Subscriptions, counts: TopicCounts) -> dict[TopicName, list[str]]:
    """Who subscribes to each topic that has partitions, in the order in which they came."""
    topics = [topic for topic, count in counts.items() if count]
    readers: dict[TopicName, list[str]] = {}
    for member, subscribed in subscriptions.items():
        for topic in topics:
            if topic in subscribed:
                readers.setdefault(topic, []).append(member)
    return readers


def _fill(
    topic: TopicName, partitions: list[int], readers: list[str], held: dict[str, list[TopicPartition]]
) -> None:
    """Give partitions that nobody has, one by one, to the reader that has least."""
    if len(readers) == 1:
        held[readers[0]] += places_of(topic, partitions)
        return
    least = [(len(held[member]), position, member) for position, member in enumerate(readers)]
    heapify(least)
    for place in places_of(topic, partitions):
        count, position, member = least[0]
        held[member].append(place)
        heapreplace(least, (count + 1, position, member))
