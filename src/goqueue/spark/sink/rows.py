"""A task's rows on their way out: record batches, packed into requests of a bounded size.

A task never holds more than one request and the rows Spark has just handed over, however large its
share of a write is. Rows of one partition and lane keep their order.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from goqueue.model.errors import Invalid
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.settings import MiB
from goqueue.records.entries import encode_entry
from goqueue.records.layout import Codec
from goqueue.spark.codec.encode import EncodedBatch, Target, encode
from goqueue.spark.sink.door import TopicShape

PACKET_BYTES = 8 * MiB
"""A packet takes no more batches beyond this; the door's limit leaves room for the largest message on top."""


class Packet(NamedTuple):
    """The body of one request to append or to stage, and how many messages it holds."""

    body: bytes
    message_count: int


class Packer:
    """Turns the rows of one task into packets."""

    def __init__(
        self, *, topic: str | None, codec: Codec, shape_of: Callable[[str], TopicShape], first_turn: int
    ) -> None:
        self._topic = topic
        self._codec = codec
        self._shape_of = shape_of
        self._targets: dict[str, Target] = {}
        self._turn = first_turn

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Packet]:
        """Packets for all these rows."""
        pieces: list[bytes] = []
        size_bytes, message_count = 0, 0
        for topic, made in self._encoded(batches):
            pieces.append(
                encode_entry(TopicPartition(TopicName(topic), made.partition), made.lane, made.body)
            )
            size_bytes += len(pieces[-1])
            message_count += made.record_count
            if size_bytes >= PACKET_BYTES:
                yield Packet(b"".join(pieces), message_count)
                pieces, size_bytes, message_count = [], 0, 0
        if pieces:
            yield Packet(b"".join(pieces), message_count)

    def _encoded(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, EncodedBatch]]:
        for batch in batches:
            for topic, rows in self._by_topic(batch):
                now_ms = time.time_ns() // 1_000_000
                for made in encode(rows, self._target(topic), now_ms=now_ms, first_turn=self._turn):
                    yield topic, made
                self._turn += rows.num_rows

    def _by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each topic: the one they name, else the one of the write."""
        if "topic" not in rows.schema.names:
            assert self._topic is not None, "a write without a topic was let through"
            yield self._topic, rows
            return
        topics = rows.column("topic")
        rows = rows.drop_columns(["topic"])
        if topics.null_count:
            if self._topic is None:
                raise Invalid("a row has no topic, and the option topic is not set")
            topics = topics.fill_null(self._topic)
        names = topics.unique().to_pylist()
        if len(names) == 1:
            yield names[0], rows
            return
        for name in names:
            yield name, rows.filter(pc.equal(topics, name))

    def _target(self, topic: str) -> Target:
        if topic not in self._targets:
            count, partitioner = self._shape_of(topic)
            self._targets[topic] = Target(topic, count, self._codec, partitioner=partitioner)
        return self._targets[topic]
