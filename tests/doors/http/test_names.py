"""Names over HTTP: what a client names into being keeps to one rule, and a path is read as it was written."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from goqueue.broker.groups.offsets import begin_commit
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import Membership, TopicCommit
from goqueue.model.ids import TopicName
from tests.doors.http.running_door import RunningDoor

LONG = "a" * 10_000
BAD_NAMES = ["a\x00b", "a\nb", "\x1b[31mred", "a\u202eb", LONG]
OLD = "from\x00before\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDoor]:
    with RunningDoor(tmp_path_factory.mktemp("data")) as running:
        assert running.client.post("/topics", json={"name": "orders", "num_partitions": 1}).status_code == 201
        yield running


def refused(reply: httpx.Response, code: str, status: int = 400) -> None:
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text
    assert len(reply.text) < 1_000


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_a_client_names_into_being_keeps_to_the_rule(client: httpx.Client, name: str) -> None:
    path = quote(name, safe="")
    join = {"client_id": "c", "topics": ["orders"]}
    offsets = {"offsets": {"orders": {"0": 0}}}
    schedule = {"cron": "0 3 * * *", "message": {"value": "x"}}

    refused(client.post(f"/groups/{path}/join", json=join), "invalid_group_name")
    refused(client.post(f"/groups/{path}/join/cooperative", json=join), "invalid_group_name")
    refused(client.post(f"/groups/{path}/offsets", json=offsets), "invalid_group_name")
    refused(client.post("/groups/g/join", json={**join, "client_id": name}), "invalid_name")
    refused(client.post("/producers/init", json={"transactional_id": name}), "invalid_name")
    refused(client.post("/topics/orders/schedules", json={"name": name, **schedule}), "invalid_name")
    refused(client.post(f"/sinks/{path}/generations"), "invalid_name")
    refused(client.post("/sinks/s/generations", params={"writer": name}), "invalid_name")
    refused(
        client.post(f"/schemas/subjects/{path}/versions", json={"schema": '"int"'}), "invalid_subject", 422
    )
    refused(client.put(f"/schemas/config/{path}", json={"compatibility": "NONE"}), "invalid_subject", 422)
    refused(client.put(f"/schemas/mode/{path}", json={"mode": "READONLY"}), "invalid_subject", 422)
    refused(client.post("/admin/tenants", json={"name": name}), "invalid_name")
    refused(client.post("/topics", json={"name": name}), "invalid_topic_name")
    assert client.get("/groups").json()["groups"] == []
    assert client.get("/schemas/subjects").json() == []


@pytest.mark.parametrize("name", [".", ".."])
def test_no_schedule_is_called_by_a_place_in_a_path(client: httpx.Client, name: str) -> None:
    body = {"name": name, "cron": "0 3 * * *", "message": {"value": "x"}}

    refused(client.post("/topics/orders/schedules", json=body), "invalid_name")


def test_a_nul_in_a_path_parts_nothing(running: RunningDoor) -> None:
    client = running.client
    client.post("/groups/a%2Fb/join", json={"client_id": "c", "topics": ["orders"]})

    assert client.get("/groups/a%2Fb").json()["group_id"] == "a/b"
    refused(client.get("/groups/a%00b"), "group_not_found", 404)
    refused(client.get("/groups%00a%2Fb"), "no_such_route", 404)
    refused(client.get("/nowhere%2Fa%00b"), "no_such_route", 404)
    assert client.delete("/groups/a%2Fb").status_code == 200


@pytest.mark.parametrize("name", ["%ED%A0%80", "a%FF", "%C3"])
def test_a_path_that_is_no_text_names_nothing(client: httpx.Client, name: str) -> None:
    join = {"client_id": "c", "topics": ["orders"]}

    refused(client.post(f"/groups/{name}/join", json=join), "invalid")
    refused(client.get(f"/topics/{name}"), "invalid")

    assert client.get(f"/topics/{quote('�')}").json()["code"] == "topic_not_found", "that is a character too"


def test_an_encoded_slash_leads_to_no_other_route(client: httpx.Client) -> None:
    message = {"messages": [{"value": "x"}]}

    assert client.post("/topics/orders%2Fmessages", json=message).json()["code"] == "method_not_allowed"
    refused(client.get("/groups/a%2Fpoll?member_id=m"), "group_not_found", 404)
    assert client.get("/topics/orders/partitions/0/messages").json()["messages"] == []


def test_a_group_from_before_the_rule_is_listed_used_and_deleted(running: RunningDoor) -> None:
    async def commit_as_before() -> None:
        await JournalSet.ensure(running.broker.coordinator.journals, OLD)
        commit = TopicCommit(TopicName("orders"), [(0, 0, -1, "")])
        begin_commit(running.broker, CommitOffsets(Membership(OLD, "", -1), [commit]))

    running.run(commit_as_before())
    client, path = running.client, f"/groups/{quote(OLD, safe='')}"

    assert client.get("/groups").json()["groups"] == [OLD]
    assert client.get(path).json()["group_id"] == OLD
    assert client.post(f"{path}/offsets", json={"offsets": {"orders": {"0": 0}}}).status_code == 200
    assert client.delete(path).status_code == 200
    assert client.get("/groups").json()["groups"] == []
