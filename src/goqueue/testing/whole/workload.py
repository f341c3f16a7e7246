"""What a simulation gives to the broker: messages that can be told apart, and producers that retry."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from goqueue.model.ids import NO_PRODUCER, ProducerId
from goqueue.model.messages import PRIORITY_HEADER, Acks, Headers, Lane, Message
from goqueue.records.layout import CRC_END, MAGIC, NO_SEQUENCE, Codec
from goqueue.testing.whole.partition_history import PartitionHistory

PIPELINE_MAX = 5
"""Batches that an idempotent producer may have under way, as in Kafka."""
_VALUE_BYTES = (0, 0, 10, 30, 100, 100, 300, 900)
_BIG_VALUE_BYTES = 6_000
# No gzip: its header holds the time of day, and the same seed would not give the same bytes.
_CODECS = (Codec.NONE, Codec.NONE, Codec.NONE, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


class Messages:
    """A source of messages, each with a value never used before."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def some(self, *, wall_ms: int, partitions: int = 0, lane_by_header: bool = False) -> list[Message]:
        """A few messages; some choose one of `partitions`, a lane, a key, a timestamp or headers."""
        return [
            self._one(wall_ms, partitions, lane_by_header=lane_by_header)
            for _ in range(self._random.choice((1, 1, 2, 3, 8)))
        ]

    def _one(self, wall_ms: int, partitions: int, *, lane_by_header: bool) -> Message:
        random = self._random
        self._count += 1
        padding = _BIG_VALUE_BYTES if random.random() < 0.02 else random.choice(_VALUE_BYTES)
        lane = random.choice(list(Lane)) if random.random() < 0.1 else Lane.NORMAL
        headers: Headers = (("trace", b"%d" % self._count), ("empty", None)) if random.random() < 0.1 else ()
        if lane_by_header and lane is not Lane.NORMAL:
            headers = (*headers, (PRIORITY_HEADER, lane.label.encode()))
        return Message(
            value=b"%d:" % self._count + random.randbytes(padding),
            key=b"key-%d" % random.randrange(5) if random.random() < 0.5 else None,
            headers=headers,
            lane=lane,
            partition=random.randrange(partitions) if partitions and random.random() < 0.5 else None,
            # Producers' clocks differ: timestamps in a log need not grow.
            timestamp_ms=wall_ms + random.randint(-5_000, 5_000)
            if lane_by_header or random.random() < 0.3
            else None,
        )


def build_batch(
    messages: Sequence[Message],
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    sequence: int = NO_SEQUENCE,
) -> bytes:
    """A record batch as a Kafka client builds it."""
    builder = DefaultRecordBatchBuilder(MAGIC, codec, 0, producer_id, producer_epoch, sequence, 1 << 30)
    for index, message in enumerate(messages):
        builder.append(index, message.timestamp_ms, message.key, message.value, list(message.headers))
    return bytes(builder.build())


def choose_codec(random: Random, messages: Sequence[Message]) -> Codec:
    """Any, but none where lanes are asked for: the broker does not open compressed batches to look."""
    if any(message.lane is not Lane.NORMAL for message in messages):
        return Codec.NONE
    return random.choice(_CODECS)


def spoil(random: Random, batch: bytes) -> bytes:
    """The batch with one bit turned in the part that its own checksum covers."""
    spoilt = bytearray(batch)
    spoilt[random.randrange(CRC_END, len(batch))] ^= 1 << random.randrange(8)
    return bytes(spoilt)


@dataclass(slots=True, eq=False)
class Sent:
    """A batch of an idempotent producer, kept until it is old, because it may be sent again."""

    sequence: int
    messages: list[Message]
    batch: bytes
    was_sent: bool = False
    is_under_way: bool = False
    is_acknowledged: bool = False


@dataclass(slots=True, eq=False)
class SimulatedProducer:
    """An idempotent producer of one partition: what is not acknowledged is sent again, in order."""

    producer_id: ProducerId
    partition: PartitionHistory
    acks: Acks
    next_sequence: int = 0
    waiting: deque[Sent] = field(default_factory=deque)
    """Built, but not acknowledged yet."""
    done: deque[Sent] = field(default_factory=lambda: deque(maxlen=PIPELINE_MAX))
    """The last ones acknowledged: a lost reply makes a client send them again."""
    may_miss_some: bool = False
    """Something that it believes to be stored may be gone, so the broker may see a gap."""

    def build(self, random: Random, messages: list[Message]) -> Sent:
        """The next batch in sequence."""
        batch = build_batch(
            messages,
            codec=choose_codec(random, messages),
            producer_id=self.producer_id,
            producer_epoch=0,
            sequence=self.next_sequence,
        )
        sent = Sent(self.next_sequence, messages, batch)
        self.next_sequence += len(messages)
        self.waiting.append(sent)
        return sent

    def next_to_send(self) -> Sent | None:
        """The oldest batch that waits and is not under way; None when all are, or there is none."""
        return next((sent for sent in self.waiting if not sent.is_under_way), None)

    def acknowledged(self, sent: Sent) -> None:
        sent.is_under_way = False
        if not sent.is_acknowledged:
            sent.is_acknowledged = True
            self.waiting.remove(sent)
            self.done.append(sent)

    def failed(self) -> None:
        """An error: this batch and those behind it will be sent again, from the oldest on."""
        for sent in self.waiting:
            sent.is_under_way = False
