"""Stories where it is easy to tell them wrongly: twice, under two ids, too early, or not at all."""

import asyncio

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.schedules import create_schedule, pause_schedule
from goqueue.broker.delays.verbs import cancel_delayed, move_delayed
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.queue.redrive import redrive
from goqueue.broker.topics.verbs import delete_topic
from goqueue.broker.tracing.verbs import find_traces, trace_by_id, trace_of, trace_stats
from goqueue.broker.transactions.verbs import begin_transaction
from goqueue.broker.write.publish import publish
from goqueue.broker.write.publish_once import publish_once
from goqueue.model.commands import Publish
from goqueue.model.delays import (
    CancelDelayed,
    CreateSchedule,
    MoveDelayed,
    PauseSchedule,
    Postponed,
    ScheduledMessage,
)
from goqueue.model.delivery import Redrive
from goqueue.model.errors import TraceNotFound
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Headers, Message
from goqueue.model.telemetry import (
    NO_OFFSET,
    CountTraces,
    FindTrace,
    Stage,
    TraceMessage,
    TraceQuery,
    TraceStatus,
)
from goqueue.model.topics import DeleteTopic
from goqueue.model.transaction_commands import BeginTransaction, PublishOnce
from goqueue.model.transactions import Marker
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import DEAD_ORDERS, Taken, ack, join, orders, put, reject, take
from tests.unit.broker.running import ORDERS, ORDERS_0
from tests.unit.broker.transactions.transaction_steps import WRITER, new_writer

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE_ID}-b7ad6b7169203331-01".encode()
OTHER = b"00-11111111111111111111111111111111-b7ad6b7169203331-01"
SHOUTED = PARENT.upper()
EVERY = TraceQuery()


async def delay(broker: Broker, after_ms: int, headers: Headers = ()) -> Postponed:
    due_ms = broker.clock.wall_ms() + after_ms
    message = Message(b"later", None, headers, due_ms=due_ms)
    [outcome] = await publish(broker, Publish(topic=ORDERS, messages=[message]))
    assert isinstance(outcome, Postponed)
    return outcome


def test_a_redrive_is_told_once() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        await reject(broker, await take(broker, ann))
        await redrive(broker, Redrive(topic=ORDERS))

        trace = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        assert [span.stage for span in trace.spans].count(Stage.REDRIVEN) == 1

    Lives(1).live(story)


def test_the_story_of_a_redriven_message_begins_where_a_producers_trace_did() -> None:
    lives = Lives(12)

    async def before(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", headers=(("traceparent", PARENT),))
        ann = await join(broker)
        await reject(broker, await take(broker, ann))
        await redrive(broker, Redrive(topic=ORDERS))
        for offset in (0, 1):
            first, again = [
                await trace_of(broker, TraceMessage(source=ORDERS_0, offset=at))
                for at in (offset, offset + 2)
            ]
            assert first.spans == again.spans, "wherever one begins, it is the same story"

    async def after(broker: Broker) -> None:
        for offset in (0, 1):
            told = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=offset + 2))
            assert {(span.topic, span.offset) for span in told.spans} >= {
                (ORDERS, offset),
                (DEAD_ORDERS, offset),
                (ORDERS, offset + 2),
            }

    lives.live(before, is_killed=True)
    lives.live(after)


@pytest.mark.parametrize("value", [b"garbage", SHOUTED, b"", None])
def test_a_header_that_names_no_trace_leaves_the_message_its_made_one_to_the_end(value: bytes | None) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", headers=(("traceparent", value),))
        ann = await join(broker)
        await reject(broker, await take(broker, ann))
        await redrive(broker, Redrive(topic=ORDERS))

        first = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        dead = await trace_of(broker, TraceMessage(source=TopicPartition(DEAD_ORDERS, 0), offset=0))
        again = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))
        assert first.trace_id == dead.trace_id == again.trace_id
        assert first.spans == dead.spans == again.spans

    Lives(2).live(story)


def test_of_several_headers_the_last_that_names_a_trace_counts() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        headers = (("traceparent", OTHER), ("Traceparent", PARENT), ("traceparent", b"garbage"))
        await put(broker, "a", headers=headers)

        assert (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))).trace_id == TRACE_ID
        assert (await trace_by_id(broker, FindTrace(trace_id=TRACE_ID))).offset == 0

    Lives(3).live(story)


