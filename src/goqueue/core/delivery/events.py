"""What of deliveries must survive a restart. A delivery is known by its number, to keep events small."""

from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from goqueue.model.delivery import Move, PassedRun
from goqueue.model.ids import NO_PRODUCER, ProducerId, TopicName

RunsKept = tuple[tuple[int, int], ...]


class LeaseKept(NamedTuple):
    lease: int
    consumer: str
    until_ms: int
    runs: RunsKept
    later: tuple[tuple[int, int], ...] = ()
    """Messages whose deadline was moved alone: offset and deadline."""


class ReturnKept(NamedTuple):
    offset: int
    attempts: int
    due_ms: int
    """0: it may be handed out, or is out."""


@dataclass(frozen=True, slots=True)
class DeliveryKept:
    """A group begins to take from a partition; or, when a journal is written anew, where it stands."""

    number: int
    group: str
    topic: TopicName
    topic_id: UUID
    partition: int
    floor: int
    settled: RunsKept = ()
    leases: tuple[LeaseKept, ...] = ()
    returned: tuple[ReturnKept, ...] = ()
    producer_id: ProducerId = NO_PRODUCER
    next_sequences: tuple[tuple[TopicName, int, int], ...] = ()
    """Topic, partition and the sequence number of the next message moved there."""
    moves: tuple[tuple[Move, int], ...] = ()
    passed: tuple[PassedRun, ...] = ()
    """What was left out, the newest of it."""

    def before(self, end_offset: int) -> "DeliveryKept":
        """The same where the log ends at an offset: what was known of messages behind it is forgotten."""
        leases = [
            lease._replace(
                runs=_before(lease.runs, end_offset),
                later=tuple(pair for pair in lease.later if pair[0] < end_offset),
            )
            for lease in self.leases
        ]
        return replace(
            self,
            floor=min(self.floor, end_offset),
            settled=_before(self.settled, end_offset),
            leases=tuple(lease for lease in leases if lease.runs),
            returned=tuple(one for one in self.returned if one.offset < end_offset),
            moves=tuple(pair for pair in self.moves if pair[0].offset < end_offset),
        )


@dataclass(frozen=True, slots=True)
class Leased:
    """Messages are out with a consumer until a time: one event a poll and partition."""

    number: int
    lease: int
    consumer: str
    until_ms: int
    runs: RunsKept


@dataclass(frozen=True, slots=True)
class Settled:
    """The group is done with these: acknowledged, moved elsewhere, or gone from the log."""

    number: int
    lease: int
    runs: RunsKept


@dataclass(frozen=True, slots=True)
class Returned:
    """Messages came back, by a consumer or because their time was up, and may go out again from `due_ms`."""

    number: int
    lease: int
    runs: RunsKept
    due_ms: int


@dataclass(frozen=True, slots=True)
class Extended:
    """A consumer takes longer."""

    number: int
    lease: int
    runs: RunsKept
    until_ms: int


@dataclass(frozen=True, slots=True)
class MovesBegun:
    """Messages are on their way to another topic; whatever happens, each gets there once."""

    number: int
    lease: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class ProducerTaken:
    """The producer under which a delivery moves messages: it numbers them from 0 on."""

    number: int
    producer_id: ProducerId


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Messages that nobody can read are left out: the disk has spoilt them, or their producer has."""

    number: int
    passed: PassedRun
    runs: RunsKept
    """What of it was neither settled nor out: who has a message may still settle it."""


@dataclass(frozen=True, slots=True)
class DeliveryDropped:
    """The topic is gone, or was made anew."""

    number: int


Event = (
    DeliveryKept
    | Leased
    | Settled
    | Returned
    | Extended
    | MovesBegun
    | ProducerTaken
    | PassedOver
    | DeliveryDropped
)
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        DeliveryKept,
        Leased,
        Settled,
        Returned,
        Extended,
        MovesBegun,
        ProducerTaken,
        PassedOver,
        DeliveryDropped,
    )
}


def _before(runs: RunsKept, end_offset: int) -> RunsKept:
    return tuple((first, min(end, end_offset)) for first, end in runs if first < end_offset)
