"""A door for the tests of one module, and topics of their own for each test."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from goqueue.broker.topics.verbs import create_topic
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.listening import PLAIN_LISTENER, Listener
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic, TopicView
from tests.doors.kafka.door_thread import HOST, DoorThread
from tests.doors.kafka.raw_client import RawClient

NewTopic = Callable[..., TopicView]
OpenDoor = Callable[..., DoorThread]
_numbers = count(1)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    opened = DoorThread(tmp_path_factory.mktemp("data"), BrokerConfig(), KafkaConfig())
    yield opened
    opened.close()


@pytest.fixture
def open_door(tmp_path: Path) -> Iterator[OpenDoor]:
    """Doors with settings of a test's own."""
    opened: list[DoorThread] = []

    def open_one(
        broker_config: BrokerConfig | None = None,
        kafka_config: KafkaConfig | None = None,
        host: str = HOST,
        listener: Listener = PLAIN_LISTENER,
    ) -> DoorThread:
        folder = tmp_path / f"data-{len(opened)}"
        folder.mkdir()
        configs = (broker_config or BrokerConfig(), kafka_config or KafkaConfig())
        opened.append(DoorThread(folder, *configs, host=host, listener=listener))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def new_topic(door: DoorThread) -> NewTopic:
    """Creates a topic that no other test uses."""

    def create(*, partitions: int = 1, **settings: str) -> TopicView:
        command = CreateTopic(
            name=f"topic-{next(_numbers)}",
            partitions=partitions,
            settings={name.replace("_", "."): value for name, value in settings.items()},
        )
        return door.run(create_topic(door.broker, command))

    return create


@pytest.fixture
def raw(door: DoorThread) -> Iterator[RawClient]:
    with RawClient(door.port) as client:
        yield client
