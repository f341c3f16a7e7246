"""find_offset: where a partition begins and ends, and what was written when."""

from goqueue.broker.broker import Broker
from goqueue.broker.storage.commit_written import commit_written
from goqueue.log.partition_log import PartitionLog, storage_error
from goqueue.log.reading import Chunk, from_disk
from goqueue.model.commands import FoundOffset, Spot
from goqueue.model.errors import InvalidRecord
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import StoredMessage
from goqueue.model.transactions import Isolation
from goqueue.records.batch import open_batch
from goqueue.records.control import is_control
from goqueue.records.layout import read_header


async def find_offset(
    broker: Broker,
    source: TopicPartition,
    spot: Spot | int,
    *,
    isolation: Isolation = Isolation.COMMITTED,
) -> FoundOffset:
    """A named spot, or the first message of a time (unix ms) or later."""
    partition = broker.partition(source)
    log = partition.log
    if partition.has_hidden and spot is not Spot.EARLIEST:
        await commit_written([partition])
    match spot:
        case Spot.EARLIEST:
            return FoundOffset(log.start_offset, leader_epoch=partition.leader_epoch)
        case Spot.LATEST:
            return FoundOffset(partition.end_for(isolation), leader_epoch=partition.leader_epoch)
        case _:
            end_offset = partition.end_for(isolation)
            try:
                found = await broker.threads.run(_first_at, log, spot, end_offset)
            except OSError as error:
                raise storage_error(error, f"look-up in {source}") from error
            return found if found.offset < end_offset else FoundOffset(-1)


def end_of_epoch(broker: Broker, source: TopicPartition, leader_epoch: int) -> tuple[int, int]:
    """The last epoch not above the one asked for and the offset behind its end; (-1, -1): unknown."""
    partition = broker.partition(source)
    epoch, end_offset = partition.log.epoch_end(leader_epoch)
    return epoch, min(end_offset, partition.commit_mark)


def _first_at(log: PartitionLog, time: Spot | int, end_offset: int) -> FoundOffset:
    """The first message that can be read and is of that time or later. Waits for the disk."""
    if isinstance(time, Spot):
        timestamp_ms = log.newest_time(end_offset=end_offset, read_bytes=from_disk)
    else:
        timestamp_ms = time
    offset = start_offset = log.start_offset
    while True:
        chunk = log.find_time(timestamp_ms, from_offset=offset, read_bytes=from_disk)
        if chunk is None:
            return FoundOffset(-1)
        for message in _messages(chunk):
            if message.timestamp_ms >= timestamp_ms and message.offset >= start_offset:
                epoch = read_header(chunk.batches[0]).leader_epoch
                return FoundOffset(message.offset, message.timestamp_ms, epoch)
        # The late messages of this batch were deleted from the log's start, or there are none to be read.
        offset = chunk.end_offset


def _messages(chunk: Chunk) -> list[StoredMessage]:
    """What readers find in a batch: nothing in a marker, nor in what its producer built wrongly."""
    if is_control(chunk.batches[0]):
        return []
    try:
        return open_batch(chunk.batches[0], chunk.lanes[0])
    except InvalidRecord:
        return []
