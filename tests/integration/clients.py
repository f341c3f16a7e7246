"""What the tests ask of real clients, in one line each."""

from collections.abc import Callable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

_TIMEOUT_S = 30.0


def create_topic(
    bootstrap: str, name: str, *, partitions: int, settings: Mapping[str, str] | None = None
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    admin.create_topics([topic])[name].result(_TIMEOUT_S)


def begin_with_the_first(bootstrap: str, group: str) -> None:
    """Have a share group begin with the first messages there are: else it begins with those that come."""
    set_for_group(bootstrap, group, {"share.auto.offset.reset": "earliest"})


def set_for_group(bootstrap: str, group: str, settings: Mapping[str, str]) -> None:
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(10)


def read_all(bootstrap: str, topic: str, *, partitions: int) -> dict[int, list[bytes]]:
    """Every value of a topic, by partition, in log order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in values])
        ended: set[int] = set()
        while len(ended) < partitions:
            message = consumer.poll(_TIMEOUT_S)
            assert message is not None, f"no message and no end of {topic} within {_TIMEOUT_S} s"
            error, partition = message.error(), message.partition()
            assert partition is not None
            if error is None:
                values[partition].append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
            else:
                raise AssertionError(str(error))
    finally:
        consumer.close()
    return values


class NumberedLoad:
    """A producer that publishes 0, 1, 2 … over a topic's partitions and remembers what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, *, partitions: int, **settings: object) -> None:
        self._topic = topic
        self._partitions = partitions
        self.acked: list[int] = []
        self.refused: list[str] = []
        self.count = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "linger.ms": 1,
                "batch.num.messages": 100,
                "queue.buffering.max.messages": 5_000,
                "message.timeout.ms": 60_000,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 50,
                "log_level": 0,
                **settings,
            }
        )

    def publish_until(self, is_enough: Callable[[], bool]) -> None:
        """Publish without a pause until a condition holds; messages are still under way then."""
        while not is_enough():
            try:
                self._producer.produce(
                    self._topic,
                    str(self.count).encode(),
                    partition=self.count % self._partitions,
                    on_delivery=self._delivered,
                )
                self.count += 1
            except BufferError:
                # The client's own queue is full: let it work.
                self._producer.poll(0.1)
            self._producer.poll(0)

    def publish_until_acked(self, count: int) -> None:
        self.publish_until(lambda: len(self.acked) >= count)

    def finish(self) -> None:
        """Wait until everything published is acknowledged or refused."""
        left = self._producer.flush(_TIMEOUT_S * 2)
        assert left == 0, f"{left} messages are neither acknowledged nor refused"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked.append(int(message.value() or b""))
        else:
            self.refused.append(str(error))
