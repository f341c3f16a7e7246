"""Whoever has been allowed nothing gets nothing over HTTP: every operation is tried, and none is forgotten.

The document of the API is what is walked, so a new operation fails here until it is said what it needs.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from goqueue.broker.access.verbs import add_rules, bind_role, remove_rules
from goqueue.broker.tenants.verbs import create_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.http.app import api_document
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.model.access import AddRules, Binding, BindRole, Operation, RemoveRules, ResourceKind, Role, Rule
from goqueue.model.commands import Publish
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.settings import AccessConfig, AuditConfig, BrokerConfig
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import TenantId
from goqueue.model.topics import CreateTopic
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from tests.doors.http.running_door import RunningDoor

ANYBODY = "User:ANONYMOUS"
OPEN = {"health", "healthz", "livez", "readyz", "version", "listSchemaTypes", "listContexts"}
"""Tell nothing of what is stored."""
LISTS = {
    "listTopics", "listGroups", "listSinks", "listSubjects", "listTransactions", "listTraces", "searchTraces",
    "stats", "watchOffsets", "initProducer",
}  # fmt: skip
"""Are answered, without what whoever asks may not see."""
HIDDEN = {
    "getSchema", "getSchemaShort", "listSubjectsOfSchema", "listVersionsOfSchema", "getSchemaByGuid",
    "getTrace",
}  # fmt: skip
"""Things without a name of their own: those that are somebody else's are not there."""
RECEIPT = "secret:0:0:1:0000000000000001"
PLACES = {
    "topic": "secret", "partition": "0", "offset": "0", "group": "secret", "subject": "secret",
    "version": "1", "schema_id": "1", "guid": "00000000-0000-0000-0000-000000000001", "sink": "secret",
    "name": "secret", "producer": "1", "transaction": "secret", "trace_id": "1" * 32,
    "tenant_id": "secret", "backup_id": "secret", "reassignment_id": "secret", "node": "node-1",
    "rule": "0", "key_id": "secret", "principal": "ann", "role": "viewer",
}  # fmt: skip
QUERIES: dict[str, dict[str, str | int]] = {
    "splitPartition": {"from": 0, "until": 1},
    "memberAssignment": {"member_id": "m"},
    "poll": {"member_id": "m"},
    "stageBatches": {"epoch": 1, "stage": "s", "generation": 1},
}
SCHEMA = {"schema": '"string"'}
BODIES: dict[str, Any] = {
    "createTopic": {"name": "fresh"},
    "alterTopic": {"settings": {"retention.ms": "1"}},
    "addPartitions": {"count": 9},
    "acceptLoss": {"end_offset": 0},
    "publishMessages": {"messages": [{"value": "x"}]},
    "watchOffsets": {"pattern": ".*"},
    "offsetsAt": {"topics": ["secret"], "time_ms": 0},
    "commitEpoch": {"epoch": 1, "generation": 1, "stages": []},
    "abortStages": {"epoch": 1, "generation": 1, "stages": []},
    "joinGroup": {"client_id": "c", "topics": ["secret"]},
    "heartbeatGroup": {"member_id": "m", "generation": 1},
    "leaveGroup": {"member_id": "m"},
    "commitOffsets": {"member_id": "m", "generation": 1, "offsets": {"secret": {"0": 1}}},
    "resetOffsets": {"topics": ["secret"], "to": "earliest"},
    "joinCooperatively": {"client_id": "c", "topics": ["secret"]},
    "heartbeatCooperatively": {"member_id": "m", "generation": 1},
    "revokePartitions": {"member_id": "m", "generation": 1, "revoked_partitions": []},
    "leaveCooperatively": {"member_id": "m"},
    "ackMessages": {"receipt_handle": RECEIPT},
    "nackMessages": {"receipt_handle": RECEIPT},
    "rejectMessages": {"receipt_handle": RECEIPT},
    "extendVisibility": {"receipt_handle": RECEIPT, "timeout": "1s"},
    "findSchema": SCHEMA,
    "registerSchema": SCHEMA,
    "testCompatibility": SCHEMA,
    "testCompatibilityAll": SCHEMA,
    "setCompatibility": {"compatibility": "NONE"},
    "setSubjectCompatibility": {"compatibility": "NONE"},
    "setValidation": {"validationEnabled": True},
    "setSubjectValidation": {"validationEnabled": True},
    "setRegistryMode": {"mode": "READWRITE"},
    "setSubjectMode": {"mode": "READWRITE"},
    "moveDelayed": {"delay": "1s"},
    "createSchedule": {"name": "s", "cron": "* * * * *", "message": {"value": "x"}},
    "initProducer": {},
    "beatProducer": {"epoch": 0, "transactional_id": "secret"},
    "beginTransaction": {"transactional_id": "secret", "producer_id": 1, "epoch": 0},
    "publishOnce": {"topic": "secret", "value": "x", "producer_id": 1, "epoch": 0, "sequence": 0},
    "addPartition": {
        "transactional_id": "secret", "producer_id": 1, "epoch": 0, "topic": "secret", "partition": 0,
    },
    "addOffsets": {
        "transactional_id": "secret", "producer_id": 1, "epoch": 0, "group_id": "secret",
        "offsets": {"secret": {"0": 1}},
    },
    "commitTransaction": {"transactional_id": "secret", "producer_id": 1, "epoch": 0},
    "abortTransaction": {"transactional_id": "secret", "producer_id": 1, "epoch": 0},
    "createTenant": {"name": "fresh"},
    "createKey": {"name": "k", "roles": ["admin"]},
    "createUser": {"name": "eve", "password": "long enough, surely"},
    "changePassword": {"password": "long enough, surely"},
    "setQuotas": {},
    "suspendTenant": {"reason": "because"},
    "createReassignment": {"partitions": [{"topic": "secret", "partition": 0, "new_replicas": ["node-1"]}]},
    "addAcl": {"principal": "*", "resource_type": "topic", "resource_name": "*", "operation": "all"},
    "bindRole": {"principal": "ann", "role": "admin"},
}  # fmt: skip


