"""The sink machine: whose turn it is to write to a sink, which epochs are in the log, and how they got there.

A writer takes a generation of its sink; from then on older ones are fenced. A writer that names its run
keeps its generation when it asks again, and does not get another once it was fenced. An epoch goes from
prepared (what it holds is named and numbered, and nothing can call it back) to committed. Its batches
go into the log as those of an idempotent producer, numbered per partition from 0 on, so that an append
repeated after a crash is recognised. One epoch of a sink is under way at a time.

With several nodes nothing is prepared: an epoch is a transaction, and committed with the decision of that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from goqueue.model.errors import SinkFenced, SinkNotFound, SinkOfAnother, StageNotFound
from goqueue.model.ids import ProducerId, TopicName
from goqueue.records.layout import SEQUENCE_MASK

NO_EPOCH = -1
RUNS_MAX = 16
"""So many runs are remembered: one that comes back after more than these is taken for a new one."""


class PartitionCount(NamedTuple):
    """How many messages of an epoch go to a partition. The id tells a topic from one of the same name."""

    topic: TopicName
    topic_id: UUID
    partition: int
    message_count: int


@dataclass(frozen=True, slots=True)
class SequenceRun:
    """The messages of an epoch for one partition, numbered from `base_sequence` on."""

    topic: TopicName
    topic_id: UUID
    partition: int
    base_sequence: int
    message_count: int


@dataclass(frozen=True, slots=True)
class GenerationTaken:
    sink: str
    generation: int
    producer_id: ProducerId
    now_ms: int
    run: str = ""
    """What takes it: one start of a job, by a name of its own. Empty where the writer did not say."""
    writer: str = ""
    """Whose epochs are counted: the same job in all its runs."""


@dataclass(frozen=True, slots=True)
class EpochPrepared:
    """These stages will be in the log, whatever happens."""

    sink: str
    epoch: int
    stages: tuple[str, ...]
    runs: tuple[SequenceRun, ...]


@dataclass(frozen=True, slots=True)
class EpochCommitted:
    """The prepared epoch is in the log."""

    sink: str
    epoch: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class StageKept:
    """With several nodes: what was staged last under a name. Copies that differ from it are old ones."""

    sink: str
    epoch: int
    stage: str
    checksum: int


@dataclass(frozen=True, slots=True)
class StagesDropped:
    sink: str
    epoch: int
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SinkForgotten:
    sink: str


@dataclass(frozen=True, slots=True)
class SequenceKept:
    """The number that a sink's next message to a partition has."""

    sink: str
    topic_id: UUID
    partition: int
    sequence: int


@dataclass(frozen=True, slots=True)
class GenerationsPassed:
    """Forgotten sinks have had generations up to this one; a new sink begins behind it."""

    generation: int


@dataclass(frozen=True, slots=True)
class StateReset:
    """Begin again from nothing: what follows is the whole state, written to keep the journal short."""


Event = (
    GenerationTaken
    | EpochPrepared
    | EpochCommitted
    | StageKept
    | StagesDropped
    | SinkForgotten
    | SequenceKept
    | GenerationsPassed
    | StateReset
)
EVENT_TYPES: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        GenerationTaken,
        EpochPrepared,
        EpochCommitted,
        StageKept,
        StagesDropped,
        SinkForgotten,
        SequenceKept,
        GenerationsPassed,
        StateReset,
    )
}


@dataclass(slots=True)
class Sink:
    """One sink: its writer, its last epoch, and the epoch that is on its way into the log."""

    name: str
    producer_id: ProducerId
    generation: int = 0
    last_epoch: int = NO_EPOCH
    used_ms: int = 0
    prepared: EpochPrepared | None = None
    writer: str = ""
    runs: dict[str, int] = field(default_factory=dict)
    """The generations that named runs took, the newest last."""
    sequences: dict[tuple[UUID, int], int] = field(default_factory=dict)
    stages: dict[tuple[int, str], int] = field(default_factory=dict)
    """Checksums of what is staged, by epoch and name; one node has its files for that."""

    def is_decided(self, epoch: int) -> bool:
        """Whether it is settled for good what this epoch holds."""
        return epoch <= (self.prepared.epoch if self.prepared else self.last_epoch)


