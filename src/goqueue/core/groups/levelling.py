"""Loads of members brought within one of each other, as far as their subscriptions allow.

Again and again whoever has least takes from whoever has most of all that can give it something, while that
makes a difference. The most never grows by that and the least never shrinks, so nobody gives what it was
given here: no more moves than needed when all subscribe to the same.

Who comes next and what moves are looked up, never searched for: members may be thousands, and may read
different topics of thousands of partitions. Members are numbers here, in the order in which they came; that
decides between equals.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush
from operator import itemgetter

from goqueue.model.ids import TopicName, TopicPartition

_MOVES_A_STEP = 100
_topic_of: Callable[[TopicPartition], TopicName] = itemgetter(0)
_number_of: Callable[[TopicPartition], int] = itemgetter(1)


def level(
    subscriptions: Mapping[str, Collection[TopicName]], held: dict[str, list[TopicPartition]]
) -> Iterator[None]:
    """Move partitions between the members of `held`, with stops at which others may have their turn.

    As many move at once as bring neither of the two past the average, where all subscribe to the same; else
    one by one, because who can still give what to whom depends on every move.
    """
    counts = list(map(len, held.values()))
    if max(counts, default=0) - min(counts, default=0) < 2:
        return
    for places in held.values():
        # What is given away comes from the end: so the topics take turns.
        places.sort(key=_topic_of)
        places.sort(key=_number_of)
        yield
    loads = _Loads(held)
    wanted = [frozenset(topics) for topics in subscriptions.values()]
    shared = {topics: _Circle(topics, loads) for topics in set(wanted)}
    circles = [shared[topics] for topics in wanted]
    least, rest = divmod(sum(loads.counts), len(loads.counts))
    most = least + (rest > 0)
    moved_count, has_moved = 0, True
    while has_moved:
        has_moved = False
        turns = _Turns(loads)
        while (taker := turns.taker()) is not None:
            giver = circles[taker].giver(more_than=loads.counts[taker] + 1)
            if giver is None:
                turns.pass_over(taker)
                continue
            count = 1
            if len(shared) == 1:
                count = max(min(loads.counts[giver] - most, least - loads.counts[taker]), 1)
            circles[taker].take(giver, taker, count)
            turns.note(giver, taker)
            has_moved = True
            moved_count += count
            if moved_count >= _MOVES_A_STEP:
                moved_count = 0
                yield
    held.update(zip(held, loads.held(), strict=True))


class _Loads:
    """What each member has."""

    def __init__(self, held: Mapping[str, list[TopicPartition]]) -> None:
        self.places: list[list[TopicPartition | None]] = [[*places] for places in held.values()]
        """In the order in which they were given; None: given away since."""
        self.counts = list(map(len, self.places))
        self.changes: list[int] = []
        """Members whose count has changed, one after the other."""

    def move(self, giver: int, index: int, taker: int) -> None:
        self.places[taker].append(self.places[giver][index])
        self.places[giver][index] = None

    def count(self, giver: int, taker: int, moved_count: int) -> None:
        self.counts[giver] -= moved_count
        self.counts[taker] += moved_count
        self.changes += (giver, taker)

    def held(self) -> Iterator[list[TopicPartition]]:
        return ([place for place in places if place is not None] for places in self.places)


class _Circle:
    """Members with the same subscription, and who can give them something."""

    def __init__(self, topics: frozenset[TopicName], loads: _Loads) -> None:
        self._topics = topics
        self._loads = loads
        self._givers = [(-count, member) for member, count in enumerate(loads.counts)]
        """A heap; some have another load by now, and stand in it once more with that."""
        heapify(self._givers)
        self._seen_changes = len(loads.changes)
        self._offers: dict[int, tuple[list[int], int]] = {}
        """Where among a member's places those of these topics are, and up to where that was looked at."""

    def giver(self, *, more_than: int) -> int | None:
        """Who has most of all that have more than this, and something these members can read."""
        counts, givers = self._loads.counts, self._givers
        for member in dict.fromkeys(self._loads.changes[self._seen_changes :]):
            heappush(givers, (-counts[member], member))
        self._seen_changes = len(self._loads.changes)
        while givers and -givers[0][0] > more_than:
            count, member = givers[0]
            if counts[member] == -count and self._offered(member):
                return member
            heappop(givers)
        return None

    def take(self, giver: int, taker: int, count: int) -> None:
        """The last ones that it can give."""
        taken = 0
        while taken < count and (offered := self._offered(giver)):
            self._loads.move(giver, offered.pop(), taker)
            taken += 1
        self._loads.count(giver, taker, taken)

    def _offered(self, member: int) -> list[int]:
        """Where what a member can give is, in order; the last place in it is certainly still there."""
        places = self._loads.places[member]
        offered, seen = self._offers.get(member, ([], 0))
        if seen < len(places):
            topics = self._topics
            offered += [
                index
                for index, place in enumerate(places[seen:], seen)
                if place is not None and place.topic in topics
            ]
            self._offers[member] = offered, len(places)
        while offered and places[offered[-1]] is None:
            offered.pop()
        return offered


class _Turns:
    """Who takes next: whoever has least of those that still can."""

    def __init__(self, loads: _Loads) -> None:
        self._loads = loads
        self._can_take = [True] * len(loads.counts)
        self._takers = [(count, member) for member, count in enumerate(loads.counts)]
        heapify(self._takers)

    def taker(self) -> int | None:
        while self._takers:
            count, member = self._takers[0]
            if self._can_take[member] and count == self._loads.counts[member]:
                return member
            heappop(self._takers)
        return None

    def pass_over(self, member: int) -> None:
        """There is nobody it can take from, as things are."""
        self._can_take[member] = False

    def note(self, *members: int) -> None:
        """They have another load now."""
        for member in members:
            if self._can_take[member]:
                heappush(self._takers, (self._loads.counts[member], member))
