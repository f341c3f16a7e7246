"""A member that the broker assigns partitions to, and what it holds."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, starmap
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from goqueue.core.groups.events import HolderKept, PartitionsOf
from goqueue.core.groups.patterns import topic_pattern
from goqueue.model.ids import TopicName, TopicPartition, places_of

NS_PER_MS = 1_000_000
Partitions = frozenset[TopicPartition]
NONE: Partitions = frozenset()
_topic_of: Callable[[TopicPartition], TopicName] = itemgetter(0)
_number_of: Callable[[TopicPartition], int] = itemgetter(1)


@dataclass(slots=True)
class Holder:
    """What it holds changes through `hold` alone. Times and what it was told last are not journalled."""

    kept: HolderKept
    epoch: int = 0
    """The generation it has come to; it may lag behind the group's while it has partitions to let go of."""
    previous_epoch: int = 0
    """The one before: its reply may have been lost, so it is still listened to."""
    target: Partitions = NONE
    """What it is to have in the end."""
    owned: Partitions = NONE
    revoking: Partitions = NONE
    """What it is to let go of, and has until then."""
    readable: tuple[TopicPartition, ...] = ()
    """Owned or not yet let go of, in order: asked for with every poll."""
    deadline_ns: int = 0
    """When the session ends by itself."""
    revocation_ns: int | None = None
    """When partitions it does not let go of are taken away."""
    told: tuple[int, Partitions] | None = field(default=None)
    """Epoch and partitions as it heard them last."""
    told_topics: tuple[object, frozenset[UUID]] | None = field(default=None)
    """Of which state of all topics it heard, and the ids that those of its partitions had then."""

    @property
    def member_id(self) -> str:
        return self.kept.member_id

    @property
    def held(self) -> Partitions:
        return self.owned | self.revoking if self.revoking else self.owned

    def touch(self, now_ns: int) -> None:
        """A sign of life."""
        self.deadline_ns = now_ns + self.kept.session_timeout_ms * NS_PER_MS

    def hold(self, owned: Partitions, revoking: Partitions = NONE) -> None:
        self.owned, self.revoking = owned, revoking
        self.readable = tuple(in_order(self.held))
        if not revoking:
            self.revocation_ns = None

    def share(self, everything: "Everything") -> None:
        """It is to have, and has, what others have too."""
        self.target = self.owned = everything.partitions
        self.readable = everything.readable

    def start_revocation(self, now_ns: int) -> None:
        """The time to let go of partitions begins, unless it runs already."""
        if self.revocation_ns is None or not self.revoking:
            self.revocation_ns = now_ns + self.kept.rebalance_timeout_ms * NS_PER_MS

    def is_reconciled(self, generation: int) -> bool:
        """Whether it has come to a generation, and has what it is to have there."""
        has_target = self.owned is self.target or self.owned == self.target
        return self.epoch == generation and not self.revoking and has_target


class Everything(NamedTuple):
    """All partitions of some topics: one for all members that share them, however many there are."""

    partitions: Partitions
    readable: tuple[TopicPartition, ...]


def subscriptions(
    members: Iterable[HolderKept], topics: Collection[TopicName]
) -> dict[str, frozenset[TopicName]]:
    """Those of the topics that each member subscribes to, by name or by pattern.

    Most members of a group subscribe to the same, which is looked up once: there may be many topics.
    """
    found: dict[tuple[tuple[TopicName, ...], str | None], frozenset[TopicName]] = {}
    wanted: dict[str, frozenset[TopicName]] = {}
    for kept in members:
        wishes = (kept.topics, kept.pattern)
        if wishes not in found:
            found[wishes] = frozenset(_matching(*wishes, topics))
        wanted[kept.member_id] = found[wishes]
    return wanted


def _matching(
    names: Collection[TopicName], pattern: str | None, topics: Collection[TopicName]
) -> Iterator[TopicName]:
    yield from (name for name in names if name in topics)
    if pattern is not None:
        yield from filter(topic_pattern(pattern).fullmatch, topics)


def in_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Sorted, a third as long as pairs would take to compare: there may be very many."""
    found = sorted(partitions, key=_number_of)
    found.sort(key=_topic_of)
    return found


def by_topic(partitions: Iterable[TopicPartition]) -> PartitionsOf:
    """Partitions in the shape of the journal."""
    numbers: defaultdict[TopicName, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        numbers[topic].append(partition)
    return tuple((topic, tuple(sorted(numbers[topic]))) for topic in sorted(numbers))


def everything_of(counts: Iterable[tuple[TopicName, int]]) -> Everything:
    """All partitions of topics that have so many each."""
    partitions = from_topics((topic, range(count)) for topic, count in counts)
    return Everything(partitions, tuple(in_order(partitions)))


def from_topics(topics: Iterable[tuple[TopicName, Iterable[int]]]) -> Partitions:
    """And back."""
    return frozenset(chain.from_iterable(starmap(places_of, topics)))
