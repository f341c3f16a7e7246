"""From the ring to the exporters: the spans of sampled messages, never more than may leave."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.tracing.verbs import trace_by_id, trace_of
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig, TracingConfig
from goqueue.model.telemetry import NO_OFFSET, ExportStatus, FindTrace, Span, Stage, TraceMessage
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from goqueue.node.tracing.config import TraceExportConfig
from goqueue.node.tracing.courier import Courier
from goqueue.node.tracing.export import TraceExport
from goqueue.node.tracing.shares import fair_shares
from tests.unit.broker.queue.queue_steps import ack, join, orders, put, take
from tests.unit.broker.running import ORDERS, ORDERS_0, running
from tests.unit.node.test_trace_export_courier import Desk

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PRODUCER_SPAN_ID = "00f067aa0ba902b7"
A_WHOLE_LIFE = {Stage.RECEIVED, Stage.PARTITIONED, Stage.PERSISTED, Stage.FETCHED, Stage.ACKED}


class Exporting:
    """A broker with one exporter, whose desk keeps what arrives. Spans leave when the test says so."""

    def __init__(self, broker: Broker, config: TraceExportConfig) -> None:
        self.broker = broker
        self.desk = Desk()
        self.status = ExportStatus("file")
        courier = Courier(self.status, self.desk, waiting_max=config.waiting_max)
        self.export = TraceExport(broker, [courier], config)

    def spans_of(self, offset: int) -> dict[Stage, Span]:
        return {sent.span.stage: sent.span for sent in self.desk.taken if sent.span.offset == offset}


@asynccontextmanager
async def exporting(
    folder: Path, *, budget: int = 1000, tracing: TracingConfig | None = None
) -> AsyncIterator[Exporting]:
    config = TraceExportConfig(exporters=("file",), spans_per_second=budget, interval_ms=1000)
    broker_config = BrokerConfig(tracing=tracing or TracingConfig())
    async with running(FolderDisk(folder), broker_config) as broker:
        yield Exporting(broker, config)


async def live(broker: Broker, *values: str) -> None:
    """Messages are published, taken and acknowledged."""
    worker = await join(broker)
    await put(broker, *values)
    await ack(broker, await take(broker, worker))


def test_a_life_leaves_as_one_trace_with_the_ids_that_the_api_tells(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path) as at_work:
            await orders(at_work.broker)
            await live(at_work.broker, "a")
            told = await trace_of(at_work.broker, TraceMessage(source=ORDERS_0, offset=0))
            await at_work.export.close()

            assert {sent.trace_id for sent in at_work.desk.taken} == {told.trace_id}
            spans = at_work.spans_of(0)
            assert set(spans) >= A_WHOLE_LIFE
            ids = {span.stage: (span.span_id, span.parent_span_id) for span in told.spans}
            assert {stage: (span.span_id, span.parent_span_id) for stage, span in spans.items()} == ids
            assert (at_work.status.sent, at_work.status.dropped) == (len(spans), 0)

    asyncio.run(main())


def test_a_span_begins_where_an_earlier_one_tells_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path) as at_work:
            await orders(at_work.broker)
            await live(at_work.broker, "a")
            await at_work.export.export_new()
            await at_work.export.close()

            spans = at_work.spans_of(0)
            for stage, beginning in ((Stage.PERSISTED, Stage.PARTITIONED), (Stage.ACKED, Stage.FETCHED)):
                assert spans[stage].duration_us == spans[stage].time_us - spans[beginning].time_us

    asyncio.run(main())


def test_spans_hang_on_the_producers_span(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path) as at_work:
            await orders(at_work.broker)
            traceparent = f"00-{TRACE_ID}-{PRODUCER_SPAN_ID}-01".encode()
            await put(at_work.broker, "a", headers=(("traceparent", traceparent),))
            await at_work.export.close()

            assert {sent.trace_id for sent in at_work.desk.taken} == {TRACE_ID}
            spans = at_work.spans_of(0)
            assert spans[Stage.RECEIVED].parent_span_id == PRODUCER_SPAN_ID
            assert spans[Stage.PERSISTED].parent_span_id == spans[Stage.RECEIVED].span_id

    asyncio.run(main())


def test_over_the_bound_fewer_messages_leave_each_whole_and_the_others_are_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path, budget=100) as at_work:
            await orders(at_work.broker)
            await live(at_work.broker, *("x" for _ in range(100)))
            await at_work.export.close()

            told = Counter(sent.span.offset for sent in at_work.desk.taken)
            assert 50 <= len(at_work.desk.taken) <= 100
            assert set(told.values()) == {5}
            assert at_work.status.dropped == 500 - len(at_work.desk.taken)

    asyncio.run(main())


def test_what_the_ring_has_forgotten_is_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path, tracing=TracingConfig(events_max=2)) as at_work:
            await orders(at_work.broker)
            recorded = at_work.broker.telemetry.traces.recorded
            for value in "abcd":
                await put(at_work.broker, value)
            missed = at_work.broker.telemetry.traces.recorded - recorded - 2
            await at_work.export.close()

            assert missed > 0
            assert at_work.status.dropped == missed

    asyncio.run(main())


def test_only_sampled_messages_leave(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path, tracing=TracingConfig(sampling=0.1)) as at_work:
            await orders(at_work.broker)
            await live(at_work.broker, *("x" for _ in range(100)))
            await at_work.export.close()

            told = Counter(sent.span.offset for sent in at_work.desk.taken)
            assert len(told) == 10
            assert set(told.values()) == {5}
            assert at_work.status.dropped == 0

    asyncio.run(main())


def test_a_busy_topic_does_not_silence_a_quiet_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path, budget=100) as at_work:
            await orders(at_work.broker)
            await create_topic(at_work.broker, CreateTopic(name="quiet", partitions=1, settings={}))
            quiet = Publish(topic=TopicName("quiet"), messages=[Message(b"a")])
            await publish(at_work.broker, quiet)
            await put(at_work.broker, *("x" for _ in range(1000)))
            await at_work.export.close()

            told = Counter(str(sent.span.topic) for sent in at_work.desk.taken)
            assert told["quiet"] == 3
            assert 0 < told["orders"] <= 97

    asyncio.run(main())


def test_a_refused_message_is_told_of_with_the_reason(tmp_path: Path) -> None:
    async def main() -> None:
        async with exporting(tmp_path) as at_work:
            await orders(at_work.broker)
            broker = at_work.broker
            broker.telemetry.refused(ORDERS, "invalid", "no such thing", time_us=broker.clock.wall_us())
            await at_work.export.close()

            refused = at_work.spans_of(NO_OFFSET)[Stage.REFUSED]
            assert refused.error == "no such thing"
            told = await trace_by_id(broker, FindTrace(trace_id=at_work.desk.taken[0].trace_id))
            assert refused.span_id in {span.span_id for span in told.spans}

    asyncio.run(main())


def test_the_busiest_give_way_when_there_is_not_enough_for_all() -> None:
    assert fair_shares({"a": 5, "b": 100, "c": 30}, 60) == {"a": 5, "b": 28, "c": 27}
    assert fair_shares({"a": 5, "b": 10}, 60) == {"a": 5, "b": 10}
    assert sum(fair_shares(dict.fromkeys(range(10), 3), 4).values()) <= 4
    assert fair_shares({}, 60) == {}
