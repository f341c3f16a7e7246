"""Schemas of an enemy: whatever they are like, they get an answer, and the loop goes on for everybody."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.schemas.check import Unchecked
from goqueue.broker.schemas.verbs import register_schema, schema_problems, set_compatibility
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.append import append, append_when_checked
from goqueue.broker.write.publish import publish
from goqueue.model.commands import Append, Placed, Publish
from goqueue.model.errors import (
    GoQueueError,
    InvalidSchema,
    SchemaCheckTooSlow,
    SchemaMismatch,
    SchemaTooComplex,
    WorkshopBusy,
)
from goqueue.model.ids import TopicName
from goqueue.model.messages import Acks, Message
from goqueue.model.schema_commands import CompareSchema, RegisterSchema, SetCompatibility
from goqueue.model.schemas import Compatibility, SchemaKind, SchemaText
from goqueue.model.settings import WorkshopConfig
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.node.workshop import WorkshopProcesses
from tests.loop_probe import LoopProbe, probed_loop
from tests.unit.broker.running import ORDERS, ORDERS_0, running
from tests.unit.broker.schemas.test_check import batch_of

pytestmark = pytest.mark.slow
HOLD_MS_MAX = 20
LIMITS = WorkshopConfig(process_count=2, job_limit_ms=500, waiting_max=20)


def doubling(depth: int = 40) -> str:
    """Each definition demands the next one twice: 2^depth looks at one value."""
    parts: dict[str, object] = {
        f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"$ref": f"#/definitions/d{n + 1}"}]}
        for n in range(depth)
    }
    parts[f"d{depth}"] = {"type": "integer"}
    return json.dumps({"$ref": "#/definitions/d0", "definitions": parts})


def growing() -> str:
    """A tree that is looked at twice on each level: it is the data that makes it long."""
    branch = {"properties": {"c": {"$ref": "#/definitions/t"}, "x": {"not": {"type": "string"}}}}
    return json.dumps(
        {"$ref": "#/definitions/t", "definitions": {"t": {"allOf": [branch, dict(branch, title="b")]}}}
    )


def nested(depth: int) -> bytes:
    return b'{"c":' * depth + b'{"x":"no"}' + b"}" * depth


def large_avro(count: int = 9_000) -> str:
    fields = [{"name": f"field_of_a_very_long_name_{n:06}", "type": ["null", "string"]} for n in range(count)]
    return json.dumps({"type": "record", "name": "Large", "fields": fields})


def tangled_avro(count: int = 600) -> str:
    """Records that hold each other, in unions of all of them."""
    names = [f"R{n}" for n in range(count)]
    types: list[object] = [
        {"type": "record", "name": name, "fields": [{"name": "f", "type": ["null", *names[:n][-30:]]}]}
        for n, name in enumerate(names)
    ]
    return json.dumps(types)


def large_protobuf(count: int = 30_000) -> str:
    fields = "".join(f"string field_of_a_long_name_{n} = {n + 1};" for n in range(count) if n < 18_000)
    return f'syntax = "proto3"; message Large {{ {fields} }}'


def wide_json(count: int = 3_000) -> str:
    return json.dumps({"oneOf": [{"const": n} for n in range(count)]})


@asynccontextmanager
async def besieged(folder: Path, limits: WorkshopConfig = LIMITS) -> AsyncIterator[tuple[Broker, LoopProbe]]:
    """A broker with real helper processes and a topic that checks its messages."""
    async with running(FolderDisk(folder)) as broker:
        threads = WorkerThreads(count=2)
        workshop = WorkshopProcesses(limits, threads)
        broker.workshop = workshop
        settings = {"goqueue.schema.validation": "full"}
        await create_topic(broker, CreateTopic(name=ORDERS, partitions=1, settings=settings))
        await create_topic(broker, CreateTopic(name="plain", partitions=1))
        try:
            with probed_loop() as probe:
                yield broker, probe
        finally:
            await workshop.close()
            threads.close()


def run(folder: Path, test: Callable[[Broker], Awaitable[None]], limits: WorkshopConfig = LIMITS) -> None:
    async def besiege() -> None:
        async with besieged(folder, limits) as (broker, probe):
            await test(broker)
            placed = await publish(
                broker, Publish(topic=TopicName("plain"), messages=[Message(b"still here")])
            )
        assert isinstance(placed[0], Placed)
        assert probe.longest_ms < HOLD_MS_MAX, probe.longest

    asyncio.run(besiege())


async def register(broker: Broker, kind: SchemaKind, text: str, subject: str = "orders-value") -> int:
    return (
        await register_schema(broker, RegisterSchema(subject=subject, schema=SchemaText(kind, text)))
    ).schema_id


async def send(broker: Broker, *values: bytes) -> list[object]:
    return list(await publish(broker, Publish(topic=ORDERS, messages=[Message(value) for value in values])))


def test_a_schema_that_doubles_its_work_refuses_the_message_and_not_the_next_ones(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        schema_id = await register(broker, SchemaKind.JSON, doubling())

        [outcome] = await send(broker, b"1")

        assert isinstance(outcome, SchemaCheckTooSlow)
        assert f"schema {schema_id} takes too long" in str(outcome)
        assert list(broker.schemas.checkers.slow) == [schema_id]
        assert broker.counters.topic(ORDERS).checks_too_slow == 1

    run(tmp_path, test)


def test_what_one_message_makes_slow_is_quick_for_others(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        await register(broker, SchemaKind.JSON, growing())

        outcomes = await send(broker, nested(3), b'{"c": {"c": {}}}', b"[]")

        assert isinstance(outcomes[0], SchemaMismatch)
        assert [isinstance(each, Placed) for each in outcomes[1:]] == [True, True]
        assert broker.counters.topic(ORDERS).checked_elsewhere == 3

    run(tmp_path, test)


def test_a_batch_of_a_kafka_producer_waits_for_the_answer_too(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        schema_id = await register(broker, SchemaKind.JSON, doubling())
        command = Append(ORDERS_0, batch_of(pack(">xI", schema_id) + b"1"), Acks.ALL)

        with pytest.raises(Unchecked):
            append(broker, command)
        with pytest.raises(SchemaMismatch, match="takes too long"):
            await append_when_checked(broker, command)

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (SchemaKind.AVRO, large_avro),
        (SchemaKind.AVRO, tangled_avro),
        (SchemaKind.PROTOBUF, large_protobuf),
        (SchemaKind.JSON, wide_json),
        (SchemaKind.JSON, lambda: '{"a":' * 100_000 + "1" + "}" * 100_000),
        (SchemaKind.PROTOBUF, lambda: "message M {" * 20_000),
        (SchemaKind.AVRO, lambda: "[" * 500_000),
    ],
)
def test_what_is_large_is_registered_and_compared_beside_the_loop_or_refused(
    tmp_path: Path, kind: SchemaKind, make: Callable[[], str]
) -> None:
    text = make()
    texts = (text, text.replace("f", "g", 1))

    async def test(broker: Broker) -> None:
        for each in texts:
            try:
                await register(broker, kind, each)
            except (InvalidSchema, SchemaTooComplex) as error:
                assert str(error)
        await send(broker, b"7", b'"x"', b"{}")

    run(tmp_path, test)


def test_comparing_with_all_that_went_before_is_done_beside_the_loop(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        await set_compatibility(broker, SetCompatibility(subject="orders-value", level=Compatibility.NONE))
        for count in (500, 501, 502):
            await register(broker, SchemaKind.JSON, wide_json(count))
        await set_compatibility(
            broker, SetCompatibility(subject="orders-value", level=Compatibility.FULL_TRANSITIVE)
        )

        try:
            problems = await schema_problems(
                broker,
                CompareSchema(subject="orders-value", schema=SchemaText(SchemaKind.JSON, wide_json(400))),
            )
        except SchemaTooComplex:
            return
        assert problems

    run(tmp_path, test)


def test_a_hundred_hostile_registrations_at_once_do_not_keep_others_from_theirs(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        attack = [
            asyncio.ensure_future(register(broker, SchemaKind.PROTOBUF, _slow_proto(n), f"s{n}"))
            for n in range(100)
        ]
        outcomes = await asyncio.gather(*attack, return_exceptions=True)

        assert all(isinstance(each, int | GoQueueError) for each in outcomes), outcomes
        assert any(isinstance(each, WorkshopBusy) for each in outcomes)
        assert await register(broker, SchemaKind.AVRO, '"long"', "mine")

    run(tmp_path, test, WorkshopConfig(process_count=2, job_limit_ms=200, waiting_max=20))


def _slow_proto(number: int) -> str:
    fields = "".join(f"string f{n} = {n + 1};" for n in range(8_000))
    return f'syntax = "proto3"; message M{number} {{ {fields} }}'


def test_large_data_is_checked_in_slices_or_elsewhere(tmp_path: Path) -> None:
    small, large = [json.dumps([1] * 300).encode()] * 300, json.dumps([1] * 300_000).encode()

    async def test(broker: Broker) -> None:
        await register(broker, SchemaKind.JSON, json.dumps({"items": {"type": "integer", "enum": [1, 2]}}))

        outcomes = await send(broker, *small, large, large + b"x")

        assert [isinstance(each, Placed) for each in outcomes] == [True] * 301 + [False]

    run(tmp_path, test)


def test_an_error_that_would_quote_the_data_a_thousand_times_is_told_all_the_same(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        await register(
            broker, SchemaKind.JSON, json.dumps({"anyOf": [{"minItems": 10**6 + n} for n in range(500)]})
        )

        [outcome] = await send(broker, json.dumps(list(range(20_000))).encode())

        assert isinstance(outcome, SchemaMismatch)

    run(tmp_path, test)
