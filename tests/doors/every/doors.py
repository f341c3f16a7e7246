"""Every door through which messages come in, behind one small interface: a new one is a class and a line."""

import base64
from abc import ABC, abstractmethod
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pyarrow as pa
from confluent_kafka import KafkaError, Producer

from goqueue.client import GoQueue
from goqueue.client.errors import Refused as RefusedByNode
from goqueue.edge.kafka.apis import ApiKey
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Headers, Lane, Message
from goqueue.records.batch import encode
from goqueue.records.entries import encode_entry
from goqueue.records.layout import Codec, stamp_producer
from goqueue.spark.sink import door as sink_door
from goqueue.spark.sink.epochs import Stages, Writing, abort_epoch, commit_epoch
from goqueue.spark.sink.options import sink_options
from goqueue.spark.sink.rows import Packer
from tests.doors.every.house import HOST, PATIENCE_S, House
from tests.doors.kafka import requests
from tests.doors.kafka.raw_client import RawClient


class Given(NamedTuple):
    """A message as a story tells it."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = 0


class Refused(Exception):
    """A message was not taken; `kind` is the same at every door."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.kind = _KINDS.get(code, code)


_KINDS = {
    "INVALID_RECORD": "invalid",
    "invalid_record": "invalid",
    "schema_mismatch": "invalid",
    "MSG_SIZE_TOO_LARGE": "too large",
    "message_too_large": "too large",
    "POLICY_VIOLATION": "quota",
    "rate_exceeded": "quota",
    "quota_exceeded": "quota",
}


class Door(ABC):
    """One way in. Whatever is refused raises Refused."""

    name = ""

    def __init__(self, house: House) -> None:
        self.house = house

    @abstractmethod
    def publish(self, topic: str, *messages: Given) -> None:
        """Bring messages, in order; return when they are on the disk."""

    @abstractmethod
    def publish_twice(self, topic: str, value: bytes) -> None:
        """Bring a numbered message to partition 0, and again as if the reply had been lost."""

    @abstractmethod
    def transact(self, topic: str, value: bytes, *, is_committed: bool) -> None:
        """Bring a message to partition 0 within a transaction, and end it."""


class KafkaDoor(Door):
    """librdkafka, by confluent-kafka."""

    def publish(self, topic: str, *messages: Given) -> None:
        producer = Producer(self._settings(linger=5))
        self._produce(producer, topic, messages)

    def publish_twice(self, topic: str, value: bytes) -> None:
        with RawClient(self.house.kafka_port) as raw:
            fields = {"transactional_id": None, "transaction_timeout": requests.SECOND}
            producer_id = raw.ask(ApiKey.INIT_PRODUCER_ID, 1, **fields).producer_id
            for _ in range(2):
                batch = bytes(_numbered(value, producer_id))
                reply = raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, batch, acks=-1))
                assert reply.responses[0].partition_responses[0].error_code == 0

    def transact(self, topic: str, value: bytes, *, is_committed: bool) -> None:
        producer = Producer(self._settings() | {"transactional.id": str(uuid4())})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        self._produce(producer, topic, [Given(value)])
        if is_committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)

    def _settings(self, linger: int = 0) -> dict[str, object]:
        return {
            "bootstrap.servers": self.house.kafka_address,
            "linger.ms": linger,
            "message.max.bytes": 2_000_000,
            "delivery.timeout.ms": PATIENCE_S * 1_000,
        }

    def _produce(self, producer: Any, topic: str, messages: Any) -> None:
        problems: list[KafkaError] = []

        def delivered(problem: KafkaError | None, _message: object) -> None:
            if problem is not None:
                problems.append(problem)

        for value, key, headers, partition in messages:
            named = {} if partition is None else {"partition": partition}
            producer.produce(topic, value, key, headers=list(headers), on_delivery=delivered, **named)
        assert producer.flush(PATIENCE_S) == 0
        for problem in problems:
            raise Refused(problem.name())


class HttpDoor(Door):
    """JSON, by httpx."""

    def publish(self, topic: str, *messages: Given) -> None:
        body = {"messages": [_json(message) for message in messages], "encoding": "base64"}
        reply = self.house.client.post(f"/topics/{topic}/messages", json=body)
        told = _told(reply)
        for result in told["results"]:
            if "code" in result:
                raise Refused(result["code"])

    def publish_twice(self, topic: str, value: bytes) -> None:
        who = _told(self.house.client.post("/producers/init", json={}))
        body = {**who, "topic": topic, "partition": 0, "sequence": 0, "value": value.decode()}
        for is_again in (False, True):
            told = _told(self.house.client.post("/transactions/publish", json=body))
            assert told["duplicate"] is is_again

    def transact(self, topic: str, value: bytes, *, is_committed: bool) -> None:
        client = self.house.client
        who = _told(client.post("/producers/init", json={"transactional_id": str(uuid4())}))
        _told(client.post("/transactions/begin", json=who))
        body = {**who, "topic": topic, "partition": 0, "value": value.decode()}
        _told(client.post("/transactions/publish", json=body))
        _told(client.post(f"/transactions/{'commit' if is_committed else 'abort'}", json=who))


