"""The schema registry through the HTTP door: both sets of keys, errors that its clients know."""

import json

import httpx
import pytest

from goqueue.model.schemas import SchemaKind, SchemaText

OBJECT = json.dumps(
    {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
)
WIDER = json.dumps(
    {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "additionalProperties": False,
    }
)
NARROWER = json.dumps({"type": "object", "properties": {}, "additionalProperties": False})


def register(client: httpx.Client, subject: str, schema: str, kind: str | None = "JSON") -> httpx.Response:
    body = {"schema": schema} | ({} if kind is None else {"schemaType": kind})
    return client.post(f"/schemas/subjects/{subject}/versions", json=body)


def test_a_schema_is_registered_and_found_by_version_and_id(client: httpx.Client) -> None:
    guid = str(SchemaText(SchemaKind.JSON, OBJECT).guid)
    assert register(client, "orders-value", OBJECT).json() == {
        "id": 1,
        "version": 1,
        "subject": "orders-value",
        "guid": guid,
    }

    found = client.get("/schemas/subjects/orders-value/versions/latest").json()

    assert found == {
        "subject": "orders-value",
        "version": 1,
        "id": 1,
        "guid": guid,
        "schema": OBJECT,
        "schemaType": "JSON",
    }
    for path in (
        "/schemas/ids/1",
        "/schemas/schemas/ids/1",
        "/v1/schemas/ids/1",
        f"/schemas/schemas/guids/{guid}",
    ):
        assert client.get(path).json()["schema"] == OBJECT


def test_versions_subjects_and_the_text_alone_can_be_listed(client: httpx.Client) -> None:
    register(client, "orders-value", OBJECT)
    register(client, "orders-value", WIDER)

    assert client.get("/schemas/subjects").json() == ["orders-value"]
    assert client.get("/schemas/subjects/orders-value/versions").json() == [1, 2]
    assert client.get("/schemas/subjects/orders-value/versions/2/schema").json() == json.loads(WIDER)
    assert client.get("/schemas/schemas/ids/2/versions").json() == [{"subject": "orders-value", "version": 2}]


def test_a_schema_without_a_type_is_avro_if_it_can_be_and_json_otherwise(client: httpx.Client) -> None:
    register(client, "a", '{"type": "record", "name": "A", "fields": []}', None)
    register(client, "b", OBJECT, None)

    assert client.get("/schemas/subjects/a/versions/1").json()["schemaType"] == "AVRO"
    assert client.get("/schemas/subjects/b/versions/1").json()["schemaType"] == "JSON"


def test_what_does_not_fit_is_a_conflict_that_names_the_rule(client: httpx.Client) -> None:
    register(client, "orders-value", OBJECT)

    refused = register(client, "orders-value", NARROWER)

    assert refused.status_code == 409
    assert refused.json()["error_code"] == 409
    assert "#/properties/id" in refused.json()["message"]
    assert "property_removed_from_closed_content_model" in refused.json()["error"]


def test_compatibility_can_be_asked_without_registering(client: httpx.Client) -> None:
    register(client, "orders-value", OBJECT)
    path = "/schemas/compatibility/subjects/orders-value/versions/latest"

    assert client.post(path, json={"schema": WIDER, "schemaType": "JSON"}).json() == {"is_compatible": True}
    refused = client.post(path + "?verbose=true", json={"schema": NARROWER, "schemaType": "JSON"}).json()

    assert refused["is_compatible"] is False and len(refused["messages"]) == 1


@pytest.mark.parametrize("key", ["compatibility", "compatibilityLevel"])
def test_levels_are_taken_and_given_under_both_names(client: httpx.Client, key: str) -> None:
    both = {"compatibility": "FULL_TRANSITIVE", "compatibilityLevel": "FULL_TRANSITIVE"}

    assert client.put("/schemas/config", json={key: "full_transitive"}).json() == both
    assert client.get("/schemas/config").json() == both
    assert client.get("/schemas/config/orders-value?defaultToGlobal=true").json() == both


def test_deleting_and_deleting_for_good(client: httpx.Client) -> None:
    register(client, "orders-value", OBJECT)
    register(client, "orders-value", WIDER)

    assert client.delete("/schemas/subjects/orders-value?permanent=true").json()["error_code"] == 40405
    assert client.delete("/schemas/subjects/orders-value/versions/2").json() == 2
    assert client.delete("/schemas/subjects/orders-value").json() == [1]
    assert client.delete("/schemas/subjects/orders-value?permanent=true").json() == [1, 2]
    assert client.get("/schemas/ids/1").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/schemas/subjects/missing/versions", None, 404, 40401),
        ("GET", "/schemas/subjects/orders-value/versions/9", None, 404, 40402),
        ("GET", "/schemas/ids/9", None, 404, 40403),
        ("GET", "/schemas/subjects/orders-value/versions/zero", None, 422, 42202),
        ("GET", "/schemas/config/orders-value", None, 404, 40408),
        ("POST", "/schemas/subjects/orders-value", {"schema": "{}", "schemaType": "JSON"}, 404, 40403),
        ("POST", "/schemas/subjects/a/versions", {"schema": "{", "schemaType": "JSON"}, 422, 42201),
        ("POST", "/schemas/subjects/a/versions", {"schema": "{}", "schemaType": "XML"}, 422, 42201),
        ("PUT", "/schemas/config", {"compatibility": "SIDEWAYS"}, 422, 42203),
        ("PUT", "/schemas/config", {}, 422, 42203),
        ("PUT", "/schemas/mode", {"mode": "CLOSED"}, 422, 42204),
        ("POST", "/schemas/subjects/a/versions", {"schema": "{}", "id": 4}, 422, 42205),
    ],
)
def test_errors_carry_the_numbers_that_clients_of_registries_know(
    client: httpx.Client, method: str, path: str, body: object, status: int, code: int
) -> None:
    register(client, "orders-value", OBJECT)

    refused = client.request(method, path, json=body)

    assert (refused.status_code, refused.json()["error_code"]) == (status, code)
    assert refused.json()["message"] == refused.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("GET", "/schemas/subjects/missing/versions", "Subject 'missing' not found."),
        ("GET", "/schemas/subjects/orders-value/versions/9", "Version 9 not found."),
        ("GET", "/schemas/ids/9", "Schema 9 not found"),
        (
            "GET",
            "/schemas/config/orders-value",
            "Subject 'orders-value' does not have subject-level compatibility configured",
        ),
        (
            "GET",
            "/schemas/mode/orders-value",
            "Subject 'orders-value' does not have subject-level mode configured",
        ),
        (
            "DELETE",
            "/schemas/subjects/orders-value?permanent=true",
            "Subject 'orders-value' was not deleted first before being permanently deleted",
        ),
        (
            "DELETE",
            "/schemas/subjects/orders-value/versions/1?permanent=true",
            "Subject 'orders-value' Version 1 was not deleted first before being permanently deleted",
        ),
    ],
)
def test_errors_carry_the_texts_that_clients_of_registries_know(
    client: httpx.Client, method: str, path: str, text: str
) -> None:
    register(client, "orders-value", OBJECT)

    assert client.request(method, path).json()["message"] == text


