"""Requests about very many things: how long, in CPU time, they keep other clients from being served."""

import asyncio
import gc
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from kio.schema.errors import ErrorCode

from goqueue.broker.broker import Broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.transactions.verbs import init_transactional
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.connection import Connection
from goqueue.edge.kafka.context import Context
from goqueue.edge.kafka.frame_memory import FrameMemory
from goqueue.model.ports import Buffer
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.model.transaction_commands import InitProducer
from goqueue.model.transactions import ProducerEpoch
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.holds import HOLD_MS_MAX, longest_hold
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic
from tests.doors.kafka.door_thread import DoorThread
from tests.doors.kafka.raw_client import RawClient, encode_request, record_batch
from tests.unit.broker.running import ORDERS, running

MANY = 49_000
"""Just below the number of items that a request may have."""
LONG = 600
"""Partitions of a Produce that is not served in one piece any more."""
NO_UPKEEP = BrokerConfig(upkeep_interval_ms=3_600_000)
Fields = dict[str, object]


class Client:
    """A connection without a socket; replies are waited for on the loop that they are made on."""

    def __init__(self, broker: Broker) -> None:
        self._memory = FrameMemory()
        context = Context(broker=broker, config=KafkaConfig(), host="localhost", port=9092)
        self._connection = Connection(context, self, self._memory)
        self._replies: asyncio.Queue[bytes | Exception] = asyncio.Queue()

    def send(self, buffers: Sequence[Buffer]) -> None:
        self._replies.put_nowait(b"".join(buffers))

    def gather(self) -> None:
        pass

    def make_room(self) -> None:
        pass

    def give_up(self, event: str, reason: str, fields: Mapping[str, object]) -> None:
        self._replies.put_nowait(ConnectionError(f"{event}: {reason}"))

    def report(self, error: BaseException, fields: Mapping[str, object]) -> None:
        raise error

    def trust(self) -> None: ...

    def finish(self) -> None:
        pass

    async def ask(self, frame: bytes) -> bytes:
        taken = self._memory.take(len(frame))
        taken[:] = frame
        self._connection.receive(taken)
        reply = await self._replies.get()
        if isinstance(reply, Exception):
            raise reply
        return reply


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What is measured once has no best of some runs: no garbage is collected, threads come in at once."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.setswitchinterval(interval_s)


def _produce(partitions: Sequence[int], records: bytes | None, *, acks: int = -1) -> Fields:
    data = tuple(SimpleNamespace(index=number, records=records) for number in partitions)
    fields = requests.produce(ORDERS, records, acks=acks)
    return {**fields, "topic_data": (SimpleNamespace(name=ORDERS, topic_id=None, partition_data=data),)}


def _fetch(partitions: Sequence[int], *, topics: int = 1) -> Fields:
    fields = requests.fetch(ORDERS, 0, min_bytes=0)
    [topic] = cast(tuple[SimpleNamespace], fields["topics"])
    [wanted] = topic.partitions
    topic.partitions = tuple(SimpleNamespace(**{**vars(wanted), "partition": n}) for n in partitions)
    return {**fields, "topics": (topic,) * topics}


def _fetch_offsets(group: str, topics: tuple[SimpleNamespace, ...]) -> Fields:
    return {"group_id": group, "topics": topics, "require_stable": True}


def _add_partitions(topic: str, producer: ProducerEpoch) -> Fields:
    return {
        "v3_and_below_transactional_id": "t",
        "v3_and_below_producer_id": producer.producer_id,
        "v3_and_below_producer_epoch": producer.epoch,
        "v3_and_below_topics": (SimpleNamespace(name=topic, partitions=tuple(range(MANY))),),
    }


