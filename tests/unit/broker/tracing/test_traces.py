"""The story of a message: what was heard of it, what log and journals tell, under one id to its end."""

import asyncio
from dataclasses import replace

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.delays.verbs import cancel_delayed
from goqueue.broker.queue.redrive import redrive
from goqueue.broker.topics.verbs import alter_settings, create_topic
from goqueue.broker.tracing.verbs import find_traces, trace_by_id, trace_of, trace_stats
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.delays import CancelDelayed, Postponed
from goqueue.model.delivery import Redrive
from goqueue.model.errors import MessageNotFound, PartitionNotFound, TraceNotFound
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers, Message
from goqueue.model.settings import TracingConfig
from goqueue.model.telemetry import (
    NO_OFFSET,
    CountTraces,
    FindTrace,
    Stage,
    Trace,
    TraceMessage,
    TraceQuery,
    TraceStatus,
    Witness,
)
from goqueue.model.topics import AlterSettings, CreateTopic, SettingChange
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import (
    DEAD_ORDERS,
    ack,
    extend,
    join,
    nack,
    orders,
    put,
    reject,
    stored,
    take,
)
from tests.unit.broker.running import ORDERS, ORDERS_0
from tests.unit.broker.transactions.transaction_steps import new_writer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
HEARD = [Stage.RECEIVED, Stage.PARTITIONED, Stage.PERSISTED]


def stages(trace: Trace) -> list[Stage]:
    return [span.stage for span in trace.spans]


def test_a_message_is_followed_from_publish_to_ack() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        ann = await join(broker)
        taken = await take(broker, ann)
        assert (
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))
        ).status is TraceStatus.IN_PROGRESS
        await extend(broker, taken[1:], 60_000)
        await asyncio.sleep(0.001)  # what happens at the same moment has no order
        await ack(broker, taken)

        trace = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))
        assert stages(trace) == [*HEARD, Stage.FETCHED, Stage.EXTENDED, Stage.ACKED]
        assert trace.status is TraceStatus.COMPLETED
        assert {span.witness for span in trace.spans} == {Witness.RING}
        times_us = [span.time_us for span in trace.spans]
        assert times_us == sorted(times_us)
        fetched, acked = trace.spans[3], trace.spans[-1]
        assert (fetched.group, fetched.consumer) == (acked.group, acked.consumer) == ann
        assert trace.spans[0].facts["priority"] == "normal"
        root = trace.spans[0]
        assert {span.parent_span_id for span in trace.spans[1:]} == {root.span_id}
        assert root.parent_span_id is None
        assert len({span.span_id for span in trace.spans}) == len(trace.spans)
        assert await trace_by_id(broker, FindTrace(trace_id=trace.trace_id)) == trace

    Lives(1).live(story)


def test_dead_letter_and_redrive_are_one_trace() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, retries_max="1")
        await put(broker, "x", "a")
        ann = await join(broker)
        await ack(broker, await take(broker, ann, limit=1))
        await nack(broker, await take(broker, ann), reason="try again")
        assert (
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))
        ).status is TraceStatus.RETRYING
        await nack(broker, await take(broker, ann, wait_ms=60_000), reason="no such customer")

        dead = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))
        assert dead.status is TraceStatus.FAILED
        routed = next(span for span in dead.spans if span.stage is Stage.DEAD_LETTERED)
        assert routed.facts["to"] == "orders.dlq/0@0"
        assert [span.error for span in dead.spans if span.stage is Stage.NACKED] == [
            "try again",
            "no such customer",
        ]
        copy = await trace_of(broker, TraceMessage(source=TopicPartition(DEAD_ORDERS, 0), offset=0))
        assert copy.trace_id == dead.trace_id
        assert copy.spans == dead.spans, "wherever one begins, it is the same story"

        await redrive(broker, Redrive(topic=ORDERS))
        assert (
            await trace_by_id(broker, FindTrace(trace_id=dead.trace_id))
        ).status is TraceStatus.IN_PROGRESS
        await ack(broker, await take(broker, ann))
        end = await trace_by_id(broker, FindTrace(trace_id=dead.trace_id))
        assert end.status is TraceStatus.COMPLETED
        assert (end.source, end.offset) == (ORDERS_0, 1)
        assert {(span.topic, span.offset) for span in end.spans} == {
            ("orders", 1),
            ("orders.dlq", 0),
            ("orders", 2),
        }
        assert stages(end)[-1] is Stage.ACKED

    Lives(2).live(story)


