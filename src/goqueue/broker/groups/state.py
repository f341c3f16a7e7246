"""Groups and their deliveries behind one journal, so that a floor and a committed offset are one truth.

What settles messages moves the committed offset, and what commits an offset settles messages, within
the same event: neither can be on the disk without the other.
"""

from collections.abc import Iterable

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.core.delivery import events as delivery_events
from goqueue.core.delivery.deliveries import Deliveries, FloorMoved
from goqueue.core.groups import events as group_events
from goqueue.core.groups.events import OffsetsReset, StateReset
from goqueue.core.groups.groups import Groups
from goqueue.model.groups import TopicOffsets
from goqueue.model.running_time import RunningTime

Event = group_events.Event | delivery_events.Event
EVENTS: EventCodec[Event] = EventCodec({**group_events.EVENT_TYPES, **delivery_events.EVENT_TYPES})


class GroupsAndDeliveries:
    """The machine of a group journal."""

    def __init__(self, groups: Groups, deliveries: Deliveries, running: RunningTime) -> None:
        self._groups = groups
        self._deliveries = deliveries
        self._running = running

    def apply(self, event: Event) -> None:
        # Every acknowledgement passes here, and holds no time.
        is_timeless = isinstance(event, delivery_events.Settled)
        self._apply(event, 0 if is_timeless else self._running.ahead_ms())

    def restore(self, event: Event, written_ms: int) -> None:
        """Apply what an earlier life has written, at that time."""
        self._apply(event, self._running.ahead_of_ms(written_ms))

    def _apply(self, event: Event, ahead_ms: int) -> None:
        if isinstance(event, delivery_events.Event):
            moved = self._deliveries.apply(event, ahead_ms=ahead_ms)
            if moved is not None:
                self._move_floor(moved, is_kept=isinstance(event, delivery_events.DeliveryKept))
            return
        self._groups.apply(event)
        if isinstance(event, StateReset):
            self._deliveries.clear()
        elif self._deliveries.has_group(event.group):
            self._follow(event.group, is_reset=isinstance(event, OffsetsReset))

    def _move_floor(self, moved: FloorMoved, *, is_kept: bool) -> None:
        group, topic, topic_id, partition, offset = moved
        offsets = self._groups.ensure(group).offsets
        ahead: tuple[int, ...] = ()
        if is_kept and partition in offsets.ahead_of(topic, topic_id):
            # A delivery that begins where a client has put the group, who may have named any offset.
            ahead = (partition,) if offsets.of(topic, topic_id)[partition][1] == offset else ()
        offsets.commit((TopicOffsets(topic, topic_id, ((partition, offset, -1, ""),), ahead),))

    def _follow(self, group: str, *, is_reset: bool) -> None:
        """Whatever has become of a group's offsets, its deliveries stand where they say."""
        record = self._groups.get(group)
        for delivery in self._deliveries.of_group(group):
            rows = {} if record is None else record.offsets.of(delivery.topic, delivery.topic_id)
            row = rows.get(delivery.source.partition)
            if row is None:
                self._deliveries.drop(delivery)
            elif is_reset or row[1] < delivery.floor:
                delivery.begin_at(row[1])
            else:
                delivery.settle_below(row[1])

    def whole_state(self) -> Iterable[Event]:
        """The groups first: their offsets then agree with the floors that follow."""
        ahead_ms = self._running.ahead_ms()  # of the time that all of it is written with
        yield from self._groups.whole_state()
        yield from self._deliveries.whole_state(ahead_ms=ahead_ms)
