"""Words of the cluster, as far as one node uses them: what a store holds, and what is agreed of a partition.

A store maps keys to values. Each change of it has a revision, a number that only grows; a key has the
revision of its last change. Whoever changes something says which revisions that was decided on (`Guard`), so
that nobody writes over what he has not seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, NewType, TypeVar

T_co = TypeVar("T_co", covariant=True)
NodeId = NewType("NodeId", str)
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
    starts: int = 0
    """On one node: how often it had started when this was written. Every start since has raised the epoch."""
