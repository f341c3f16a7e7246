"""A task's work: the frames of a range, the next window under way while this one is decoded."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from goqueue.client.call import path
from goqueue.client.connection import Client, Refused
from goqueue.client.log import Which, Window, extents, frames
from goqueue.model.errors import OffsetOutOfRange, PartitionNotFound, TopicNotFound
from goqueue.model.settings import KiB, MiB
from goqueue.spark.codec.columns import Columns
from goqueue.spark.codec.decode import decode
from goqueue.spark.source.files import SegmentFiles
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import SourceOptions
from goqueue.spark.source.positions import gone

WINDOW_BYTES = 4 * MiB
_WINDOW_BYTES_MIN = 64 * KiB
_GONE_CODES = (OffsetOutOfRange.code, TopicNotFound.code, PartitionNotFound.code)


def read_range(options: SourceOptions, columns: Columns, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The rows of a range of offsets."""
    windows = _Windows(options, wanted)
    # A short range of a long log should not draw megabytes behind its end; if the estimate was too low,
    # the windows grow.
    window_bytes = min(max(wanted.estimated_bytes * 5 // 4, _WINDOW_BYTES_MIN), WINDOW_BYTES)
    offset = wanted.first_offset
    with ThreadPoolExecutor(1, thread_name_prefix="goqueue-prefetch") as fetcher:
        try:
            pending = fetcher.submit(windows.fetch, offset, window_bytes)
            while offset < wanted.end_offset:
                window = pending.result()
                next_offset = window.next_offset
                if next_offset < wanted.end_offset:
                    window_bytes = min(window_bytes * 2, WINDOW_BYTES)
                    pending = fetcher.submit(windows.fetch, next_offset, window_bytes)
                yield from _rows(columns, wanted, offset, window)
                offset = next_offset
        finally:
            fetcher.submit(windows.close)


def _rows(columns: Columns, wanted: OffsetRange, offset: int, window: Window) -> list[pa.RecordBatch]:
    decoded = decode(
        window.frames,
        columns=columns,
        offset_range=(offset, wanted.end_offset),
        topic=wanted.topic,
        partition=wanted.partition,
    )
    assert not decoded.wanted_bytes, "a node hands out whole frames"
    return decoded.batches


class _Windows:
    """Where a task's frames come from: the node, or its files and the node where they do not serve."""

    def __init__(self, options: SourceOptions, wanted: OffsetRange) -> None:
        self._options = options
        self._wanted = wanted
        self._client = options.connect()
        if wanted.source:
            self._client.expect(
                path("topics", wanted.topic, "partitions", wanted.partition, "frames"), wanted.source
            )
        self._files = None
        if options.data_path is not None:
            self._files = SegmentFiles(options.data_path, wanted.topic, wanted.partition)

    def fetch(self, offset: int, max_bytes: int) -> Window:
        """The next window; where messages are gone, an empty one that leads behind the gap, or an error."""
        wanted = self._wanted
        if self._files is not None:
            found = self._files.window(offset, end_offset=wanted.end_offset, max_bytes=max_bytes)
            if found is not None:
                return found
        try:
            window = frames(
                self._client,
                wanted.topic,
                wanted.partition,
                offset=offset,
                max_bytes=max_bytes,
                rack=self._options.rack,
            )
            if window.next_offset > offset:
                return window
            problem = gone(
                f"{wanted.topic}/{wanted.partition} ends at offset {window.end_offset} now, not {offset}"
            )
        except Refused as refused:
            if refused.code not in _GONE_CODES:
                raise
            problem = gone(f"{wanted.topic}/{wanted.partition} at offset {offset}: {refused}")
        if self._options.fail_on_data_loss:
            raise problem
        return Window(b"", _behind_gap(self._client, wanted, offset), -1, -1)

    def close(self) -> None:
        self._client.close()


def _behind_gap(client: Client, wanted: OffsetRange, offset: int) -> int:
    try:
        partitions = extents(client, Which(topics=(wanted.topic,)))[wanted.topic]
    except Refused as refused:
        if refused.code != TopicNotFound.code:
            raise
        return wanted.end_offset
    extent = partitions.get(str(wanted.partition))
    if extent is None or extent.end <= offset or extent.start <= offset:
        return wanted.end_offset
    return min(extent.start, wanted.end_offset)
