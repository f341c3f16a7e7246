"""A compacted topic on a broker of a test, and short ways to fill, compact and read it."""

from collections.abc import Mapping

from goqueue.broker.broker import Broker
from goqueue.broker.compaction.compacting import compact, look_at
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.log.reading import from_disk
from goqueue.model.commands import Placed, Publish
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message, StoredMessage
from goqueue.model.topics import CreateTopic, PartitionCompacted
from goqueue.records.batch import open_batch
from goqueue.records.control import is_control
from goqueue.records.layout import read_header

CARS = TopicName("cars")
CARS_0 = TopicPartition(CARS, 0)
COMPACT = {"cleanup.policy": "compact", "segment.bytes": "4096", "min.cleanable.dirty.ratio": "0.01"}


async def make_cars(broker: Broker, settings: Mapping[str, str | None] | None = None) -> Partition:
    """The topic, with one partition, and with small segments."""
    await create_topic(broker, CreateTopic(name=CARS, partitions=1, settings=COMPACT | dict(settings or {})))
    return broker.partition(CARS_0)


async def put(broker: Broker, *pairs: tuple[bytes, bytes | None]) -> list[int]:
    """Publish messages, each in a batch of its own; their offsets."""
    offsets = []
    for key, value in pairs:
        [placed] = await publish(broker, Publish(topic=CARS, messages=[Message(value, key)]))
        assert isinstance(placed, Placed)
        offsets.append(placed.offset)
    return offsets


async def compact_now(broker: Broker) -> PartitionCompacted | None:
    """Seal what is there, and compact all of it."""
    partition = broker.partition(CARS_0)
    partition.log.roll()
    looked = await look_at(broker, partition)
    assert looked is not None
    return await compact(broker, partition, looked)


def stored(partition: Partition) -> list[StoredMessage]:
    """All messages of the log that count."""
    log = partition.log
    offset, found = log.start_offset, []
    while offset < partition.commit_mark:
        chunk = log.read(offset, 65_536, end_offset=partition.commit_mark, read_bytes=from_disk)
        for body, lane in zip(chunk.batches, chunk.lanes, strict=True):
            if not is_control(body) and read_header(body).record_count:
                found += [message for message in open_batch(body, lane) if message.offset >= offset]
        assert chunk.end_offset > offset
        offset = chunk.end_offset
    return found


def table(partition: Partition) -> dict[bytes | None, bytes]:
    """What a reader from the start has in the end."""
    found: dict[bytes | None, bytes] = {}
    for message in stored(partition):
        if message.value is None:
            found.pop(message.key, None)
        else:
            found[message.key] = message.value
    return found
