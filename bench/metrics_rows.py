"""What metrics cost: counting a batch on its way, and a scrape of a large broker."""

import asyncio
import time
from pathlib import Path

from bench.measured import Row, at_most
from goqueue.broker.broker import Broker
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.core.telemetry.counters import Counters
from goqueue.edge.http.health.metrics import metrics_page
from goqueue.model.commands import Publish
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from goqueue.testing.world.holds import longest_hold
from tests.unit.broker.running import running

BATCHES = 200_000
TOPICS = 1_000
GROUPS = 100
RUNS = 5
ACCEPT = "application/openmetrics-text;version=1.0.0"


def counting() -> Row:
    """All that is added to a batch that is published with acks=all and fetched once."""
    source = TopicPartition(TopicName("orders"), 0)
    counters = Counters()
    counts, topic = counters.partition(source), counters.topic(source.topic)
    clock = time.monotonic_ns
    began_s = time.process_time()
    for _ in range(BATCHES):
        counts.stored(100, 10_000)
        topic.written_bytes += 10_000
        asked_ns = clock()
        topic.publish_seconds.observe((clock() - asked_ns) / 1e9)
        begun_ns = clock()
        topic.served_bytes += 10_000
        topic.read_seconds.observe((clock() - begun_ns) / 1e9)
        counts.read(100, 10_000)
    spent_us = (time.process_time() - began_s) / BATCHES * 1e6
    return at_most("metrics: counting a batch, published and fetched", spent_us, "µs", 3)


def scraping(folder: Path) -> list[Row]:
    """CPU of a scrape, and for how long it holds up the loop."""

    async def measure() -> list[Row]:
        async with running(FolderDisk(folder)) as broker:
            await _fill(broker)
            spent = []
            for _ in range(RUNS):
                began_s = time.process_time()
                page = await metrics_page(broker, ACCEPT)
                spent.append(time.process_time() - began_s)
            hold_ms = await longest_hold(lambda: metrics_page(broker, ACCEPT), runs=RUNS)
        lines = page.content.count(b"\n")
        detail = f"{TOPICS:,} topics of 3 partitions, {GROUPS} groups; {lines:,} lines, OpenMetrics"
        return [
            at_most("metrics: CPU of a scrape", min(spent) * 1e3, "ms", 150, detail),
            at_most("metrics: longest time that a scrape holds the loop", hold_ms, "ms", 10, detail),
        ]

    return asyncio.run(measure())


async def _fill(broker: Broker) -> None:
    names = [TopicName(f"topic-{number:04}") for number in range(TOPICS)]
    for name in names:
        await create_topic(broker, CreateTopic(name=name, partitions=3))
        messages = [Message(b"x" * 100) for _ in range(3)]
        await publish(broker, Publish(topic=name, messages=messages, acks=Acks.LEADER))
    for number in range(GROUPS):
        commits = [
            TopicCommit(name, [(partition, 0, -1, "") for partition in range(3)])
            for name in names[number * 3 : number * 3 + 3]
        ]
        await commit_offsets(broker, CommitOffsets(Membership(f"group-{number}", "", -1), commits))
