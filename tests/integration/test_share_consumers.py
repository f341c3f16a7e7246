"""confluent-kafka's share consumers on a real broker: many to a partition, release, reject, kill -9."""

from collections.abc import Callable

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from tests.integration.clients import begin_with_the_first, create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = pytest.mark.slow

_ROUNDS_MAX = 60


def consumer(broker: RunningBroker, *, is_explicit: bool = False) -> ShareConsumer:
    begin_with_the_first(broker.kafka, "workers")
    mode = "explicit" if is_explicit else "implicit"
    opened = ShareConsumer(
        {"bootstrap.servers": broker.kafka, "group.id": "workers", "share.acknowledgement.mode": mode}
    )
    opened.subscribe(["work"])
    return opened


def publish(broker: RunningBroker, count: int) -> None:
    create_topic(broker.kafka, "work", partitions=1)
    producer = Producer({"bootstrap.servers": broker.kafka})
    for number in range(count):
        producer.produce("work", str(number).encode())
    assert producer.flush(10) == 0


def take(one: ShareConsumer, is_enough: Callable[[list[Message]], bool]) -> list[Message]:
    """Poll until enough has come."""
    taken: list[Message] = []
    for _ in range(_ROUNDS_MAX):
        for message in one.poll(0.5):
            assert message.error() is None, message.error()
            taken.append(message)
        if is_enough(taken):
            return taken
    raise AssertionError(f"only {len(taken)} messages came")


def values(messages: list[Message]) -> list[int]:
    return [int(message.value() or b"-1") for message in messages]


def test_more_consumers_than_partitions_share_the_work_and_each_message_is_done_once(
    broker: RunningBroker,
) -> None:
    publish(broker, 3_000)
    workers = [consumer(broker) for _ in range(3)]
    seen: dict[int, int] = {}
    rounds = 0
    while len(seen) < 3_000 and rounds < _ROUNDS_MAX:
        rounds += 1
        for number, worker in enumerate(workers):
            for message in worker.poll(0.2):
                assert message.error() is None, message.error()
                value = int(message.value() or b"-1")
                assert value not in seen, "handed out twice"
                seen[value] = number
    for worker in workers:
        worker.commit_sync(10)
        worker.close()

    assert sorted(seen) == list(range(3_000))
    assert len(set(seen.values())) > 1


def test_released_messages_come_again_and_rejected_ones_go_to_the_dead_letters(broker: RunningBroker) -> None:
    publish(broker, 3)
    worker = consumer(broker, is_explicit=True)

    fate = [AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT]
    for message, kind in zip(take(worker, lambda taken: len(taken) == 3), fate, strict=True):
        worker.acknowledge(message, kind)
    assert all(error is None for error in worker.commit_sync(10).values())
    again = take(worker, lambda taken: len(taken) == 1)
    worker.acknowledge(again[0], AcknowledgeType.ACCEPT)
    worker.commit_sync(10)
    worker.close()

    assert values(again) == [1]
    assert read_all(broker.kafka, "work.dlq", partitions=1)[0] == [b"2"]


def test_what_a_consumer_leaves_behind_goes_to_another_and_what_was_done_survives_kill_9(
    broker: RunningBroker,
) -> None:
    publish(broker, 10)
    first = consumer(broker, is_explicit=True)
    taken = take(first, lambda taken: len(taken) == 10)
    for message in taken[:6]:
        first.acknowledge(message, AcknowledgeType.ACCEPT)
    first.commit_sync(10)
    first.close()

    broker.kill()
    broker.start()
    second = consumer(broker)
    rest = take(second, lambda taken: len(taken) == 4)
    second.close()

    assert values(rest) == [6, 7, 8, 9]
