"""Whoever is a tenant's learns nothing over HTTP of another tenant's things, whatever roles they have.

Every operation of the API is asked twice by an administrator of one tenant: about things of another that are
there, and about things that are not. The answers say the same, so nobody can find out by asking.
"""

import re
from collections.abc import Iterator
from uuid import UUID

import msgspec
import pytest

from goqueue.broker.access.identities import create_key, create_user
from goqueue.broker.groups.assigned import join_assigned
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.tenants.verbs import create_tenant
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.publish import publish
from goqueue.edge.authentication import AuthConfig
from goqueue.edge.credentials import make_key
from goqueue.edge.http.config import HttpConfig
from goqueue.edge.listening import Listener, SecurityProtocol
from goqueue.model.access import Role
from goqueue.model.commands import Publish
from goqueue.model.group_commands import JoinAssigned
from goqueue.model.identity import ApiKey
from goqueue.model.identity_commands import CreateKey, CreateUser
from goqueue.model.ids import TopicName
from goqueue.model.messages import Message
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText
from goqueue.model.settings import AccessConfig, BrokerConfig, TracingConfig
from goqueue.model.tenant_commands import CreateTenant
from goqueue.model.tenants import TenantId
from goqueue.model.topics import CreateTopic
from tests.doors.http.running_door import RunningDoor
from tests.doors.http.test_strangers import (
    BODIES,
    HIDDEN,
    LISTS,
    OPEN,
    PLACES,
    QUERIES,
    entries_of,
    operations,
)

THERE, NOT_THERE = "globex.secret", "globex.absent"
ASKING = Listener(name="sasl_plaintext", protocol=SecurityProtocol.SASL_PLAINTEXT)
_HEX = re.compile(r"\b[0-9a-f-]+\b")
_NUMBER = re.compile(r"[0-9.]+")
ACME, GLOBEX = TenantId("acme"), TenantId("globex")
RULED, UNRULED = AccessConfig(is_on=True), AccessConfig(knows_who=True)


def key_for(running: RunningDoor, tenant: TenantId | None, *, user: str = "") -> dict[str, str]:
    """The header of somebody with all roles that there are."""
    made = make_key()
    key = ApiKey(
        key_id=made.key_id,
        name="k",
        prefix=made.prefix,
        digest=made.digest,
        created_ms=0,
        roles=tuple(Role),
        user=user,
        tenant=tenant,
    )
    running.run(create_key(running.broker, CreateKey(key=key)))
    return {"x-api-key": made.secret}


def settle_in(running: RunningDoor) -> None:
    """Give both tenants a thing of each kind."""
    for tenant in (ACME, GLOBEX):
        running.run(create_tenant(running.broker, CreateTenant(name=tenant, tenant_id=tenant)))
    broker = running.broker
    running.run(create_topic(broker, CreateTopic(name=THERE, partitions=1)))
    running.run(create_topic(broker, CreateTopic(name=THERE + ".dlq", partitions=1)))
    running.run(publish(broker, Publish(topic=TopicName(THERE), messages=[Message(b"hush")])))
    schema = SchemaText(SchemaKind.AVRO, '"string"', ())
    running.run(register_schema(broker, RegisterSchema(subject=THERE, schema=schema)))
    running.run(join_assigned(broker, JoinAssigned(group=THERE, client_id="c", topics=(THERE,))))
    client = running.client
    admin = key_for(running, None)
    producer = {"transactional_id": THERE}
    assert client.post("/producers/init", json=producer, headers=admin).status_code == 200
    schedule = {"name": THERE, "cron": "* * * * *", "message": {"value": "x"}}
    assert client.post(f"/topics/{THERE}/schedules", json=schedule, headers=admin).status_code == 201