class ClientDoor(Door):
    """A producer of our own client, and its transactions."""

    def publish(self, topic: str, *messages: Given) -> None:
        with GoQueue(self.house.url) as queue, queue.producer() as producer:
            sent = [
                producer.send(topic, value, key=key, headers=headers, partition=partition)
                for value, key, headers, partition in messages
            ]
            producer.flush()
            try:
                for one in sent:
                    one.result(PATIENCE_S)
            except RefusedByNode as refused:
                raise Refused(refused.code) from refused

    def publish_twice(self, topic: str, value: bytes) -> None:
        who = _told(self.house.client.post("/producers/init", json={}))
        source = TopicPartition(TopicName(topic), 0)
        for _ in range(2):
            entry = encode_entry(source, Lane.NORMAL, _numbered(value, who["producer_id"]))
            _told(self.house.client.post("/batches", content=entry))

    def transact(self, topic: str, value: bytes, *, is_committed: bool) -> None:
        with GoQueue(self.house.url) as queue, queue.transaction(str(uuid4())) as transaction:
            transaction.publish(topic, value, partition=0)
            if not is_committed:
                transaction.abort()


class SinkDoor(Door):
    """Spark's sink, without Spark: rows are encoded, staged and committed by what runs in its tasks."""

    def publish(self, topic: str, *messages: Given) -> None:
        self._write(topic, messages, is_committed=True)

    def publish_twice(self, topic: str, value: bytes) -> None:
        self._write(topic, [Given(value)], is_committed=True, times=2)

    def transact(self, topic: str, value: bytes, *, is_committed: bool) -> None:
        self._write(topic, [Given(value)], is_committed=is_committed)

    def _write(self, topic: str, messages: Any, *, is_committed: bool, times: int = 1) -> None:
        options = sink_options(
            {"bootstrap": f"{HOST}:{self.house.http_port}", "topic": topic}, is_streaming=False
        )
        client = options.connect()
        packer = Packer(
            topic=topic,
            codec=Codec.NONE,
            shape_of=lambda name: sink_door.shape_of(client, name),
            first_turn=0,
        )
        writing = Writing(str(uuid4()), 1, "suite")
        stages = Stages(client, writing, task=0)
        try:
            for packet in packer.pack([_rows(messages)]):
                stages.add(packet)
            for _ in range(times):
                if is_committed:
                    commit_epoch(client, writing, stages.names)
                else:
                    abort_epoch(client, writing, stages.names, generation=stages.generation)
        except RefusedByNode as refused:
            raise Refused(refused.code) from refused
        finally:
            client.close()


DOORS: dict[str, type[Door]] = {
    "kafka": KafkaDoor,
    "http": HttpDoor,
    "client": ClientDoor,
    "spark sink": SinkDoor,
}


def _numbered(value: bytes, producer_id: int) -> memoryview:
    [(body, _)] = encode([Message(value)], now_ms=1_750_000_000_000)
    stamp_producer(body, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    return body


def _json(message: Given) -> dict[str, object]:
    value, key, headers, partition = message
    told: dict[str, object] = {
        "value": None if value is None else base64.b64encode(value).decode(),
        "header_list": [
            {"name": name, "value": None}
            if content is None
            else {"name": name, "value": base64.b64encode(content).decode(), "encoding": "base64"}
            for name, content in headers
        ],
    }
    if key is not None:
        told["key"] = base64.b64encode(key).decode()
    if partition is not None:
        told["partition"] = partition
    return told


def _told(reply: httpx.Response) -> dict[str, Any]:
    told: dict[str, Any] = reply.json()
    if reply.status_code >= 400 and "results" not in told:
        raise Refused(told["code"])
    return told


def _rows(messages: Any) -> pa.RecordBatch:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    rows = [
        {
            "value": value,
            "key": key,
            "headers": [{"key": name, "value": content} for name, content in headers],
            "partition": partition,
        }
        for value, key, headers, partition in messages
    ]
    schema = pa.schema(
        [
            ("value", pa.binary()),
            ("key", pa.binary()),
            ("headers", pa.list_(header)),
            ("partition", pa.int32()),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema=schema)
