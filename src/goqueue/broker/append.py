"""append: record batches that a client built go into the log as they are."""

from goqueue.broker.broker import Broker
from goqueue.broker.partition import Partition
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.commands import Append, Appended
from goqueue.model.messages import Acks
from goqueue.records.batch import split_lanes
from goqueue.records.layout import BatchHeader, check_batches, read_header


def append(broker: Broker, command: Append) -> Appended:
    """Check, tell duplicates, split by lane, store. Offsets are fixed on return; `committed` may follow."""
    broker.admit(command.target.topic)
    partition = broker.partition(command.target)
    settings = partition.log.settings
    headers = check_batches(command.batches, max_batch_bytes=settings.max_message_bytes)
    count = sum(header.record_count for header in headers)
    stored_offset = partition.producers.duplicate(headers[0], count)
    if stored_offset is None:
        batches = _by_lane(command.batches, headers, inspect_compressed=settings.inspect_compressed)
        stored_offset = partition.append(batches)
    return appended(partition, stored_offset, count, command.acks)


def appended(partition: Partition, base_offset: int, count: int, acks: Acks) -> Appended:
    """The answer to whoever stored messages, with what is left to wait for."""
    committed = partition.committed(base_offset + count) if acks is Acks.ALL else None
    return Appended(base_offset, partition.log.start_offset, committed)


def _by_lane(
    buffer: memoryview, headers: list[BatchHeader], *, inspect_compressed: bool
) -> list[CheckedBatch]:
    batches = []
    position = 0
    for header in headers:
        body = buffer[position : position + header.size_bytes]
        for part, lane in split_lanes(body, header, inspect_compressed=inspect_compressed):
            batches.append(CheckedBatch(header if part is body else read_header(part), part, lane))
        position += header.size_bytes
    return batches
