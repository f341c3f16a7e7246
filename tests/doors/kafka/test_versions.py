"""Every version of every API that is advertised is really spoken, as kio's schemas have it."""

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.kafka.apis import APIS, ApiKey
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.raw_client import RECENT_MS, RawClient, record_batch

FIRST_PRODUCE_OF_KIO = 3


def versions(api_key: ApiKey, first: int | None = None) -> pytest.MarkDecorator:
    api = APIS[api_key]
    return pytest.mark.parametrize(
        "version", range(api.first_version if first is None else first, api.last_version + 1)
    )


@versions(ApiKey.API_VERSIONS)
def test_api_versions_tells_the_ranges_of_the_table(raw: RawClient, version: int) -> None:
    reply = raw.ask(ApiKey.API_VERSIONS, version, client_software_name="raw", client_software_version="1")

    told = {api.api_key: (api.min_version, api.max_version) for api in reply.api_keys}
    assert reply.error_code is ErrorCode.none
    assert told == {key: (api.first_version, api.last_version) for key, api in APIS.items()}


def test_an_unknown_version_of_api_versions_is_answered_in_the_oldest_layout(raw: RawClient) -> None:
    raw.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 7, -1) + b"\x00")

    correlation_id, reply = raw.receive_with_id(ApiKey.API_VERSIONS, 0)

    assert correlation_id == 7
    assert reply.error_code is ErrorCode.unsupported_version
    assert len(reply.api_keys) == len(APIS)


@versions(ApiKey.METADATA)
def test_metadata_shows_the_node_and_its_topics(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic(partitions=2)

    reply = raw.ask(ApiKey.METADATA, version, **requests.metadata(topic.name))

    [node] = reply.brokers
    [shown] = reply.topics
    assert (node.node_id, node.host) == (1, "127.0.0.1")
    assert (shown.error_code, shown.name) == (ErrorCode.none, topic.name)
    assert [partition.partition_index for partition in shown.partitions] == [0, 1]
    assert all(partition.leader_id == 1 for partition in shown.partitions)
    if version >= 10:
        assert shown.topic_id == topic.topic_id


@versions(ApiKey.PRODUCE, FIRST_PRODUCE_OF_KIO)
def test_produce_tells_where_batches_were_stored(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic()
    request = requests.produce(topic.name, record_batch(b"a", b"b"), topic_id=topic.topic_id)

    first = raw.ask(ApiKey.PRODUCE, version, **request)
    second = raw.ask(ApiKey.PRODUCE, version, **request)

    outcomes = [reply.responses[0].partition_responses[0] for reply in (first, second)]
    assert [outcome.error_code for outcome in outcomes] == [ErrorCode.none, ErrorCode.none]
    assert [outcome.base_offset for outcome in outcomes] == [0, 2]


@pytest.mark.parametrize(("version", "tail"), [(0, b""), (1, b"\x00" * 4), (2, b"\xff" * 8 + b"\x00" * 4)])
def test_the_oldest_versions_of_produce_are_answered(
    raw: RawClient, new_topic: NewTopic, version: int, tail: bytes
) -> None:
    name = new_topic().name.encode()
    batch = record_batch(b"a")
    raw.send_frame(
        struct.pack(">hhih", ApiKey.PRODUCE, version, 5, -1)
        + struct.pack(">hii", 1, 1_000, 1)
        + struct.pack(">h", len(name))
        + name
        + struct.pack(">iii", 1, 0, len(batch))
        + batch
    )

    stored = struct.pack(">iihq", 1, 0, 0, 0)
    expected = struct.pack(">iih", 5, 1, len(name)) + name + stored + tail
    assert raw.receive_frame() == expected


@versions(ApiKey.FETCH)
def test_fetch_brings_batches_as_they_were_built(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic()
    batches = [record_batch(b"a", b"b"), record_batch(b"c")]
    for batch in batches:
        raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic.name, batch))

    reply = raw.ask(ApiKey.FETCH, version, **requests.fetch(topic.name, 0, topic_id=topic.topic_id))

    [partition] = reply.responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (ErrorCode.none, 3)
    # Base offset and leader epoch are the broker's to write; all behind them is the producer's.
    assert partition.records[16 : len(batches[0])] == batches[0][16:]
    assert partition.records[len(batches[0]) + 16 :] == batches[1][16:]


@versions(ApiKey.LIST_OFFSETS)
def test_list_offsets_finds_the_ends_and_times(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic().name
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"a", b"b", b"c")))

    def offset(timestamp: int) -> int:
        reply = raw.ask(ApiKey.LIST_OFFSETS, version, **requests.list_offsets(topic, timestamp))
        [partition] = reply.topics[0].partitions
        assert partition.error_code is ErrorCode.none
        return int(partition.offset)

    assert [offset(timestamp) for timestamp in (-2, -1, RECENT_MS + 1, -3, -4, -5, -6, RECENT_MS + 3)] == [
        0,
        3,
        1,
        2,
        0,
        -1,
        -1,
        -1,
    ]


