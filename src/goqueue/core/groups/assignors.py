"""Ways to share out partitions among members. Each looks at who subscribes to what, and decides nothing else.

`sticky` (Kafka calls it `uniform`) leaves partitions where they are and moves only what must move to bring
the loads within one of each other, as far as the subscriptions allow. `range` gives each member a run of
every topic, `roundrobin` deals all partitions in turn.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from heapq import heapify, heapreplace
from itertools import cycle
from operator import itemgetter

from goqueue.model.ids import TopicName, TopicPartition, places_of

TopicCounts = Mapping[TopicName, int]
"""How many partitions each topic has."""
Subscriptions = Mapping[str, Collection[TopicName]]
"""The topics of each member; members in the order in which they came."""
Holdings = Mapping[str, Collection[TopicPartition]]
Assignment = dict[str, frozenset[TopicPartition]]
Assignor = Callable[[Subscriptions, TopicCounts, Holdings], Assignment]
_topic_of: Callable[[TopicPartition], TopicName] = itemgetter(0)
_number_of: Callable[[TopicPartition], int] = itemgetter(1)


def sticky(subscriptions: Subscriptions, counts: TopicCounts, previous: Holdings) -> Assignment:
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
    readers = _readers(subscriptions, {topic: len(numbers) for topic, numbers in free.items()})
    # Topics that few can read come first: the others can still make up for what those do to the loads.
    for topic in sorted(readers, key=lambda topic: (len(readers[topic]), topic)):
        _fill(topic, sorted(free[topic]), readers[topic], held)
    _level(subscriptions, held)
    return {member: frozenset(places) for member, places in held.items()}


def range_by_topic(subscriptions: Subscriptions, counts: TopicCounts, _previous: Holdings) -> Assignment:
    """Of each topic a run of partitions for each member, the first members having one more."""
    given: dict[str, set[TopicPartition]] = {member: set() for member in subscriptions}
    for topic, readers in _readers(subscriptions, counts).items():
        share, longer_count = divmod(counts[topic], len(readers))
        first = 0
        for position, member in enumerate(sorted(readers)):
            end = first + share + (position < longer_count)
            given[member].update(places_of(topic, range(first, end)))
            first = end
    return {member: frozenset(partitions) for member, partitions in given.items()}


def round_robin(subscriptions: Subscriptions, counts: TopicCounts, _previous: Holdings) -> Assignment:
    """All partitions in order, each to the next member that subscribes to its topic."""
    given: dict[str, set[TopicPartition]] = {member: set() for member in subscriptions}
    turns = cycle(sorted(subscriptions))
    for topic in sorted(_readers(subscriptions, counts)):
        for partition in range(counts[topic]):
            member = next(member for member in turns if topic in subscriptions[member])
            given[member].add(TopicPartition(topic, partition))
    return {member: frozenset(partitions) for member, partitions in given.items()}


ASSIGNORS: dict[str, Assignor] = {
    "sticky": sticky,
    "uniform": sticky,
    "range": range_by_topic,
    "roundrobin": round_robin,
}


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


def _level(subscriptions: Subscriptions, held: dict[str, list[TopicPartition]]) -> None:
    """Move partitions from whoever has most to whoever has least, while that makes a difference.

    The most never grows by that and the least never shrinks, so nobody gives what it was given here: no more
    moves than needed when all subscribe to the same. Then as many move at once as bring neither of the two
    past the average; else one by one, because who can still give what to whom depends on every move.
    """
    load = {member: len(places) for member, places in held.items()}
    if max(load.values(), default=0) - min(load.values(), default=0) < 2:
        return
    is_alike = _is_alike(subscriptions)
    least, rest = divmod(sum(load.values()), len(load))
    most = least + (rest > 0)
    topics_of = {member: Counter(map(_topic_of, places)) for member, places in held.items()}
    for places in held.values():
        places.sort(key=_topic_of)
        places.sort(key=_number_of)
    has_moved = True
    while has_moved:
        has_moved = False
        takers = dict.fromkeys(load)
        while takers:
            taker = min(takers, key=load.__getitem__)
            topics = subscriptions[taker]
            giver = _giver(taker, topics, topics_of, load)
            if giver is None:
                del takers[taker]
                continue
            count = max(min(load[giver] - most, least - load[taker]), 1) if is_alike else 1
            given = _give(held[giver], topics, count)
            held[taker] += given
            for topic, moved_count in Counter(map(_topic_of, given)).items():
                _count_down(topics_of[giver], topic, moved_count)
                topics_of[taker][topic] += moved_count
            load[giver] -= len(given)
            load[taker] += len(given)
            has_moved = True


def _is_alike(subscriptions: Subscriptions) -> bool:
    """Whether all members subscribe to the same topics."""
    first, *others = subscriptions.values()
    return all(topics is first or topics == first for topics in others)


def _giver(
    taker: str, topics: Collection[TopicName], topics_of: dict[str, Counter[TopicName]], load: dict[str, int]
) -> str | None:
    """Who has most of all that have at least two more than the taker, and something the taker can read."""
    giver, most = None, load[taker] + 1
    for member, count in load.items():
        if count > most and any(topic in topics for topic in topics_of[member]):
            giver, most = member, count
    return giver


def _give(places: list[TopicPartition], topics: Collection[TopicName], count: int) -> list[TopicPartition]:
    """Take away the last partitions of these topics. The topics take turns: see how places are sorted."""
    if count == 1:
        last = next(index for index in range(len(places) - 1, -1, -1) if places[index].topic in topics)
        return [places.pop(last)]
    given: list[TopicPartition] = []
    others: list[TopicPartition] = []
    while places and len(given) < count:
        place = places.pop()
        (given if place.topic in topics else others).append(place)
    places += reversed(others)
    return given


def _count_down(topics: Counter[TopicName], topic: TopicName, count: int) -> None:
    topics[topic] -= count
    if not topics[topic]:
        del topics[topic]
