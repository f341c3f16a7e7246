"""A tenant has as many connections as its quota says; a Kafka client beyond that is hung up on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.tenants.verbs import create_tenant
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import AccessConfig, BrokerConfig
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import Quotas
from tests.doors.kafka import requests
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.test_neighbours import ACME, ASKING, client_of


@pytest.fixture
def door(tmp_path: Path) -> Iterator[DoorThread]:
    config = BrokerConfig(access=AccessConfig(knows_who=True))
    opened = DoorThread(tmp_path, config, KafkaConfig(), listener=ASKING, auth=AuthConfig())
    command = CreateTenant(name=ACME, tenant_id=ACME, quotas=Quotas(max_connections=1))
    opened.run(create_tenant(opened.broker, command))
    yield opened
    opened.close()


def test_one_connection_too_many_is_hung_up_on(door: DoorThread) -> None:
    account = door.broker.tenants.account(ACME)
    with client_of(door, ACME) as first:
        with pytest.raises(ConnectionError):
            client_of(door, ACME)
        assert (account.connections, account.violations) == (1, {"connections": 1})
        assert first.ask(ApiKey.METADATA, 12, **requests.metadata()).topics == ()
        with client_of(door, None) as operator:
            operator.ask(ApiKey.METADATA, 12, **requests.metadata())
    with client_of(door, None) as operator:
        while account.connections:
            assert operator.ask(ApiKey.API_VERSIONS, 0).error_code is ErrorCode.none
    with client_of(door, ACME) as third:
        assert third.ask(ApiKey.METADATA, 12, **requests.metadata()).topics == ()
    assert account.connections in (0, 1)
