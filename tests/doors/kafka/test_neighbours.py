"""Whoever is a tenant's learns nothing at Kafka's door of another tenant's things, whatever roles they have.

Every request is made twice by an administrator of one tenant: about things of another that are there, and
about things that are not. The answers are the same.
"""

import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.access.identities import create_key, create_user, set_user_disabled
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.tenants.verbs import create_tenant, delete_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.credentials import NewKey, make_key
from goqueue.edge.kafka.apis import APIS, ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.edge.tls import ClientAuth
from goqueue.model.access import Role
from goqueue.model.commands import Publish
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.identity import ApiKey as Key
from goqueue.model.identity_commands import CreateKey, CreateUser, SetUserDisabled
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.settings import AccessConfig, BrokerConfig
from goqueue.model.tenant_commands import CreateTenant, DeleteTenant
from goqueue.model.tenants import TenantId
from goqueue.model.topics import CreateTopic
from tests.doors.certificates import Certificates, tls_listener
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient
from tests.doors.kafka.test_strangers import DENIED, TELLS_NOTHING, codes_in, request_about

THERE, NOT_THERE = "globex.secret", "globex.absent"
ACME, GLOBEX = TenantId("acme"), TenantId("globex")
ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
RULED, UNRULED = AccessConfig(is_on=True), AccessConfig(knows_who=True)
MEMBER = {
    "group_id": "acme.g",
    "member_epoch": 0,
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout": requests.SECOND,
    "server_assignor": None,
    "topic_partitions": (),
}


@pytest.fixture(scope="module", params=[RULED, UNRULED], ids=["rules", "no-rules"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DoorThread]:
    config = BrokerConfig(access=request.param)
    opened = DoorThread(
        tmp_path_factory.mktemp("data"), config, KafkaConfig(), listener=ASKING, auth=AuthConfig()
    )
    for tenant in (ACME, GLOBEX):
        opened.run(create_tenant(opened.broker, CreateTenant(name=tenant, tenant_id=tenant)))
    for name in (THERE, "acme.mine"):
        opened.run(create_topic(opened.broker, CreateTopic(name=name, partitions=1)))
        opened.run(publish(opened.broker, Publish(topic=TopicName(name), messages=[Message(b"hush")])))
    opened.run(join_assigned(opened.broker, JoinAssigned(group=THERE, client_id="c", topics=(THERE,))))
    yield opened
    opened.close()


_made: dict[tuple[int, TenantId | None], NewKey] = {}


def client_of(door: DoorThread, tenant: TenantId | None) -> RawClient:
    """Somebody with all roles that there are, who has logged in."""
    made = _made.get((door.port, tenant))
    if made is None:
        made = _made[door.port, tenant] = make_key()
        key = Key(
            key_id=made.key_id,
            name="k",
            prefix=made.prefix,
            digest=made.digest,
            created_ms=0,
            roles=tuple(Role),
            tenant=tenant,
        )
        door.run(create_key(door.broker, CreateKey(key=key)))
    raw = RawClient(door.port)
    raw.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    login = f"\0{made.key_id}\0{made.secret}".encode()
    assert raw.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=login).error_code is ErrorCode.none
    return raw


def ask(raw: RawClient, key: ApiKey, thing: str) -> tuple[set[ErrorCode], str]:
    version, fields = request_about(key, thing)
    reply = raw.ask(key, version, **fields)
    codes: set[ErrorCode] = {code for code in codes_in(reply) if code is not ErrorCode.none}
    return codes, repr(reply).replace(thing, "…")


@pytest.mark.parametrize("key", [ApiKey(key) for key in APIS], ids=lambda key: key.name)
def test_a_neighbour_cannot_tell_what_is_there(door: DoorThread, key: ApiKey) -> None:
    if key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
        return  # are about who asks
    with client_of(door, ACME) as raw:
        codes, text = ask(raw, key, THERE)
    with client_of(door, ACME) as raw:
        assert (codes, text) == ask(raw, key, NOT_THERE)
    assert "globex" not in text
    if key in TELLS_NOTHING:
        assert not codes
    else:
        assert codes and codes <= DENIED, f"{codes or text}"


def test_lists_hold_what_is_the_tenants(door: DoorThread) -> None:
    with client_of(door, ACME) as raw:
        shown = raw.ask(ApiKey.METADATA, 12, **requests.metadata()).topics
        assert [topic.name for topic in shown] == ["acme.mine"]
        assert "globex" not in repr(raw.ask(ApiKey.LIST_GROUPS, 5, states_filter=(), types_filter=()))
    with client_of(door, None) as raw:
        shown = raw.ask(ApiKey.METADATA, 12, **requests.metadata()).topics
        assert {topic.name for topic in shown} >= {"acme.mine", THERE}