@pytest.fixture(scope="module", params=[RULED, UNRULED], ids=["rules", "no-rules"])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningDoor]:
    config = BrokerConfig(access=request.param, tracing=TracingConfig(sampling=1.0))
    with RunningDoor(
        tmp_path_factory.mktemp("data"),
        HttpConfig(wait_ms_max=5),
        config,
        listener=ASKING,
        auth=AuthConfig(),
    ) as running:
        settle_in(running)
        running.client.headers.update(key_for(running, ACME))
        yield running


def ask(running: RunningDoor, name: str, method: str, path: str, thing: str) -> tuple[int, str]:
    """What is answered about a thing, with another word in its place."""
    places = {place: thing if value == "secret" else value for place, value in PLACES.items()}
    body: bytes | None = None
    if name in ("appendBatches", "stageBatches"):
        body = entries_of(thing)
    elif method in ("post", "put", "patch"):
        wanted = {"transactional_id": "secret"} if name == "initProducer" else BODIES.get(name, {})
        body = msgspec.json.encode(wanted).replace(b"secret", thing.encode())
        body = body.replace(b'"fresh"', f'"{thing}"'.encode())
    reply = running.client.request(method, path.format(**places), params=QUERIES.get(name), content=body)
    text = _NUMBER.sub("#", reply.text) if name in {*OPEN, "stats"} else reply.text  # it tells the time
    return reply.status_code, text.replace(thing, "…")


@pytest.mark.parametrize(("name", "method", "path"), operations(), ids=lambda value: str(value))
def test_a_neighbour_cannot_tell_what_is_there(
    running: RunningDoor, name: str, method: str, path: str
) -> None:
    status, text = ask(running, name, method, path, THERE)
    assert (status, text) == ask(running, name, method, path, NOT_THERE)
    if name in OPEN:
        assert status == 200
        return
    assert "globex" not in text
    if name in LISTS - {"initProducer"}:
        assert status == 200, text
    elif name in HIDDEN:
        assert status == 404, text
    elif name not in GLOBAL_SETTINGS:
        assert status == 403, f"{status} {text}"


GLOBAL_SETTINGS = {"getCompatibility", "getValidation", "getRegistryMode"}
"""What holds for subjects that say nothing of themselves is told to all who may read any."""


def test_what_has_only_a_number_is_not_there_for_a_neighbour(running: RunningDoor) -> None:
    client, admin = running.client, key_for(running, None)
    [trace] = client.get("/traces/search", params={"topic": THERE}, headers=admin).json()["traces"][:1]
    schema = client.get(f"/schemas/subjects/{THERE}/versions/1", headers=admin).json()
    pairs = [
        (f"/traces/{trace['trace_id']}", f"/traces/{'1' * 32}"),
        (f"/schemas/ids/{schema['id']}", "/schemas/ids/99"),
        (f"/schemas/schemas/ids/{schema['id']}/subjects", "/schemas/schemas/ids/99/subjects"),
        (f"/schemas/schemas/ids/{schema['id']}/versions", "/schemas/schemas/ids/99/versions"),
        (f"/schemas/schemas/guids/{schema['guid']}", "/schemas/schemas/guids/" + str(UUID(int=1))),
    ]
    for there, not_there in pairs:
        assert client.get(there, headers=admin).status_code == 200, there
        answers = {path: client.get(path) for path in (there, not_there)}
        assert {reply.status_code for reply in answers.values()} == {404}, there
        said = {reply.text.replace(path.split("/")[-1], "") for path, reply in answers.items()}
        said = {_HEX.sub("#", text) for text in said}
        assert len(said) == 1, said


def test_a_tenant_works_with_its_own_things(running: RunningDoor) -> None:
    client = running.client
    assert client.post("/topics", json={"name": "acme.mine"}).status_code == 201
    assert client.post("/topics", json={"name": "mine"}).status_code == 403
    stored = client.post("/topics/acme.mine/messages", json={"messages": [{"value": "x"}]})
    assert stored.status_code == 200
    assert client.get("/topics").json()["topics"] == ["acme.mine"]
    joined = client.post("/groups/acme.g/join", json={"client_id": "c", "topics": ["acme.mine"]})
    assert joined.status_code == 200
    assert client.get("/groups").json()["groups"] == ["acme.g"]
    crossed = client.post("/groups/acme.g/join", json={"client_id": "c", "topics": [THERE]})
    assert crossed.status_code == 403