def operations() -> list[tuple[str, str, str]]:
    paths = msgspec.json.decode(api_document())["paths"]
    return [
        (told["operationId"], method, path)
        for path, item in paths.items()
        for method, told in item.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    config = BrokerConfig(access=AccessConfig(is_on=True))
    with RunningDoor(tmp_path_factory.mktemp("data"), HttpConfig(wait_ms_max=5), config) as running:
        running.run(create_topic(running.broker, CreateTopic(name="secret")))
        running.run(publish(running.broker, Publish(topic=TopicName("secret"), messages=[Message(b"hush")])))
        yield running


def entries_of(topic: str) -> bytes:
    """A message to a topic, as it is sent in bulk."""
    [batch] = encode([Message(b"x")], now_ms=0)
    return encode_entry(TopicPartition(TopicName(topic), 0), batch.lane, bytes(batch.body))


def ask(running: RunningDoor, name: str, method: str, path: str) -> tuple[int, str]:
    content: dict[str, Any] = {}
    if name in ("appendBatches", "stageBatches"):
        content = {"content": entries_of("secret")}
    elif name == "uploadBackup":
        content = {"content": b"{}"}
    elif method in ("post", "put", "patch"):
        content = {"json": BODIES.get(name, {})}
    reply = running.client.request(method.upper(), path.format(**PLACES), params=QUERIES.get(name), **content)
    return reply.status_code, reply.text


@pytest.mark.parametrize(("name", "method", "path"), operations(), ids=lambda value: str(value))
def test_a_stranger_gets_nothing(running: RunningDoor, name: str, method: str, path: str) -> None:
    status, text = ask(running, name, method, path)
    if name in OPEN:
        assert status == 200, text
    elif name in LISTS:
        assert status == 200, text
        assert "secret" not in text
    elif name in HIDDEN:
        assert status in (403, 404), text
        assert "secret" not in text
    else:
        # Users and keys are kept by administrators who have said who they are.
        refused = 401 if path.startswith(("/admin/keys", "/admin/users")) else 403
        assert status == refused, f"{name}: {status} {text}"


@pytest.fixture
def other(tmp_path: Path) -> Iterator[RunningDoor]:
    config = BrokerConfig(access=AccessConfig(is_on=True))
    with RunningDoor(tmp_path, HttpConfig(wait_ms_max=5), config) as running:
        yield running


def test_a_tenants_developer_works_within_the_names_of_the_tenant(other: RunningDoor) -> None:
    other.run(create_tenant(other.broker, CreateTenant(name="acme", tenant_id="acme")))
    other.run(create_topic(other.broker, CreateTopic(name="other.orders")))
    binding = Binding(principal=ANYBODY, role=Role.DEVELOPER, tenant=TenantId("acme"))
    other.run(bind_role(other.broker, BindRole(binding=binding)))
    client = other.client
    assert client.post("/topics", json={"name": "acme.orders"}).status_code == 201
    assert client.post("/topics", json={"name": "orders"}).status_code == 403
    messages = {"messages": [{"value": "x"}]}
    assert client.post("/topics/acme.orders/messages", json=messages).status_code == 200
    refused = client.post("/topics/other.orders/messages", json=messages)
    assert refused.status_code == 403
    assert refused.json()["code"] == "topic_not_allowed"
    assert client.get("/topics").json()["topics"] == ["acme.orders"]
    assert list(client.get("/stats").json()["topic_stats"]) == ["acme.orders"]
    assert client.get("/admin/tenants").status_code == 403
    assert client.get("/metrics").status_code == 403


def test_a_commit_of_several_topics_keeps_those_that_may_be_read_and_tells_of_the_others(
    other: RunningDoor,
) -> None:
    for name in ("mine", "theirs"):
        other.run(create_topic(other.broker, CreateTopic(name=name)))
    rights = [(ResourceKind.GROUP, "readers"), (ResourceKind.TOPIC, "mine")]
    rules = [Rule(principal=ANYBODY, kind=kind, name=name, operation=Operation.READ) for kind, name in rights]
    other.run(add_rules(other.broker, AddRules(rules=rules)))

    both = {"offsets": {"mine": {"0": 0}, "theirs": {"0": 0}}}
    kept = other.client.post("/groups/readers/offsets", json=both)
    refused = other.client.post("/groups/readers/offsets", json={"offsets": {"theirs": {"0": 0}}})
    none = other.client.post("/groups/others/offsets", json={"offsets": {"mine": {"0": 0}}})

    assert kept.status_code == 200
    assert kept.json()["offsets"] == {"mine": {"0": 0}}
    told = [(each["topic"], each["code"]) for each in kept.json()["errors"]]
    assert told == [("theirs", "topic_not_allowed")]
    assert (refused.status_code, refused.json()["code"]) == (403, "topic_not_allowed")
    assert (none.status_code, none.json()["code"]) == (403, "group_not_allowed")


def test_rules_are_written_with_stars_and_taken_back(other: RunningDoor) -> None:
    admin = Binding(principal=ANYBODY, role=Role.ADMIN)
    other.run(bind_role(other.broker, BindRole(binding=admin)))
    client = other.client
    wanted = {"principal": "ann", "resource_type": "topic", "operation": "read"}
    for name in ("orders", "orders*", "*-dlq", "*"):
        added = client.post("/admin/acls", json=wanted | {"resource_name": name})
        assert added.status_code == 201
        assert added.json()["acl"]["ResourceName"] == name
    shown = client.get("/admin/acls").json()
    patterns = {acl["resource_name"]: acl["pattern_type"] for acl in shown["acls"]}
    assert patterns == {"orders": "literal", "orders*": "prefixed", "*-dlq": "glob", "*": "literal"}
    assert {acl["principal"] for acl in shown["acls"]} == {"User:ann"}
    by_name, by_place = shown["acls"][3]["rule_id"], "0"
    for rule in (by_name, by_place):
        assert client.delete(f"/admin/acls/{rule}").status_code == 200
    assert client.get("/admin/acls").json()["count"] == 2
    assert client.delete("/admin/acls/none").status_code == 404
    for wrong in ({"effect": "maybe"}, {"operation": "fly"}, {"resource_type": "cluster"}, {"principal": ""}):
        assert client.post("/admin/acls", json=wanted | {"resource_name": "x"} | wrong).status_code == 400


def test_roles_are_given_and_taken(other: RunningDoor) -> None:
    admin = Binding(principal=ANYBODY, role=Role.ADMIN)
    other.run(bind_role(other.broker, BindRole(binding=admin)))
    client = other.client
    assert client.post("/admin/roles", json={"principal": "ann", "role": "readonly"}).status_code == 201
    nobody = {"principal": "ann", "role": "viewer", "tenant": "nobody"}
    assert client.post("/admin/roles", json=nobody).status_code == 404
    shown = client.get("/admin/roles").json()["bindings"]
    assert {"principal": "User:ann", "role": "viewer"} in shown
    assert client.delete("/admin/roles/ann/viewer").status_code == 200
    assert client.delete("/admin/roles/ann/viewer").status_code == 404


def test_what_a_list_leaves_out_is_no_refusal_that_is_written_down(tmp_path: Path) -> None:
    config = BrokerConfig(access=AccessConfig(is_on=True, audit=AuditConfig(is_on=True)))
    with RunningDoor(tmp_path, HttpConfig(), config) as running:
        running.run(create_topic(running.broker, CreateTopic(name="secret")))
        assert running.client.get("/topics").json()["topics"] == []
        assert running.client.get("/topics/secret").status_code == 403
        running.run(running.broker.audit.drain())
        assert running.broker.audit.written == 1


def test_rules_outlive_a_restart(tmp_path: Path) -> None:
    config = BrokerConfig(access=AccessConfig(is_on=True))
    rule = Rule(principal=ANYBODY, kind=ResourceKind.TOPIC, name="t", operation=Operation.ALL)
    with RunningDoor(tmp_path, HttpConfig(), config) as running:
        running.run(add_rules(running.broker, AddRules(rules=[rule])))
    with RunningDoor(tmp_path, HttpConfig(), config) as running:
        assert running.client.post("/topics", json={"name": "t"}).status_code == 201
        running.run(remove_rules(running.broker, RemoveRules(rules=[rule])))
        assert running.client.get("/topics/t").status_code == 403


def test_who_shows_a_key_is_written_down_once_an_hour(tmp_path: Path) -> None:
    config = BrokerConfig(access=AccessConfig(is_on=True, audit=AuditConfig(is_on=True)))
    listener = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
    auth = AuthConfig(root_key="a root key that is long enough")
    with RunningDoor(tmp_path, HttpConfig(), config, listener=listener, auth=auth) as running:
        for _ in range(3):
            running.client.get("/topics", headers={"x-api-key": auth.root_key})
        running.run(running.broker.audit.drain())
        assert running.broker.audit.written == 1
