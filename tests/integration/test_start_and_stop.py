"""The process itself: how it starts, how it refuses to, how it ends."""

import signal
import socket
from pathlib import Path

import httpx
import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.integration.clients import NumberedLoad, create_topic, read_all
from tests.integration.conftest import StartBroker
from tests.integration.running_broker import RunningBroker, goqueue

pytestmark = pytest.mark.slow


def test_every_problem_of_the_settings_is_told_and_nothing_is_started(tmp_path: Path) -> None:
    ended = goqueue(
        "--listeners-kafka=nowhere",
        environment={"GOQUEUE_LISTENER_HTTP": ":1", "GOQUEUE_GRPC_REFLECTION": "true"},
        folder=tmp_path,
    )

    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.splitlines() == [
        "goqueue cannot start: 3 problems in its settings; nothing was started",
        "  1. GOQUEUE_LISTENER_HTTP: there is no such setting; did you mean GOQUEUE_LISTENERS_HTTP?",
        "  2. GOQUEUE_GRPC_REFLECTION: the gRPC door is not available in this version; remove this setting",
        "  3. --listeners-kafka: 'nowhere' has no port; write host:port, for example 127.0.0.1:9092",
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_version_is_told() -> None:
    ended = goqueue("--version")

    assert (ended.returncode, ended.stdout) == (0, "goqueue 0.1.0\n")


def test_a_second_broker_on_the_same_folder_is_refused_and_the_first_lives_on(broker: RunningBroker) -> None:
    ended = goqueue(
        f"--broker-datadir={broker.folder}", "--listeners-kafka=127.0.0.1:0", "--listeners-http=127.0.0.1:0"
    )

    assert ended.returncode == 1
    assert f"is in use by process {broker.process.pid}" in ended.stderr
    assert httpx.get(f"{broker.http}/health").status_code == 200


def test_a_port_in_use_is_told_and_the_folder_is_free_afterwards(
    broker: RunningBroker, start_broker: StartBroker, tmp_path: Path
) -> None:
    other = tmp_path / "other"

    ended = goqueue(
        f"--broker-datadir={other}",
        f"--listeners-http={broker.http.removeprefix('http://')}",
        "--listeners-kafka=127.0.0.1:0",
    )

    assert ended.returncode == 1
    assert "the http door cannot listen on" in ended.stderr
    assert "another program listens there" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert start_broker(folder=other).stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_broker_cleanly(broker: RunningBroker, number: signal.Signals) -> None:
    broker.send(number)

    assert broker.exit_code() == 0
    assert not (broker.folder / "goqueue.pid").exists()
    assert "Traceback" not in broker.log


def test_a_stop_under_load_keeps_all_that_was_acknowledged(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "load", partitions=3)
    load = NumberedLoad(broker.kafka, "load", partitions=3, **{"enable.idempotence": True})
    load.publish_until_acked(3_000)
    broker.send(signal.SIGTERM)
    load.publish_until(lambda: broker.process.poll() is not None)
    assert broker.exit_code() == 0

    broker.start()
    load.finish()

    assert load.refused == []
    assert len(load.acked) == load.count
    stored = read_all(broker.kafka, "load", partitions=3)
    for partition, values in stored.items():
        assert [int(value) for value in values] == list(range(partition, load.count, 3))


def test_a_stop_answers_what_it_has_taken_in_over_http(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "load", partitions=1)
    acked: list[str] = []
    with httpx.Client(base_url=broker.http, timeout=30) as client:
        while True:
            if len(acked) == 200:
                broker.send(signal.SIGTERM)
            try:
                response = client.post(
                    "/topics/load/messages", json={"messages": [{"value": str(len(acked))}]}
                )
            except httpx.TransportError:
                break
            if response.status_code != 200:
                assert response.json()["code"] == "shutting_down"
                break
            acked.append(str(len(acked)))
    assert broker.exit_code() == 0

    broker.start()

    (values,) = read_all(broker.kafka, "load", partitions=1).values()
    assert [value.decode() for value in values] == acked


def test_a_second_signal_ends_a_stop_that_waits(broker: RunningBroker) -> None:
    host, _, port = broker.http.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as half_a_request:
        half_a_request.sendall(b"POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        # When a request on another connection has been answered, the half one has been taken in.
        httpx.get(f"{broker.http}/health")
        broker.send(signal.SIGTERM)
        broker.wait_until_logged("stopping")
        broker.send(signal.SIGTERM)

        assert broker.exit_code() == 128 + signal.SIGTERM
    assert "forced_stop signal=SIGTERM" in broker.log


def test_a_door_that_is_off_is_not_there(start_broker: StartBroker) -> None:
    broker = start_broker("--listeners-kafka=off")

    assert broker.kafka.endswith(":0")
    assert httpx.get(f"{broker.http}/readyz").status_code == 200


def test_a_restart_keeps_topics_settings_and_messages(broker: RunningBroker) -> None:
    create_topic(broker.kafka, "kept", partitions=2, settings={"retention.ms": "123456"})
    httpx.post(f"{broker.http}/topics/kept/messages", json={"messages": [{"value": "stays", "partition": 1}]})
    before = _seen(broker, "kept")

    assert broker.stop() == 0
    broker.start()

    assert _seen(broker, "kept") == before
    assert before["retention.ms"] == "123456"
    assert before["messages"] == ["stays"]


def _seen(broker: RunningBroker, topic: str) -> dict[str, object]:
    """All that clients can see of a topic that must not change with a restart."""
    admin = AdminClient({"bootstrap.servers": broker.kafka})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    settings = admin.describe_configs([resource])[resource].result(30)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    read = httpx.get(f"{broker.http}/topics/{topic}/partitions/1/messages").json()
    return {
        **{name: entry.value for name, entry in settings.items()},
        "id": str(described.topic_id),
        "partitions": len(described.partitions),
        "messages": [message["value"] for message in read["messages"]],
        "timestamps": [message["timestamp"] for message in read["messages"]],
        "http": httpx.get(f"{broker.http}/topics/{topic}").json(),
    }