def test_a_message_may_import_a_proto_file_without_messages(client: httpx.Client) -> None:
    shared = 'syntax = "proto3"; import public "google/protobuf/timestamp.proto";'
    order = 'syntax = "proto3"; import "shared.proto"; message O { google.protobuf.Timestamp at = 1; }'
    assert register(client, "shared.proto", shared, "PROTOBUF").status_code == 200
    reference = {"name": "shared.proto", "subject": "shared.proto", "version": 1}
    body = {"schema": order, "schemaType": "PROTOBUF", "references": [reference]}

    registered = client.post("/schemas/subjects/orders-value/versions", json=body)

    assert registered.status_code == 200, registered.text


def test_numbers_are_given_for_the_older_clients_too(client: httpx.Client) -> None:
    register(client, "orders-value", OBJECT)
    register(client, "orders-value", WIDER)

    stats = client.get("/schemas/stats").json()

    assert (stats["subjects"], stats["schemas"], stats["versions"], stats["subjectCount"]) == (1, 2, 2, 1)
    assert stats["details"][0]["latestSchemaId"] == 2


def test_a_subject_may_have_a_slash_in_its_name(client: httpx.Client) -> None:
    assert register(client, "shop%2Forders%2fnew", OBJECT).json()["subject"] == "shop/orders/new"

    assert client.get("/schemas/subjects").json() == ["shop/orders/new"]
    for _ in range(2):  # the router remembers paths it has seen
        assert client.get("/schemas/subjects/shop%2Forders%2Fnew/versions").json() == [1]
    assert client.get("/schemas/subjects/shop%252Forders/versions").json()["message"] == (
        "Subject 'shop%2Forders' not found."
    )
    assert client.get("/schemas/subjects/shop/orders/versions").status_code == 404
    assert client.get("/topics/a%2Fb").json()["code"] == "topic_not_found"