def test_after_a_restart_log_and_journals_tell_the_story() -> None:
    lives = Lives(3)

    async def before(broker: Broker) -> list[str]:
        await orders(broker, retries_max="1")
        await put(broker, "acked", "rejected", "waiting", "out", "untouched")
        ann = await join(broker)
        taken = await take(broker, ann, limit=4)
        await ack(broker, taken[:1])
        await reject(broker, taken[1:2], "bad")
        await nack(broker, taken[2:3], delay_ms=3_600_000)
        await extend(broker, taken[3:], 3_600_000)
        return [
            (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=offset))).trace_id
            for offset in range(5)
        ]

    ids = lives.live(before, is_killed=True)

    async def after(broker: Broker) -> None:
        traces = [await trace_by_id(broker, FindTrace(trace_id=trace_id)) for trace_id in ids]
        assert [trace.offset for trace in traces] == [0, 1, 2, 3, 4]
        assert [trace.status for trace in traces] == [
            TraceStatus.COMPLETED,
            TraceStatus.FAILED,
            TraceStatus.RETRYING,
            TraceStatus.IN_PROGRESS,
            TraceStatus.IN_PROGRESS,
        ]
        acked, rejected, waiting, out, untouched = traces
        assert {span.witness for trace in traces for span in trace.spans} == {Witness.LOG, Witness.JOURNAL}
        assert stages(acked) == [*HEARD, Stage.ACKED]
        assert Stage.DEAD_LETTERED in stages(rejected) and Stage.ACKED not in stages(rejected)
        assert next(span.error for span in rejected.spans if span.error) == "bad"
        assert waiting.spans[-1].facts["attempts"] == 1
        assert out.spans[-1].stage is Stage.FETCHED and out.spans[-1].group == "workers"
        assert stages(untouched) == HEARD

    lives.live(after)


def test_a_trace_that_a_producer_began_is_found_and_goes_on() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "plain")
        await put(broker, "traced", headers=(("traceparent", PARENT.encode()),))
        await put(broker, "more", headers=(("traceparent", PARENT.encode()),))

        trace = await trace_by_id(broker, FindTrace(trace_id="0af7651916cd43dd8448eb211c80319c"))
        assert (trace.source, trace.offset) == (ORDERS_0, 1)
        roots = [span for span in trace.spans if span.stage is Stage.RECEIVED]
        assert [span.offset for span in roots] == [1, 2], "both messages are part of it"
        assert {span.parent_span_id for span in roots} == {"b7ad6b7169203331"}
        with pytest.raises(TraceNotFound):
            await trace_by_id(broker, FindTrace(trace_id="f" * 32))

    async def after(broker: Broker) -> None:
        trace = await trace_by_id(broker, FindTrace(trace_id="0af7651916cd43dd8448eb211c80319c"))
        assert {span.offset for span in trace.spans} == {1, 2}

    lives = Lives(4)
    lives.live(story)
    lives.live(after)


def test_a_search_looks_at_the_ends_of_the_logs_and_no_further_than_it_may() -> None:
    def traced(number: int) -> Headers:
        return (("traceparent", f"00-{number:032x}-b7ad6b7169203331-01".encode()),)

    async def story(broker: Broker) -> None:
        broker.config = replace(broker.config, tracing=TracingConfig(search_bytes=20_000))
        await orders(broker)
        for number in range(1, 101):
            await put(broker, "x" * 500, headers=traced(number))
        await create_topic(broker, CreateTopic(name="small", partitions=1))
        await publish(
            broker, Publish(topic=TopicName("small"), messages=[Message(b"y", headers=traced(500))])
        )

        assert (await trace_by_id(broker, FindTrace(trace_id=f"{100:032x}"))).offset == 99
        assert (await trace_by_id(broker, FindTrace(trace_id=f"{80:032x}"))).offset == 79
        assert (await trace_by_id(broker, FindTrace(trace_id=f"{500:032x}"))).source.topic == "small"
        with pytest.raises(TraceNotFound):
            await trace_by_id(broker, FindTrace(trace_id=f"{2:032x}"))

    Lives(13).live(story)


