"""Rules of who may do what, through Kafka's own clients."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from goqueue.edge.kafka.config import KafkaConfig
from goqueue.model.settings import AccessConfig, BrokerConfig
from tests.doors.kafka.door_thread import DoorThread

_any: Any = None
"""In a filter; the types of the library do not know it."""


def rules_like(kind: ResourceType, name: str | None, pattern: ResourcePatternType) -> AclBindingFilter:
    return AclBindingFilter(kind, name or _any, pattern, _any, _any, AclOperation.ANY, AclPermissionType.ANY)


ANY = rules_like(ResourceType.ANY, None, ResourcePatternType.ANY)


@pytest.fixture
def admin(tmp_path: Path) -> Iterator[AdminClient]:
    config = BrokerConfig(access=AccessConfig(is_on=True, super_users=("User:ANONYMOUS",)))
    door = DoorThread(tmp_path, config, KafkaConfig())
    yield AdminClient({"bootstrap.servers": f"127.0.0.1:{door.port}"})
    door.close()


def binding(
    name: str,
    *,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
    operation: AclOperation = AclOperation.READ,
    permission: AclPermissionType = AclPermissionType.ALLOW,
) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, pattern, "User:ann", "*", operation, permission)


def all_rules(admin: AdminClient) -> set[str]:
    return {str(rule) for rule in admin.describe_acls(ANY).result(timeout=20)}


def test_rules_are_created_described_and_deleted(admin: AdminClient) -> None:
    wanted = [
        binding("orders"),
        binding("acme.", pattern=ResourcePatternType.PREFIXED, operation=AclOperation.ALL),
        binding("orders", operation=AclOperation.WRITE, permission=AclPermissionType.DENY),
    ]
    for future in admin.create_acls(wanted).values():
        future.result(timeout=20)
    for future in admin.create_acls(wanted[:1]).values():
        future.result(timeout=20)  # once more is no error, and no second rule
    assert all_rules(admin) == {str(rule) for rule in wanted}
    fitting = rules_like(ResourceType.TOPIC, "acme.orders", ResourcePatternType.MATCH)
    found = admin.describe_acls(fitting).result(timeout=20)
    assert {str(rule) for rule in found} == {str(wanted[1])}
    [deleted] = admin.delete_acls([fitting]).values()
    assert {str(rule) for rule in deleted.result(timeout=20)} == {str(wanted[1])}
    assert all_rules(admin) == {str(wanted[0]), str(wanted[2])}


def test_a_rule_that_nobody_could_go_by_is_refused(admin: AdminClient) -> None:
    [future] = admin.create_acls(
        [
            AclBinding(
                ResourceType.TOPIC,
                "orders",
                ResourcePatternType.LITERAL,
                "ann",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
        ]
    ).values()
    with pytest.raises(KafkaException, match="User:NAME"):
        future.result(timeout=20)


def test_super_users_go_on_as_before(admin: AdminClient) -> None:
    [created] = admin.create_topics([NewTopic("orders", 1)]).values()
    created.result(timeout=20)
    assert "orders" in admin.list_topics(timeout=20).topics
