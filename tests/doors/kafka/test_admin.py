"""Topics and settings through raw requests: the cases that comfortable clients do not show."""

from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.listening import Listener
from goqueue.model.settings import BrokerConfig
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic, OpenDoor
from tests.doors.kafka.raw_client import RawClient

BROKER_RESOURCE = 4
DELETE = 1


def test_a_topic_that_is_named_comes_into_being_if_the_client_allows(raw: RawClient) -> None:
    refused = raw.ask(ApiKey.METADATA, 12, **requests.metadata("by-name", create=False))
    created = raw.ask(ApiKey.METADATA, 12, **requests.metadata("by-name", create=True))

    assert refused.topics[0].error_code is ErrorCode.unknown_topic_or_partition
    assert created.topics[0].error_code is ErrorCode.none
    assert len(created.topics[0].partitions) == BrokerConfig().default_partitions


def test_a_topic_does_not_come_into_being_when_the_settings_forbid_it(open_door: OpenDoor) -> None:
    door = open_door(BrokerConfig(auto_create_topics=False))

    with RawClient(door.port) as raw:
        reply = raw.ask(ApiKey.METADATA, 12, **requests.metadata("by-name", create=True))

    assert reply.topics[0].error_code is ErrorCode.unknown_topic_or_partition


def test_metadata_by_id(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic()

    known = raw.ask(ApiKey.METADATA, 12, **requests.metadata(topic_id=topic.topic_id))
    unknown = raw.ask(ApiKey.METADATA, 12, **requests.metadata(topic_id=UUID(int=3)))

    assert known.topics[0].name == topic.name
    assert (unknown.topics[0].error_code, unknown.topics[0].name) == (ErrorCode.unknown_topic_id, None)


def test_metadata_of_all_topics_leaves_the_brokers_own_out(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic().name

    reply = raw.ask(ApiKey.METADATA, 12, **requests.metadata())

    names = [shown.name for shown in reply.topics]
    assert topic in names
    assert not [name for name in names if name.startswith("__")]


def test_a_name_that_is_none_is_refused(raw: RawClient) -> None:
    reply = raw.ask(ApiKey.METADATA, 12, **requests.metadata("no spaces", create=True))
    created = raw.ask(ApiKey.CREATE_TOPICS, 7, **requests.create_topic("a/b"))

    assert reply.topics[0].error_code is ErrorCode.invalid_topic_exception
    assert created.topics[0].error_code is ErrorCode.invalid_topic_exception


def test_a_topic_that_cannot_be_is_refused(raw: RawClient) -> None:
    def create(**wanted: object) -> ErrorCode:
        request = requests.create_topic("impossible", **wanted)  # type: ignore[arg-type]
        code: ErrorCode = raw.ask(ApiKey.CREATE_TOPICS, 7, **request).topics[0].error_code
        return code

    assert create(partitions=0) is ErrorCode.invalid_partitions
    assert create(replication=3) is ErrorCode.invalid_replication_factor
    assert create(settings={"no.such.setting": "1"}) is ErrorCode.invalid_config
    elsewhere = (SimpleNamespace(partition_index=0, broker_ids=(2,)),)
    assert (
        create(partitions=-1, replication=-1, assignments=elsewhere) is ErrorCode.invalid_replication_factor
    )
    missing = raw.ask(ApiKey.METADATA, 12, **requests.metadata("impossible"))
    assert missing.topics[0].error_code is ErrorCode.unknown_topic_or_partition


def test_a_topic_is_created_with_defaults_or_with_replicas_placed_by_hand(raw: RawClient) -> None:
    here = tuple(SimpleNamespace(partition_index=index, broker_ids=(1,)) for index in range(2))

    default = raw.ask(
        ApiKey.CREATE_TOPICS, 7, **requests.create_topic("default-count", partitions=-1, replication=-1)
    )
    placed = raw.ask(
        ApiKey.CREATE_TOPICS,
        7,
        **requests.create_topic("placed", partitions=-1, replication=-1, assignments=here),
    )

    assert default.topics[0].num_partitions == BrokerConfig().default_partitions
    assert placed.topics[0].num_partitions == 2


def test_a_topic_that_is_only_looked_at_is_not_created(raw: RawClient) -> None:
    reply = raw.ask(ApiKey.CREATE_TOPICS, 7, **requests.create_topic("looked-at", validate_only=True))

    shown = raw.ask(ApiKey.METADATA, 12, **requests.metadata("looked-at"))
    assert reply.topics[0].error_code is ErrorCode.none
    assert shown.topics[0].error_code is ErrorCode.unknown_topic_or_partition


def test_a_topic_is_deleted_by_id(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic()
    by_id = [SimpleNamespace(name=None, topic_id=wanted) for wanted in (topic.topic_id, UUID(int=3))]

    reply = raw.ask(ApiKey.DELETE_TOPICS, 6, topics=tuple(by_id), timeout=requests.SECOND)

    deleted, unknown = reply.responses
    assert (deleted.error_code, deleted.name) == (ErrorCode.none, topic.name)
    assert unknown.error_code is ErrorCode.unknown_topic_id


def test_the_brokers_own_topics_cannot_be_deleted(raw: RawClient) -> None:
    own = SimpleNamespace(name="__metadata", topic_id=None)

    reply = raw.ask(ApiKey.DELETE_TOPICS, 6, topics=(own,), timeout=requests.SECOND)

    assert reply.responses[0].error_code is ErrorCode.invalid_topic_exception


def test_a_setting_goes_back_to_its_default(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(retention_ms="60000").name

    raw.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        **requests.alter_configs(topic, "retention.ms", None, operation=DELETE),
    )

    shown = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, "retention.ms"))
    assert shown.results[0].configs[0].value == str(BrokerConfig().topic_defaults.retention_ms)


def test_a_change_that_is_only_looked_at_changes_nothing(raw: RawClient, new_topic: NewTopic) -> None:
    topic = new_topic(retention_ms="60000").name
    change = requests.alter_configs(topic, "retention.ms", "1", validate_only=True)

    reply = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change)

    shown = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, "retention.ms"))
    assert reply.responses[0].error_code is ErrorCode.none
    assert shown.results[0].configs[0].value == "60000"


