"""Exactly-once sinks in words: what tasks and drivers ask of one, how it looks, what nodes ask each other.

All is the coordinator's of the sink, staging too: where the bytes of a stage lie is its own business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from goqueue.model.places import Place, Seat, SinkCoordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBatches:
    """Batches of one task of a sink's epoch: kept on the disk, seen by nobody until the epoch commits."""

    sink: str
    generation: int
    epoch: int
    stage_id: str
    entries: memoryview

    @property
    def place(self) -> SinkCoordinator:
        return SinkCoordinator(self.sink)


class Staged(NamedTuple):
    messages: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpoch:
    """Stages of an epoch, whatever is to become of them."""

    sink: str
    generation: int
    epoch: int
    stage_ids: Sequence[str]

    @property
    def place(self) -> SinkCoordinator:
        return SinkCoordinator(self.sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitEpoch(EndEpoch):
    """Bring them into the log, all of them, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortStages(EndEpoch):
    """Drop those that are not committed."""


class EpochEnded(NamedTuple):
    """is_duplicate: the epoch was committed before, and nothing happened now."""

    is_duplicate: bool
    messages: int


class StageView(NamedTuple):
    epoch: int
    stage_id: str
    messages: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkView:
    name: str
    generation: int
    last_epoch: int
    """-1: none yet."""
    stages: Sequence[StageView]
    leaves_markers: bool = False
    """Whether an epoch takes an offset more in each partition it goes to: with several nodes it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeGeneration:
    """A new generation of a sink, which fences all before it."""

    sink: str
    run: str = ""
    """A run that names itself keeps the generation it has, and is refused when another has followed it."""
    writer: str = ""

    @property
    def place(self) -> SinkCoordinator:
        return SinkCoordinator(self.sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeSink:
    """A sink as it is now."""

    sink: str

    @property
    def place(self) -> SinkCoordinator:
        return SinkCoordinator(self.sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetSink:
    """Forget a sink and drop its stages. What it has committed stays in the log."""

    sink: str

    @property
    def place(self) -> SinkCoordinator:
        return SinkCoordinator(self.sink)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSinks:
    """All sinks, by name."""

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepStage:
    """The coordinator of a sink has a copy of a stage kept by another node."""

    sink: str
    epoch: int
    stage_id: str
    created_ms: int
    entries: memoryview

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStage:
    """The same node, or another that coordinates the sink by now, asks for such a copy, if it is the last."""

    sink: str
    epoch: int
    stage_id: str
    checksum: int

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


class StageFound(NamedTuple):
    created_ms: int
    entries: memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStages:
    """Copies of stages are of no use any more: those named, and all of epochs up to one."""

    sink: str
    epoch: int = -1
    stage_ids: Sequence[str] = ()
    until_epoch: int = -1

    @property
    def place(self) -> Place:
        return Seat.THIS_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendStaged:
    """Batches of an epoch, numbered and part of the sink's transaction: each leader takes its own, once."""

    transactional_id: str
    entries: memoryview

    @property
    def place(self) -> Place:
        return Seat.EVERY_NODE
