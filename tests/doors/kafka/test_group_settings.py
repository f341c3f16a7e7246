"""Settings of groups as Kafka's tools set them, and that groups keep to them."""

from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.write.publish import publish
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.commands import Publish
from goqueue.model.messages import Message
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import TopicView
from tests.doors.kafka import requests
from tests.doors.kafka import test_consumer_groups as consumers
from tests.doors.kafka import test_share_groups as shares
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient

GROUP = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
_numbers = count(1)


@pytest.fixture
def group() -> str:
    """The name of a group that no other test uses."""
    return f"set-{next(_numbers)}"


@pytest.fixture
def work(door: DoorThread, new_topic: NewTopic) -> TopicView:
    """A topic of one partition with one message."""
    topic = new_topic()
    offer(door, topic)
    return topic


def offer(door: DoorThread, topic: TopicView) -> None:
    door.run(publish(door.broker, Publish(topic=topic.name, messages=[Message(b"x")])))


def alter(raw: RawClient, group: str, name: str, value: str | None, operation: int = SET) -> Any:
    change = requests.alter_configs(group, name, value, resource_type=GROUP, operation=operation)
    return raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change).responses[0]


def described(raw: RawClient, group: str) -> dict[str, tuple[str, int]]:
    reply = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(group, resource_type=GROUP))
    [result] = reply.results
    assert result.error_code is ErrorCode.none
    return {config.name: (config.value, config.config_source) for config in result.configs}


def test_a_group_has_kafkas_defaults_until_something_is_set(raw: RawClient, group: str) -> None:
    before = described(raw, group)
    assert alter(raw, group, "share.auto.offset.reset", "earliest").error_code is ErrorCode.none
    after = described(raw, group)
    alter(raw, group, "share.auto.offset.reset", None, DELETE)

    assert before["share.auto.offset.reset"] == ("latest", 5)
    assert before["share.delivery.count.limit"] == ("5", 5)
    assert before["share.record.lock.duration.ms"] == ("30000", 5)
    assert before["consumer.session.timeout.ms"] == ("45000", 5)
    assert after["share.auto.offset.reset"] == ("earliest", 8)
    assert described(raw, group) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such", "1"),
        ("consumer.session.timeout.ms", "soon"),
        ("consumer.session.timeout.ms", "0"),
        ("consumer.heartbeat.interval.ms", "45000"),
        ("share.auto.offset.reset", "middle"),
        ("share.auto.offset.reset", "by_duration:PT1H"),
        ("share.isolation.level", "read_uncommitted"),
        ("share.record.lock.duration.ms", "1"),
        ("share.delivery.count.limit", "0"),
        ("streams.num.standby.replicas", "1"),
    ],
)
def test_what_a_group_cannot_have_is_refused_with_the_reason(
    raw: RawClient, group: str, name: str, value: str
) -> None:
    refused = alter(raw, group, name, value)

    assert refused.error_code is ErrorCode.invalid_config
    assert refused.error_message
    assert all(source == 5 for _, source in described(raw, group).values())


def test_groups_that_have_settings_are_listed(raw: RawClient, new_topic: NewTopic, group: str) -> None:
    topic = new_topic().name
    alter(raw, group, "consumer.session.timeout.ms", "20000")

    groups = raw.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=(GROUP,)).config_resources
    all_there_are = raw.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=()).config_resources

    assert (group, GROUP) in [(one.resource_name, one.resource_type) for one in groups]
    assert {one.resource_type for one in groups} == {GROUP}
    assert {(topic, 2), ("1", 4), (group, GROUP)} <= {
        (one.resource_name, one.resource_type) for one in all_there_are
    }
    assert raw.ask(ApiKey.LIST_CONFIG_RESOURCES, 0).config_resources == ()


def test_a_share_group_begins_with_what_comes_unless_it_is_to_begin_with_the_first(
    door: DoorThread, raw: RawClient, work: TopicView, group: str
) -> None:
    early = f"{group}-early"
    alter(raw, early, "share.auto.offset.reset", "earliest")
    for name in (group, early):
        shares.join(raw, name, "a", work)

    late = shares.acquired(shares.fetch(raw, group, "a", 0, work))
    first = shares.acquired(shares.fetch(raw, early, "a", 0, work))
    offer(door, work)

    assert (late, first) == ([], [(0, 0, 1)])
    assert shares.acquired(shares.fetch(raw, group, "a", 1, work)) == [(1, 1, 1)]


def test_a_share_group_gives_a_message_out_as_often_as_is_set(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    alter(raw, group, "share.delivery.count.limit", "2")
    shares.join(raw, group, "a", topic)
    shares.fetch(raw, group, "a", 0, topic)
    offer(door, topic)

    counts: list[int] = []
    for epoch in (1, 2, 3):
        release: dict[tuple[int, int], tuple[int, ...]] = {(0, 0): (shares.RELEASE,)} if counts else {}
        found = shares.acquired(shares.fetch(raw, group, "a", epoch, topic, release))
        counts += [times for _, _, times in found]

    assert counts == [1, 2]


def test_the_lock_of_a_share_group_lasts_as_long_as_is_set(
    raw: RawClient, work: TopicView, group: str
) -> None:
    alter(raw, group, "share.auto.offset.reset", "earliest")
    alter(raw, group, "share.record.lock.duration.ms", "15000")
    shares.join(raw, group, "a", work)

    reply = shares.fetch(raw, group, "a", 0, work)

    assert reply.acquisition_lock_timeout == timedelta(seconds=15)


def test_sessions_and_heartbeats_follow_what_is_set_also_of_who_is_there_already(
    door: DoorThread, raw: RawClient, work: TopicView, group: str
) -> None:
    consumers.join(raw, group, "a", work.name)
    alter(raw, group, "consumer.session.timeout.ms", "20000")
    alter(raw, group, "consumer.heartbeat.interval.ms", "3000")

    told = consumers.heartbeat(raw, group, "a", 1)

    assert (told.error_code, told.heartbeat_interval) == (ErrorCode.none, timedelta(seconds=3))
    active = door.broker.coordinator.known_active(group)
    assert active is not None
    assert active.membership.members["a"].kept.session_timeout_ms == 20_000  # type: ignore[union-attr]


def test_settings_of_groups_are_there_after_a_restart(tmp_path: Path, group: str) -> None:
    for is_first in (True, False):
        door = DoorThread(tmp_path, BrokerConfig(), KafkaConfig())
        with RawClient(door.port) as raw:
            if is_first:
                alter(raw, group, "share.delivery.count.limit", "7")
            assert described(raw, group)["share.delivery.count.limit"] == ("7", 8)
        door.close()


def test_words_are_added_to_and_taken_from_settings_that_are_lists(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name

    def policy(value: str, operation: int) -> str:
        change = requests.alter_configs(topic, "cleanup.policy", value, operation=operation)
        assert raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change).responses[0].error_code == 0
        shown = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, "cleanup.policy"))
        text: str = shown.results[0].configs[0].value
        return text

    assert set(policy("compact", APPEND).split(",")) == {"compact", "delete"}
    assert policy("delete", SUBTRACT) == "compact"
    number = requests.alter_configs(topic, "retention.ms", "5", operation=APPEND)
    refused = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **number).responses[0]
    assert refused.error_code is ErrorCode.invalid_request
