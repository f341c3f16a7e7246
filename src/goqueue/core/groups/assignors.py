"""Ways to share out partitions among members. Each looks at who subscribes to what, and decides nothing else.

`sticky` (Kafka calls it `uniform`) leaves partitions where they are and moves only what must move to bring
the loads within one of each other, as far as the subscriptions allow. `range` gives each member a run of
every topic, `roundrobin` deals all partitions in turn.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from heapq import heapify, heapreplace
from itertools import cycle

from goqueue.model.ids import TopicName, TopicPartition

TopicCounts = Mapping[TopicName, int]
"""How many partitions each topic has."""
Subscriptions = Mapping[str, Collection[TopicName]]
"""The topics of each member; members in the order in which they came."""
Holdings = Mapping[str, Collection[TopicPartition]]
Assignment = dict[str, frozenset[TopicPartition]]
Assignor = Callable[[Subscriptions, TopicCounts, Holdings], Assignment]


def sticky(subscriptions: Subscriptions, counts: TopicCounts, previous: Holdings) -> Assignment:
    """Everybody keeps what it has; what nobody has goes to whoever has least; then loads are levelled."""
    free = {topic: set(range(count)) for topic, count in counts.items()}
    held: dict[str, list[TopicPartition]] = {}
    for member, topics in subscriptions.items():
        held[member] = []
        for place in previous.get(member, ()):
            if place.topic in topics and place.partition in free.get(place.topic, ()):
                free[place.topic].remove(place.partition)
                held[member].append(place)
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
            given[member].update(TopicPartition(topic, partition) for partition in range(first, end))
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
    least = [(len(held[member]), position, member) for position, member in enumerate(readers)]
    heapify(least)
    for partition in partitions:
        count, position, member = least[0]
        held[member].append(TopicPartition(topic, partition))
        heapreplace(least, (count + 1, position, member))


def _level(subscriptions: Subscriptions, held: dict[str, list[TopicPartition]]) -> None:
    """Move partitions one by one from whoever has most to whoever has least, while that makes a difference.

    The most never grows by that and the least never shrinks, so nobody gives what it was given here: no
    more moves than needed when all subscribe to the same.
    """
    load = {member: len(places) for member, places in held.items()}
    if max(load.values(), default=0) - min(load.values(), default=0) < 2:
        return
    topics_of = {member: Counter(place.topic for place in places) for member, places in held.items()}
    for places in held.values():
        places.sort(key=_by_number)
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
            place = _give(held[giver], topics)
            held[taker].append(place)
            _count_down(topics_of[giver], place.topic)
            topics_of[taker][place.topic] += 1
            load[giver] -= 1
            load[taker] += 1
            has_moved = True


def _giver(
    taker: str, topics: Collection[TopicName], topics_of: dict[str, Counter[TopicName]], load: dict[str, int]
) -> str | None:
    """Who has most of all that have at least two more than the taker, and something the taker can read."""
    giver, most = None, load[taker] + 1
    for member, count in load.items():
        if count > most and any(topic in topics for topic in topics_of[member]):
            giver, most = member, count
    return giver


def _give(places: list[TopicPartition], topics: Collection[TopicName]) -> TopicPartition:
    """Take away the last partition of these topics. The topics take turns: see how places are sorted."""
    last = next(index for index in range(len(places) - 1, -1, -1) if places[index].topic in topics)
    return places.pop(last)


def _by_number(place: TopicPartition) -> tuple[int, TopicName]:
    return place.partition, place.topic


def _count_down(topics: Counter[TopicName], topic: TopicName) -> None:
    topics[topic] -= 1
    if not topics[topic]:
        del topics[topic]
