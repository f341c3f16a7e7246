"""Whoever has been allowed nothing gets nothing from Kafka's door: every API is asked, and none is forgotten.

Requests are made up from their schemas, with one name wherever a name can stand, so that an API that is
served anew is asked here, too.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from goqueue.broker.access.verbs import add_rules
from goqueue.broker.topics.verbs import create_topic
from goqueue.edge.kafka.apis import APIS, ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.access import AddRules, Operation, PatternKind, ResourceKind, Rule
from goqueue.model.settings import AccessConfig, BrokerConfig
from goqueue.model.topics import CreateTopic
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, record_batch

NAME = "secret"
DENIED = {
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
}
TELLS_NOTHING = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS}
"""Answered, with nothing in it of what is stored."""
FIELDS: dict[str, object] = {
    "records": record_batch(b"x"),
    "acks": 1,
    "resource_type": 2,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
    "resource_pattern_type": 3,
    "operation": 3,
    "permission_type": 3,
    "principal": "User:ann",
    "principal_filter": None,
    "topic_id": None,
    "member_epoch": 0,
    "share_session_epoch": 1,
    "count": 9,
    "session_id": 0,
    "session_epoch": -1,
    "key_type": 0,
    "transaction_result": False,
    "protocol_type": "consumer",
    "num_partitions": 1,
    "replication_factor": 1,
    "assignments": (),
    "verify_only": False,
    "validate_only": False,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "iterations": 4096,
    "salt": b"0123456789abcdef",
    "salted_password": bytes(32),
    "endpoint_type": 1,
    "state_filters": (),
    "transactional_id_pattern": None,
}


def request_about(key: ApiKey, thing: str) -> tuple[int, dict[str, object]]:
    """A request of a kind about a thing: its version, and its fields."""
    version = APIS[key].last_version
    if key in (ApiKey.PRODUCE, ApiKey.FETCH):
        version = 12  # by name: ids are found in what one may see
    schema = load_request_schema(key, version)
    request = made_up(schema, thing)
    fields = {field.name: getattr(request, field.name) for field in dataclasses.fields(schema)}
    if key is ApiKey.ALTER_USER_SCRAM_CREDENTIALS:  # nobody is changed and deleted at once
        fields |= {"upsertions": (), "deletions": (SimpleNamespace(name=thing, mechanism=1),)}
    if key is ApiKey.CONSUMER_GROUP_HEARTBEAT:  # whoever joins has no partitions
        fields |= {"topic_partitions": ()}
    return version, fields


def made_up(entity: type, thing: str) -> object:
    """An entity of a schema with something in each field."""
    hints = typing.get_type_hints(entity)
    fields = (field.name for field in dataclasses.fields(entity))
    return entity(**{name: value_of(name, hints[name], thing) for name in fields})


def value_of(name: str, wanted: object, thing: str) -> object:
    if name in FIELDS:
        return FIELDS[name]
    parts = typing.get_args(wanted)
    if typing.get_origin(wanted) in (typing.Union, types.UnionType):
        return value_of(name, next(part for part in parts if part is not type(None)), thing)
    if typing.get_origin(wanted) is tuple:
        return (value_of(name, parts[0], thing),)
    wanted = getattr(wanted, "__supertype__", wanted)
    assert isinstance(wanted, type), wanted
    if dataclasses.is_dataclass(wanted):
        return made_up(wanted, thing)
    return next(
        value
        for kind, value in (
            (bool, False), (str, thing), (bytes, b""), (timedelta, requests.SECOND),
            (datetime, datetime.fromtimestamp(0).astimezone()), (UUID, UUID(int=1)), (float, 0.0), (int, 0),
        )
        if issubclass(wanted, kind)
    )  # fmt: skip


def codes_in(reply: object) -> Iterator[ErrorCode]:
    if isinstance(reply, ErrorCode):
        yield reply
    elif isinstance(reply, tuple):
        for each in reply:
            yield from codes_in(each)
    elif dataclasses.is_dataclass(reply):
        for field in dataclasses.fields(reply):
            yield from codes_in(getattr(reply, field.name))


@pytest.fixture(scope="module")
def shut(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(access=AccessConfig(is_on=True))
    opened = DoorThread(tmp_path_factory.mktemp("data"), config, KafkaConfig())
    opened.run(create_topic(opened.broker, CreateTopic(name=NAME, partitions=1)))
    yield opened
    opened.close()


@pytest.mark.parametrize("key", [ApiKey(key) for key in APIS], ids=lambda key: key.name)
def test_a_stranger_gets_nothing(shut: DoorThread, key: ApiKey) -> None:
    version, fields = request_about(key, NAME)
    with RawClient(shut.port) as raw:
        reply = raw.ask(key, version, **fields)
    codes = {code for code in codes_in(reply) if code is not ErrorCode.none}
    if key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        assert codes == {ErrorCode.illegal_sasl_state}, "nobody logs in where nobody is asked"
    elif key in TELLS_NOTHING:
        assert not codes
        assert NAME not in repr(reply)
    else:
        assert codes and codes <= DENIED, f"{codes or reply}"


def allow(shut: DoorThread, *rules: Rule) -> None:
    shut.run(add_rules(shut.broker, AddRules(rules=rules)))


def test_what_is_allowed_is_served_and_the_rest_is_refused_topic_by_topic(shut: DoorThread) -> None:
    for name in ("acme.orders", "other.orders"):
        shut.run(create_topic(shut.broker, CreateTopic(name=name, partitions=1)))
    allow(
        shut,
        Rule(
            principal="User:*",
            kind=ResourceKind.TOPIC,
            name="acme.",
            pattern=PatternKind.PREFIXED,
            operation=Operation.ALL,
        ),
    )
    with RawClient(shut.port) as raw:
        shown = raw.ask(ApiKey.METADATA, 12, **requests.metadata()).topics
        assert [topic.name for topic in shown] == ["acme.orders"]
        named = raw.ask(ApiKey.METADATA, 12, **requests.metadata("acme.orders", "other.orders")).topics
        assert [topic.error_code for topic in named] == [
            ErrorCode.none,
            ErrorCode.topic_authorization_failed,
        ]
        for name, code in (("acme.orders", 0), ("other.orders", 29)):
            stored = raw.ask(ApiKey.PRODUCE, 9, **requests.produce(name, record_batch(b"x")))
            assert stored.responses[0].partition_responses[0].error_code.value == code
            read = raw.ask(ApiKey.FETCH, 12, **requests.fetch(name, 0))
            assert read.responses[0].partitions[0].error_code.value == code
            assert bool(read.responses[0].partitions[0].records) is (code == 0)


def test_operations_that_are_allowed_are_told(shut: DoorThread) -> None:
    allow(
        shut,
        Rule(principal="User:*", kind=ResourceKind.TOPIC, name="seen", operation=Operation.READ),
    )
    shut.run(create_topic(shut.broker, CreateTopic(name="seen", partitions=1)))
    asked = requests.metadata("seen") | {"include_topic_authorized_operations": True}
    with RawClient(shut.port) as raw:
        [topic] = raw.ask(ApiKey.METADATA, 10, **asked).topics
    assert topic.topic_authorized_operations == (1 << 3) | (1 << 8)