@versions(ApiKey.FIND_COORDINATOR)
def test_find_coordinator_names_this_node(raw: RawClient, version: int) -> None:
    reply = raw.ask(
        ApiKey.FIND_COORDINATOR, version, key="group", key_type=0, coordinator_keys=("group", "other")
    )

    found = reply.coordinators if version >= 4 else (reply,)
    assert [(c.error_code, c.node_id, c.host) for c in found] == [(ErrorCode.none, 1, "127.0.0.1")] * len(
        found
    )
    assert len(found) == (2 if version >= 4 else 1)


@versions(ApiKey.INIT_PRODUCER_ID)
def test_init_producer_id_never_gives_an_id_twice(raw: RawClient, version: int) -> None:
    def init(transactional_id: str | None = None) -> Any:
        return raw.ask(
            ApiKey.INIT_PRODUCER_ID,
            version,
            transactional_id=transactional_id,
            transaction_timeout=requests.SECOND,
            producer_id=-1,
            producer_epoch=-1,
            enable2_pc=False,
            keep_prepared_txn=False,
        )

    first, second = init(), init()
    transactional, again = init(f"payments {version}"), init(f"payments {version}")

    assert (first.error_code, first.producer_epoch) == (ErrorCode.none, 0)
    assert second.producer_id != first.producer_id
    assert (transactional.error_code, transactional.producer_epoch) == (ErrorCode.none, 0)
    assert (again.producer_id, again.producer_epoch) == (transactional.producer_id, 1)


@versions(ApiKey.CREATE_TOPICS)
def test_a_topic_is_created_once(raw: RawClient, version: int) -> None:
    request = requests.create_topic(
        f"created-{version}", partitions=2, settings={"retention.ms": "60000"}
    )  # fmt: skip

    first = raw.ask(ApiKey.CREATE_TOPICS, version, **request)
    second = raw.ask(ApiKey.CREATE_TOPICS, version, **request)

    assert first.topics[0].error_code is ErrorCode.none
    assert second.topics[0].error_code is ErrorCode.topic_already_exists
    if version >= 5:
        assert first.topics[0].num_partitions == 2
        shown = {config.name: config.value for config in first.topics[0].configs}
        assert shown["retention.ms"] == "60000"


@versions(ApiKey.DELETE_TOPICS)
def test_a_topic_is_deleted_by_name(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    name = new_topic().name
    request: dict[str, Any] = {
        "topic_names": (name, "never-was"),
        "topics": tuple(SimpleNamespace(name=n, topic_id=None) for n in (name, "never-was")),
        "timeout": requests.SECOND,
    }

    reply = raw.ask(ApiKey.DELETE_TOPICS, version, **request)

    codes = [response.error_code for response in reply.responses]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]


@versions(ApiKey.DELETE_RECORDS)
def test_records_before_an_offset_are_deleted(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic().name
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"a", b"b", b"c")))
    wanted = (SimpleNamespace(partition_index=0, offset=2), SimpleNamespace(partition_index=9, offset=2))

    reply = raw.ask(
        ApiKey.DELETE_RECORDS,
        version,
        topics=(SimpleNamespace(name=topic, partitions=wanted),),
        timeout=requests.SECOND,
    )

    deleted, unknown = reply.topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.none, 2)
    assert unknown.error_code is ErrorCode.unknown_topic_or_partition
    earliest = raw.ask(ApiKey.LIST_OFFSETS, 1, **requests.list_offsets(topic, -2))
    assert earliest.topics[0].partitions[0].offset == 2


