"""mirror: the batches of topics into topics of the same names at another broker, as they are.

Batches are not opened: what a producer compressed stays compressed, and lanes, times and headers are the
same bytes. Offsets go on without a gap, so a target that was empty when a mirror of the whole topic began has
the offsets of its source.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from goqueue.client.connection import Client
from goqueue.client.log import Which, extents, frames
from goqueue.model.errors import Invalid
from goqueue.model.ids import NO_PRODUCER, TopicName, TopicPartition
from goqueue.records.batch import close_up
from goqueue.records.entries import encode_entry
from goqueue.records.frame import scan_frames
from goqueue.records.layout import (
    CONTROL,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    TRANSACTIONAL,
    read_header,
    stamp_producer,
)
from goqueue.spark.jobs.ledger import open_ledger
from goqueue.spark.jobs.ranges import ITEM_BYTES, deal, message_count, remaining
from goqueue.spark.jobs.sink_target import SinkTarget, Staging, ensure_topic
from goqueue.spark.jobs.waves import Planned, Told, resume, run_waves
from goqueue.spark.jobs.work import items_at_once
from goqueue.spark.sink.options import SinkOptions
from goqueue.spark.sink.rows import PACKET_BYTES, Packet
from goqueue.spark.source.fetch import WINDOW_BYTES
from goqueue.spark.source.offsets import OffsetRange
from goqueue.spark.source.options import SourceOptions
from goqueue.spark.source.positions import gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ATTRIBUTES = slice(21, 23)
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorJob:
    """What to copy, and where to. A later run copies what is new."""

    topic: str
    source: SourceOptions
    target: SinkOptions
    manifest: Path
    item_bytes: int = ITEM_BYTES

    def run(self, spark: "SparkSession", *, planned: Planned, told: Told) -> None:
        """Copy everything that this mirror has not copied yet."""
        ensure_topic(self.target, partition_count=self._partition_count())
        about = {
            "topic": self.topic,
            "from": ",".join(map(str, self.source.addresses)),
            "to": ",".join(map(str, self.target.addresses)),
            "target": str(self.target.topic),
        }
        with open_ledger(self.manifest, job="mirror", about=about) as ledger:
            sink = f"job-mirror-{ledger.id}"
            target = SinkTarget(self.target, sink)
            resume(ledger, target)
            left = remaining(self.source, ledger.positions, item_bytes=self.item_bytes)
            planned(len(left), message_count(left))

            def item(wanted: OffsetRange, epoch: int) -> MirrorItem:
                staging = Staging(options=self.target, sink=sink, epoch=epoch)
                return MirrorItem(self.source, wanted, staging)

            waves = deal(left, item, count=items_at_once(spark), epoch=ledger.epoch + 1)
            run_waves(spark, ledger, waves, told=told, target=target)

    def _partition_count(self) -> int:
        client = self.source.connect()
        try:
            return len(extents(client, Which(topics=(self.topic,)))[self.topic])
        finally:
            client.close()


@dataclass(frozen=True, slots=True)
class MirrorItem:
    """One range, for one task."""

    source: SourceOptions
    wanted: OffsetRange
    staging: Staging

    def run(self) -> bytes:
        source, target = self.source.connect(), self.staging.options.connect()
        name = f"{self.wanted.topic}/{self.wanted.partition}/{self.wanted.first_offset}"
        try:
            return self.staging.stage_packets(target, name, self._packets(source))
        finally:
            source.close()
            target.close()

    def _packets(self, client: Client) -> Iterator[Packet]:
        assert self.staging.options.topic is not None, "a mirror without a target was let through"
        place = TopicPartition(TopicName(self.staging.options.topic), self.wanted.partition)
        pieces: list[bytes] = []
        size_bytes, message_count = 0, 0
        for lane, body, count in self._batches(client):
            pieces.append(encode_entry(place, lane, body))
            size_bytes += len(pieces[-1])
            message_count += count
            if size_bytes >= PACKET_BYTES:
                yield Packet(b"".join(pieces), message_count)
                pieces, size_bytes, message_count = [], 0, 0
        if pieces:
            yield Packet(b"".join(pieces), message_count)

    def _batches(self, client: Client) -> Iterator[tuple[int, bytes, int]]:
        """Lane, bytes and message count of each batch of the range."""
        wanted = self.wanted
        offset = wanted.first_offset
        while offset < wanted.end_offset:
            window = frames(client, wanted.topic, wanted.partition, offset=offset, max_bytes=WINDOW_BYTES)
            if window.next_offset <= offset:
                raise gone(f"{wanted.topic}/{wanted.partition} ends at offset {window.end_offset} now")
            data = memoryview(window.frames)
            scan = scan_frames(data, stop_offset=wanted.end_offset)
            if scan.problem:
                raise Invalid(f"{wanted.topic}/{wanted.partition} near offset {offset}: {scan.problem}")
            for frame in scan.frames:
                body = data[frame.body_start : frame.body_end]
                header = read_header(body)
                if not header.attributes & CONTROL and header.record_count:
                    yield frame.lane, unsigned(body), header.record_count
            offset = window.next_offset


def unsigned(body: memoryview) -> bytes:
    """A batch that is no producer's any more, and in no transaction: the sink has its own of both."""
    header = read_header(body)
    if header.attributes & LOG_APPEND_TIME:
        raise Invalid("this topic keeps the broker's time, which another broker would not take: use replay")
    if header.record_count != header.last_offset_delta + 1:
        body = close_up(body)  # a broker takes no batch with messages missing
    if header.producer_id == NO_PRODUCER and not header.attributes & TRANSACTIONAL:
        return bytes(body)
    copy = bytearray(body)
    copy[_ATTRIBUTES] = (header.attributes & ~TRANSACTIONAL).to_bytes(2, "big", signed=True)
    stamp_producer(
        memoryview(copy), producer_id=NO_PRODUCER, producer_epoch=_NO_EPOCH, base_sequence=NO_SEQUENCE
    )
    return bytes(copy)