def test_a_producers_trace_is_found_while_its_message_waits_and_tells_of_the_wait_afterwards() -> None:
    lives = Lives(4)

    async def before(broker: Broker) -> None:
        await orders(broker)
        await delay(broker, 5_000, (("traceparent", PARENT),))
        waiting = await trace_by_id(broker, FindTrace(trace_id=TRACE_ID))
        assert (waiting.status, waiting.offset) == (TraceStatus.DELAYED, NO_OFFSET)

        await asyncio.sleep(6)
        fired = await trace_by_id(broker, FindTrace(trace_id=TRACE_ID))
        assert (fired.source, fired.offset) == (ORDERS_0, 0)
        assert [span.stage for span in fired.spans].count(Stage.SCHEDULED) == 1
        assert (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))).spans == fired.spans

    async def after(broker: Broker) -> None:
        fired = await trace_by_id(broker, FindTrace(trace_id=TRACE_ID))
        assert (fired.source, fired.offset) == (ORDERS_0, 0)
        assert fired.spans[0].stage is Stage.SCHEDULED
        assert (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))).spans == fired.spans

    lives.live(before, is_killed=True)
    lives.live(after)


def test_a_message_that_was_moved_and_delivered_was_not_cancelled() -> None:
    lives = Lives(5)

    async def before(broker: Broker) -> str:
        await orders(broker)
        postponed = await delay(broker, 3_600_000)
        await move_delayed(
            broker,
            MoveDelayed(
                topic=ORDERS,
                partition=postponed.partition,
                number=postponed.number,
                due_ms=broker.clock.wall_ms() + 1_000,
            ),
        )
        await asyncio.sleep(3)

        [found] = (await find_traces(broker, EVERY)).traces
        assert found.offset == 0, "it is told of where it lies, and nowhere else"
        fired = await trace_by_id(broker, FindTrace(trace_id=found.trace_id))
        assert Stage.CANCELLED not in {span.stage for span in fired.spans}
        return found.trace_id

    async def after(broker: Broker) -> None:
        fired = await trace_by_id(broker, FindTrace(trace_id=trace_id))
        assert (fired.source, fired.offset) == (ORDERS_0, 0)
        stages = [span.stage for span in fired.spans]
        assert Stage.CANCELLED not in stages and Stage.FIRED in stages

    trace_id = lives.live(before, is_killed=True)
    lives.live(after)


def test_a_cancelled_message_is_told_of_in_the_partition_it_never_came_to() -> None:
    lives = Lives(6)

    async def before(broker: Broker) -> str:
        await orders(broker)
        postponed = await delay(broker, 3_600_000)
        moved_ms = broker.clock.wall_ms() + 1_800_000
        await move_delayed(
            broker,
            MoveDelayed(
                topic=ORDERS, partition=postponed.partition, number=postponed.number, due_ms=moved_ms
            ),
        )
        await cancel_delayed(
            broker, CancelDelayed(topic=ORDERS, partition=postponed.partition, number=postponed.number)
        )

        [found] = (await find_traces(broker, EVERY)).traces
        assert (found.status, found.offset) == (TraceStatus.COMPLETED, NO_OFFSET)
        assert {(span.topic, span.partition) for span in found.spans} == {(ORDERS, 0)}
        assert (await trace_by_id(broker, FindTrace(trace_id=found.trace_id))).spans == found.spans
        return found.trace_id

    async def after(broker: Broker) -> None:
        cancelled = await trace_by_id(broker, FindTrace(trace_id=trace_id))
        assert [span.stage for span in cancelled.spans] == [Stage.SCHEDULED, Stage.CANCELLED]

    trace_id = lives.live(before, is_killed=True)
    lives.live(after)


def test_what_a_schedule_waits_with_is_told_of_like_any_delayed_message() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        message = ScheduledMessage(value=b"tick")
        command = CreateSchedule(
            topic=ORDERS, name="tick", cron="0 9 * * *", time_zone="UTC", message=message
        )
        await create_schedule(broker, command)
        [waiting] = (await find_traces(broker, EVERY)).traces
        assert (waiting.status, waiting.offset) == (TraceStatus.DELAYED, NO_OFFSET)

        await pause_schedule(broker, PauseSchedule(topic=ORDERS, name="tick"))
        [cancelled] = (await find_traces(broker, EVERY)).traces
        assert cancelled.trace_id == waiting.trace_id
        assert cancelled.status is TraceStatus.COMPLETED
        counts = broker.counters.topics[ORDERS]
        assert (counts.delayed, counts.delays_cancelled) == (1, 1)

    Lives(10).live(story)