class Sinks:
    """All sinks of a broker."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.sinks: dict[str, Sink] = {}
        self.passed_generation = 0

    def sink(self, name: str) -> Sink:
        sink = self.sinks.get(name)
        if sink is None:
            raise SinkNotFound(name)
        return sink

    def held_by(self, name: str, generation: int) -> Sink:
        """The sink, if this generation may write to it."""
        sink = self.sink(name)
        if generation != sink.generation:
            raise SinkFenced(name, generation, sink.generation)
        return sink

    def take_generation(
        self, name: str, *, producer_id: ProducerId, now_ms: int, run: str = "", writer: str = ""
    ) -> GenerationTaken:
        """Fence whoever wrote before. The newest run keeps its generation, a sink its first producer id."""
        sink = self.sinks.get(name)
        if sink is None:
            return GenerationTaken(name, self.passed_generation + 1, producer_id, now_ms, run, writer)
        if run in sink.runs and sink.runs[run] != sink.generation:
            raise SinkFenced(name, sink.runs[run], sink.generation)
        if writer and sink.writer not in ("", writer) and sink.last_epoch != NO_EPOCH:
            raise SinkOfAnother(name, sink.writer)
        generation = sink.runs.get(run, sink.generation + 1)
        return GenerationTaken(name, generation, sink.producer_id, now_ms, run, writer)

    def prepare(
        self, name: str, epoch: int, *, stages: Sequence[str], counts: Iterable[PartitionCount]
    ) -> EpochPrepared:
        """Name and number what an epoch holds."""
        sink = self.sink(name)
        assert sink.prepared is None, f"sink {name} has an epoch under way"
        assert epoch > sink.last_epoch, f"sink {name} has committed epoch {sink.last_epoch}"
        runs = tuple(
            SequenceRun(topic, topic_id, partition, sink.sequences.get((topic_id, partition), 0), count)
            for topic, topic_id, partition, count in counts
        )
        return EpochPrepared(name, epoch, tuple(stages), runs)

    def commit(self, name: str, *, now_ms: int) -> EpochCommitted:
        """The prepared epoch is in the log."""
        prepared = self.sink(name).prepared
        assert prepared is not None, f"sink {name} has no epoch under way"
        return EpochCommitted(name, prepared.epoch, now_ms)

    def note_epoch(self, name: str, epoch: int, *, now_ms: int) -> EpochCommitted:
        """An epoch that a transaction brings into the log, with whose decision this is written."""
        sink = self.sink(name)
        assert sink.prepared is None, f"sink {name} has an epoch under way"
        assert epoch > sink.last_epoch, f"sink {name} has committed epoch {sink.last_epoch}"
        return EpochCommitted(name, epoch, now_ms)

    def kept(self, name: str, epoch: int, stages: Iterable[str]) -> dict[str, int]:
        """The checksums of stages, in the order given. Raises StageNotFound."""
        known = self.sink(name).stages
        found = {}
        for stage in stages:
            checksum = known.get((epoch, stage))
            if checksum is None:
                raise StageNotFound(name, epoch, stage)
            found[stage] = checksum
        return found

    def drop(self, name: str, epoch: int, stages: Iterable[str]) -> StagesDropped:
        """Stages that are not to be committed; those that are there."""
        known = self.sink(name).stages
        there = [stage for stage in dict.fromkeys(stages) if (epoch, stage) in known]
        return StagesDropped(name, epoch, tuple(there))

    def forget(self, name: str) -> SinkForgotten:
        return SinkForgotten(self.sink(name).name)

    def unused_since(self, time_ms: int) -> list[str]:
        """Sinks that nobody has written to since then."""
        return [s.name for s in self.sinks.values() if s.used_ms < time_ms and s.prepared is None]

    def apply(self, event: Event) -> None:
        match event:
            case GenerationTaken():
                sink = self.sinks.setdefault(event.sink, Sink(event.sink, event.producer_id))
                sink.generation = event.generation
                sink.used_ms = event.now_ms
                sink.writer = event.writer or sink.writer
                if event.run:
                    sink.runs[event.run] = event.generation
                    for oldest in list(sink.runs)[:-RUNS_MAX]:
                        del sink.runs[oldest]
            case EpochPrepared():
                self.sinks[event.sink].prepared = event
            case EpochCommitted():
                self._finish(self.sinks[event.sink], event)
            case StageKept():
                self.sinks[event.sink].stages[event.epoch, event.stage] = event.checksum
            case StagesDropped():
                for stage in event.stages:
                    self.sinks[event.sink].stages.pop((event.epoch, stage), None)
            case SinkForgotten():
                forgotten = self.sinks.pop(event.sink)
                self.passed_generation = max(self.passed_generation, forgotten.generation)
            case SequenceKept():
                self.sinks[event.sink].sequences[event.topic_id, event.partition] = event.sequence
            case GenerationsPassed():
                self.passed_generation = event.generation
            case StateReset():
                self._reset()

    def _finish(self, sink: Sink, event: EpochCommitted) -> None:
        for run in sink.prepared.runs if sink.prepared else ():
            end = (run.base_sequence + run.message_count) & SEQUENCE_MASK
            sink.sequences[run.topic_id, run.partition] = end
        sink.prepared = None
        sink.last_epoch = event.epoch
        sink.stages = {key: checksum for key, checksum in sink.stages.items() if key[0] > event.epoch}
        sink.used_ms = event.now_ms

    def passed(self) -> GenerationsPassed:
        return GenerationsPassed(self.passed_generation)

    def state_of(self, name: str) -> Iterable[Event]:
        """Events that lead to the present state of a sink."""
        sink = self.sink(name)
        for run, generation in sink.runs.items():
            yield GenerationTaken(sink.name, generation, sink.producer_id, sink.used_ms, run)
        yield GenerationTaken(sink.name, sink.generation, sink.producer_id, sink.used_ms, writer=sink.writer)
        for (topic_id, partition), sequence in sink.sequences.items():
            yield SequenceKept(sink.name, topic_id, partition, sequence)
        yield EpochCommitted(sink.name, sink.last_epoch, sink.used_ms)
        if sink.prepared is not None:
            yield sink.prepared
        for (epoch, stage), checksum in sink.stages.items():
            yield StageKept(sink.name, epoch, stage, checksum)

    def whole_state(self) -> Iterable[Event]:
        """Events that lead from nothing to the present state, the first one being the reset."""
        yield StateReset()
        yield self.passed()
        for name in self.sinks:
            yield from self.state_of(name)
