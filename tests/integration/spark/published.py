"""What librdkafka published, remembered as the rows that Spark must show."""

from collections.abc import Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer

_TIMEOUT_S = 30.0
Headers = Sequence[tuple[str, bytes | None]]


class ExpectedRow(NamedTuple):
    """A message where the broker has put it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Publisher:
    """Publishes to one topic and keeps the rows."""

    def __init__(self, kafka: str, topic: str, *, codec: str = "none") -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": kafka, "compression.type": codec, "linger.ms": 5, "log_level": 0}
        )
        self.rows: list[ExpectedRow] = []

    def publish(
        self,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp_ms: int = 0,
    ) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, str(error)
            offset = message.offset()
            assert offset is not None
            time_ms = message.timestamp()[1]
            self.rows.append(ExpectedRow(partition, offset, time_ms, key, value, tuple(headers)))

        self._producer.produce(
            self._topic,
            value,
            key=key,
            partition=partition,
            headers=list(headers),
            on_delivery=delivered,
            timestamp=timestamp_ms,
        )

    def publish_numbers(self, numbers: range, *, partitions: int) -> "Publisher":
        """Values that are numbers, dealt out over the partitions, and wait for them."""
        for number in numbers:
            self.publish(str(number).encode(), partition=number % partitions)
        return self.flush()

    def flush(self) -> "Publisher":
        assert self._producer.flush(_TIMEOUT_S) == 0, "messages are not acknowledged"
        return self
