"""A client that does not read, or sends without end, is slowed; others go on as if it were not there."""

import asyncio
import struct
import threading
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from goqueue.edge.admission import ConnectionLimits
from goqueue.edge.kafka.apis import ApiKey
from goqueue.edge.kafka.config import KafkaConfig
from goqueue.edge.kafka.protocol import WRITE_BUFFER_BYTES
from goqueue.edge.limited_log import LINES_AT_ONCE
from goqueue.model.settings import Limits, MiB
from goqueue.node.disk import OpenFile
from tests.doors.kafka import requests
from tests.doors.kafka.conftest import NewTopic, OpenDoor
from tests.doors.kafka.door_thread import DoorThread, sync_by_threads
from tests.doors.kafka.raw_client import PATIENCE_S, RawClient, encode_request, record_batch

REPLY_BYTES = MiB
GREEDY_REQUESTS = 200
LONG = timedelta(seconds=60)


async def unsent_bytes(door: DoorThread) -> int:
    return door.door.unsent_bytes


async def client_count(door: DoorThread) -> int:
    return door.door.client_count


def fill(raw: RawClient, topic: str) -> None:
    for _ in range(4):
        reply = raw.ask(ApiKey.PRODUCE, 9, **requests.produce(topic, record_batch(b"x" * (REPLY_BYTES // 4))))
        assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none


def test_a_client_that_does_not_read_its_replies_is_slowed_while_others_go_on(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    fill(raw, topic)
    with RawClient(door.port, receive_buffer_bytes=64 * 1024) as greedy:
        asked = [
            greedy.send(ApiKey.FETCH, 12, **requests.fetch(topic, 0, partition_max_bytes=2 * REPLY_BYTES))
            for _ in range(GREEDY_REQUESTS)
        ]

        most_unsent = asks = 0
        while asks < 300 or (most_unsent <= REPLY_BYTES and asks < 30_000):
            asks += 1
            raw.ask(ApiKey.METADATA, 9, **requests.metadata(topic))
            most_unsent = max(most_unsent, door.run(unsent_bytes(door)))

        assert REPLY_BYTES < most_unsent < WRITE_BUFFER_BYTES + 2 * REPLY_BYTES
        # Once it reads, it gets everything it asked for, in order.
        assert [greedy.receive_with_id(ApiKey.FETCH, 12)[0] for _ in asked] == asked


def test_requests_behind_a_long_poll_wait_without_being_lost(
    door: DoorThread, raw: RawClient, new_topic: NewTopic
) -> None:
    topic = new_topic().name
    with RawClient(door.port) as patient:
        asked = [patient.send(ApiKey.FETCH, 12, **requests.fetch(topic, 0, max_wait=LONG))]
        asked += [patient.send(ApiKey.METADATA, 9, **requests.metadata(topic)) for _ in range(500)]

        fill(raw, topic)

        answered = [patient.receive_with_id(ApiKey.FETCH, 12)[0]]
        answered += [patient.receive_with_id(ApiKey.METADATA, 9)[0] for _ in range(500)]
        assert answered == asked


def test_a_frame_above_the_limit_closes_its_connection_and_no_other(open_door: OpenDoor) -> None:
    limits = Limits(message_bytes=MiB, request_bytes=MiB)
    door = open_door(kafka_config=KafkaConfig(limits=limits))
    with RawClient(door.port) as good, RawClient(door.port) as bad:
        bad.send_frame(bytes(MiB + 1))

        assert bad.is_closed()
        assert good.ask(ApiKey.METADATA, 9, **requests.metadata()).brokers


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"\x00" * 64])
def test_garbage_closes_its_connection_and_no_other(door: DoorThread, raw: RawClient, garbage: bytes) -> None:
    with RawClient(door.port) as bad:
        bad.socket.sendall(garbage)

        assert bad.is_closed()
    assert raw.ask(ApiKey.METADATA, 9, **requests.metadata()).brokers


def test_an_array_that_claims_to_be_endless_closes_its_connection_and_no_other(
    door: DoorThread, raw: RawClient
) -> None:
    honest = encode_request(ApiKey.METADATA, 9, 1, **requests.metadata("topic"))
    with RawClient(door.port) as bad:
        bad.send_frame(honest.replace(b"\x02\x06topic", b"\xff\xff\xff\xff\x07\x06topic"))

        assert bad.is_closed()
    assert raw.ask(ApiKey.METADATA, 9, **requests.metadata()).brokers


def test_a_client_beyond_the_limit_is_not_let_in(open_door: OpenDoor) -> None:
    door = open_door(kafka_config=KafkaConfig(connections=ConnectionLimits(connections_max=1)))
    with RawClient(door.port) as first:
        first.ask(ApiKey.METADATA, 9, **requests.metadata())

        with RawClient(door.port) as second:
            assert second.is_closed()

        assert first.ask(ApiKey.METADATA, 9, **requests.metadata()).brokers


def test_one_address_has_its_own_bound_and_refusals_are_counted(open_door: OpenDoor) -> None:
    door = open_door(kafka_config=KafkaConfig(connections=ConnectionLimits(per_address_max=2)))
    with RawClient(door.port) as first, RawClient(door.port) as second:
        first.ask(ApiKey.API_VERSIONS, 0)
        second.ask(ApiKey.API_VERSIONS, 0)
        for _ in range(3):
            with RawClient(door.port) as third:
                assert third.is_closed()

        assert door.broker.counters.connections_refused["kafka", "address_full"] == 3
        assert door.door.client_count == 2


def test_a_flood_of_bad_frames_writes_few_lines(
    open_door: OpenDoor, caplog: pytest.LogCaptureFixture
) -> None:
    door = open_door()
    for _ in range(200):
        with RawClient(door.port) as raw:
            raw.send_frame(b"\xff" * 40)
            assert raw.is_closed()

    lines = [record for record in caplog.records if record.message == "kafka_frame_refused"]
    assert LINES_AT_ONCE <= len(lines) < 60
    door.door.log.tell_suppressed()
    told = [getattr(record, "suppressed", 0) for record in caplog.records]
    assert len(lines) + sum(told) == 200


def test_an_idle_connection_is_closed_and_one_that_waits_for_data_is_not(open_door: OpenDoor) -> None:
    door = open_door(kafka_config=KafkaConfig(idle_ms=100))
    with RawClient(door.port) as idle, RawClient(door.port) as waiting:
        created = waiting.ask(ApiKey.METADATA, 9, **requests.metadata("quiet", create=True))
        waiting.send(ApiKey.FETCH, 12, **requests.fetch("quiet", 0, max_wait=LONG))

        assert idle.is_closed()

        assert created.topics[0].error_code is ErrorCode.none
        assert door.run(client_count(door)) == 1


def test_a_stopping_door_sends_what_is_under_way_and_ends_long_polls(open_door: OpenDoor) -> None:
    door = open_door()
    with RawClient(door.port) as publisher, RawClient(door.port) as waiting:
        publisher.ask(ApiKey.METADATA, 9, **requests.metadata("last", create=True))
        waiting.send(ApiKey.FETCH, 12, **requests.fetch("last", 0, partition=1, max_wait=LONG))
        waiting_clients = door.run(client_count(door))
        publisher.send(ApiKey.PRODUCE, 9, **requests.produce("last", record_batch(b"a"), acks=-1))
        reply = publisher.receive(ApiKey.PRODUCE, 9)

        door.run(door.door.stop())

        assert waiting_clients == 2
        assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none
        assert publisher.is_closed()
        assert waiting.is_closed()
        assert door.run(client_count(door)) == 0


def test_a_stopping_door_does_not_wait_for_ever_for_a_client_that_does_not_read(open_door: OpenDoor) -> None:
    door = open_door(kafka_config=KafkaConfig(stop_ms=50))
    with (
        RawClient(door.port) as publisher,
        RawClient(door.port, receive_buffer_bytes=64 * 1024) as deaf,
    ):
        publisher.ask(ApiKey.METADATA, 9, **requests.metadata("deaf", create=True))
        fill(publisher, "deaf")
        for _ in range(20):
            deaf.send(
                ApiKey.FETCH, 12, **requests.fetch("deaf", 0, partition_max_bytes=2 * REPLY_BYTES)
            )  # fmt: skip
        while door.run(unsent_bytes(door)) < WRITE_BUFFER_BYTES:
            publisher.ask(ApiKey.METADATA, 9, **requests.metadata("deaf"))

        door.run(door.door.stop())

        assert door.run(client_count(door)) == 0


def test_requests_sent_one_behind_the_other_share_an_fsync(
    door: DoorThread, raw: RawClient, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic().name
    frames = [
        encode_request(ApiKey.PRODUCE, 9, number, **requests.produce(topic, record_batch(b"a"), acks=-1))
        for number in range(40)
    ]
    syncs: list[None] = []
    really_sync = OpenFile.sync

    def counted_sync(file: OpenFile) -> None:
        syncs.append(None)
        really_sync(file)

    sync_by_threads(monkeypatch)
    monkeypatch.setattr(OpenFile, "sync", counted_sync)

    raw.socket.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))

    assert [raw.receive_with_id(ApiKey.PRODUCE, 9)[0] for _ in frames] == list(range(40))
    assert len(syncs) < len(frames) / 2


def test_replies_behind_a_slow_disk_are_held_back_and_then_all_leave(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = open_door(kafka_config=KafkaConfig(limits=Limits(message_bytes=MiB, request_bytes=MiB)))
    disk_works = threading.Event()
    really_sync = OpenFile.sync

    def slow_sync(file: OpenFile) -> None:
        assert disk_works.wait(PATIENCE_S)
        really_sync(file)

    with RawClient(door.port) as raw:
        raw.ask(ApiKey.METADATA, 9, **requests.metadata("slow", create=True))
        fill(raw, "slow")
        sync_by_threads(monkeypatch)
        monkeypatch.setattr(OpenFile, "sync", slow_sync)

        asked = [raw.send(ApiKey.PRODUCE, 9, **requests.produce("slow", record_batch(b"a"), acks=-1))]
        asked += [
            raw.send(ApiKey.FETCH, 12, **requests.fetch("slow", 0, partition_max_bytes=2 * REPLY_BYTES))
            for _ in range(10)
        ]
        with RawClient(door.port) as other:
            for _ in range(50):
                other.ask(ApiKey.METADATA, 9, **requests.metadata("slow"))
        disk_works.set()

        answered = [raw.receive_with_id(ApiKey.PRODUCE, 9)[0]]
        answered += [raw.receive_with_id(ApiKey.FETCH, 12)[0] for _ in range(10)]
        assert answered == asked


def test_frames_of_all_clients_together_have_a_bound(open_door: OpenDoor) -> None:
    limits = Limits(message_bytes=MiB, request_bytes=3 * MiB)
    door = open_door(kafka_config=KafkaConfig(limits=limits, held_bytes_max=4 * MiB))
    batch = record_batch(b"x" * MiB)
    with RawClient(door.port) as slow, RawClient(door.port) as other:
        slow.ask(ApiKey.METADATA, 9, **requests.metadata("bounded", create=True))
        slow.socket.sendall(struct.pack(">i", 3 * MiB) + b"x" * 100)
        other.ask(ApiKey.API_VERSIONS, 0)

        other.send(ApiKey.PRODUCE, 9, **requests.produce("bounded", batch))

        assert other.is_closed()
    with RawClient(door.port) as third:
        reply = third.ask(ApiKey.PRODUCE, 9, **requests.produce("bounded", batch))
        assert reply.responses[0].partition_responses[0].error_code is ErrorCode.none


def test_memory_of_frames_is_free_again_whatever_became_of_their_clients(open_door: OpenDoor) -> None:
    door = open_door()
    batch = record_batch(b"x" * 100_000)
    for end in ("answered", "gone", "cut off", "malformed", "waiting"):
        with RawClient(door.port) as raw:
            raw.ask(ApiKey.METADATA, 9, **requests.metadata("freed", create=True))
            match end:
                case "answered":
                    raw.ask(ApiKey.PRODUCE, 9, **requests.produce("freed", batch, acks=-1))
                case "gone":
                    for _ in range(5):
                        raw.send(ApiKey.PRODUCE, 9, **requests.produce("freed", batch, acks=-1))
                case "cut off":
                    raw.socket.sendall(struct.pack(">i", MiB) + b"x" * 1_000)
                case "malformed":
                    raw.send_frame(b"\xff" * 90_000)
                    assert raw.is_closed()
                case "waiting":
                    raw.send(ApiKey.FETCH, 11, **requests.fetch("freed", 1_000, max_wait=LONG))
                    raw.send(ApiKey.API_VERSIONS, 0)
    while door.door.client_count:
        door.run(asyncio.sleep(0.001))

    assert door.door.memory.held_bytes == 0