def test_a_delayed_message_has_one_trace_before_and_after_it_is_due() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        now_ms = broker.clock.wall_ms()
        messages = [Message(b"soon", due_ms=now_ms + 5_000), Message(b"never", due_ms=now_ms + 9_000)]
        soon, never = await publish(broker, Publish(topic=ORDERS, messages=messages))
        assert isinstance(soon, Postponed) and isinstance(never, Postponed)

        still_to_come = TraceQuery(topic="orders", statuses=frozenset({TraceStatus.DELAYED}))
        waiting = (await find_traces(broker, still_to_come)).traces
        assert [trace.spans[0].facts["number"] for trace in waiting] == [never.number, soon.number]
        assert {trace.offset for trace in waiting} == {NO_OFFSET}
        assert waiting[1].spans[0].facts["due_ms"] == now_ms + 5_000
        trace_id = waiting[1].trace_id
        assert (await trace_by_id(broker, FindTrace(trace_id=trace_id))).status is TraceStatus.DELAYED

        await cancel_delayed(
            broker, CancelDelayed(topic="orders", partition=never.partition, number=never.number)
        )
        cancelled = await trace_by_id(broker, FindTrace(trace_id=waiting[0].trace_id))
        assert stages(cancelled) == [Stage.SCHEDULED, Stage.CANCELLED]
        assert cancelled.status is TraceStatus.COMPLETED

        await asyncio.sleep(6)
        fired = await trace_by_id(broker, FindTrace(trace_id=trace_id))
        assert (fired.source, fired.offset) == (ORDERS_0, 0)
        assert {*stages(fired)} == {Stage.SCHEDULED, Stage.FIRED, *HEARD}
        assert (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))).spans == fired.spans
        assert (await find_traces(broker, still_to_come)).traces == []

    Lives(5).live(story)


def test_after_a_restart_a_delayed_message_is_followed_to_where_it_was_delivered() -> None:
    lives = Lives(11)

    async def before(broker: Broker) -> tuple[str, str]:
        await orders(broker)
        now_ms = broker.clock.wall_ms()
        messages = [Message(b"%d" % n, due_ms=now_ms + 1_000 * n) for n in (1, 2, 3_600)]
        await publish(broker, Publish(topic=ORDERS, messages=messages))
        await asyncio.sleep(5)
        fired = (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=1))).trace_id
        [waiting] = (await find_traces(broker, TraceQuery(statuses=frozenset({TraceStatus.DELAYED})))).traces
        return fired, waiting.trace_id

    fired_id, waiting_id = lives.live(before, is_killed=True)

    async def after(broker: Broker) -> None:
        fired = await trace_by_id(broker, FindTrace(trace_id=fired_id))
        assert (fired.source, fired.offset) == (ORDERS_0, 1)
        assert {*stages(fired)} == {Stage.SCHEDULED, Stage.FIRED, *HEARD}
        waiting = await trace_by_id(broker, FindTrace(trace_id=waiting_id))
        assert (waiting.source, waiting.offset) == (ORDERS_0, NO_OFFSET)
        assert waiting.status is TraceStatus.DELAYED
        assert waiting.spans[0].witness is Witness.LOG

    lives.live(after)


def test_how_a_transaction_ended_is_part_of_the_story() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        writer = await new_writer(broker)
        await writer.add(0)
        aborted = await writer.put(0, "a")
        assert stages(await trace_of(broker, TraceMessage(source=ORDERS_0, offset=aborted))) == HEARD, (
            "it is open"
        )
        await writer.abort()
        await writer.add(0)
        committed = await writer.put(0, "b")
        await writer.commit()

        traces = [
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=offset))
            for offset in (aborted, committed)
        ]
        assert [set(stages(trace)) - {*HEARD} for trace in traces] == [{Stage.ABORTED}, {Stage.COMMITTED}]
        assert traces[0].status is TraceStatus.FAILED
        with pytest.raises(MessageNotFound, match="a transaction's end"):
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=aborted + 1))

    Lives(12).live(story)


