"""Every call by what it asks of a node: nothing that was given is left out, and the door knows all of it."""

import inspect
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
import pytest

from goqueue.client.call import Call, Reply
from goqueue.client.calls import (
    access,
    admin,
    backups,
    cluster,
    dead_letters,
    delayed,
    groups,
    log,
    messages,
    queue,
    schedules,
    schemas,
    tenants,
    topics,
    traces,
    transactions,
)
from goqueue.client.calls.transactions import ProducerId, Speaker
from goqueue.client.messages import Outgoing
from goqueue.edge.http.app import api_document
from goqueue.wire.schemas import SchemaReference

MODULES: tuple[ModuleType, ...] = (
    admin,
    access,
    backups,
    dead_letters,
    delayed,
    groups,
    log,
    messages,
    queue,
    schedules,
    schemas,
    tenants,
    topics,
    traces,
    transactions,
)
AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
TOLD = "2030-01-02T03:04:05+00:00"
SPEAKER = Speaker(ProducerId(7, 2), "teller")
WHO = {"producer_id": 7, "epoch": 2, "transactional_id": "teller"}


class Receipt(NamedTuple):
    receipt: str


ONCE = False
"""Marks a call that is not sent again when its reply was lost."""

Case = tuple[Call[Any], str, object, bool]

