"""find_offset: where a partition begins and ends, and what was written when."""

from goqueue.broker.broker import Broker
from goqueue.log.partition_log import PartitionLog, from_disk, storage_error
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
        case _:
            try:
                return await broker.threads.run(_first_at, log, spot)
            except OSError as error:
                raise storage_error(error, f"look-up in {source}") from error


def end_of_epoch(broker: Broker, source: TopicPartition, leader_epoch: int) -> tuple[int, int]:
    """The last epoch not above the one asked for and the offset behind its end; (-1, -1): unknown."""
    return broker.partition(source).log.epoch_end(leader_epoch)


def _first_at(log: PartitionLog, time: Spot | int) -> FoundOffset:
    """The first message that can be read and is of that time or later. Waits for the disk."""
    timestamp_ms = log.newest_time(read_bytes=from_disk) if isinstance(time, Spot) else time
    offset = start_offset = log.start_offset
    while True:
        chunk = log.find_time(timestamp_ms, from_offset=offset, read_bytes=from_disk)
        if chunk is None:
            return FoundOffset(-1)
        for message in open_batch(chunk.batches[0], chunk.lanes[0]):
            if message.timestamp_ms >= timestamp_ms and message.offset >= start_offset:
                epoch = read_header(chunk.batches[0]).leader_epoch
                return FoundOffset(message.offset, message.timestamp_ms, epoch)
        # The late messages of this batch were deleted from the log's start.
        offset = chunk.end_offset
