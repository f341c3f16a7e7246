"""Words of the cluster: what a store holds, who the nodes are, and what is agreed of a partition.

A store maps keys to values. Each change of it has a revision, a number that only grows; a key has the
revision of its last change. Whoever changes something says which revisions that was decided on (`Guard`), so
that nobody writes over what he has not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, NewType, TypeVar
from uuid import UUID

T_co = TypeVar("T_co", covariant=True)
NodeId = NewType("NodeId", str)
Incarnation = NewType("Incarnation", int)
"""One registration of a node: the revision at which it began, so a later one is greater."""
NO_INCARNATION = Incarnation(0)
ABSENT = 0
"""The revision of a key that is not there."""


class Item(NamedTuple):
    """What stands under a key."""

    value: bytes
    revision: int


class Loaded(NamedTuple):
    """What a store held at a revision."""

    items: Mapping[str, Item]
    revision: int


class Change(NamedTuple):
    """What became of some keys, together."""

    revision: int
    puts: Mapping[str, bytes]
    drops: tuple[str, ...] = ()


class Guard(NamedTuple):
    """A change is made only if the key still has this revision."""

    key: str
    revision: int


@dataclass(frozen=True, slots=True)
class Step(Generic[T_co]):
    """A change that was decided on, and what whoever asked for it gets once it is made."""

    value: T_co
    guards: tuple[Guard, ...]
    puts: Mapping[str, bytes]
    drops: tuple[str, ...] = ()


class NodeState(StrEnum):
    STARTING = "starting"
    """It is there, and leads nothing yet."""
    READY = "ready"
    DRAINING = "draining"
    """It is about to stop: others lead, and it follows for as long as it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """A node that is alive, and how to reach it: it stands in the store while the node's session lives."""

    folder_id: str
    state: NodeState = NodeState.STARTING
    incarnation: Incarnation = NO_INCARNATION
    """The revision that the first write of this key got; not known in that write itself."""
    rack: str = ""
    version: str = ""
    peer: str = ""
    """Addresses of its doors, as `host:port`."""
    kafka: str = ""
    http: str = ""
    kafka_listeners: Mapping[str, str] = field(default_factory=dict)
    """Where each of its listeners for Kafka's clients is reached, by name, where it has several."""
    http_listeners: Mapping[str, str] = field(default_factory=dict)
    """The same of its listeners for HTTP."""
    secret_mark: str = ""
    """By this others see whether it knows the same secret; empty: it does not say."""
    told_ms: int = 0
    """Its wall clock when it wrote this; 0: it does not say."""

    def kafka_at(self, listener: str) -> str:
        """Where clients of a listener reach it; empty: not at all."""
        return self.kafka_listeners.get(listener, "") if self.kafka_listeners else self.kafka

    def http_at(self, listener: str) -> str:
        """The same over HTTP."""
        return self.http_listeners.get(listener, "") if self.http_listeners else self.http


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A node that belongs to the cluster, whether it is alive or not."""

    folder_id: str
    """Another one than before: the disk was replaced, and what the node had is gone."""
    rack: str = ""
    is_retired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """Who leads a partition since which epoch, and where its copies are."""

    leader: NodeId | None
    epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    """Replicas that have everything that counts."""
    elr: tuple[NodeId, ...] = ()
    """Those that left when too few remained, and had everything then."""
    adding: tuple[NodeId, ...] = ()
    """Of the replicas, those that a reassignment brings."""
    removing: tuple[NodeId, ...] = ()
    """Of the replicas, those that go once all that are added are in sync."""
    incarnation: Incarnation = NO_INCARNATION
    """The leader's when it was elected: a leader that has registered anew since must be elected anew."""
    resigned: NodeId | None = None
    """Who led last and asked for another leader: it is elected again only if there is nobody else."""
    starts: int = 0
    """On one node: how often it had started when this was written. Every start since has raised the epoch."""
    throttle_bytes_per_s: int = 0
    """How fast those that a reassignment brings are sent what they lack; 0: as fast as any follower."""


class OrderKind(StrEnum):
    UNCLEAN = "unclean"
    """Let any replica lead that is alive, whatever it lacks; only a person decides that."""
    PREFERRED = "preferred"
    """Let a partition be led by the first of its replicas, if that one is in sync."""
    REASSIGN = "reassign"
    """Move partitions to other nodes."""
    CANCEL = "cancel"
    """Let a partition stay where it was before it was being moved."""
    DECOMMISSION = "decommission"
    """Move all that a node holds to others, and retire it."""


class MoveState(StrEnum):
    PENDING = "pending"
    """Others are moving, or nobody has decided on it yet."""
    CATCHING_UP = "catching_up"
    """The nodes that come copy what there is."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def is_over(self) -> bool:
        return self not in (MoveState.PENDING, MoveState.CATCHING_UP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One partition of a reassignment."""

    topic_id: UUID
    partition: int
    replicas: tuple[NodeId, ...]
    """Where it is to be, who should lead first."""
    before: tuple[NodeId, ...] = ()
    """Where it was when it was ordered."""
    state: MoveState = MoveState.PENDING
    begun_ms: int = 0
    ended_ms: int = 0
    is_canceled: bool = False
    reason: str = ""
    """Why it is given up, or why it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What somebody wants done; fields that its kind has no use for are as they stand here.

    A reassignment stays for a while when it is over, for people to look at; any other goes when it is done.
    """

    kind: OrderKind
    topic_id: UUID | None = None
    partition: int = -1
    node: NodeId | None = None
    moves: tuple[Move, ...] = ()
    throttle_bytes_per_s: int = 0
    timeout_ms: int = 0
    """A move that takes longer is given up; 0: none does."""
    ordered_ms: int = 0
    ended_ms: int = 0
    """When the last move had come to its end; 0: not yet."""
    is_canceled: bool = False
