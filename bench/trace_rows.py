"""What tracing costs: the same work with and without it, in turn; and how long a story takes."""

import json
import statistics
import time
import urllib.request

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from bench.kafka_rows import create_topic
from bench.measured import Row, at_most, measuring
from bench.raw_client import RawClient, batch_of, fetch_request, keep_busy, produce_request
from goqueue.core.telemetry.counters import Counters
from goqueue.core.telemetry.telemetry import Telemetry
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import TopicSettings, TracingConfig
from tests.integration.running_broker import RunningBroker

TOPIC = "traced"
MESSAGES = 100
"""In a batch: 10 KB, as a producer with a short linger sends them. Each is an event at three stages."""
BATCHES = 1_000
ROUNDS = 40
BOUNDS = {"1": 3.0, "0.01": 1.0}
STORIES = 50
CALLS = 20_000


def tracing_cost(broker: RunningBroker) -> list[Row]:
    """CPU that tracing adds on the Kafka door.

    Rounds alternate, so that what else runs touches all alike; on one topic, because files and the lanes of
    the flusher differ by more than what is measured.
    """
    rates = ("0", *BOUNDS)
    create_topic(broker, TOPIC, 1)
    spent: dict[str, list[float]] = {rate: [] for rate in rates}
    offset = 0
    for turn in range(ROUNDS + 1):
        for rate in rates[turn % len(rates) :] + rates[: turn % len(rates)]:
            _set_rate(broker, rate)
            with measuring(broker) as one:
                _round(broker, offset)
            offset += BATCHES * MESSAGES
            if turn:  # the first is to warm up
                spent[rate].append(one.cpu_s)
    batch_us = statistics.median(spent["0"]) / BATCHES * 1e6
    rows = []
    for rate, bound in BOUNDS.items():
        added = [on / off - 1 for on, off in zip(spent[rate], spent["0"], strict=True)]
        rows.append(
            at_most(
                f"Kafka door, batches of {MESSAGES} × 100 B, acks=all, published and fetched: CPU added by "
                f"tracing at sampling {rate}",
                statistics.median(added) * 100,
                "%",
                bound,
                f"median of {ROUNDS} rounds in turn, quartiles {_quartiles(added)}; "
                f"{batch_us:.0f} µs a batch without; recording alone: {_recording_us(float(rate)):.2f} µs",
            )
        )
    return [*rows, _story_time(broker, offset)]


def _recording_us(rate: float) -> float:
    """What the three calls take that a batch causes, beyond those of a topic without tracing."""

    def taken_s(sampling: float) -> float:
        telemetry = Telemetry(Counters(), TracingConfig(), "bench", began_us=0)
        listener = telemetry.watch(
            TopicPartition(TopicName("orders"), 0), TopicSettings(tracing_sampling=sampling)
        )
        began = time.perf_counter()
        for first in range(0, CALLS * MESSAGES, MESSAGES):
            listener.stored(first, first + MESSAGES, MESSAGES, 10_000, first)
            listener.flushed(first, first + MESSAGES, first)
            listener.read(first, first + MESSAGES, 10_000, "bench", first)
        return time.perf_counter() - began

    return (min(taken_s(rate) for _ in range(5)) - min(taken_s(0) for _ in range(5))) / CALLS * 1e6


def _set_rate(broker: RunningBroker, rate: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    entry = ConfigEntry("goqueue.tracing.sampling", rate, incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    for done in admin.incremental_alter_configs([topic]).values():
        done.result()


def _round(broker: RunningBroker, first_offset: int) -> None:
    request = produce_request(TOPIC, 0, batch_of(MESSAGES, b"x" * 100), acks=-1)
    with RawClient(broker.kafka) as client:
        keep_busy(client, lambda _: request, BATCHES)
        keep_busy(
            client,
            lambda n: fetch_request(TOPIC, 0, first_offset + n * MESSAGES, max_bytes=1),
            BATCHES,
        )


def _quartiles(values: list[float]) -> str:
    first, _, last = statistics.quantiles(values, n=4)
    return f"{first * 100:.1f} to {last * 100:.1f} %"


def _story_time(broker: RunningBroker, end_offset: int) -> Row:
    """Ask for stories of messages all over a log, with a full ring."""
    taken_ms = []
    for n in range(STORIES):
        offset = n * end_offset // STORIES
        url = f"{broker.http}/topics/{TOPIC}/partitions/0/offsets/{offset}/trace"
        began = time.perf_counter()
        with urllib.request.urlopen(url) as reply:
            trace = json.load(reply)
        taken_ms.append((time.perf_counter() - began) * 1e3)
        if trace["offset"] != offset:
            raise RuntimeError(f"asked for {offset} and got {trace['offset']}")
    return at_most(
        "the story of a message by topic, partition and offset, over HTTP",
        statistics.median(taken_ms),
        "ms",
        50,
        f"median of {STORIES} all over the log, at most {max(taken_ms):.1f} ms",
    )
