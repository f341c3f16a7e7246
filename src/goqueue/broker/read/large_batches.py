"""Large batches on their way to messages: opened in a thread, and kept for whoever comes next."""

from goqueue.broker.broker import Broker
from goqueue.broker.read.cache import LogPlace
from goqueue.model.ids import TopicPartition
from goqueue.records.large_batch import LargeBatch


def place_of(broker: Broker, source: TopicPartition) -> LogPlace:
    """A partition as it is now. Raises TopicNotFound or PartitionNotFound."""
    topic_id = broker.metadata.topic(source.topic).topic_id
    return LogPlace(topic_id, source.partition, broker.readable(source).leader_epoch)


async def open_large(broker: Broker, place: LogPlace, body: memoryview, lane: int, offset: int) -> LargeBatch:
    """The large batch that holds an offset, perhaps from the last time. Raises InvalidRecord."""
    kept = broker.queue.large
    large = kept.find(place, offset)
    if large is None:
        large = await broker.threads.run(LargeBatch, body, lane)
        kept.keep(place, large)
    return large
