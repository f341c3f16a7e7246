"""What a partition's own log tells of the delayed messages that were appended to it."""

from goqueue.core.delays.delivered import Step
from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.errors import Corrupt, OffsetOutOfRange
from goqueue.model.ids import ProducerId
from goqueue.records.layout import SEQUENCE_MASK, read_header

KEEPER_ID = ProducerId(-2)
"""The producer of delivered batches. No client can be it: ids given out are 0 and above."""
_READ_BYTES = 4 * 1024 * 1024


def find_deliveries(
    log: PartitionLog, from_offset: int, delayed_end: int, end_offset: int | None = None
) -> tuple[list[Step], int]:
    """The deliveries from an offset on, up to another or where the log ends, and that. Waits for the disk.

    A batch has room for the low bits of an offset in `__delayed`; the rest follows from where that ends.
    """
    steps: list[Step] = []
    offset = max(from_offset, log.start_offset)
    if end_offset is None:
        end_offset = log.end_offset
    while offset < end_offset:
        try:
            chunk = log.read(offset, _READ_BYTES, end_offset=end_offset, read_bytes=from_disk)
        except OffsetOutOfRange as error:
            offset = max(error.start_offset, offset + 1)
            continue
        except Corrupt:
            # A spoilt frame, or one that is lost: what lies behind it can still be told.
            offset = max(offset + 1, log.behind_gap(offset))
            continue
        for body in chunk.batches:
            header = read_header(body)
            if header.producer_id == KEEPER_ID:
                behind = (delayed_end - header.base_sequence) & SEQUENCE_MASK
                steps.append(Step(header.max_timestamp_ms, delayed_end - behind))
        offset = chunk.end_offset
    return steps, end_offset
