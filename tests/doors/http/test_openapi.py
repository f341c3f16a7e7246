"""The OpenAPI document says what is served; `test_openapi_promises` tries what it promises."""

from collections.abc import Iterator

import httpx
import pytest

from goqueue.edge.http.app import _framework, api_document
from goqueue.edge.http.config import HttpConfig
from goqueue.testing.world.holds import HOLD_MS_MAX
from tests.doors.http.running_door import RunningDoor


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        yield running


def test_the_document_names_every_operation(running: RunningDoor) -> None:
    document = running.client.get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    operations = {
        (method.upper(), path)
        for path, item in document["paths"].items()
        for method in item
        if method != "servers"
    }
    assert operations == {
        ("GET", "/admin/keys"),
        ("POST", "/admin/keys"),
        ("DELETE", "/admin/keys/{key_id}"),
        ("POST", "/admin/keys/{key_id}/rotate"),
        ("GET", "/admin/users"),
        ("POST", "/admin/users"),
        ("DELETE", "/admin/users/{name}"),
        ("PUT", "/admin/users/{name}/password"),
        ("POST", "/admin/users/{name}/disable"),
        ("POST", "/admin/users/{name}/enable"),
        ("GET", "/admin/acls"),
        ("POST", "/admin/acls"),
        ("DELETE", "/admin/acls/{rule}"),
        ("GET", "/admin/roles"),
        ("POST", "/admin/roles"),
        ("DELETE", "/admin/roles/{principal}/{role}"),
        ("GET", "/health"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/livez"),
        ("GET", "/version"),
        ("GET", "/stats"),
        ("GET", "/cluster/state"),
        ("GET", "/cluster/health"),
        ("GET", "/cluster/partition/{topic}/{partition}/info"),
        ("GET", "/metrics"),
        ("POST", "/topics"),
        ("GET", "/topics"),
        ("GET", "/topics/{topic}"),
        ("PATCH", "/topics/{topic}"),
        ("DELETE", "/topics/{topic}"),
        ("GET", "/topics/{topic}/partitions"),
        ("POST", "/topics/{topic}/messages"),
        ("GET", "/topics/{topic}/partitions/{partition}/messages"),
        ("GET", "/topics/{topic}/partitions/{partition}/frames"),
        ("GET", "/topics/{topic}/partitions/{partition}/splits"),
        ("POST", "/offsets"),
        ("POST", "/offsets/at"),
        ("POST", "/batches"),
        ("GET", "/sinks"),
        ("GET", "/sinks/{sink}"),
        ("DELETE", "/sinks/{sink}"),
        ("POST", "/sinks/{sink}/generations"),
        ("POST", "/sinks/{sink}/stages"),
        ("POST", "/sinks/{sink}/commits"),
        ("POST", "/sinks/{sink}/aborts"),
        ("GET", "/groups"),
        ("GET", "/groups/{group}"),
        ("DELETE", "/groups/{group}"),
        ("POST", "/groups/{group}/join"),
        ("POST", "/groups/{group}/heartbeat"),
        ("POST", "/groups/{group}/leave"),
        ("GET", "/groups/{group}/offsets"),
        ("POST", "/groups/{group}/offsets"),
        ("POST", "/groups/{group}/offsets/reset"),
        ("GET", "/groups/{group}/lag"),
        ("POST", "/groups/{group}/join/cooperative"),
        ("POST", "/groups/{group}/heartbeat/cooperative"),
        ("POST", "/groups/{group}/leave/cooperative"),
        ("POST", "/groups/{group}/revoke"),
        ("GET", "/groups/{group}/assignment"),
        ("GET", "/groups/{group}/cooperative"),
        ("GET", "/groups/{group}/rebalance/stats"),
        ("GET", "/rebalance/stats"),
        ("GET", "/groups/{group}/poll"),
        ("POST", "/messages/ack"),
        ("POST", "/messages/nack"),
        ("POST", "/messages/reject"),
        ("POST", "/messages/visibility"),
        ("GET", "/topics/{topic}/dlq"),
        ("POST", "/topics/{topic}/dlq/redrive"),
        ("GET", "/reliability/stats"),
        ("GET", "/priority/stats"),
        ("GET", "/topics/{topic}/delayed"),
        ("GET", "/topics/{topic}/delayed/{offset}"),
        ("DELETE", "/topics/{topic}/delayed/{partition}/{offset}"),
        ("POST", "/topics/{topic}/delayed/{partition}/{offset}/move"),
        ("GET", "/delay/stats"),
        ("GET", "/topics/{topic}/schedules"),
        ("POST", "/topics/{topic}/schedules"),
        ("GET", "/topics/{topic}/schedules/{name}"),
        ("DELETE", "/topics/{topic}/schedules/{name}"),
        ("POST", "/topics/{topic}/schedules/{name}/pause"),
        ("POST", "/topics/{topic}/schedules/{name}/resume"),
        ("POST", "/admin/topics/{topic}/compact"),
        ("POST", "/admin/topics/{topic}/partitions"),
        ("POST", "/admin/topics/{topic}/partitions/{partition}/accept-loss"),
        ("GET", "/admin/topics/{topic}/scaling-status"),
        ("POST", "/admin/topics/{topic}/partitions/{partition}/accept-loss"),
        ("POST", "/admin/tenants"),
        ("GET", "/admin/tenants"),
        ("GET", "/admin/tenants/{tenant_id}"),
        ("PATCH", "/admin/tenants/{tenant_id}"),
        ("DELETE", "/admin/tenants/{tenant_id}"),
        ("POST", "/admin/tenants/{tenant_id}/suspend"),
        ("POST", "/admin/tenants/{tenant_id}/activate"),
        ("POST", "/admin/tenants/{tenant_id}/disable"),
        ("GET", "/admin/tenants/{tenant_id}/quotas"),
        ("PUT", "/admin/tenants/{tenant_id}/quotas"),
        ("GET", "/admin/tenants/{tenant_id}/usage/hours"),
        ("GET", "/admin/tenants/{tenant_id}/usage"),
        ("POST", "/admin/tenants/{tenant_id}/usage/reset"),
        ("GET", "/admin/tenants/{tenant_id}/stats"),
        ("GET", "/admin/tenants/{tenant_id}/topics"),
        ("GET", "/admin/tenants/{tenant_id}/groups"),
        ("POST", "/admin/reassignment"),
        ("GET", "/admin/reassignment"),
        ("GET", "/admin/reassignment/{reassignment_id}"),
        ("DELETE", "/admin/reassignment/{reassignment_id}"),
        ("POST", "/admin/decommission/{node}"),
        ("GET", "/admin/decommission/{node}"),
        ("DELETE", "/admin/decommission/{node}"),
        ("POST", "/admin/elections"),
        ("POST", "/admin/backup"),
        ("GET", "/admin/backup"),
        ("GET", "/admin/backup/{backup_id}"),
        ("PUT", "/admin/backup/{backup_id}"),
        ("DELETE", "/admin/backup/{backup_id}"),
        ("GET", "/admin/backup/{backup_id}/metadata"),
        ("POST", "/admin/backup/{backup_id}/restore"),
        ("POST", "/admin/backup/whole"),
        ("GET", "/admin/tenants/{tenant_id}/usage/hours"),
        ("GET", "/admin/backup/whole"),
        ("DELETE", "/admin/backup/whole/{backup_id}"),
        ("POST", "/producers/init"),
        ("POST", "/producers/{producer}/heartbeat"),
        ("POST", "/schemas/compatibility/subjects/{subject}/versions"),
        ("POST", "/schemas/compatibility/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/validation"),
        ("PUT", "/schemas/validation"),
        ("DELETE", "/schemas/validation/{subject}"),
        ("GET", "/schemas/validation/{subject}"),
        ("PUT", "/schemas/validation/{subject}"),
        ("DELETE", "/schemas/config"),
        ("GET", "/schemas/config"),
        ("PUT", "/schemas/config"),
        ("DELETE", "/schemas/config/{subject}"),
        ("GET", "/schemas/config/{subject}"),
        ("PUT", "/schemas/config/{subject}"),
        ("GET", "/schemas/contexts"),
        ("GET", "/schemas/ids/{schema_id}"),
        ("GET", "/schemas/mode"),
        ("PUT", "/schemas/mode"),
        ("DELETE", "/schemas/mode/{subject}"),
        ("GET", "/schemas/mode/{subject}"),
        ("PUT", "/schemas/mode/{subject}"),
        ("GET", "/schemas/schemas/guids/{guid}"),
        ("GET", "/schemas/schemas/ids/{schema_id}"),
        ("GET", "/schemas/schemas/ids/{schema_id}/subjects"),
        ("GET", "/schemas/schemas/ids/{schema_id}/versions"),
        ("GET", "/schemas/schemas/types"),
        ("GET", "/schemas/stats"),
        ("GET", "/schemas/subjects"),
        ("DELETE", "/schemas/subjects/{subject}"),
        ("POST", "/schemas/subjects/{subject}"),
        ("GET", "/schemas/subjects/{subject}/versions"),
        ("POST", "/schemas/subjects/{subject}/versions"),
        ("DELETE", "/schemas/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/subjects/{subject}/versions/{version}"),
        ("GET", "/schemas/subjects/{subject}/versions/{version}/referencedby"),
        ("GET", "/schemas/subjects/{subject}/versions/{version}/schema"),
        ("GET", "/schemas/validation"),
        ("PUT", "/schemas/validation"),
        ("DELETE", "/schemas/validation/{subject}"),
        ("GET", "/schemas/validation/{subject}"),
        ("PUT", "/schemas/validation/{subject}"),
        ("GET", "/topics/{topic}/partitions/{partition}/offsets/{offset}/trace"),
        ("GET", "/traces"),
        ("GET", "/traces/search"),
        ("GET", "/traces/stats"),
        ("GET", "/traces/{trace_id}"),
        ("GET", "/transactions"),
        ("POST", "/transactions/abort"),
        ("POST", "/transactions/add-offsets"),
        ("POST", "/transactions/add-partition"),
        ("POST", "/transactions/begin"),
        ("POST", "/transactions/commit"),
        ("POST", "/transactions/publish"),
        ("GET", "/transactions/stats"),
        ("POST", "/transactions/{transaction}/abort"),
    }


def test_every_operation_says_that_it_may_be_refused(running: RunningDoor) -> None:
    document = running.client.get("/openapi.json").json()

    operations = [
        (path, method, operation["responses"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "servers"
    ]
    assert [one[:2] for one in operations if not {"401", "403"} <= set(one[2])] == []
    assert set(document["components"]["securitySchemes"]) == {"bearer", "key", "basic"}
    assert {} in document["security"]  # where nobody is asked, nothing is shown


def test_browsers_are_told_what_they_may_make_of_replies(running: RunningDoor) -> None:
    for path in ("/topics", "/docs", "/healthz", "/nothing"):
        headers = running.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    policy = running.client.get("/docs").headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


def test_the_document_is_drawn_when_it_is_asked_for_and_not_on_the_loop(running: RunningDoor) -> None:
    def ask_first() -> None:
        api_document.cache_clear()
        assert running.client.get("/openapi.json").status_code == 200

    _framework.cache_clear()
    api_document.cache_clear()
    _framework(HttpConfig().json_bytes)
    assert api_document.cache_info().currsize == 0
    assert running.longest_hold(ask_first) < HOLD_MS_MAX


def test_the_docs_page_needs_nothing_from_elsewhere(running: RunningDoor) -> None:
    page = running.client.get("/docs")

    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "/openapi.json" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text


def test_the_document_has_a_schema_for_every_reference(running: RunningDoor) -> None:
    reply: httpx.Response = running.client.get("/openapi.json")
    known = set(reply.json()["components"]["schemas"])
    told = {part.split('"')[0] for part in reply.text.split("#/components/schemas/")[1:]}

    assert told <= known