def test_lists_are_newest_first_and_can_be_narrowed() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, partitions=2)
        for partition in (0, 1):
            messages = [Message(b"%d" % n, partition=partition) for n in range(3)]
            await publish(broker, Publish(topic=ORDERS, messages=messages))
        middle_us = broker.clock.wall_us()
        await asyncio.sleep(1)
        ann = await join(broker)
        taken = [one for one in await take(broker, ann) if one.partition == 0]
        await ack(broker, taken[:1])
        await reject(broker, taken[1:2])

        async def find(**query: object) -> set[tuple[str, int, int]]:
            found = (await find_traces(broker, TraceQuery(**query))).traces  # type: ignore[arg-type]  # a test's shorthand
            return {(*trace.source, trace.offset) for trace in found}

        assert len(await find()) == 7, "six messages and a dead letter"
        assert len(await find(limit=2)) == 2
        assert await find(partition=1, topic="orders") == {("orders", 1, n) for n in range(3)}
        assert await find(statuses=frozenset({TraceStatus.COMPLETED})) == {("orders", 0, 0)}
        assert await find(statuses=frozenset({TraceStatus.FAILED})) == {("orders", 0, 1)}
        assert await find(group="nobody") == set()
        assert len(await find(group="workers", topic="orders")) == 6
        assert await find(topic="invoices") == set()
        assert len(await find(end_us=middle_us + 1)) == 6
        assert await find(start_us=middle_us + 5_000_000) == set()

    Lives(6).live(story)


def test_refused_messages_are_told_of() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await publish(broker, Publish(topic=ORDERS, messages=[Message(b"x", partition=9)]))

        [refused] = (await find_traces(broker, TraceQuery(statuses=frozenset({TraceStatus.FAILED})))).traces
        assert stages(refused) == [Stage.RECEIVED, Stage.REFUSED]
        assert refused.spans[1].facts["code"] == PartitionNotFound.code
        assert await trace_by_id(broker, FindTrace(trace_id=refused.trace_id)) == refused

    Lives(7).live(story)


def test_sampling_is_chosen_by_topic_and_takes_the_same_messages_at_every_stage() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker, tracing_sampling="0.1")
        await put(broker, *(str(n) for n in range(100)))
        ann = await join(broker)
        await ack(broker, await take(broker, ann))
        sampled = (await find_traces(broker, TraceQuery())).traces
        assert len(sampled) == 10
        assert all(trace.status is TraceStatus.COMPLETED for trace in sampled)
        assert {trace.offset % 10 for trace in sampled} == {sampled[0].offset % 10}
        stats = await trace_stats(broker, CountTraces())
        assert stats.trace_counts[TraceStatus.COMPLETED] == stats.topic_counts[ORDERS] == 10

        await alter_settings(
            broker, AlterSettings(name=ORDERS, changes=[SettingChange("goqueue.tracing.sampling", "0")])
        )
        recorded = broker.telemetry.traces.recorded
        await put(broker, "quiet")
        assert broker.telemetry.traces.recorded == recorded
        quiet = await trace_of(broker, TraceMessage(source=ORDERS_0, offset=100))
        assert {span.witness for span in quiet.spans} == {Witness.LOG}, "its story can be told all the same"

    Lives(8).live(story)


def test_what_is_not_there_is_said_to_be_gone_or_still_to_come() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b")
        broker.partition(ORDERS_0).log.move_start(1)
        with pytest.raises(MessageNotFound, match="retention has deleted it, and the log begins at 1"):
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=0))
        with pytest.raises(MessageNotFound, match="still to be written, and the log ends at 2"):
            await trace_of(broker, TraceMessage(source=ORDERS_0, offset=2))
        with pytest.raises(PartitionNotFound):
            await trace_of(broker, TraceMessage(source=TopicPartition(TopicName("orders"), 7), offset=0))

    Lives(9).live(story)


def test_statistics_count_by_fate_and_tell_how_long_messages_waited() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        await asyncio.sleep(2)
        ann = await join(broker)
        taken = await take(broker, ann)
        await ack(broker, taken[:1])
        await reject(broker, taken[1:2])

        stats = await trace_stats(broker, CountTraces())
        assert stats.trace_counts[TraceStatus.COMPLETED] == 1
        assert stats.trace_counts[TraceStatus.FAILED] == 1
        assert stats.trace_counts[TraceStatus.IN_PROGRESS] == 2, "one that is out, and the dead letter"
        assert stats.latency_us is not None and 2_000_000 <= stats.latency_us < 3_000_000
        assert stats.events_held == stats.events_recorded > 0
        assert len(await stored(broker, DEAD_ORDERS)) == 1

    Lives(10).live(story)