def test_what_an_aborted_transaction_had_delayed_was_cancelled() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        writer = await new_writer(broker)
        await begin_transaction(broker, BeginTransaction(transactional_id=WRITER, producer=writer.producer))
        message = Message(b"later", partition=0, due_ms=broker.clock.wall_ms() + 60_000)
        await publish_once(broker, PublishOnce(topic=ORDERS, message=message, producer=writer.producer))
        await writer.end(Marker.ABORT, until_complete=True)

        [cancelled] = (await find_traces(broker, EVERY)).traces
        assert [span.stage for span in cancelled.spans] == [Stage.SCHEDULED, Stage.CANCELLED]
        assert broker.counters.topics[ORDERS].delays_cancelled == 1

    Lives(11).live(story)


def test_what_was_to_come_to_a_topic_that_is_gone_waits_no_more() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await delay(broker, 60_000)
        await delete_topic(broker, DeleteTopic(name=ORDERS))
        await orders(broker)
        await delay(broker, 60_000)

        assert (await trace_stats(broker, CountTraces())).trace_counts[TraceStatus.DELAYED] == 1
        assert len((await find_traces(broker, EVERY)).traces) == 1

    Lives(14).live(story)


def test_what_is_refused_after_a_restart_is_another_story() -> None:
    lives = Lives(15)

    async def refuse(broker: Broker) -> str:
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=9)]))
        [refused] = (await find_traces(broker, EVERY)).traces
        assert await trace_by_id(broker, FindTrace(trace_id=refused.trace_id)) == refused
        return refused.trace_id

    async def before(broker: Broker) -> str:
        await orders(broker)
        return await refuse(broker)

    async def after(broker: Broker) -> None:
        assert await refuse(broker) != trace_id
        with pytest.raises(TraceNotFound):
            await trace_by_id(broker, FindTrace(trace_id=trace_id))

    trace_id = lives.live(before)
    lives.live(after)


def test_what_a_search_may_pass_over_it_does_not_miss() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        writer = await new_writer(broker)
        await writer.add(0)
        aborted = await writer.put(0, "a")
        await writer.abort()
        await put(broker, "b", "c")
        committed = aborted + 2
        done = TopicCommit(ORDERS, [(0, committed + 1, -1, "")])
        await commit_offsets(broker, CommitOffsets(Membership("readers", "", -1), [done]))

        async def found(status: TraceStatus) -> list[int]:
            query = TraceQuery(statuses=frozenset({status}))
            return [trace.offset for trace in (await find_traces(broker, query)).traces]

        assert await found(TraceStatus.FAILED) == [aborted]
        assert await found(TraceStatus.COMPLETED) == [committed], "a commit tells, and no event"
        assert await found(TraceStatus.IN_PROGRESS) == [committed + 1]

    Lives(8).live(story)


def test_a_message_is_not_completed_while_a_group_that_joined_has_still_to_come_to_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann, bob = await join(broker), await join(broker, "bob", group="auditors")
        await ack(broker, await take(broker, ann))
        assert (
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        ).status is TraceStatus.IN_PROGRESS

        await ack(broker, await take(broker, bob))
        assert (
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        ).status is TraceStatus.COMPLETED

    Lives(9).live(story)


def test_a_message_from_a_clock_that_is_ahead_was_stored_before_it_was_acknowledged() -> None:
    lives = Lives(13)

    async def before(broker: Broker) -> list[Taken]:
        await orders(broker)
        message = Message(b"a", timestamp_ms=broker.clock.wall_ms() + 3_600_000)
        await publish(broker, Publish(topic=ORDERS, messages=[message]))
        return await take(broker, await join(broker))

    async def after(broker: Broker) -> None:
        await ack(broker, taken)
        stages = [
            span.stage for span in (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))).spans
        ]
        assert (stages[0], stages[-1]) == (Stage.RECEIVED, Stage.ACKED)

    taken = lives.live(before, is_killed=True)
    lives.live(after)


def test_a_lease_is_told_to_have_run_out_when_it_did_and_not_when_somebody_noticed() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        await take(broker, ann, visibility_ms=1_000)
        await asyncio.sleep(3)
        await ack(broker, await take(broker, ann))

        trace = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        expired = next(span for span in trace.spans if span.stage is Stage.EXPIRED)
        assert expired.duration_us is not None
        assert abs(expired.duration_us - 1_000_000) < 2_000

    Lives(7).live(story)
