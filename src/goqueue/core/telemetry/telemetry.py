"""The listener of the walk: one line there an event, one method here, handed on to counters and traces.

A partition has its listener at hand, so nothing is looked up where a batch passes. Times are arguments, in
microseconds of wall time. Journals have no listener.
"""

from collections.abc import Sequence

from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.trace_ids import TraceIds
from goqueue.core.telemetry.traces import Kind, Traces, sampling_of
from goqueue.model.delivery import Action
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import AS_THE_NODE, TopicSettings, TracingConfig
from goqueue.model.telemetry import NO_OFFSET, ExportStatus

Runs = Sequence[tuple[int, int]]
DELAYED = TopicPartition(TopicName("__delayed"), 0)
_KIND_OF = {
    Action.ACK: Kind.ACKED,
    Action.NACK: Kind.NACKED,
    Action.REJECT: Kind.REJECTED,
    Action.EXTEND: Kind.EXTENDED,
}
_TEXT_MAX = 300
"""So much of a text that somebody chose freely is kept."""
_NOWHERE = TopicPartition(TopicName(""), 0)


class PartitionTelemetry:
    """What happens to the messages of one partition."""

    __slots__ = ("_every", "_phase", "_traces", "counts", "place", "source")

    def __init__(self, telemetry: "Telemetry", source: TopicPartition, rate: float) -> None:
        self.source = source
        self.counts = telemetry.counters.partition(source)
        self._traces = telemetry.traces
        sampling = sampling_of(source, rate)
        self._every, self._phase = sampling
        self.place = self._traces.add_place(source, sampling)

    def change_rate(self, rate: float) -> None:
        sampling = sampling_of(self.source, rate)
        self._every, self._phase = sampling
        self._traces.change_sampling(self.place, sampling)

    def forget(self) -> None:
        """The partition is gone."""
        self._traces.forget_place(self.place)

    @property
    def is_traced(self) -> bool:
        return self._every > 0

    def samples(self, offset: int) -> bool:
        every = self._every
        return every == 1 or (every > 1 and (offset - self._phase) % every == 0)

    # A batch at a time, at every rate: these three are all that a Kafka producer and consumer see.

    def stored(self, first: int, end: int, count: int, size: int, time_us: int) -> None:
        """Batches are in the log, with so many messages; some offsets may have none."""
        self.counts.stored(count, size)
        every = self._every
        if every and (self._phase - first) % every < end - first:
            self._traces.record((time_us, Kind.STORED, self.place, first, end, "", "", size))

    def flushed(self, first: int, end: int, time_us: int) -> None:
        """They are on the disk."""
        every = self._every
        if every and (self._phase - first) % every < end - first:
            self._traces.record((time_us, Kind.FLUSHED, self.place, first, end, "", "", 0))

    def read(self, first: int, end: int, size: int, client: str, time_us: int) -> None:
        """Somebody took them without a lease: a Kafka consumer, or a reader by offset."""
        self.counts.read(end - first, size)
        every = self._every
        if every and (self._phase - first) % every < end - first:
            self._traces.record((time_us, Kind.READ, self.place, first, end, "", client, size))

    def refused(self, code: str, reason: str, time_us: int) -> None:
        """Messages for the topic were not taken; they get no offsets."""
        if self._every:
            event = (time_us, Kind.REFUSED, self.place, NO_OFFSET, NO_OFFSET, code, "", reason[:_TEXT_MAX])
            self._traces.record(event)

    # The work queue: a run of a lease at a time.

    def leased(
        self, group: str, consumer: str, runs: Runs, *, count: int, size: int, until_ms: int, time_us: int
    ) -> None:
        """Messages are out with a consumer."""
        self.counts.leased(group, count, size)
        self._note(time_us, Kind.LEASED, runs, group, consumer, until_ms)

    def settled(
        self,
        action: Action,
        group: str,
        consumer: str,
        runs: Runs,
        *,
        count: int,
        told: str | int,
        time_us: int,
    ) -> None:
        """A consumer has said what is to become of messages; `told` is why, or until when it keeps them."""
        counts = self.counts
        match action:
            case Action.ACK:
                counts.acked(group, count)
            case Action.NACK:
                counts.nacked(group, count)
            case Action.REJECT:
                counts.rejected(group, count)
            case Action.EXTEND:
                counts.extended(group, count)
        if isinstance(told, str):
            told = told[:_TEXT_MAX]
        self._note(time_us, _KIND_OF[action], runs, group, consumer, told)

    def expired(self, group: str, consumer: str, runs: Runs, *, count: int, time_us: int) -> None:
        """A consumer did not settle messages in time."""
        self.counts.expired(group, count)
        self._note(time_us, Kind.EXPIRED, runs, group, consumer, "")

    def outdated(self, group: str, runs: Runs, *, count: int, time_us: int) -> None:
        """Messages were too old to be delivered."""
        self.counts.outdated(group, count)
        self._note(time_us, Kind.OUTDATED, runs, group, "", "")

    def passed_over(self, group: str, runs: Runs, *, count: int, reason: str, time_us: int) -> None:
        """A group has left out messages that nobody can read."""
        self.counts.passed_over(group, count)
        self._note(time_us, Kind.PASSED_OVER, runs, group, "", reason[:_TEXT_MAX])

    def dead_lettered(
        self, group: str, consumer: str, offset: int, target: "PartitionTelemetry", at: int, time_us: int
    ) -> None:
        """A message has gone to the dead letters, where it lies at another offset."""
        self.counts.dead_lettered(group, 1)
        self._note(
            time_us, Kind.DEAD_LETTERED, ((offset, offset + 1),), group, consumer, f"{target.source}@{at}"
        )

    def redriven(self, offset: int, target: "PartitionTelemetry", at: int, time_us: int) -> None:
        """A dead letter was sent back."""
        target.counts.redriven(1)
        self._note(time_us, Kind.REDRIVEN, ((offset, offset + 1),), "", "", f"{target.source}@{at}")

    # Delays. A message that waits has a number, which is no offset of its partition.

    def postponed(
        self, count: int, delayed: "PartitionTelemetry", first: int, end: int, time_us: int
    ) -> None:
        """So many messages for this partition are kept until they are due, under some of these numbers."""
        self.counts.postponed(count)
        delayed._note(time_us, Kind.POSTPONED, ((first, end),), "", str(self.place), self.source.topic)

    def cancelled(self, delayed: "PartitionTelemetry", number: int, time_us: int) -> None:
        """A message that waited for its time never comes."""
        self.counts.cancelled(1)
        delayed._note(
            time_us, Kind.CANCELLED, ((number, number + 1),), "", str(self.place), self.source.topic
        )

    def due(self, first: int, numbers: Sequence[int], time_us: int) -> None:
        """Messages that waited are in the log now, one behind the other."""
        self.counts.due(len(numbers))
        if not self._every:
            return
        run_first, run_number = first, numbers[0]
        for offset, number in enumerate(numbers, first):
            if number - offset != run_number - run_first:
                self._note(time_us, Kind.DUE, ((run_first, offset),), "", "", run_number)
                run_first, run_number = offset, number
        self._note(time_us, Kind.DUE, ((run_first, first + len(numbers)),), "", "", run_number)

    def _note(self, time_us: int, kind: str, runs: Runs, group: str, consumer: str, extra: int | str) -> None:
        every = self._every
        if not every:
            return
        phase, place, record = self._phase, self.place, self._traces.record
        for first, end in runs:
            if (phase - first) % every < end - first:
                record((time_us, kind, place, first, end, group, consumer, extra))


