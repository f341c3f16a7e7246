"""One group at one partition, as tests speak of it: stocked, polled, settled and carried through time."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from goqueue.core.delivery.deliveries import Deliveries, FloorMoved
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.delivery.events import DeliveryKept, Event, Leased, Returned, Settled
from goqueue.core.delivery.retries import RetryPolicy, expire
from goqueue.core.delivery.runs import Run
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Lane

ORDERS, DEAD = TopicName("orders"), TopicName("orders.dlq")
ORDERS_ID = UUID(int=1)
NUMBER = 7
VISIBILITY_MS = 5_000
BEGIN_MS = 1_000_000
WEIGHTS = (50, 25, 15, 7, 3)
POLICY = RetryPolicy(2, 1_000, 60_000, TopicPartition(DEAD, 0))


def newborn(number: int = NUMBER, *, group: str = "workers", partition: int = 0) -> DeliveryKept:
    return DeliveryKept(number, group, ORDERS, ORDERS_ID, partition, 0)


@dataclass
class Desk:
    """A delivery, its clock, and the events that made it what it is."""

    deliveries: Deliveries = field(default_factory=Deliveries)
    journal: list[Event] = field(default_factory=list)
    now_ms: int = BEGIN_MS
    leases: int = 0
    policy: RetryPolicy = POLICY

    def __post_init__(self) -> None:
        self.commit(newborn())

    @property
    def delivery(self) -> Delivery:
        found = self.deliveries.numbered(NUMBER)
        assert found is not None
        return found

    def commit(self, *events: Event) -> list[FloorMoved]:
        self.journal += events
        return [moved for event in events if (moved := self.deliveries.apply(event))]

    def stock(self, count: int, lane: int = Lane.NORMAL) -> None:
        """The scan meets a batch at the end of what it knows."""
        first = self.delivery.find_scan()
        self.delivery.learn(first, first + count, lane)

    def take(self, limit: int) -> list[Run]:
        runs = self.delivery.shelf.take(limit, weights=WEIGHTS, wait_ms_max=30_000, now_ms=self.now_ms)
        self.delivery.reserve(runs)
        return sorted(runs)

    def poll(self, limit: int, consumer: str = "ann", *, visibility_ms: int = VISIBILITY_MS) -> Leased:
        self.leases += 1
        until_ms = self.now_ms + visibility_ms
        leased = self.delivery.lease(
            self.take(limit), lease=self.leases, consumer=consumer, until_ms=until_ms
        )
        self.commit(leased)
        return leased

    def settle(self, leased: Leased, *runs: Run) -> list[FloorMoved]:
        return self.commit(Settled(NUMBER, leased.lease, runs or leased.runs))

    def give_back(self, leased: Leased, *runs: Run, after_ms: int = 0) -> None:
        self.commit(Returned(NUMBER, leased.lease, runs or leased.runs, self.now_ms + after_ms))

    def wait(self, duration_ms: int) -> list[Event]:
        """Let time pass: what has run out comes back. The events of that."""
        self.now_ms += duration_ms
        events = expire(self.delivery, self.policy, now_ms=self.now_ms, wall_ms=self.now_ms)
        self.commit(*events)
        self.delivery.fall_due(self.now_ms)
        return events

    def read_back(self, events: Iterable[Event] | None = None) -> Delivery:
        """The delivery as another broker has it that reads the journal, or these events."""
        again = Deliveries()
        for event in self.journal if events is None else events:
            again.apply(event)
        found = again.numbered(NUMBER)
        assert found is not None
        return found


def stocked(count: int, lane: int = Lane.NORMAL) -> Desk:
    desk = Desk()
    desk.stock(count, lane)
    return desk


def ready(delivery: Delivery) -> list[Run]:
    """What can be handed out, of whatever lane."""
    return sorted(run for runs in delivery.shelf.ready for run in runs)
