"""Where a command is at home: the partition or the coordinator it concerns, or the seat that answers it.

A place is told from the fields of a command alone, whoever asks and wherever. On one node every place is
here. In a cluster the node asked finds out who leads the place, and runs the command or passes it on. A place
of several homes says that the command is split among them, and that what comes back is put together.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from goqueue.model.ids import TopicPartition


class Partitions(NamedTuple):
    """The leaders of several partitions: each gets what concerns its own."""

    partitions: Sequence[TopicPartition]


class TopicLeaders(NamedTuple):
    """The leaders of all partitions of some topics, where the command says no more, or routing does later."""

    topics: Sequence[str]


class GroupCoordinator(NamedTuple):
    """Who keeps a group: its members, offsets and leases."""

    group: str


class GroupCoordinators(NamedTuple):
    """Who keeps several groups; each gets its own."""

    groups: Sequence[str]


class LeaseCoordinators(NamedTuple):
    """Who gave out the leases that some receipts name; each gets its own."""

    receipts: Sequence[str]


class TransactionCoordinator(NamedTuple):
    """Who keeps a transactional id."""

    transactional_id: str


class SinkCoordinator(NamedTuple):
    """Who keeps an exactly-once sink."""

    sink: str


class DelayKeeper(NamedTuple):
    """Who keeps what is to be delivered to a partition later."""

    target: TopicPartition


class DelayKeepers(NamedTuple):
    """The same for all partitions of a topic, or of all topics."""

    topic: str | None


class Seat(Enum):
    """Places that need no name."""

    CONTROLLER = "controller"
    """Who decides on topics, tenants and settings."""
    SCHEMA_REGISTRY = "schema_registry"
    """Who writes the registry. Every node reads it."""
    ANY_NODE = "any_node"
    """Whoever is asked: what the image tells, or what each node can do for itself."""
    THIS_NODE = "this_node"
    """Whoever is asked, and nobody else: it is about that node."""
    EVERY_NODE = "every_node"
    """All of them; what they say is put together."""


Place = (
    TopicPartition
    | Partitions
    | TopicLeaders
    | GroupCoordinator
    | GroupCoordinators
    | LeaseCoordinators
    | TransactionCoordinator
    | SinkCoordinator
    | DelayKeeper
    | DelayKeepers
    | Seat
)


class Command(Protocol):
    """What a door asks for: a frozen value that can be run here, passed on, logged and replayed."""

    @property
    def place(self) -> Place: ...