def _requests(producer: ProducerEpoch) -> dict[str, tuple[ApiKey, int, Fields]]:
    names = tuple(f"name-{number}" for number in range(MANY))
    members = tuple(SimpleNamespace(member_id=name, group_instance_id=None, reason=None) for name in names)
    resources = tuple(SimpleNamespace(resource_type=2, resource_name=name, configs=()) for name in names)
    everywhere = (SimpleNamespace(name=ORDERS, partition_indexes=tuple(range(MANY))),)
    marker = SimpleNamespace(
        producer_id=1, producer_epoch=0, transaction_result=False, topics=everywhere, coordinator_epoch=0
    )
    again = [0, 1] * (MANY // 2)
    return {
        "fetch": (ApiKey.FETCH, 12, _fetch(again)),
        "fetch in vain": (ApiKey.FETCH, 12, _fetch(range(MANY))),
        "fetch of very many topics": (ApiKey.FETCH, 12, _fetch([0], topics=MANY // 2)),
        "fetch offsets": (ApiKey.OFFSET_FETCH, 7, _fetch_offsets("g", everywhere)),
        "fetch offsets of a name that is none": (ApiKey.OFFSET_FETCH, 7, _fetch_offsets("", everywhere)),
        "produce in vain": (ApiKey.PRODUCE, 9, _produce(range(MANY), b"")),
        "produce of nothing": (ApiKey.PRODUCE, 9, _produce(range(MANY), None)),
        "produce": (ApiKey.PRODUCE, 9, _produce(again, record_batch(b"x"))),
        "leave": (ApiKey.LEAVE_GROUP, 4, {"group_id": "g", "members": members}),
        "add partitions": (ApiKey.ADD_PARTITIONS_TO_TXN, 3, _add_partitions(ORDERS, producer)),
        "describe groups": (
            ApiKey.DESCRIBE_GROUPS,
            4,
            {"groups": names, "include_authorized_operations": False},
        ),
        "describe transactions": (ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": names}),
        "describe producers": (ApiKey.DESCRIBE_PRODUCERS, 0, {"topics": everywhere}),
        "write markers": (ApiKey.WRITE_TXN_MARKERS, 1, {"markers": (marker,)}),
        "alter configs": (ApiKey.ALTER_CONFIGS, 0, {"resources": resources, "validate_only": False}),
    }


@pytest.mark.slow
def test_a_request_about_very_many_things_holds_the_loop_for_a_slice() -> None:
    async def walk() -> None:
        async with running(SimulatedDisk(Random(1)), NO_UPKEEP) as broker:
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=2))
            producer = await init_transactional(broker, InitProducer(transactional_id="t", timeout_ms=60_000))
            client = Client(broker)
            holds = {}
            for name, (key, version, fields) in _requests(producer).items():
                ask = partial(client.ask, encode_request(key, version, 1, **fields))
                holds[name] = await longest_hold(ask, enough_ms=HOLD_MS_MAX)
        assert {name: hold for name, hold in holds.items() if hold > HOLD_MS_MAX} == {}

    with _undisturbed():
        asyncio.run(walk())


@pytest.mark.parametrize("acks", [1, -1])
def test_batches_of_a_long_produce_are_told_and_kept_in_their_order(
    raw: RawClient, new_topic: NewTopic, acks: int
) -> None:
    topic = new_topic(partitions=2)
    data = [
        SimpleNamespace(index=number % 3, records=record_batch(b"%d" % (number // 3)))
        for number in range(LONG)
    ]

    fields = requests.produce(topic.name, b"", acks=acks)
    topics = (SimpleNamespace(name=topic.name, topic_id=None, partition_data=tuple(data)),)
    raw.send(ApiKey.PRODUCE, 9, **{**fields, "topic_data": topics})
    raw.send(ApiKey.PRODUCE, 9, **requests.produce(topic.name, record_batch(b"behind"), acks=acks))
    outcomes = raw.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses
    behind = raw.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0]

    assert [outcome.index for outcome in outcomes] == [number % 3 for number in range(LONG)]
    for partition in (0, 1):
        offsets = [outcome.base_offset for outcome in outcomes if outcome.index == partition]
        assert offsets == list(range(LONG // 3))
    unknown = {outcome.error_code for outcome in outcomes if outcome.index == 2}
    assert unknown == {ErrorCode.unknown_topic_or_partition}
    assert behind.base_offset == LONG // 3


def test_a_long_produce_that_ends_too_early_leaves_no_trace(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    data = (SimpleNamespace(index=0, records=record_batch(b"x")),) * LONG
    fields = requests.produce(topic.name, b"")
    topics = (SimpleNamespace(name=topic.name, topic_id=None, partition_data=data),)
    frame = encode_request(ApiKey.PRODUCE, 9, 1, **{**fields, "topic_data": topics})

    raw.send_frame(frame[:-20])

    assert raw.is_closed()
    with RawClient(door.port) as other:
        found = other.ask(ApiKey.LIST_OFFSETS, 5, **requests.list_offsets(topic.name, -1))
    assert found.topics[0].partitions[0].offset == 0


def test_a_long_produce_that_wants_no_reply_and_is_refused_closes_the_connection(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fields = requests.produce(topic.name, b"", acks=0)
    data = tuple(SimpleNamespace(index=number, records=record_batch(b"x")) for number in range(LONG))
    topics = (SimpleNamespace(name=topic.name, topic_id=None, partition_data=data),)

    raw.send(ApiKey.PRODUCE, 9, **{**fields, "topic_data": topics})

    assert raw.is_closed()


def test_records_of_a_partition_are_deleted_once_however_often_it_is_named(
    raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic()
    raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic.name, record_batch(b"a", b"b", b"c")))
    wanted = tuple(SimpleNamespace(partition_index=0, offset=offset) for offset in (2, 3, 1))
    asked = (SimpleNamespace(name=topic.name, partitions=wanted),) * 2

    reply = raw.ask(ApiKey.DELETE_RECORDS, 1, topics=asked, timeout=requests.SECOND)

    assert [[told.low_watermark for told in topic.partitions] for topic in reply.topics] == [[2]]


def test_a_partition_that_is_added_twice_is_one_of_the_transaction(door: DoorThread, raw: RawClient) -> None:
    command = CreateTopic(name="added", partitions=1)
    door.run(create_topic(door.broker, command))
    producer = door.run(
        init_transactional(door.broker, InitProducer(transactional_id="twice", timeout_ms=60_000))
    )
    fields = {
        "v3_and_below_transactional_id": "twice",
        "v3_and_below_producer_id": producer.producer_id,
        "v3_and_below_producer_epoch": producer.epoch,
        "v3_and_below_topics": (SimpleNamespace(name="added", partitions=(0, 0, 0)),),
    }

    raw.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, **fields)
    reply = raw.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("twice",))

    assert [topic.partitions for topic in reply.transaction_states[0].topics] == [(0,)]