def test_schemas_that_two_tenants_have_are_told_to_each_as_its_own(running: RunningDoor) -> None:
    client = running.client
    made = client.post("/schemas/subjects/acme.same/versions", json={"schema": '"string"'}).json()
    shown = client.get(f"/schemas/ids/{made['id']}").json()
    assert shown["subject"] == "acme.same"
    assert client.get(f"/schemas/schemas/ids/{made['id']}/subjects").json() == ["acme.same"]


@pytest.mark.parametrize("thing", [THERE, NOT_THERE])
def test_a_schema_is_not_built_on_what_a_neighbour_has(running: RunningDoor, thing: str) -> None:
    body = {
        "schema": '{"type":"record","name":"r","fields":[]}',
        "references": [{"name": "s", "subject": thing, "version": 1}],
    }
    reply = running.client.post("/schemas/subjects/acme.built/versions", json=body)
    assert reply.status_code == 403, reply.text


def test_a_tenant_does_not_choose_ids_which_are_those_of_all(running: RunningDoor) -> None:
    client, admin = running.client, key_for(running, None)
    wanted = {"schema": '"double"', "id": 2**31 - 1, "version": 1}
    assert client.put("/schemas/mode/acme.moved", json={"mode": "IMPORT"}).status_code == 200
    for schema_id in (1, 2**31 - 1):  # taken by a neighbour, and the last there is
        reply = client.post("/schemas/subjects/acme.moved/versions", json=wanted | {"id": schema_id})
        assert reply.status_code == 403, reply.text
    moved = client.post("/schemas/subjects/acme.moved/versions", json=wanted | {"id": 1_000}, headers=admin)
    assert (moved.status_code, moved.json()["id"]) == (200, 1_000)


def test_nobody_writes_into_a_neighbours_transaction_by_guessing_its_producer(running: RunningDoor) -> None:
    client, owner = running.client, key_for(running, GLOBEX)
    assert client.post("/topics", json={"name": "acme.guessed"}).status_code == 201
    given = client.post("/producers/init", json={"transactional_id": "globex.pay"}, headers=owner).json()
    producer = {"producer_id": given["producer_id"], "epoch": given["epoch"]}
    begun = client.post(
        "/transactions/begin", json=producer | {"transactional_id": "globex.pay"}, headers=owner
    )
    assert begun.status_code == 200
    wanted = producer | {"topic": "acme.guessed", "partition": 0, "value": "x", "sequence": 0}
    for changed in ({}, {"epoch": 5}, {"producer_id": 10_000_000}):
        reply = client.post("/transactions/publish", json=wanted | changed)
        assert (reply.status_code, reply.json()["code"]) == (404, "producer_not_found"), reply.text
        assert "globex" not in reply.text
    own = client.post("/producers/init", json={}).json()
    wanted |= {"producer_id": own["producer_id"], "epoch": own["epoch"]}
    assert client.post("/transactions/publish", json=wanted).status_code == 200


def test_a_key_of_a_user_is_of_the_users_tenant(running: RunningDoor) -> None:
    running.run(create_user(running.broker, CreateUser(name="carl", tenant=ACME)))
    header = key_for(running, None, user="carl")
    assert running.client.get(f"/topics/{THERE}", headers=header).status_code == 403
    assert running.client.get("/metrics", headers=header).status_code == 403


def test_whoever_is_no_tenants_sees_all(running: RunningDoor) -> None:
    header = key_for(running, None)
    assert THERE in running.client.get("/topics", headers=header).json()["topics"]
    assert running.client.get("/metrics", headers=header).status_code == 200
