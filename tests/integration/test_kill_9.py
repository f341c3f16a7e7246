"""kill -9 in the middle of a load, several times over: nothing that was acknowledged is gone.

One seed-driven simulation covers what a power failure does to unsynced bytes; here the whole real
process is killed, with real clients at both doors that go on as soon as it is back.
"""

import threading

import httpx
import pytest

from tests.integration.clients import NumberedLoad, create_topic, read_all
from tests.integration.running_broker import RunningBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ROUNDS = 4
ACKED_A_ROUND = 2_000


def test_an_idempotent_producer_finds_every_message_once_and_in_order(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "load", partitions=3, settings={"segment.bytes": "65536"})
    load = NumberedLoad(broker.kafka, "load", partitions=3, **{"enable.idempotence": True})

    _kill_in_rounds(broker, load)

    assert load.refused == []
    assert sorted(load.acked) == list(range(load.count))
    for partition, values in read_all(broker.kafka, "load", partitions=3).items():
        assert [int(value) for value in values] == list(range(partition, load.count, 3))


@pytest.mark.parametrize("acks", ["all", "1"])
def test_a_plain_producer_loses_nothing_acknowledged_and_keeps_its_order(
    broker: RunningBroker, acks: str
) -> None:
    # A killed process takes nothing with it that the operating system already has, so this holds for acks=1.
    create_topic(broker.kafka, "load", partitions=2)
    load = NumberedLoad(
        broker.kafka,
        "load",
        partitions=2,
        **{"acks": acks, "enable.idempotence": False, "max.in.flight.requests.per.connection": 1},
    )

    _kill_in_rounds(broker, load)

    for partition, values in read_all(broker.kafka, "load", partitions=2).items():
        numbers = [int(value) for value in values]
        acked = {number for number in load.acked if number % 2 == partition}
        assert acked <= set(numbers)
        first_seen = list(dict.fromkeys(numbers))
        assert first_seen == sorted(first_seen)


def test_what_was_acknowledged_over_http_is_there_after_a_kill(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "load", partitions=1)
    acked: list[int] = []
    for _ in range(ROUNDS):
        # A request is under way when the process dies, so the kill comes from another thread.
        enough = threading.Event()
        killer = threading.Thread(target=_kill_when, args=(broker, enough), daemon=True)
        killer.start()
        acked += _publish_over_http_until_killed(broker.http, len(acked), enough, count=150)
        killer.join()
        broker.start()

    (values,) = read_all(broker.kafka, "load", partitions=1).values()

    numbers = [int(value) for value in values]
    assert list(dict.fromkeys(numbers))[: len(acked)] == acked
    # A message is there twice only when its first answer was lost with the process.
    assert len(numbers) - len(acked) <= ROUNDS


def test_a_topic_created_just_before_a_kill_is_there_afterwards(broker: RunningBroker) -> None:
    for round_number in range(ROUNDS):
        create_topic(broker.kafka, f"topic-{round_number}", partitions=round_number + 1)
        broker.kill()
        broker.start()

    assert sorted(httpx.get(f"{broker.http}/topics").json()["topics"]) == [
        f"topic-{round_number}" for round_number in range(ROUNDS)
    ]


def _publish_over_http_until_killed(
    url: str, first: int, enough: threading.Event, *, count: int
) -> list[int]:
    """Publish one message a request, numbered from `first`; ask for the kill after `count`, and go on."""
    acked: list[int] = []
    with httpx.Client(base_url=url, timeout=30) as client:
        while True:
            number = first + len(acked)
            try:
                response = client.post("/topics/load/messages", json={"messages": [{"value": str(number)}]})
            except httpx.TransportError:
                return acked
            assert response.status_code == 200
            acked.append(number)
            if len(acked) == count:
                enough.set()


def _kill_when(broker: RunningBroker, enough: threading.Event) -> None:
    enough.wait()
    broker.kill()


def _kill_in_rounds(broker: RunningBroker, load: NumberedLoad) -> None:
    """Kill and restart under load, then let the load come to its end."""
    for _ in range(ROUNDS):
        load.publish_until_acked(len(load.acked) + ACKED_A_ROUND)
        broker.kill()
        broker.start()
    load.finish()