def test_lists_can_be_had_in_pages_and_of_what_is_deleted_alone(client: httpx.Client) -> None:
    for subject in ("a", "b", "c"):
        register(client, subject, OBJECT)
    register(client, "a", WIDER)
    client.delete("/schemas/subjects/a/versions/1")
    client.delete("/schemas/subjects/b")

    def listed(path: str, **query: int | str) -> object:
        return client.get(f"/schemas/{path}", params=query).json()

    assert listed("subjects", deletedOnly="true") == listed("subjects", deleted_only="True") == ["b"]
    assert listed("subjects", offset=1, limit=1, deleted="true") == ["b"]
    assert listed("subjects", offset=1, limit=-1) == ["c"]
    assert listed("subjects/a/versions", deletedOnly="true") == [1]
    assert listed("schemas/ids/1/subjects", limit=1, deleted="true") == ["a"]
    assert listed("schemas/ids/1/versions", offset=1, deleted="true") == [
        {"subject": "b", "version": 1},
        {"subject": "c", "version": 1},
    ]


def test_each_refusal_has_the_number_that_registry_clients_know(client: httpx.Client) -> None:
    register(client, "a", OBJECT)
    register(client, "a", WIDER)

    def number(method: str, path: str, **query: str) -> tuple[int, int]:
        reply = client.request(method, f"/schemas/{path}", params=query)
        return reply.status_code, reply.json()["error_code"]

    assert number("DELETE", "subjects/a/versions/1", permanent="true") == (404, 40407)
    assert number("DELETE", "subjects/a", permanent="true") == (404, 40405)
    client.delete("/schemas/subjects/a/versions/1")
    assert number("DELETE", "subjects/a/versions/1") == (404, 40406)
    client.delete("/schemas/subjects/a")
    assert number("DELETE", "subjects/a") == (404, 40404)
    assert number("DELETE", "subjects/b") == (404, 40401)
    assert number("GET", "mode/a") == (404, 40409)
    assert number("GET", "config/a") == (404, 40408)


def test_a_schema_of_more_than_a_megabyte_is_refused_and_one_of_less_is_kept(client: httpx.Client) -> None:
    def described(size: int) -> str:
        return json.dumps({"type": "object", "description": "d" * size})

    reply = register(client, "large", described(1024 * 1024))

    assert (reply.status_code, reply.json()["error_code"]) == (422, 42201)
    assert "over the limit of 1048576" in reply.json()["message"]
    assert register(client, "large", described(1_000_000)).status_code == 200
    assert len(client.get("/schemas/subjects/large/versions/1").json()["schema"]) > 1_000_000