CASES: list[Case] = [
    (admin.health(), "GET /health", None, True),
    (admin.ready(), "GET /readyz?verbose=true", None, True),
    (admin.ready(verbose=False), "GET /readyz", None, True),
    (admin.version(), "GET /version", None, True),
    (admin.stats(), "GET /stats", None, True),
    (admin.cluster_state(), "GET /cluster/state", None, True),
    (admin.cluster_health(), "GET /cluster/health", None, True),
    (cluster.partition("a", 3), "GET /cluster/partition/a/3/info", None, True),
    (admin.reliability_stats(), "GET /reliability/stats", None, True),
    (admin.priority_stats(), "GET /priority/stats", None, True),
    (admin.metrics(), "GET /metrics", None, True),
    (
        backups.create(topics=False, offsets=True, schemas=False, config=True),
        "POST /admin/backup",
        {
            "include_topics": False,
            "include_offsets": True,
            "include_schemas": False,
            "include_config": True,
        },
        ONCE,
    ),
    (
        access.add_rule("ann", "read", "topic", "orders*", deny=True),
        "POST /admin/acls",
        {
            "principal": "ann",
            "operation": "read",
            "resource_type": "topic",
            "resource_name": "orders*",
            "effect": "deny",
        },
        True,
    ),
    (access.rules(), "GET /admin/acls", None, True),
    (access.remove_rule("r"), "DELETE /admin/acls/r", None, ONCE),
    (access.bind_role("ann", "viewer"), "POST /admin/roles", {"principal": "ann", "role": "viewer"}, True),
    (access.roles(), "GET /admin/roles", None, True),
    (access.unbind_role("ann", "admin", tenant="t"), "DELETE /admin/roles/ann/admin?tenant=t", None, ONCE),
    (backups.list_backups(), "GET /admin/backup", None, True),
    (backups.get("b"), "GET /admin/backup/b", None, True),
    (backups.download("b"), "GET /admin/backup/b/metadata", None, True),
    (backups.upload("b", b'{"a": 1}'), "PUT /admin/backup/b", {"a": 1}, ONCE),
    (backups.delete("b"), "DELETE /admin/backup/b", None, ONCE),
    (backups.begin_whole(), "POST /admin/backup/whole", None, ONCE),
    (backups.list_whole(), "GET /admin/backup/whole", None, True),
    (backups.delete_whole("b"), "DELETE /admin/backup/whole/b", None, ONCE),
    (
        backups.restore("b", skip_existing=True, data_follows=True),
        "POST /admin/backup/b/restore",
        {"skip_existing": True, "data_follows": True},
        True,
    ),
    (
        dead_letters.list_letters("t", limit=3, partition=0, offset=0),
        "GET /topics/t/dlq?limit=3&partition=0&offset=0",
        None,
        True,
    ),
    (
        dead_letters.redrive(
            "t",
            reason="REJECTED",
            group="g",
            key="k",
            since=AT,
            until=AT + timedelta(hours=1),
            rate=2.5,
            limit=9,
            dry_run=True,
        ),
        "POST /topics/t/dlq/redrive",
        {
            "filter": {
                "reason": ["REJECTED"],
                "group": "g",
                "key": "k",
                "since": TOLD,
                "until": TOLD.replace("T03", "T04"),
            },
            "rate": 2.5,
            "limit": 9,
            "dry_run": True,
        },
        True,
    ),
    (
        dead_letters.redrive("t", reason=("REJECTED", "EXPIRED")),
        "POST /topics/t/dlq/redrive",
        {"filter": {"reason": ["REJECTED", "EXPIRED"]}, "dry_run": False},
        True,
    ),
    (dead_letters.redrive("t"), "POST /topics/t/dlq/redrive", {"dry_run": False}, True),
    (delayed.list_delayed("t", limit=2, skip=0), "GET /topics/t/delayed?limit=2&skip=0", None, True),
    (delayed.get("t", 0), "GET /topics/t/delayed/0", None, True),
    (delayed.cancel("t", 1, 5), "DELETE /topics/t/delayed/1/5", None, ONCE),
    (delayed.move("t", 1, 5, deliver_at=AT), "POST /topics/t/delayed/1/5/move", {"deliverAt": TOLD}, True),
    # Twice would be later than asked for.
    (delayed.move("t", 1, 5, delay=1.5), "POST /topics/t/delayed/1/5/move", {"delay": "1500ms"}, ONCE),
    (delayed.stats(), "GET /delay/stats", None, True),
    (groups.list_groups(), "GET /groups", None, True),
    (groups.list_groups(internal=True), "GET /groups?internal=true", None, True),
    (groups.describe("g"), "GET /groups/g", None, True),
    (groups.delete("g"), "DELETE /groups/g", None, ONCE),
    (groups.lag("g"), "GET /groups/g/lag", None, True),
    (groups.offsets("g"), "GET /groups/g/offsets", None, True),
    (groups.offsets("g", topic="t"), "GET /groups/g/offsets?topic=t", None, True),
    (
        groups.commit_offsets("g", {"t": {0: 5, 1: 0}, "u": {"2": 1}}),
        "POST /groups/g/offsets",
        {"offsets": {"t": {"0": 5, "1": 0}, "u": {"2": 1}}},
        True,
    ),
    (
        groups.reset_offsets("g", to="earliest", topics=("t",), partition=0, dry_run=True, force=True),
        "POST /groups/g/offsets/reset",
        {"to": "earliest", "topics": ["t"], "partition": 0, "dry_run": True, "force": True},
        True,
    ),
    (
        groups.reset_offsets("g", to=AT),
        "POST /groups/g/offsets/reset",
        {"to": TOLD, "dry_run": False, "force": False},
        True,
    ),
    (
        groups.reset_offsets("g", to={"t": {0: 5}}),
        "POST /groups/g/offsets/reset",
        {"to": {"t": {"0": 5}}, "dry_run": False, "force": False},
        True,
    ),
    (log.extents(log.Which(topics=("t", "u"))), "POST /offsets", {"topics": ["t", "u"]}, True),
    (
        log.extents(log.Which(topics=("t",), pattern="t.*"), past={"t": {"0": 4}}, wait_ms=70),
        "POST /offsets",
        {"pattern": "t.*", "past": {"t": {"0": 4}}, "wait": "70ms"},
        True,
    ),
    # Whoever does not wait need not say for what.
    (log.extents(log.Which(topics=("t",)), past={"t": {"0": 4}}), "POST /offsets", {"topics": ["t"]}, True),
    (log.offsets_at(("t",), time_ms=9), "POST /offsets/at", {"topics": ["t"], "time_ms": 9}, True),
    (
        log.splits("t", 1, first_offset=0, end_offset=9, split_bytes=100),
        "GET /topics/t/partitions/1/splits?from=0&until=9&bytes=100",
        None,
        True,
    ),
    (
        log.frames("t", 1, offset=0, max_bytes=100),
        "GET /topics/t/partitions/1/frames?offset=0&max_bytes=100",
        None,
        True,
    ),
    (
        messages.publish_many("t", [Outgoing("a"), Outgoing(b"\xff", b"k")], acks="leader"),
        "POST /topics/t/messages",
        {
            "messages": [{"value": "a"}, {"value": "/w==", "key": "aw==", "encoding": "base64"}],
            "acks": "leader",
        },
        ONCE,
    ),
    (
        messages.publish(
            "t",
            {"a": 1},
            key="k",
            headers={"h": "x"},
            partition=0,
            priority="low",
            delay=timedelta(seconds=2),
            deliver_at=AT,
            ttl=60,
            acks="none",
        ),
        "POST /topics/t/messages",
        {
            "messages": [
                {
                    "value": '{"a":1}',
                    "key": "k",
                    "headers": {"h": "x"},
                    "partition": 0,
                    "priority": "low",
                    "delay": "2000ms",
                    "deliverAt": TOLD,
                    "ttl": "60000ms",
                }
            ],
            "acks": "none",
        },
        ONCE,
    ),
    (messages.append_batches(b"", acks="leader"), "POST /batches?acks=leader", b"", True),
    (messages.read_page("t", 2), "GET /topics/t/partitions/2/messages?offset=0", None, True),
    (
        messages.read_page("t", 2, offset=5, limit=3, wait=0.5),
        "GET /topics/t/partitions/2/messages?offset=5&limit=3&wait=500ms",
        None,
        True,
    ),
    (
        messages.read_page("t", offset=5, at=AT),
        f"GET /topics/t/partitions/0/messages?from_time={TOLD}",
        None,
        True,
    ),
    (messages.extents(["t"]), "POST /offsets", {"topics": ["t"]}, True),
    (
        messages.offsets_at(["t"], AT + timedelta(microseconds=1_999)),
        "POST /offsets/at",
        {"topics": ["t"], "time_ms": 1_893_553_445_001},
        True,
    ),
    (
        queue.join(
            "g",
            client_id="c",
            topics=("t",),
            mode="eager",
            key_order=True,
            session_timeout=9,
            member_id="m",
        ),
        "POST /groups/g/join",
        {
            "client_id": "c",
            "topics": ["t"],
            "mode": "eager",
            "key_order": True,
            "session_timeout": "9000ms",
            "member_id": "m",
        },
        True,
    ),
    (
        queue.join("g", client_id="c", topics=["t"]),
        "POST /groups/g/join",
        {"client_id": "c", "topics": ["t"]},
        True,
    ),
    (queue.heartbeat("g", "m"), "POST /groups/g/heartbeat", {"member_id": "m"}, True),
    (queue.leave("g", "m"), "POST /groups/g/leave", {"member_id": "m"}, True),
    (
        queue.poll("g", "m", limit=4, wait=2, visibility=timedelta(seconds=30)),
        "GET /groups/g/poll?member_id=m&limit=4&timeout=2000ms&visibility_timeout=30000ms",
        None,
        True,
    ),
    (queue.poll("g", "m"), "GET /groups/g/poll?member_id=m&timeout=0ms", None, True),
    (queue.ack(("a", "b")), "POST /messages/ack", {"receipt_handles": ["a", "b"]}, True),
    (
        queue.nack(["a"], delay=0, reason="r"),
        "POST /messages/nack",
        {"receipt_handles": ["a"], "delay": "0ms", "reason": "r"},
        True,
    ),
    (
        queue.reject(["a"], reason="r"),
        "POST /messages/reject",
        {"receipt_handles": ["a"], "reason": "r"},
        True,
    ),
    (
        queue.extend(["a"], 1),
        "POST /messages/visibility",
        {"receipt_handles": ["a"], "timeout": "1000ms"},
        True,
    ),
    (
        schedules.create(
            "t",
            "0 9 * * *",
            "v",
            name="n",
            time_zone="Asia/Tokyo",
            key="k",
            headers=[("h", "x")],
            priority="high",
        ),
        "POST /topics/t/schedules",
        {
            "cron": "0 9 * * *",
            "message": {"value": "v", "key": "k", "headers": {"h": "x"}, "priority": "high"},
            "name": "n",
            "time_zone": "Asia/Tokyo",
        },
        ONCE,
    ),
    (schedules.list_schedules("t"), "GET /topics/t/schedules", None, True),
    (schedules.get("t", "n"), "GET /topics/t/schedules/n", None, True),
    (schedules.pause("t", "n"), "POST /topics/t/schedules/n/pause", None, True),
    (schedules.resume("t", "n"), "POST /topics/t/schedules/n/resume", None, True),
    (schedules.delete("t", "n"), "DELETE /topics/t/schedules/n", None, ONCE),
    (schemas.subjects(), "GET /schemas/subjects", None, True),
    (schemas.versions("s"), "GET /schemas/subjects/s/versions", None, True),
    (schemas.get("s"), "GET /schemas/subjects/s/versions/latest", None, True),
    (schemas.get("s", 2), "GET /schemas/subjects/s/versions/2", None, True),
    (schemas.by_id(5), "GET /schemas/ids/5", None, True),
    (
        schemas.register(
            "s", "{}", schema_type="AVRO", references=[SchemaReference(name="n", subject="o", version=1)]
        ),
        "POST /schemas/subjects/s/versions",
        {
            "schema": "{}",
            "schemaType": "AVRO",
            "references": [{"name": "n", "subject": "o", "version": 1}],
        },
        True,
    ),
    (
        schemas.check("s", "{}", schema_type="JSON"),
        "POST /schemas/compatibility/subjects/s/versions?verbose=true",
        {"schema": "{}", "schemaType": "JSON"},
        True,
    ),
    (
        schemas.check("s", "{}", version=3),
        "POST /schemas/compatibility/subjects/s/versions/3?verbose=true",
        {"schema": "{}"},
        True,
    ),
    (schemas.delete("s"), "DELETE /schemas/subjects/s", None, ONCE),
    (
        schemas.delete("s", 2, permanent=True),
        "DELETE /schemas/subjects/s/versions/2?permanent=true",
        None,
        ONCE,
    ),
    (schemas.compatibility(), "GET /schemas/config", None, True),
    (schemas.compatibility("s"), "GET /schemas/config/s?defaultToGlobal=true", None, True),
    (schemas.set_compatibility("FULL"), "PUT /schemas/config", {"compatibility": "FULL"}, True),
    (
        schemas.set_compatibility("NONE", subject="s"),
        "PUT /schemas/config/s",
        {"compatibility": "NONE"},
        True,
    ),
    (
        tenants.create("n", tenant_id="i", description="d", quotas={"max_topics": 3}, metadata={"a": "b"}),
        "POST /admin/tenants",
        {"id": "i", "name": "n", "description": "d", "quotas": {"max_topics": 3}, "metadata": {"a": "b"}},
        ONCE,
    ),
    (tenants.list_tenants(status="active"), "GET /admin/tenants?status=active", None, True),
    (tenants.get("i"), "GET /admin/tenants/i", None, True),
    (
        tenants.update("i", name="n", description="", metadata={}),
        "PATCH /admin/tenants/i",
        {"name": "n", "description": "", "metadata": {}},
        True,
    ),
    (tenants.delete("i"), "DELETE /admin/tenants/i", None, ONCE),
    (tenants.delete("i", force=True), "DELETE /admin/tenants/i?force=true", None, ONCE),
    (tenants.suspend("i", reason="r"), "POST /admin/tenants/i/suspend", {"reason": "r"}, True),
    (tenants.activate("i"), "POST /admin/tenants/i/activate", None, True),
    (tenants.disable("i"), "POST /admin/tenants/i/disable", None, True),
    (tenants.quotas("i"), "GET /admin/tenants/i/quotas", None, True),
    (tenants.set_quotas("i", {"max_topics": 3}), "PUT /admin/tenants/i/quotas", {"max_topics": 3}, True),
    (tenants.usage("i"), "GET /admin/tenants/i/usage", None, True),
    (tenants.usage_hours("i", hours=2), "GET /admin/tenants/i/usage/hours?hours=2", None, True),
    (tenants.reset_usage("i"), "POST /admin/tenants/i/usage/reset", None, True),
    (tenants.stats("i"), "GET /admin/tenants/i/stats", None, True),
    (tenants.topics("i"), "GET /admin/tenants/i/topics", None, True),
    (tenants.groups("i"), "GET /admin/tenants/i/groups", None, True),
    (
        topics.create("t", partitions=2, retention_hours=3, settings={"a": None, "b": True}),
        "POST /topics",
        {
            "name": "t",
            "num_partitions": 2,
            "retention_hours": 3,
            "settings": {"a": None, "b": True},
        },
        ONCE,
    ),
    # Who does not mind that it is there does not mind asking twice.
    (topics.create("t", exist_ok=True), "POST /topics", {"name": "t"}, True),
    (topics.list_topics(), "GET /topics", None, True),
    (topics.describe("t"), "GET /topics/t", None, True),
    (topics.partitions("t"), "GET /topics/t/partitions", None, True),
    (
        topics.alter("t", {"retention.ms": "5", "flush.ms": None}),
        "PATCH /topics/t",
        {"settings": {"retention.ms": "5", "flush.ms": None}},
        True,
    ),
    (topics.add_partitions("t", 5), "POST /admin/topics/t/partitions", {"count": 5}, ONCE),
    (
        topics.compact("t", partitions=[1], dry_run=True),
        "POST /admin/topics/t/compact",
        {"partitions": [1], "dry_run": True},
        True,
    ),
    (topics.delete("t"), "DELETE /topics/t", None, ONCE),
    (
        topics.accept_loss("t", 1, end_offset=0),
        "POST /admin/topics/t/partitions/1/accept-loss",
        {"end_offset": 0},
        True,
    ),
    (traces.list_traces(limit=1), "GET /traces?limit=1", None, True),
    (
        traces.search(
            topic="t", partition=0, consumer_group="g", start=AT, end=AT, status="completed", limit=2
        ),
        f"GET /traces/search?topic=t&partition=0&consumer_group=g&start={TOLD}&end={TOLD}"
        "&status=completed&limit=2",
        None,
        True,
    ),
    (traces.get("0a"), "GET /traces/0a", None, True),
    (traces.of("t", 1, 0), "GET /topics/t/partitions/1/offsets/0/trace", None, True),
    (traces.stats(), "GET /traces/stats", None, True),
    (transactions.init_producer(), "POST /producers/init", {}, True),
    (
        transactions.init_producer("teller", timeout_ms=5_000),
        "POST /producers/init",
        {"transactional_id": "teller", "transaction_timeout_ms": 5_000},
        True,
    ),
    (transactions.begin(SPEAKER), "POST /transactions/begin", WHO, ONCE),
    (
        transactions.publish(
            SPEAKER,
            "t",
            "v",
            key="k",
            headers={"h": "x"},
            partition=0,
            priority="high",
            delay=1,
            deliver_at=AT,
            ttl=2,
        ),
        "POST /transactions/publish",
        {
            "producer_id": 7,
            "epoch": 2,
            "topic": "t",
            "value": "v",
            "key": "k",
            "headers": {"h": "x"},
            "partition": 0,
            "priority": "high",
            "delay": "1000ms",
            "deliverAt": TOLD,
            "ttl": "2000ms",
        },
        ONCE,
    ),
    (
        transactions.ack(SPEAKER, Receipt("a"), Receipt("b")),
        "POST /transactions/add-offsets",
        {**WHO, "receipt_handles": ["a", "b"]},
        True,
    ),
    (
        transactions.offsets(SPEAKER, "g", {"t": {0: 5}}),
        "POST /transactions/add-offsets",
        {**WHO, "group": "g", "offsets": {"t": {"0": 5}}},
        True,
    ),
    (transactions.commit(SPEAKER), "POST /transactions/commit", WHO, True),
    (transactions.abort(SPEAKER), "POST /transactions/abort", WHO, True),
    (transactions.list_transactions(), "GET /transactions?state=open", None, True),
    (transactions.list_transactions(finished=True), "GET /transactions?state=all", None, True),
    (transactions.stats(), "GET /transactions/stats", None, True),
    (transactions.abort_open("teller"), "POST /transactions/teller/abort", None, ONCE),
]
NAMED = [pytest.param(*case, id=f"{number}-{case[1]}") for number, case in enumerate(CASES)]


