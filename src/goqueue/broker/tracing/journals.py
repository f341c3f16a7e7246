"""What the journals tell of a message: how each group stands to it."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from goqueue.broker.broker import Broker
from goqueue.broker.slices import Slices
from goqueue.broker.tracing.log import UNTIMED
from goqueue.core.delivery.delivery import Delivery
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.telemetry.spans import SpanMaker
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.groups import GroupKind
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.telemetry import Fact, Span, Stage, Witness

_RETURNED = frozenset({Stage.NACKED, Stage.EXPIRED})
_ENDS = frozenset(
    {Stage.ACKED, Stage.REJECTED, Stage.OUTDATED, Stage.PASSED_OVER, Stage.DEAD_LETTERED, Stage.REDRIVEN}
)


class Position(NamedTuple):
    """How far a group is in a partition."""

    group: str
    committed_offset: int | None
    delivery: Delivery | None
    ahead_ms: int = 0
    """What the delivery's times are ahead of the wall clock."""

    def is_done_with(self, offset: int) -> bool:
        if self.delivery is not None:
            return self.delivery.is_settled(offset)
        return self.committed_offset is not None and offset < self.committed_offset

    @property
    def is_redrive(self) -> bool:
        """Whether it is the broker's own: what it has settled was sent back."""
        return self.group.startswith(REDRIVE_GROUP_PREFIX)


async def positions_in(
    broker: Broker, sources: Collection[TopicPartition]
) -> dict[TopicPartition, Sequence[Position]]:
    """All groups that have come to each of some partitions or are to, in one look through the journals.

    There may be ten thousand groups, so others get turns in between.
    """
    slices = Slices(broker.clock)
    topic_ids = {source.topic: broker.metadata.topic(source.topic).topic_id for source in sources}
    ahead_ms = broker.running.ahead_ms()
    found: dict[TopicPartition, dict[str, Position]] = {source: {} for source in sources}
    for journal in broker.coordinator.journals:
        for record in list(journal.groups):
            await slices.pause()
            group = record.membership.name
            rows = {topic: record.offsets.of(topic, topic_id) for topic, topic_id in topic_ids.items()}
            subscribed = _subscribed(record)
            for source in sources if subscribed else ():
                if source.topic in subscribed:
                    found[source][group] = Position(group, None, None)
            for source in sources if any(rows.values()) else ():
                row = rows[source.topic].get(source.partition)
                if row is not None:
                    found[source][group] = Position(group, row[1], None)
        for delivery in list(journal.deliveries):
            await slices.pause()
            source, group = delivery.source, delivery.group
            if source in found and delivery.topic_id == topic_ids[source.topic]:
                found[source][group] = Position(group, delivery.floor, delivery, ahead_ms)
    return {source: list(positions.values()) for source, positions in found.items()}


def _subscribed(record: GroupRecord) -> Collection[TopicName]:
    """Topics that a group reads from their start, as far as it has not said otherwise."""
    membership = record.membership
    if isinstance(membership, AssignedGroup) and membership.terms.kind is GroupKind.HTTP:
        return membership.topics
    return ()


async def settled_ends(broker: Broker, sources: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Behind which offset of each partition no group has settled anything; others get turns in between."""
    ends: dict[TopicPartition, int] = dict.fromkeys(sources, 0)
    slices = Slices(broker.clock)
    for journal in broker.coordinator.journals:
        for record in list(journal.groups):
            await slices.pause()
            for topic, _, rows, _ in record.offsets.topics():
                for partition, committed_offset, *_ in rows:
                    source = TopicPartition(topic, partition)
                    if ends.get(source, committed_offset) < committed_offset:
                        ends[source] = committed_offset
        for delivery in list(journal.deliveries):
            await slices.pause()
            if delivery.source in ends:
                end = delivery.settled.end if delivery.settled else delivery.floor
                ends[delivery.source] = max(ends[delivery.source], end)
    return ends


def journal_spans(
    positions: Sequence[Position], offset: int, maker: SpanMaker, heard: Sequence[Span]
) -> list[Span]:
    """What is known beyond what was heard. When it happened no journal tells: after all that was heard."""
    time_us = max(span.time_us for span in heard)
    spans = []
    for position in positions:
        # What the broker has sent back was heard of without the group in whose name it did so.
        group = "" if position.is_redrive else position.group
        stages = {span.stage for span in heard if span.group == group}
        for stage, consumer, facts in _states(position, offset):
            alike = next((kind for kind in (_ENDS, _RETURNED) if stage in kind), {stage})
            if stages & alike:
                continue
            facts = {**facts, **UNTIMED}
            spans.append(
                maker.make(
                    stage, time_us, Witness.JOURNAL, group=position.group, consumer=consumer, facts=facts
                )
            )
    return spans


def is_awaited(positions: Sequence[Position], offset: int) -> bool:
    """Whether a group still has to come to the message or to settle it."""
    return any(not position.is_redrive and not position.is_done_with(offset) for position in positions)


def _states(position: Position, offset: int) -> Iterator[tuple[Stage, str, dict[str, Fact]]]:
    """Where the message stands for a group: a stage, the consumer that has to do with it, and facts."""
    delivery = position.delivery
    if position.is_done_with(offset):
        stage = Stage.REDRIVEN if position.is_redrive else Stage.ACKED
        yield stage, "", {"committed_offset": position.committed_offset or 0}
        return
    if delivery is None:
        return
    attempts = delivery.attempts.get(offset, 0)
    for move, _ in delivery.moves.pending():
        if move.offset == offset:
            yield (
                Stage.DEAD_LETTERED,
                move.consumer,
                {"to": f"{move.topic}/{move.partition}", "is_moving": True},
            )
    for lease in delivery.leases.values():
        if offset in lease.offsets:
            until_ms = lease.later.get(offset, lease.until_ms) - position.ahead_ms
            yield Stage.FETCHED, lease.consumer, {"lease_until_ms": until_ms, "attempt": attempts + 1}
    if offset in delivery.waiting:
        yield (
            Stage.NACKED,
            "",
            {"retry_at_ms": delivery.waiting[offset] - position.ahead_ms, "attempts": attempts},
        )
