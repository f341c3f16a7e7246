"""Requests are read by the schemas of kio, and never by trusting the client."""

import io
import random
from dataclasses import fields, is_dataclass
from datetime import timedelta
from types import SimpleNamespace, UnionType
from typing import Any, get_origin
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.serial import entity_reader, entity_writer

from goqueue.edge.kafka.apis import APIS, ApiKey
from goqueue.edge.kafka.frames import read_header
from goqueue.edge.kafka.schemas import decode_request
from goqueue.edge.kafka.wire import Malformed, Reader
from tests.fuzz.kafka_requests import Maker, Stock

VERSIONS = [
    (api.key, version)
    for api in APIS.values()
    for version in range(api.first_version, api.last_version + 1)
    if api.key not in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT)
]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_the_table_knows_from_which_version_on_fields_may_be_tagged(api_key: ApiKey, version: int) -> None:
    schema = load_request_schema(api_key, version)

    assert schema.__flexible__ == (version >= APIS[api_key].first_flexible)


def test_a_request_is_read_as_kio_reads_it() -> None:
    request = _written(
        ApiKey.CREATE_TOPICS,
        7,
        topics=(
            SimpleNamespace(
                name="orders",
                num_partitions=3,
                replication_factor=-1,
                assignments=(SimpleNamespace(partition_index=0, broker_ids=(1, 2)),),
                configs=(
                    SimpleNamespace(name="retention.ms", value="1"),
                    SimpleNamespace(name="x", value=None),
                ),
            ),
        ),
        timeout=timedelta(milliseconds=1_500),
        validate_only=True,
    )

    decoded = decode_request(ApiKey.CREATE_TOPICS, 7, Reader(memoryview(request)))

    expected, _ = entity_reader(load_request_schema(ApiKey.CREATE_TOPICS, 7))(request, 0)
    assert decoded == expected


def test_ids_and_nulls_are_read() -> None:
    topic_id = UUID(int=7)
    request = _written(
        ApiKey.DELETE_TOPICS,
        6,
        topics=(SimpleNamespace(name=None, topic_id=topic_id), SimpleNamespace(name="orders", topic_id=None)),
        timeout=timedelta(0),
    )

    decoded: Any = decode_request(ApiKey.DELETE_TOPICS, 6, Reader(memoryview(request)))

    assert [(topic.name, topic.topic_id) for topic in decoded.topics] == [(None, topic_id), ("orders", None)]


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_null_is_read_only_where_it_may_stand(api_key: ApiKey, version: int) -> None:
    refused = 0
    for seed in range(60):
        made = Maker(random.Random(seed), Stock(), lies=0.0, nulls=0.15).request(api_key, version)
        reader = Reader(memoryview(made))
        read_header(reader)
        if version >= APIS[api_key].first_flexible:
            reader.skip_tags()
        try:
            decoded = decode_request(api_key, version, reader)
        except Malformed:
            refused += 1
        else:
            _expect_no_null(decoded)
    assert refused < 60


def _expect_no_null(entity: Any) -> None:
    for one in fields(entity):
        value = getattr(entity, one.name)
        if get_origin(one.type) is not UnionType:
            assert value is not None, one.name
        for inner in value if isinstance(value, tuple) else (value,):
            if is_dataclass(inner):
                _expect_no_null(inner)


def test_bytes_behind_a_request_are_passed_over_as_other_brokers_do() -> None:
    request = _written(ApiKey.FIND_COORDINATOR, 0, key="group") + b"more"

    decoded: Any = decode_request(ApiKey.FIND_COORDINATOR, 0, Reader(memoryview(request)))

    assert decoded.key == "group"


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_garbage_is_refused_without_reserving_memory_for_it(api_key: ApiKey, version: int) -> None:
    chance = random.Random(f"{api_key} {version}")
    for start in (b"", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07"):
        for _ in range(30):
            frame = start + chance.randbytes(chance.randrange(40))
            try:
                decode_request(api_key, version, Reader(memoryview(frame)))
            except Malformed:
                continue


def _written(api_key: ApiKey, version: int, **fields: object) -> bytes:
    buffer = io.BytesIO()
    write: Any = entity_writer(load_request_schema(api_key, version))
    write(buffer, SimpleNamespace(**fields))
    return buffer.getvalue()
