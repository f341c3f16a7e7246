"""Which traces messages belong to, for whoever tells of many of them at once.

A batch that does not hold the word `traceparent` need not be opened: its messages have the ids of their
places. Others are opened as far as a bound allows, in a thread: at full rate that would cost more than all
that the broker does with a batch otherwise.
"""

from collections.abc import Iterable, Sequence

from goqueue.broker.broker import Broker
from goqueue.broker.tracing.delays import delayed_tale
from goqueue.broker.tracing.places import context_of, ids_of
from goqueue.core.telemetry.telemetry import DELAYED
from goqueue.core.telemetry.trace_ids import PartitionIds
from goqueue.log.partition_log import PartitionLog
from goqueue.log.reading import from_disk
from goqueue.model.errors import InvalidRecord, OffsetOutOfRange
from goqueue.model.ids import TopicPartition
from goqueue.model.telemetry import TraceContext
from goqueue.records.batch import headers_at
from goqueue.records.layout import CONTROL, BatchHeader, Codec, read_header

_WORD = b"raceparent"
"""What the header's name holds, whether somebody writes it with a capital or, as W3C does, without."""


class ContextFinder:
    """Looks up contexts; opens no more bytes of batches than it was given."""

    def __init__(self, broker: Broker, *, open_bytes_max: int) -> None:
        self._broker = broker
        self._room_bytes = open_bytes_max

    async def find(self, source: TopicPartition, offsets: Sequence[int]) -> dict[int, TraceContext]:
        """The traces of messages of a partition, or of delayed ones by number, in rising order.

        Left out is what is gone, and what there was no room to look at.
        """
        if source == DELAYED:
            tales = {
                number: await delayed_tale(self._broker, number, [], is_followed=False) for number in offsets
            }
            return {number: tale.context for number, tale in tales.items() if tale is not None}
        log, ids = self._broker.partition(source).log, ids_of(self._broker, source)
        return await self._broker.threads.run(self._look, log, ids, offsets)

    def _look(self, log: PartitionLog, ids: PartitionIds, offsets: Sequence[int]) -> dict[int, TraceContext]:
        """Waits for the disk."""
        found: dict[int, TraceContext] = {}
        at = 0
        while at < len(offsets):
            try:
                chunk = log.read(offsets[at], 1, end_offset=log.end_offset, read_bytes=from_disk)
            except OffsetOutOfRange:
                at += 1
                continue
            for body in chunk.batches:
                header = read_header(body)
                end = at
                while end < len(offsets) and offsets[end] < header.end_offset:
                    end += 1
                found |= self._in_batch(body, header, ids, offsets[at:end])
                at = end
            if not chunk.batches:
                at += 1
        return found

    def _in_batch(
        self, body: memoryview, header: BatchHeader, ids: PartitionIds, offsets: Iterable[int]
    ) -> dict[int, TraceContext]:
        if header.attributes & CONTROL:
            return {}
        stored = bytes(body)
        if header.codec == Codec.NONE and _WORD not in stored:
            return {offset: context_of(ids, offset, ()) for offset in offsets}
        if len(stored) > self._room_bytes:
            return {}
        self._room_bytes -= len(stored)
        try:
            headers = headers_at(stored, frozenset(offsets))
        except InvalidRecord:
            return {}  # nobody can read what its producer built
        return {offset: context_of(ids, offset, pairs) for offset, pairs in headers.items()}