@versions(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def test_the_end_of_an_epoch_is_told(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic()
    epoch = topic.partitions[0].leader_epoch
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic.name, record_batch(b"a", b"b")))
    wanted = tuple(
        SimpleNamespace(partition=0, current_leader_epoch=current, leader_epoch=epoch)
        for current in (epoch, epoch - 1, epoch + 1)
    )

    reply = raw.ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        version,
        replica_id=-1,
        topics=(SimpleNamespace(topic=topic.name, partitions=wanted),),
    )

    known, past, future = reply.topics[0].partitions
    assert (known.error_code, known.leader_epoch, known.end_offset) == (ErrorCode.none, epoch, 2)
    assert past.error_code is ErrorCode.fenced_leader_epoch
    assert future.error_code is ErrorCode.unknown_leader_epoch


@versions(ApiKey.DESCRIBE_CONFIGS)
def test_the_settings_of_a_topic_are_shown(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic(retention_ms="60000").name

    reply = raw.ask(
        ApiKey.DESCRIBE_CONFIGS,
        version,
        **requests.describe_configs(topic, "retention.ms", include_synonyms=True),
    )

    [config] = reply.results[0].configs
    assert (config.name, config.value, config.config_source) == ("retention.ms", "60000", 1)
    assert [synonym.source for synonym in config.synonyms] == [1, 5]
    if version >= 3:
        assert config.documentation


@versions(ApiKey.CREATE_PARTITIONS)
def test_a_topic_gets_more_partitions(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic(partitions=2).name

    def grow(count: int) -> ErrorCode:
        wanted = SimpleNamespace(name=topic, count=count, assignments=None)
        reply = raw.ask(
            ApiKey.CREATE_PARTITIONS,
            version,
            topics=(wanted,),
            timeout=requests.SECOND,
            validate_only=False,
        )
        code: ErrorCode = reply.results[0].error_code
        return code

    assert (grow(4), grow(3)) == (ErrorCode.none, ErrorCode.invalid_partitions)
    shown = raw.ask(ApiKey.METADATA, 9, **requests.metadata(topic))
    assert len(shown.topics[0].partitions) == 4


@versions(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def test_single_settings_are_changed(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic().name
    alter = ApiKey.INCREMENTAL_ALTER_CONFIGS

    changed = raw.ask(alter, version, **requests.alter_configs(topic, "retention.ms", "60000"))
    refused = raw.ask(alter, version, **requests.alter_configs(topic, "retention.ms", "soon"))
    appended = raw.ask(alter, version, **requests.alter_configs(topic, "retention.ms", "1", operation=2))

    assert changed.responses[0].error_code is ErrorCode.none
    assert refused.responses[0].error_code is ErrorCode.invalid_config
    assert appended.responses[0].error_code is ErrorCode.invalid_request
    shown = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic, "retention.ms"))
    assert shown.results[0].configs[0].value == "60000"


@versions(ApiKey.ALTER_CONFIGS)
def test_all_settings_are_replaced(raw: RawClient, new_topic: NewTopic, version: int) -> None:
    topic = new_topic(retention_ms="60000").name

    changed = raw.ask(ApiKey.ALTER_CONFIGS, version, **requests.alter_configs(topic, "segment.bytes", "8192"))
    refused = raw.ask(ApiKey.ALTER_CONFIGS, version, **requests.alter_configs(topic, "segment.bytes", "big"))

    assert changed.responses[0].error_code is ErrorCode.none
    assert refused.responses[0].error_code is ErrorCode.invalid_config
    shown = raw.ask(ApiKey.DESCRIBE_CONFIGS, 4, **requests.describe_configs(topic))
    assert [c.name for c in shown.results[0].configs if c.config_source == 1] == ["segment.bytes"]


@versions(ApiKey.DESCRIBE_CLUSTER)
def test_the_cluster_is_described(raw: RawClient, version: int) -> None:
    reply = raw.ask(
        ApiKey.DESCRIBE_CLUSTER,
        version,
        include_cluster_authorized_operations=True,
        endpoint_type=1,
        include_fenced_brokers=False,
    )

    assert reply.error_code is ErrorCode.none
    assert len(reply.cluster_id) == 22
    assert [(node.broker_id, node.host) for node in reply.brokers] == [(1, "127.0.0.1")]
    create, alter, describe, cluster_action, describe_configs, alter_configs, idempotent_write = (
        1 << number for number in (5, 7, 8, 9, 10, 11, 12)
    )
    assert reply.cluster_authorized_operations == (
        create | alter | describe | cluster_action | describe_configs | alter_configs | idempotent_write
    )