class Telemetry:
    """The listeners of all partitions, and what they hand on to."""

    def __init__(self, counters: Counters, config: TracingConfig, cluster_id: str, *, began_us: int) -> None:
        self.counters = counters
        self.config = config
        self.began_us = began_us
        """When events began to be numbered: after a restart they are numbered from 0 again."""
        self.traces = Traces(config.events_max)
        self.ids = TraceIds(cluster_id)
        self.exports: list[ExportStatus] = []
        """One for each exporter that the node has set up."""
        self._partitions: dict[TopicPartition, PartitionTelemetry] = {}
        self.delayed = PartitionTelemetry(self, DELAYED, self.rate_of(TopicSettings()))
        """The listener to messages that wait for their time, by their numbers."""
        self._nowhere = PartitionTelemetry(self, _NOWHERE, 0.0)

    def rate_of(self, settings: TopicSettings) -> float:
        """Which part of a topic's messages is traced."""
        if not self.config.is_enabled:
            return 0.0
        asked = settings.tracing_sampling
        return self.config.sampling if asked == AS_THE_NODE else asked

    def watch(self, source: TopicPartition, settings: TopicSettings) -> PartitionTelemetry:
        """The listener of a partition, which may begin anew."""
        self.forget(source)
        watched = self._partitions[source] = PartitionTelemetry(self, source, self.rate_of(settings))
        return watched

    def of(self, source: TopicPartition) -> PartitionTelemetry:
        """The listener of a partition; of one that is gone, one whose tales go nowhere."""
        return self._partitions.get(source, self._nowhere)

    def change(self, source: TopicPartition, settings: TopicSettings) -> None:
        """Its topic's settings are others now."""
        self.of(source).change_rate(self.rate_of(settings))

    def forget(self, source: TopicPartition) -> None:
        """A partition is gone."""
        known = self._partitions.pop(source, None)
        if known is not None:
            known.forget()

    def refused(self, topic: str, code: str, reason: str, *, count: int = 1, time_us: int) -> None:
        """Messages were not taken. They have no place, so the topic's first partition stands for all."""
        self.counters.refused(topic, code, count)
        self.of(TopicPartition(TopicName(topic), 0)).refused(code, reason, time_us)
