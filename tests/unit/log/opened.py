"""A partition's log on a real folder, and short ways to use it."""

from dataclasses import dataclass, field

from goqueue.log.aborted_index import AbortedIndex
from goqueue.log.file_shelf import FileShelf
from goqueue.log.partition_log import CheckedBatch, PartitionLog
from goqueue.log.reading import from_disk
from goqueue.log.recovery import NO_LIMIT, Recovered
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.ports import Disk
from goqueue.model.settings import TopicSettings
from goqueue.records.batch import encode, open_batch
from goqueue.records.layout import BatchHeader, read_header

FOLDER = "logs/orders/0"
SOURCE = TopicPartition(TopicName("orders"), 0)


@dataclass
class Opened:
    """A log together with what its recovery told."""

    log: PartitionLog
    recovered: Recovered
    restored: list[object] = field(default_factory=list)
    followed: list[BatchHeader] = field(default_factory=list)


def opened(
    disk: Disk,
    settings: TopicSettings | None = None,
    *,
    end_limit: int = NO_LIMIT,
    folder: str = FOLDER,
    shelf: FileShelf | None = None,
) -> Opened:
    restored: list[object] = []
    followed: list[BatchHeader] = []
    disk.make_folder(folder)
    is_new = not disk.list(folder)
    log, recovered = PartitionLog.open(
        disk,
        folder,
        SOURCE,
        settings or TopicSettings(),
        restore_producers=restored.append,
        on_batch=lambda header, _body, _lane: followed.append(header),
        aborted=AbortedIndex(disk, folder),
        end_limit=end_limit,
        shelf=shelf,
    )
    if is_new:
        log.begin_flush(with_snapshot=True).run()
    return Opened(log, recovered, restored, followed)


def put(log: PartitionLog, *values: bytes, at_ms: int = 1_000, epoch: int = 1) -> int:
    """Append one batch."""
    messages = [Message(value) for value in values]
    batches = [CheckedBatch(read_header(b), b, lane) for b, lane in encode(messages, now_ms=at_ms)]
    return log.append(batches, leader_epoch=epoch)


def values_from(log: PartitionLog, offset: int, *, max_bytes: int = 1 << 20) -> list[tuple[int, bytes]]:
    """All messages from an offset to the end."""
    found: list[tuple[int, bytes]] = []
    while offset < log.end_offset:
        chunk = log.read(offset, max_bytes, end_offset=log.end_offset, read_bytes=from_disk)
        for body, lane in zip(chunk.batches, chunk.lanes, strict=True):
            found += [(m.offset, m.value or b"") for m in open_batch(body, lane) if m.offset >= offset]
        offset = chunk.end_offset
    return found


def flush(log: PartitionLog, *, with_snapshot: bool = False, producers: object = None) -> None:
    work = log.begin_flush(with_snapshot=with_snapshot, producers=producers)
    work.run()
    log.finish_flush(work)
