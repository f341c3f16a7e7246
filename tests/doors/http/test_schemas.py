"""The schema registry through the HTTP door: both sets of keys, errors that its clients know."""

import json

import httpx
import pytest

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
    assert register(client, "orders-value", OBJECT).json() == {
        "id": 1,
        "version": 1,
        "subject": "orders-value",
    }

    found = client.get("/schemas/subjects/orders-value/versions/latest").json()

    assert found == {
        "subject": "orders-value",
        "version": 1,
        "id": 1,
        "schema": OBJECT,
        "schemaType": "JSON",
    }
    for path in ("/schemas/ids/1", "/schemas/schemas/ids/1", "/v1/schemas/ids/1"):
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
        "subject shop%2Forders does not exist"
    )
    assert client.get("/schemas/subjects/shop/orders/versions").status_code == 404
    assert client.get("/topics/a%2Fb").json()["code"] == "topic_not_found"
