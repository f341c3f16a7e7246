"""The deliveries machine: those of all groups that share one journal."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import DeliveryDropped, DeliveryKept, Event
from goqueue.model.ids import TopicName, TopicPartition


class FloorMoved(NamedTuple):
    """A group's committed offset is now this one."""

    group: str
    topic: TopicName
    topic_id: UUID
    partition: int
    offset: int


class GroupDeliveries:
    """What one group takes from, and what its consumers have out."""

    def __init__(self) -> None:
        self.by_source: dict[TopicPartition, Delivery] = {}
        self.in_flight: Counter[str] = Counter()


class Deliveries:
    def __init__(self) -> None:
        self._groups: dict[str, GroupDeliveries] = {}
        self._by_number: dict[int, Delivery] = {}

    def __iter__(self) -> Iterator[Delivery]:
        return iter(tuple(self._by_number.values()))

    def numbered(self, number: int) -> Delivery | None:
        return self._by_number.get(number)

    def find(self, group: str, source: TopicPartition) -> Delivery | None:
        known = self._groups.get(group)
        return None if known is None else known.by_source.get(source)

    def has_group(self, group: str) -> bool:
        return group in self._groups

    def of_group(self, group: str) -> list[Delivery]:
        known = self._groups.get(group)
        return [] if known is None else list(known.by_source.values())

    def in_flight(self, group: str, consumer: str) -> int:
        """How many messages a consumer has out."""
        known = self._groups.get(group)
        return 0 if known is None else known.in_flight[consumer]

    def apply(self, event: Event, *, ahead_ms: int = 0) -> FloorMoved | None:
        """Change state; tells when a group's committed offset is another one by it.

        `ahead_ms`: what running time, by which deadlines are decided, is ahead of the wall time in events.
        """
        if isinstance(event, DeliveryKept):
            return self._keep(event, ahead_ms)
        delivery = self._by_number.get(event.number)
        if delivery is None:
            return None
        if isinstance(event, DeliveryDropped):
            self.drop(delivery)
            return None
        floor = delivery.floor
        delivery.apply(event, ahead_ms=ahead_ms)
        return None if delivery.floor == floor else _moved(delivery)

    def drop(self, delivery: Delivery) -> None:
        """The group's offset is gone, or the topic."""
        delivery.end()
        del self._by_number[delivery.number]
        group = self._groups[delivery.group]
        del group.by_source[delivery.source]
        if not group.by_source:
            del self._groups[delivery.group]

    def clear(self) -> None:
        self._groups.clear()
        self._by_number.clear()

    def whole_state(self, *, ahead_ms: int = 0) -> Iterable[Event]:
        return (delivery.kept(ahead_ms=ahead_ms) for delivery in self)

    def _keep(self, event: DeliveryKept, ahead_ms: int) -> FloorMoved:
        group = self._groups.setdefault(event.group, GroupDeliveries())
        source = TopicPartition(event.topic, event.partition)
        if earlier := group.by_source.get(source):
            self.drop(earlier)
            group = self._groups.setdefault(event.group, GroupDeliveries())
        delivery = Delivery(event, group.in_flight, ahead_ms=ahead_ms)
        group.by_source[source] = delivery
        self._by_number[event.number] = delivery
        return _moved(delivery)


def _moved(delivery: Delivery) -> FloorMoved:
    return FloorMoved(
        delivery.group, delivery.source.topic, delivery.topic_id, delivery.source.partition, delivery.floor
    )