def test_settings_of_a_node_can_be_read_but_not_changed(raw: RawClient) -> None:
    shown = raw.ask(
        ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs("1", resource_type=BROKER_RESOURCE)
    )
    change = requests.alter_configs("1", "num.partitions", "9", resource_type=BROKER_RESOURCE)
    changed = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change)

    configs = {config.name: config for config in shown.results[0].configs}
    assert configs["num.partitions"].value == str(BrokerConfig().default_partitions)
    assert all(config.read_only for config in configs.values())
    assert changed.responses[0].error_code is ErrorCode.invalid_request


def test_settings_of_what_is_not_here_are_refused(raw: RawClient) -> None:
    topic = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs("no-such"))
    node = raw.ask(
        ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs("7", resource_type=BROKER_RESOURCE)
    )
    loggers = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs("1", resource_type=8))

    assert topic.results[0].error_code is ErrorCode.unknown_topic_or_partition
    assert node.results[0].error_code is ErrorCode.invalid_request
    assert loggers.results[0].error_code is ErrorCode.unsupported_version


def test_a_question_about_controllers_is_refused(raw: RawClient) -> None:
    reply = raw.ask(
        ApiKey.DESCRIBE_CLUSTER,
        2,
        include_cluster_authorized_operations=False,
        endpoint_type=2,
        include_fenced_brokers=False,
    )

    assert reply.error_code is ErrorCode.mismatched_endpoint_type


def test_a_time_that_is_none_is_refused(raw: RawClient, new_topic: NewTopic) -> None:
    reply = raw.ask(ApiKey.LIST_OFFSETS, 7, **requests.list_offsets(new_topic().name, -77))

    assert reply.topics[0].partitions[0].error_code is ErrorCode.invalid_request


def test_a_node_is_known_by_the_name_it_advertises(open_door: OpenDoor) -> None:
    door = open_door(listener=Listener(advertised_host="queue.example.org", advertised_port=9_999))

    with RawClient(door.port) as raw:
        reply = raw.ask(ApiKey.METADATA, 12, **requests.metadata())

    assert [(node.host, node.port) for node in reply.brokers] == [("queue.example.org", 9_999)]


def test_a_door_on_all_addresses_is_known_by_the_one_the_client_used(open_door: OpenDoor) -> None:
    door = open_door(host="0.0.0.0")

    with RawClient(door.port) as raw:
        reply = raw.ask(ApiKey.METADATA, 12, **requests.metadata())

    assert [(node.host, node.port) for node in reply.brokers] == [("127.0.0.1", door.port)]


def test_one_node_has_nothing_to_move_and_nobody_to_elect(raw: RawClient, new_topic: NewTopic) -> None:
    name = new_topic().name
    wait = timedelta(seconds=5)

    moved = raw.ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        1,
        timeout=wait,
        allow_replication_factor_change=True,
        topics=[SimpleNamespace(name=name, partitions=[SimpleNamespace(partition_index=0, replicas=(7,))])],
    )
    listed = raw.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout=wait, topics=None)
    elected = raw.ask(
        ApiKey.ELECT_LEADERS,
        2,
        election_type=0,
        topic_partitions=[SimpleNamespace(topic=name, partitions=(0,))],
        timeout=wait,
    )

    assert moved.responses[0].partitions[0].error_code is ErrorCode.unsupported_version
    assert (listed.error_code, listed.topics) == (ErrorCode.none, ())
    [result] = elected.replica_election_results[0].partition_result
    assert result.error_code is ErrorCode.election_not_needed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression.zstd.level", "5"),
        ("file.delete.delay.ms", "1000"),
        ("flush.messages", "1"),
        ("flush.ms", "1000"),
        ("follower.replication.throttled.replicas", "*"),
        ("index.interval.bytes", "1024"),
        ("message.downconversion.enable", "false"),
        ("preallocate", "true"),
        ("segment.index.bytes", "1048576"),
        ("segment.jitter.ms", "10"),
    ],
)
def test_settings_that_this_broker_does_without_are_kept_and_shown(
    raw: RawClient, new_topic: NewTopic, name: str, value: str
) -> None:
    topic = new_topic().name

    reply = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **requests.alter_configs(topic, name, value))
    [shown] = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, name)).results

    assert reply.responses[0].error_code is ErrorCode.none
    assert [(config.value, config.config_source) for config in shown.configs] == [(value, 1)]
    raw.ask(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **requests.alter_configs(topic, name, None, operation=DELETE)
    )
    [shown] = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, name)).results
    assert shown.configs[0].config_source == 5


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("compression.type", "brotli", "cannot be"),
        ("flush.ms", "often", "cannot be"),
        ("local.retention.ms", "1000", "tiered"),
        ("message.timestamp.after.max.ms", "-1", "0 or more"),
        ("message.timestamp.type", "NoTime", "cannot be"),
        ("remote.storage.enable", "true", "tiered"),
        ("unclean.leader.election.enable", "true", "in sync"),
    ],
)
def test_settings_that_cannot_be_had_are_refused_with_the_reason(
    raw: RawClient, new_topic: NewTopic, name: str, value: str, reason: str
) -> None:
    change = requests.alter_configs(new_topic().name, name, value)

    [refused] = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **change).responses

    assert refused.error_code is ErrorCode.invalid_config
    assert reason in refused.error_message