@pytest.mark.parametrize(("call", "target", "body", "is_repeatable"), NAMED)
def test_a_call_asks_for_all_that_was_given(
    call: Call[Any], target: str, body: object, is_repeatable: bool
) -> None:
    assert f"{call.method} {unquote(call.target)}" == target
    if isinstance(body, dict):
        assert call.body is not None
        assert msgspec.json.decode(call.body) == body
    else:
        assert call.body == body
    assert call.is_repeatable is is_repeatable


DOOR = msgspec.json.decode(api_document())


def resolved(shape: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the document, or what it points to."""
    if "$ref" not in shape:
        return shape
    found: Any = DOOR
    for step in shape["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return resolved(found)


def operation_of(call: Call[Any]) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    """What the door says of a call: parameters and the operation."""
    steps = call.path.split("/")
    for template, item in DOOR["paths"].items():
        names = template.split("/")
        fits = len(names) == len(steps) and all(
            name == step or name.startswith("{") for name, step in zip(names, steps, strict=True)
        )
        # Of /traces/{id} and /traces/search the one with the plain name goes first, as it does at the door.
        is_plain = template == call.path or call.path not in DOOR["paths"]
        if fits and is_plain and call.method.lower() in item:
            operation = item[call.method.lower()]
            return [*item.get("parameters", []), *operation.get("parameters", [])], operation
    raise AssertionError(f"the door has no {call.method} {call.path}")


@pytest.mark.parametrize(("call", "target", "body", "is_repeatable"), NAMED)
def test_the_door_knows_all_that_a_call_asks_for(
    call: Call[Any], target: str, body: object, is_repeatable: bool
) -> None:
    parameters, operation = operation_of(call)
    known = {one["name"] for one in map(resolved, parameters) if one["in"] == "query"}
    assert set(call.query) <= known

    if isinstance(body, dict) and body:
        content = resolved(operation["requestBody"])["content"]
        assert call.content_type in content
        shape = resolved(content[call.content_type]["schema"])
        shapes = [resolved(one) for one in shape.get("anyOf", [shape])]
        fields = {name for one in shapes for name in one.get("properties", {})}
        assert set(body) <= fields or call.content_type != "application/json"


def test_every_call_that_there_is_stands_in_the_table() -> None:
    made = {
        f"{module.__name__}.{name}"
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "Call[" in str(inspect.signature(function).return_annotation)
    }
    told = inspect.getsource(inspect.getmodule(test_every_call_that_there_is_stands_in_the_table))  # type: ignore[arg-type]  # this module
    missing = {
        name
        for name in made
        if f"({name.removeprefix('goqueue.client.calls.')}(" not in "".join(told.split())
    }
    assert missing == set()
    assert len(made) > 70


@pytest.mark.parametrize(
    ("call", "wait_ms"),
    [
        (queue.poll("g", "m", wait=2), 2_000),
        (messages.read_page("t", wait=timedelta(seconds=3)), 3_000),
        (log.extents(log.Which(), wait_ms=70), 70),
        (dead_letters.redrive("t"), 20_000),
        (topics.list_topics(), 0),
    ],
)
def test_a_node_is_given_time_for_what_it_is_asked_to_wait(call: Call[Any], wait_ms: int) -> None:
    assert call.wait_ms == wait_ms


def answer(status: int, told: object) -> Reply:
    return Reply(status, {}, msgspec.json.encode(told))


def test_a_topic_that_is_there_is_no_error_to_who_does_not_mind() -> None:
    exists = answer(409, {"error": "it is there", "status": 409, "code": "topic_exists"})
    easy, strict = topics.create("t", exist_ok=True), topics.create("t")

    assert easy.accepted(exists)
    assert not strict.accepted(exists)
    assert (easy.read(exists).name, easy.read(exists).created) == ("t", False)
    created = strict.read(answer(201, {"name": "t", "partitions": 4}))
    assert (created.partitions, created.created) == (4, True)


def test_a_node_that_is_not_ready_is_an_answer() -> None:
    call = admin.ready()
    told = answer(
        503,
        {
            "status": "fail",
            "timestamp": TOLD,
            "uptime": "1s",
            "checks": {"broker": {"status": "fail", "message": "the disk is full"}},
        },
    )
    assert call.accepted(told)
    assert not admin.health().accepted(told)


@pytest.mark.parametrize(("version", "told", "found"), [(None, [1, 2], [1, 2]), (2, 2, [2])])
def test_deleted_versions_come_as_a_list(version: int | None, told: object, found: list[int]) -> None:
    assert schemas.delete("s", version).read(answer(200, told)) == found


def test_what_was_refused_is_told_by_its_receipt() -> None:
    results = [
        {"receipt_handle": "a", "success": True},
        {
            "receipt_handle": "b",
            "success": False,
            "error": "gone",
            "code": "lease_lost",
            "status": 409,
        },
    ]
    refused = queue.ack(["a", "b"]).read(answer(200, {"results": results}))

    assert list(refused) == ["b"]
    assert (str(refused["b"]), refused["b"].code, refused["b"].status) == ("gone", "lease_lost", 409)


def test_receipts_go_in_parts_that_a_node_takes() -> None:
    limit = queue.RECEIPTS_MAX
    parts = list(queue.in_requests(range(2 * limit + 1)))

    assert [len(part) for part in parts] == [limit, limit, 1]
    assert [number for part in parts for number in part] == list(range(2 * limit + 1))
    assert list(queue.in_requests([])) == []


@pytest.mark.parametrize(
    ("told", "aside"),
    [
        ({"partition": 1, "offset": 5}, None),
        ({"partition": 1, "offset": -1, "quarantined": True}, "t.quarantine"),
    ],
)
def test_what_a_transaction_published_is_told_with_its_lane_and_whether_it_was_put_aside(
    told: object, aside: str | None
) -> None:
    placed = transactions.publish(SPEAKER, "t", "v", priority="high").read(answer(200, told))

    assert (placed.partition, placed.priority) == (1, "high")
    assert (placed.quarantined is None) == (aside is None)


def test_letters_know_where_they_lie_and_where_they_came_from() -> None:
    letter = {
        "partition": 2,
        "offset": 4,
        "timestamp": TOLD,
        "value": "v",
        "priority": "low",
        "original_topic": "t",
        "original_partition": 1,
        "original_offset": 9,
        "reason": "REJECTED",
        "delivery_attempts": 3,
        "last_group": "g",
        "last_consumer": "c",
        "last_error": "no",
        "dlq_time": TOLD,
    }
    told = {"topic": "t", "dlq_topic": "t.dlq", "messages": [letter], "next": {"2": 5}}
    found = dead_letters.list_letters("t").read(answer(200, told))

    assert (found.topic, found.dlq_topic, found.next) == ("t", "t.dlq", {"2": 5})
    [one] = found.letters
    assert (one.message.topic, one.message.partition, one.message.offset) == ("t.dlq", 2, 4)
    assert (one.original_topic, one.original_partition, one.original_offset) == ("t", 1, 9)
    assert (one.reason, one.delivery_attempts, one.last_error) == ("REJECTED", 3, "no")
    assert (one.last_group, one.last_consumer, one.dlq_time) == ("g", "c", AT)


def test_an_update_that_gives_nothing_changes_nothing() -> None:
    assert tenants.update("i").body == b"{}"
    assert topics.accept_loss("t", 0).body == b"{}"
