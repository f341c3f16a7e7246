"""The verbs of schedules: create, list, look, pause, resume, end.

A schedule and the message that it waits with are written in one step, so that no crash leaves one without
the other or makes a second message.
"""

from dataclasses import replace

from goqueue.broker.broker import Broker
from goqueue.broker.delays.answering import answered
from goqueue.broker.delays.arming import (
    arming,
    is_waiting,
    message_of,
    next_after_ms,
    partition_of,
    submit_records,
)
from goqueue.broker.delays.records import Cancelled
from goqueue.broker.schemas.check import misfits
from goqueue.broker.tenants.quotas import check_message_size
from goqueue.broker.to_the_end import to_the_end
from goqueue.core.delays.schedules import (
    Schedule,
    ScheduleCreated,
    ScheduleEnded,
    SchedulePaused,
)
from goqueue.model.delays import (
    CreateSchedule,
    DescribeSchedule,
    EndSchedule,
    ListSchedules,
    PauseSchedule,
    ResumeSchedule,
    ScheduleView,
)
from goqueue.model.errors import KeyRequired, SchemaMismatch
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.names import checked_plain_name
from goqueue.model.schemas import SchemaValidation
from goqueue.records.wishes import lane_asked


async def create_schedule(broker: Broker, command: CreateSchedule) -> ScheduleView:
    """Create a schedule and arm it; safe on the disk on return."""
    broker.admit(command.topic)
    broker.topic(command.topic)
    name = checked_plain_name(command.name or str(broker.new_id()), "a schedule")
    check_message_size(broker, command.topic, command.message)
    partition_of(broker, command.topic, command.message.key)
    if command.message.key is None and broker.metadata.topic(command.topic).settings.is_compacted:
        raise KeyRequired(command.topic)
    lane = lane_asked(command.message.headers, 0, command.message.lane)
    command = replace(command, message=replace(command.message, lane=lane))
    await _check_schema(broker, command)
    broker.admit(command.topic)
    topic_id = broker.metadata.topic(command.topic).topic_id
    now_ms = broker.clock.wall_ms()
    created = broker.delays.store.schedules.create(
        ScheduleCreated(
            command.topic, topic_id, name, command.cron, command.time_zone, command.message, now_ms
        )
    )
    waiting, armed = arming(broker, created, after_ms=now_ms)
    await answered(broker, submit_records(broker, [waiting, created, armed]))
    return describe_schedule(broker, DescribeSchedule(topic=command.topic, name=name))


async def _check_schema(broker: Broker, command: CreateSchedule) -> None:
    """Refuse a message that would not fit its topic now, rather than each time that it comes."""
    settings, message = broker.metadata.topic(command.topic).settings, command.message
    if settings.schema_validation is SchemaValidation.NONE:
        return
    if problems := await misfits(broker, command.topic, settings, [message_of(message)]):
        raise SchemaMismatch(problems)


def schedule_names(broker: Broker, command: ListSchedules) -> list[str]:
    """The names of a topic's schedules, sorted."""
    broker.topic(command.topic)
    return broker.delays.store.schedules.names_of(broker.metadata.topic(command.topic).topic_id)


def describe_schedule(broker: Broker, command: DescribeSchedule) -> ScheduleView:
    return _view(broker, _find(broker, command.topic, command.name))


async def pause_schedule(broker: Broker, command: PauseSchedule) -> ScheduleView:
    """Let a schedule rest: the message that waits is cancelled."""
    broker.admit(command.topic)
    schedule = _find(broker, command.topic, command.name)
    if not schedule.is_paused:
        await _disarm(broker, schedule, SchedulePaused(schedule.created.topic_id, command.name))
    else:
        await _kept(broker)
    return _view(broker, schedule)


async def resume_schedule(broker: Broker, command: ResumeSchedule) -> ScheduleView:
    """Wake a paused schedule: it goes on with the next time behind now."""
    broker.admit(command.topic)
    schedule = _find(broker, command.topic, command.name)
    if schedule.is_paused:
        await submit_records(
            broker, arming(broker, schedule.created, after_ms=next_after_ms(broker, schedule))
        )
    else:
        await _kept(broker)
    return _view(broker, schedule)


async def end_schedule(broker: Broker, command: EndSchedule) -> None:
    """Delete a schedule, with the message that waits."""
    broker.admit(command.topic)
    schedule = _find(broker, command.topic, command.name)
    await _disarm(broker, schedule, ScheduleEnded(schedule.created.topic_id, command.name))


async def _kept(broker: Broker) -> None:
    """Return when all that was submitted is committed.

    What is so already may have been asked for a moment ago: whoever asks once more, since no answer came, is
    not told of what can still be lost.
    """
    await broker.delays.store.journal.submit()


async def _disarm(broker: Broker, schedule: Schedule, event: SchedulePaused | ScheduleEnded) -> None:
    """Cancel the message that waits, in one step with what happens to its schedule."""
    keeper, armed = broker.delays, schedule.armed
    if armed is None or not is_waiting(broker, armed):
        await answered(broker, submit_records(broker, [event]))
        return
    offset = keeper.store.moved.get(armed.number, armed.number)
    target = keeper.store.targets.at(armed.topic_id, armed.partition)
    if not await keeper.landed(offset, target):
        await _disarm(broker, schedule, event)
        return
    # Somebody may have moved it to any time, so the whole target stands still.
    changed = keeper.stop_and_change(offset, target, [Cancelled(armed.number), event])
    target.pending -= 1
    broker.telemetry.of(TopicPartition(TopicName(schedule.created.topic), armed.partition)).cancelled(
        broker.telemetry.delayed, armed.number, broker.clock.wall_us()
    )
    if changed is not None:
        await answered(broker, to_the_end(changed))


def _find(broker: Broker, topic: str, name: str) -> Schedule:
    broker.topic(topic)
    return broker.delays.store.schedules.find(broker.metadata.topic(topic).topic_id, topic, name)


def _view(broker: Broker, schedule: Schedule) -> ScheduleView:
    created, armed = schedule.created, schedule.armed
    fired, last_due_ms = schedule.fired, schedule.last_due_ms
    if armed is not None and not is_waiting(broker, armed):
        # Delivered a moment ago, and about to be armed anew.
        fired, last_due_ms, armed = fired + 1, armed.due_ms, None
    return ScheduleView(
        topic=TopicName(created.topic),
        name=created.name,
        cron=created.cron,
        time_zone=created.time_zone,
        message=created.message,
        is_paused=schedule.is_paused,
        created_ms=created.created_ms,
        next_due_ms=armed.due_ms if armed is not None else None,
        last_due_ms=last_due_ms,
        fired=fired,
    )
