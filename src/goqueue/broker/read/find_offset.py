"""find_offset: where a partition begins and ends, and what was written when."""

from goqueue.broker.broker import Broker
from goqueue.broker.storage.commit_written import commit_written
from goqueue.broker.storage.readable import Readable, ReadableLog
from goqueue.log.partition_log import storage_error
from goqueue.log.reading import Chunk, from_disk
from goqueue.model.commands import FindEpochEnd, FindOffset, FoundOffset, Spot
from goqueue.model.errors import InvalidRecord, LeaderEpochFenced, LeaderEpochUnknown
from goqueue.model.messages import StoredMessage
from goqueue.records.batch import open_batch
from goqueue.records.control import is_control
from goqueue.records.layout import read_header


async def find_offset(broker: Broker, command: FindOffset) -> FoundOffset:
    """A named spot, or the first message of a time (unix ms) or later."""
    partition = broker.readable(command.source)
    partition.admit_read()
    check_epoch(partition, command.leader_epoch)
    log = partition.log
    if partition.has_hidden and command.spot is not Spot.EARLIEST:
        await commit_written([partition])
    if command.spot is not Spot.EARLIEST:
        partition.admit_look_up()
    match command.spot:
        case Spot.EARLIEST:
            return FoundOffset(log.start_offset, leader_epoch=partition.leader_epoch)
        case Spot.LATEST:
            return FoundOffset(partition.end_for(command.isolation), leader_epoch=partition.leader_epoch)
        case _:
            end_offset = partition.end_for(command.isolation)
            try:
                found = await broker.threads.run(_first_at, log, command.spot, end_offset)
            except OSError as error:
                raise storage_error(error, f"look-up in {command.source}") from error
            return found if found.offset < end_offset else FoundOffset(-1)


def end_of_epoch(broker: Broker, command: FindEpochEnd) -> tuple[int, int]:
    """The last epoch not above the one asked for and the offset behind its end; (-1, -1): unknown."""
    partition = broker.readable(command.source)
    partition.admit_read()
    check_epoch(partition, command.leader_epoch)
    partition.admit_look_up()  # a mark that is too low would look like a log that was cut
    epoch, end_offset = partition.log.epoch_end(command.epoch)
    return epoch, min(end_offset, partition.commit_mark)


def check_epoch(partition: Readable, leader_epoch: int) -> None:
    """Refuse whoever learnt of this leader in another epoch; -1: it does not say."""
    if leader_epoch < 0 or leader_epoch == partition.leader_epoch:
        return
    if leader_epoch < partition.leader_epoch:
        raise LeaderEpochFenced(f"{partition.source} is in leader epoch {partition.leader_epoch} now")
    raise LeaderEpochUnknown(f"{partition.source} is still in leader epoch {partition.leader_epoch}")


def _first_at(log: ReadableLog, time: Spot | int, end_offset: int) -> FoundOffset:
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
