"""Every way into a topic leaves batches with the compression and the times that the topic says."""

from typing import Any

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.write.append import append_when_checked
from goqueue.log.reading import from_disk
from goqueue.model.commands import Append
from goqueue.model.errors import InvalidTimestamp
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig, CompressionType, TimestampType, TopicSettings
from goqueue.records.batch import open_batch
from goqueue.records.layout import LOG_APPEND_TIME, BatchHeader, Codec, read_header
from tests.unit.broker.delays.delayed_world import World
from tests.unit.broker.write.test_wishes import (
    SOURCE,
    Way,
    body_of,
    by_append,
    by_entries,
    by_publish,
    by_publish_once,
    by_sink,
)

LONG = Message(b"long and alike " * 100, b"key", partition=0)


async def by_append_at_last(broker: Broker, message: Message) -> None:
    with pytest.raises(Unchecked):
        await by_append(broker, message)
    appended = await append_when_checked(broker, Append(SOURCE, body_of(message), Acks.ALL))
    if appended.committed is not None:
        await appended.committed


WAYS = [by_append_at_last, by_publish, by_entries, by_publish_once, by_sink]


def world(**settings: Any) -> World:
    return World(BrokerConfig(topic_defaults=TopicSettings(**settings)))


def stored(broker: Broker) -> list[tuple[BatchHeader, memoryview]]:
    log = broker.partition(SOURCE).log
    chunk = log.read(0, 1 << 20, end_offset=log.end_offset, read_bytes=from_disk)
    return [(read_header(body), memoryview(bytes(body))) for body in chunk.batches]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_whoever_writes_a_topic_gets_its_compression(way: Way, codec: Codec) -> None:
    async def life(broker: Broker) -> None:
        await way(broker, LONG)
        [(header, body)] = stored(broker)
        assert header.codec == codec
        assert [(message.value, message.key) for message in open_batch(body, 2)] == [LONG[:2]]

    world(compression_type=CompressionType(codec.name.lower())).run(life)


@pytest.mark.parametrize("way", [by_append, by_publish, by_entries, by_publish_once, by_sink])
def test_whoever_writes_a_topic_gets_its_time(way: Way) -> None:
    async def life(broker: Broker) -> None:
        begun_ms = broker.clock.wall_ms()
        await way(broker, LONG)
        [(header, body)] = stored(broker)
        assert header.attributes & LOG_APPEND_TIME
        assert begun_ms <= header.max_timestamp_ms <= broker.clock.wall_ms()
        assert [message.timestamp_ms for message in open_batch(body, 2)] == [header.max_timestamp_ms]

    world(timestamp_type=TimestampType.LOG_APPEND).run(life)


@pytest.mark.parametrize("way", [by_append, by_entries, by_sink])
def test_whoever_names_times_is_held_to_the_topics_bounds(way: Way) -> None:
    async def life(broker: Broker) -> None:
        with pytest.raises(InvalidTimestamp, match=r"before\.max\.ms"):
            await way(broker, LONG)  # it is of 1970
        assert stored(broker) == []

    world(timestamp_before_max_ms=1_000).run(life)
