"""What it costs to check messages against schemas: CPU of `append` a message, with each kind of check."""

import asyncio
import gc
import json
import time
from io import BytesIO
from pathlib import Path
from struct import pack

import fastavro
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from bench.measured import Row, reported
from goqueue.broker.broker import Broker
from goqueue.broker.schemas.verbs import register_schema
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.append import append, append_when_checked
from goqueue.model.commands import Append
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks
from goqueue.model.schema_commands import RegisterSchema
from goqueue.model.schemas import SchemaKind, SchemaText, SchemaValidation
from goqueue.model.topics import CreateTopic
from goqueue.node.disk import FolderDisk
from goqueue.records.layout import MAGIC, Codec
from tests.unit.broker.running import running

TARGET = TopicPartition(TopicName("orders"), 0)
BATCH_RECORDS = 100
BATCHES = 200
RUNS = 12
NOW_MS = 1_750_000_000_000
ORDER = {"id": 123_456, "customer": "Jane Doe", "total": 99.5, "lines": [{"sku": "A-1", "count": 2}] * 2}
JSON = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "total": {"type": "number"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["sku"],
            },
        },
    },
    "required": ["id"],
}
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "int"}],
}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "total", "type": "double"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
    ],
}
PROTOBUF = """syntax = "proto3";
message Order { int64 id = 1; string customer = 2; double total = 3; repeated Line lines = 4; }
message Line { string sku = 1; int32 count = 2; }"""
_PROTOBUF_ORDER = (
    b"\x00"  # the first message of the file
    b"\x08\xc0\xc4\x07"
    + b"\x12\x08Jane Doe"
    + b"\x19"
    + pack("<d", 99.5)
    + b"\x22\x07\x0a\x03A-1\x10\x02" * 2
)


def checking(folder: Path) -> list[Row]:
    """An order with two lines, in batches of 100, framed as the serialisers of registries do."""
    avro = BytesIO()
    fastavro.schemaless_writer(avro, fastavro.parse_schema(AVRO), ORDER)
    kinds = [
        (SchemaKind.JSON, json.dumps(JSON), json.dumps(ORDER).encode()),
        (SchemaKind.AVRO, json.dumps(AVRO), avro.getvalue()),
        (SchemaKind.PROTOBUF, PROTOBUF, _PROTOBUF_ORDER),
    ]
    return [
        reported(
            f"append with schema validation {validation.value}, {kind.value}",
            asyncio.run(
                _append_ns(folder / f"schemas-{validation}-{kind.value}", validation, kind, text, data)
            ),
            "ns a message",
        )
        for validation in SchemaValidation
        for kind, text, data in kinds
    ]


async def _append_ns(
    folder: Path, validation: SchemaValidation, kind: SchemaKind, text: str, data: bytes
) -> float:
    await asyncio.to_thread(folder.mkdir)
    async with running(FolderDisk(folder)) as broker:
        settings = {"goqueue.schema.validation": validation.value}
        await create_topic(broker, CreateTopic(name="orders", partitions=1, settings=settings))
        place = await register_schema(
            broker, RegisterSchema(subject="orders-value", schema=SchemaText(kind, text))
        )
        builder = DefaultRecordBatchBuilder(MAGIC, Codec.NONE, 0, -1, -1, -1, 1 << 30)
        for index in range(BATCH_RECORDS):
            builder.append(index, NOW_MS, None, pack(">xI", place.schema_id) + data, [])
        batch = bytes(builder.build())
        # The first makes the schema ready.
        await append_when_checked(broker, Append(TARGET, memoryview(bytearray(batch)), Acks.NONE))
        return min([await _run_ns(broker, batch) for _ in range(RUNS)])


async def _run_ns(broker: Broker, batch: bytes) -> float:
    batches = [memoryview(bytearray(batch)) for _ in range(BATCHES)]  # each is patched in place
    gc.disable()
    began_ns = time.process_time_ns()
    for each in batches:
        append(broker, Append(TARGET, each, Acks.NONE))
    taken_ns = time.process_time_ns() - began_ns
    gc.enable()
    await asyncio.sleep(0)  # let the broker do what it has put off
    return taken_ns / BATCHES / BATCH_RECORDS
