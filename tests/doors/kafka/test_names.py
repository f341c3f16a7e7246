"""Names by Kafka's protocol: the rule is the broker's, and clients hear of it by the codes they know."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.groups.verbs import describe_group, list_groups
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.group_commands import DescribeGroup, ListGroups
from goqueue.model.groups import GroupView
from goqueue.model.names import NAME_CHARACTERS_MAX
from goqueue.model.settings import BrokerConfig, GroupConfig
from tests.doors.kafka import group_requests as ask
from tests.doors.kafka import raw_client, requests
from tests.doors.kafka import test_consumer_groups as consumers
from tests.doors.kafka import test_share_groups as shares
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient

BAD_NAMES = ["a\x00b", "a\nb", "..", "a" * 10_000]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(groups=GroupConfig(initial_delay_ms=0))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    yield opened
    opened.close()


def names_of_groups(door: DoorThread) -> list[str]:
    async def names() -> list[str]:
        return [listing.name for listing in list_groups(door.broker, ListGroups())]

    return door.run(names())


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_group_under_an_impossible_name_does_not_begin(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic().name
    before = names_of_groups(door)

    joined = raw.ask(ApiKey.JOIN_GROUP, 9, **ask.join(name))
    committed = raw.ask(ApiKey.OFFSET_COMMIT, 8, **ask.commit(name, topic, {0: 1}))
    consumer = consumers.join(raw, name, str(uuid4()), topic)
    shared = shares.heartbeat(raw, name, str(uuid4()), 0, (topic,))

    assert joined.error_code is ErrorCode.invalid_group_id
    assert committed.topics[0].partitions[0].error_code is ErrorCode.invalid_group_id
    assert consumer.error_code is ErrorCode.invalid_group_id
    assert shared.error_code is ErrorCode.invalid_group_id
    assert names_of_groups(door) == before


@pytest.mark.parametrize("name", BAD_NAMES)
def test_members_and_producers_under_impossible_names_are_refused(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, name: str
) -> None:
    topic = new_topic().name
    before = names_of_groups(door)

    static = raw.ask(ApiKey.JOIN_GROUP, 9, **ask.join("named", instance_id=name))
    consumer = consumers.join(raw, "named", name, topic)
    shared = shares.heartbeat(raw, "named", name, 0, (topic,))
    producer = raw.ask(
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id=name,
        transaction_timeout=requests.SECOND * 60,
        producer_id=-1,
        producer_epoch=-1,
    )

    assert static.error_code is ErrorCode.invalid_request
    assert consumer.error_code is ErrorCode.invalid_request
    assert shared.error_code is ErrorCode.invalid_request
    assert producer.error_code is ErrorCode.invalid_request
    assert names_of_groups(door) == before


@pytest.mark.parametrize("name", ["team readers", "team/readers", "größe", "👍", "x" * NAME_CHARACTERS_MAX])
def test_names_that_kafka_users_choose_are_taken(door: DoorThread, raw: RawClient, name: str) -> None:
    joined = ask.join_alone(raw, name, instance_id=name)

    assert joined.error_code is ErrorCode.none
    raw.ask(ApiKey.LEAVE_GROUP, 4, **ask.leave(name, joined.member_id))


def test_what_a_client_calls_itself_is_shown_without_what_cannot_be_seen(
    door: DoorThread, raw: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_client, "CLIENT_ID", "app\x1b\n" + "x" * 1_000)
    joined = ask.join_alone(raw, "labelled")

    async def describe() -> GroupView:
        return describe_group(door.broker, DescribeGroup(group="labelled"))

    [member] = door.run(describe()).members
    assert member.client_id == ("app??" + "x" * 1_000)[:NAME_CHARACTERS_MAX]
    assert member.member_id == joined.member_id
    assert len(member.member_id) <= NAME_CHARACTERS_MAX