def test_an_id_of_a_neighbours_topic_is_nobodys(door: DoorThread) -> None:
    there = door.broker.metadata.topics[TopicName(THERE)].topic_id
    answers = []
    for topic_id in (there, UUID(int=there.int ^ 1)):
        with client_of(door, ACME) as raw:
            [topic] = raw.ask(ApiKey.METADATA, 12, **requests.metadata(topic_id=topic_id)).topics
            answers.append((topic.error_code, topic.name, topic.partitions))
    assert answers[0] == answers[1]
    assert answers[0][0] is ErrorCode.unknown_topic_id


@pytest.mark.parametrize("pattern", [".*", "globex.*", "acme.*|globex.*", "(?i)acme\\..*"])
def test_a_pattern_finds_nothing_beyond_the_border(door: DoorThread, pattern: str) -> None:
    with client_of(door, ACME) as raw:
        wanted = MEMBER | {"member_id": "m1", "subscribed_topic_names": (), "subscribed_topic_regex": pattern}
        reply = raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **wanted)
    assert reply.error_code is ErrorCode.topic_authorization_failed
    assert "globex.s" not in repr(reply)


def test_a_pattern_within_the_border_is_served(door: DoorThread) -> None:
    with client_of(door, ACME) as raw:
        wanted = MEMBER | {
            "member_id": "m2",
            "subscribed_topic_names": (),
            "subscribed_topic_regex": "acme\\..*",
        }
        reply = raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **wanted)
    assert reply.error_code is ErrorCode.none


@pytest.mark.parametrize("key", [ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT])
@pytest.mark.parametrize("thing", [THERE, NOT_THERE])
def test_nobody_subscribes_to_a_neighbours_topic(door: DoorThread, key: ApiKey, thing: str) -> None:
    with client_of(door, ACME) as raw:
        wanted = MEMBER | {
            "group_id": f"acme.{key.name}",
            "member_id": "m3",
            "subscribed_topic_names": (thing,),
            "subscribed_topic_regex": None,
        }
        reply = raw.ask(key, 1, **wanted)
    assert reply.error_code is ErrorCode.topic_authorization_failed
    assert reply.assignment is None


def test_a_certificate_is_of_the_tenant_that_its_user_is_of(door: DoorThread, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    rules = "RULE:^CN=(.*?),.*$/$1/L"
    port = door.listen(tls_listener(certificates.shown(ClientAuth.REQUIRE, rules=rules)))
    name = f"ann-{port}"
    door.run(create_user(door.broker, CreateUser(name=name, tenant=ACME)))
    with connected(certificates, name, port) as raw:
        assert "globex" not in repr(raw.ask(ApiKey.METADATA, 12, **requests.metadata()))
        read = raw.ask(ApiKey.FETCH, 12, **requests.fetch(THERE, 0))
        assert set(codes_in(read)) & DENIED


def test_who_becomes_a_tenants_while_connected_is_hung_up_on(door: DoorThread, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    rules = "RULE:^CN=(.*?),.*$/$1/L"
    port = door.listen(tls_listener(certificates.shown(ClientAuth.REQUIRE, rules=rules)))
    name = f"bob-{port}"
    with connected(certificates, name, port) as raw:
        raw.ask(ApiKey.API_VERSIONS, 0)
        door.run(create_user(door.broker, CreateUser(name=name, tenant=ACME)))
        assert raw.is_closed()


def test_who_is_disabled_is_hung_up_on_and_their_certificate_opens_no_more(
    door: DoorThread, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    port = door.listen(tls_listener(certificates.shown(ClientAuth.REQUIRE, rules="RULE:^CN=(.*?),.*$/$1/L")))
    name = f"cid-{port}"
    door.run(create_user(door.broker, CreateUser(name=name)))
    with connected(certificates, name, port) as raw:
        raw.ask(ApiKey.API_VERSIONS, 0)
        door.run(set_user_disabled(door.broker, SetUserDisabled(name=name, is_disabled=True)))
        assert raw.is_closed()
    with connected(certificates, name, port) as raw:
        assert raw.is_closed()


def test_who_is_connected_when_their_tenant_is_deleted_is_hung_up_on(door: DoorThread) -> None:
    tenant = TenantId("doomed")
    door.run(create_tenant(door.broker, CreateTenant(name=tenant, tenant_id=tenant)))
    with client_of(door, tenant) as raw:
        raw.ask(ApiKey.API_VERSIONS, 0)
        door.run(delete_tenant(door.broker, DeleteTenant(tenant_id=tenant)))
        assert raw.is_closed()


def connected(certificates: Certificates, name: str, port: int) -> RawClient:
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    return RawClient(0, over=certificates.trust(name).wrap_socket(plain, server_hostname="127.0.0.1"))
