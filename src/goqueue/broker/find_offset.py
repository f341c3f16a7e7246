"""find_offset: where a partition begins and ends, and what was written when."""

from goqueue.broker.broker import Broker
from goqueue.log.partition_log import Chunk, from_disk
from goqueue.model.commands import FoundOffset, Spot
from goqueue.model.ids import TopicPartition
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header


async def find_offset(broker: Broker, source: TopicPartition, spot: Spot | int) -> FoundOffset:
    """A named spot, or the first message of a time (unix ms) or later."""
    partition = broker.partition(source)
    log = partition.log
    match spot:
        case Spot.EARLIEST:
            return FoundOffset(log.start_offset, leader_epoch=partition.leader_epoch)
        case Spot.LATEST:
            return FoundOffset(partition.high_watermark, leader_epoch=partition.leader_epoch)
        case Spot.MAX_TIMESTAMP:
            chunk = await broker.threads.run(log.find_max_time, read_bytes=from_disk)
            if chunk is None:
                return FoundOffset(-1)
            return _first_at(chunk, read_header(chunk.batches[0]).max_timestamp_ms, log.start_offset)
        case timestamp_ms:
            chunk = await broker.threads.run(log.find_time, timestamp_ms, read_bytes=from_disk)
            return FoundOffset(-1) if chunk is None else _first_at(chunk, timestamp_ms, log.start_offset)


def end_of_epoch(broker: Broker, source: TopicPartition, leader_epoch: int) -> tuple[int, int]:
    """The last epoch not above the one asked for and the offset behind its end; (-1, -1): unknown."""
    return broker.partition(source).log.epoch_end(leader_epoch)


def _first_at(chunk: Chunk, timestamp_ms: int, start_offset: int) -> FoundOffset:
    """The first message of a batch that is of that time or later."""
    for message in open_batch(chunk.batches[0], chunk.lanes[0]):
        if message.timestamp_ms >= timestamp_ms and message.offset >= start_offset:
            return FoundOffset(
                message.offset, message.timestamp_ms, read_header(chunk.batches[0]).leader_epoch
            )
    return FoundOffset(-1)
