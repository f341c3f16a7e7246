"""What arms schedules: each has one message waiting, and gets the next when that was delivered.

Apart from the verbs of schedules, because the keeper of the delays, which the broker is made with, arms them.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from goqueue.broker.delays.records import NEW, Record, Waiting
from goqueue.broker.storage.journal import Submitted
from goqueue.core.delays.schedules import Schedule, ScheduleArmed, ScheduleCreated, ScheduleEnded, next_due_ms
from goqueue.model.delays import ScheduledMessage
from goqueue.model.errors import Invalid
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.records.partitioners import hash_by

if TYPE_CHECKING:  # the broker is made with the keeper, which arms schedules through this module
    from goqueue.broker.broker import Broker


def keep_up_schedules(broker: "Broker") -> None:
    """Arm anew what has been delivered, and end the schedules of topics that are gone."""
    keeper = broker.delays
    for schedule in list(keeper.store.schedules.schedules.values()):
        created = schedule.created
        if created.topic_id not in broker.metadata.names:
            keeper.submit(ScheduleEnded(created.topic_id, created.name))
        elif schedule.armed is not None and not is_waiting(broker, schedule.armed):
            submit_records(broker, arming(broker, created, after_ms=next_after_ms(broker, schedule)))


def is_waiting(broker: "Broker", armed: ScheduleArmed) -> bool:
    store = broker.delays.store
    if armed.number in store.moved:
        return True
    target = store.targets.find(armed.topic_id, armed.partition)
    return target is not None and store.is_pending(target, armed.due_ms, armed.number)


def next_after_ms(broker: "Broker", schedule: Schedule) -> int:
    """Behind now, and behind the last time too: a clock that is set back repeats nothing."""
    last_ms = schedule.armed.due_ms if schedule.armed is not None else schedule.last_due_ms
    return max(broker.clock.wall_ms(), last_ms or 0)


def arming(broker: "Broker", created: ScheduleCreated, *, after_ms: int) -> list[Record]:
    """The records that give a schedule its next message. The message goes first: its offset is its number."""
    due_ms = next_due_ms(created.cron, created.time_zone, after_ms=after_ms)
    partition = None
    # A key that was routed when the schedule was made may be too long for the hash that the topic has now.
    with suppress(Invalid):
        partition = partition_of(broker, created.topic, created.message.key)
    if partition is None:
        partition = _any_partition(broker, created.topic)
    number = broker.delays.store.journal.end_offset
    waiting = Waiting(NEW, due_ms, created.topic_id, partition, message_of(created.message))
    return [waiting, ScheduleArmed(created.topic_id, created.name, due_ms, number, partition)]


def _any_partition(broker: "Broker", topic: str) -> int:
    opened = broker.topic(topic)
    if broker.is_one_of_several:  # whoever leads it may be another node, of which nobody knows how it is
        return next(opened.turns) % len(opened.partitions)
    return opened.take_turn()


def partition_of(broker: "Broker", topic: str, key: bytes | None) -> int | None:
    """The partition of a key; None: any will do. Refuses a key that cannot be routed."""
    if not key:
        return None
    hash_key = hash_by(broker.metadata.topic(topic).settings.partitioner)
    return hash_key(key) % len(broker.topic(topic).partitions)


def message_of(given: ScheduledMessage) -> Message:
    return Message(given.value, given.key, given.headers, given.lane)


def submit_records(broker: "Broker", records: list[Record]) -> Submitted:
    """Submit records, and tell of the message that waits now."""
    submitted = broker.delays.submit(*records)
    for record in records:
        if isinstance(record, ScheduleArmed):
            source = TopicPartition(broker.metadata.names[record.topic_id], record.partition)
            broker.telemetry.of(source).postponed(
                1, broker.telemetry.delayed, record.number, record.number + 1, broker.clock.wall_us()
            )
    return submitted
