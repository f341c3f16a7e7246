"""Headers of the broker's own, written by others: whatever they hold, nobody else's messages suffer."""

import pytest

from goqueue.broker.appending import append_once, batches_of
from goqueue.broker.broker import Broker
from goqueue.broker.queue.redrive import browse, redrive
from goqueue.broker.tracing.verbs import find_traces, trace_of
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Publish
from goqueue.model.delivery import BrowseDeadLetters, Redrive
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Message
from goqueue.model.telemetry import TraceMessage, TraceQuery
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import DEAD_ORDERS, join, orders, put, reject, take
from tests.unit.broker.running import ORDERS, ORDERS_0

HUGE = b"9" * 5_000
"""More digits than Python reads."""
FORGED = [HUGE, b"9" * 18, b"-1", b"abc", b"\xff\xfe", "٣".encode(), b"", None]


@pytest.mark.parametrize("value", FORGED)
@pytest.mark.parametrize("name", ["goqueue-dlq-redrives", "goqueue-deliver-at", "goqueue-ttl-ms"])
def test_a_message_with_a_forged_number_is_handed_out_buried_and_told_of(
    name: str, value: bytes | None
) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        # As a folder may hold it from when no door but Kafka's looked at such headers.
        forged = Message(b"forged", None, ((name, value),))
        append_once(broker.partition(ORDERS_0), batches_of([forged], now_ms=broker.clock.wall_ms()))
        await put(broker, "honest")
        ann = await join(broker)
        taken = await take(broker, ann)
        assert [one.value for one in taken] == ["forged", "honest"]
        await reject(broker, taken)

        found = await redrive(broker, Redrive(topic=ORDERS))
        assert (found.moved, found.is_complete) == (2, True)
        for offset in range(4):
            assert (await trace_of(broker, TraceMessage(source=ORDERS_0, offset=offset))).spans
        assert (await find_traces(broker, TraceQuery())).traces

    Lives(1).live(story)


@pytest.mark.parametrize("value", FORGED)
def test_a_forged_dead_letter_is_listed_sent_back_and_told_of(value: bytes | None) -> None:
    facts = ("partition", "offset", "timestamp")
    forged = tuple(
        (f"goqueue-dlq-{name}", value) for name in ("attempts", "reason", "group", "error", "time")
    )
    headers = (
        ("goqueue-dlq-original-topic", b"orders"),
        *((f"goqueue-dlq-original-{name}", value) for name in facts),
        *forged,
    )

    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        ann = await join(broker)
        await reject(broker, await take(broker, ann))
        message = Message(b"forged", None, headers, partition=0)
        await publish(broker, Publish(topic=DEAD_ORDERS, messages=[message]))

        assert len((await browse(broker, BrowseDeadLetters(topic=ORDERS, limit=10))).letters) == 2
        for place in (ORDERS_0, TopicPartition(DEAD_ORDERS, 0)):
            assert (await trace_of(broker, TraceMessage(source=place, offset=0))).spans
        assert (await trace_of(broker, TraceMessage(source=TopicPartition(DEAD_ORDERS, 0), offset=1))).spans
        assert (await redrive(broker, Redrive(topic=ORDERS))).moved == 2

    Lives(2).live(story)
