"""The walk through the verbs: publish, append, read, find."""

import asyncio
from pathlib import Path

import mmh3
import pytest
from crc32c import crc32c

from goqueue.broker.broker import Broker
from goqueue.broker.producers import init_producer
from goqueue.broker.read.find_offset import end_of_epoch, find_offset
from goqueue.broker.read.read import read, read_messages
from goqueue.broker.topics.verbs import create_topic, delete_records
from goqueue.broker.write.append import append
from goqueue.broker.write.publish import publish
from goqueue.model.commands import (
    Append,
    BatchesRead,
    FindEpochEnd,
    FindOffset,
    PartitionRead,
    PartitionReadFailed,
    Placed,
    Publish,
    Read,
    ReadMessages,
    Spot,
)
from goqueue.model.errors import (
    Corrupt,
    InternalTopic,
    LeaderEpochFenced,
    LeaderEpochUnknown,
    MessageTooLarge,
    OffsetOutOfRange,
    OutOfSequence,
    PartitionNotFound,
    ShuttingDown,
    TopicNotFound,
    WrongChecksum,
)
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Lane, Message
from goqueue.model.settings import BrokerConfig, Limits, TopicSettings
from goqueue.model.topics import CreateTopic, DeleteRecords
from goqueue.model.transaction_commands import TakeProducerId
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode, open_batch
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until
from tests.unit.records.test_lanes import produced


async def put(broker: Broker, *messages: Message, acks: Acks = Acks.ALL) -> list[object]:
    return list(await publish(broker, Publish(topic=ORDERS, messages=messages, acks=acks)))


async def end_of(broker: Broker, source: TopicPartition = ORDERS_0) -> int:
    return (await find_offset(broker, FindOffset(source=source, spot=Spot.LATEST))).offset


def test_messages_without_a_key_visit_every_partition_in_turn(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=4))
            results = [await put(broker, Message(b"x")) for _ in range(8)]
            assert [placed for [placed] in results] == [Placed(n % 4, n // 4) for n in range(8)]

    asyncio.run(walk())


def test_a_key_always_goes_to_its_partition_by_murmur3(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=7))
            keys = [b"a", b"ab", b"abc", b"hello", b"hello world"]
            results = await put(broker, *(Message(b"x", key) for key in keys))
            vectors = [1009084850, 2613040991, 3017643002, 613153351, 1586663183]
            assert [mmh3.hash(key, 0, False) for key in keys] == vectors
            assert [r.partition for r in results if isinstance(r, Placed)] == [v % 7 for v in vectors]

    asyncio.run(walk())


def test_a_bad_message_does_not_spoil_the_others(tmp_path: Path) -> None:
    config = BrokerConfig(limits=Limits(message_bytes=100))

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), config) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            results = await put(
                broker, Message(b"good"), Message(b"x" * 101), Message(b"", partition=5), Message(b"good too")
            )
            assert results[0] == Placed(0, 0)
            assert isinstance(results[1], MessageTooLarge)
            assert isinstance(results[2], PartitionNotFound)
            assert results[3] == Placed(0, 1)

    asyncio.run(walk())


def test_messages_come_back_as_they_went_in(tmp_path: Path) -> None:
    sent = [
        Message(b"", b"key", (("a", b"1"), ("a", None)), Lane.HIGH, timestamp_ms=5),
        Message(None, b"key", timestamp_ms=6),
        Message(bytes(range(256)), timestamp_ms=7, lane=Lane.LOW),
    ]

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, *sent)
            found = await read_messages(broker, ReadMessages(source=ORDERS_0))
            assert found.next_offset == 3
            for offset, (message, stored) in enumerate(zip(sent, found.messages, strict=True)):
                assert stored.offset == offset
                assert (stored.value, stored.key, stored.headers) == (
                    message.value,
                    message.key,
                    message.headers,
                )
                assert (stored.lane, stored.timestamp_ms) == (message.lane, message.timestamp_ms)

    asyncio.run(walk())


def test_messages_are_read_in_log_order_within_limit_and_bytes(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, *(Message(b"%03d" % n, lane=Lane(n % 5)) for n in range(50)))
            seen: list[bytes | None] = []
            offset = 0
            while offset < 50:
                command = ReadMessages(source=ORDERS_0, offset=offset, limit=7, max_bytes=13)
                found = await read_messages(broker, command)
                assert 1 <= len(found.messages) <= 4
                seen += [message.value for message in found.messages]
                offset = found.next_offset
            assert seen == [b"%03d" % n for n in range(50)]

    asyncio.run(walk())


def test_a_reader_waits_for_what_is_not_there_yet(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            waiting = asyncio.ensure_future(
                read_messages(broker, ReadMessages(source=ORDERS_0, wait_ms=60_000))
            )
            await until(lambda: bool(broker.waiting_reads))
            await put(broker, Message(b"at last"))
            assert [m.value for m in (await waiting).messages] == [b"at last"]
            assert not broker.waiting_reads

    asyncio.run(walk())


def test_a_waiting_reader_goes_home_when_the_broker_stops(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            part = PartitionRead(ORDERS_0, 0)
            waiting = asyncio.ensure_future(
                read(broker, Read(partitions=[part], min_bytes=1, wait_ms=60_000))
            )
            await until(lambda: bool(broker.waiting_reads))
        [outcome] = await waiting
        assert isinstance(outcome, BatchesRead | PartitionReadFailed)
        with pytest.raises(ShuttingDown):
            await put(broker, Message(b"too late"))

    asyncio.run(walk())


def test_each_partition_of_a_read_has_an_outcome_of_its_own(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=2))
            await put(broker, Message(b"a", partition=0), Message(b"b", partition=1))
            outcomes = await read(
                broker,
                Read(
                    partitions=[
                        PartitionRead(ORDERS_0, 0),
                        PartitionRead(TopicPartition(ORDERS, 1), 9),
                        PartitionRead(TopicPartition(ORDERS, 2), 0),
                        PartitionRead(TopicPartition(TopicName("nothing"), 0), 0),
                        PartitionRead(ORDERS_0, 0, leader_epoch=0),
                        PartitionRead(ORDERS_0, 0, leader_epoch=99),
                    ],
                    min_bytes=1,
                    wait_ms=60_000,
                ),
            )
            assert isinstance(outcomes[0], BatchesRead) and len(outcomes[0].batches) == 1
            errors = [o.error for o in outcomes[1:] if isinstance(o, PartitionReadFailed)]
            assert [type(error) for error in errors] == [
                OffsetOutOfRange,
                PartitionNotFound,
                TopicNotFound,
                LeaderEpochFenced,
                LeaderEpochUnknown,
            ]

    asyncio.run(walk())


def test_a_read_does_not_take_the_end_of_a_segment_for_the_end_of_the_log(tmp_path: Path) -> None:
    config = BrokerConfig(topic_defaults=TopicSettings(segment_bytes=4096))

    async def walk() -> None:
        async with running(FolderDisk(tmp_path), config) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            for _ in range(30):
                await put(broker, Message(b"x" * 1000), acks=Acks.LEADER)
            command = Read(partitions=[PartitionRead(ORDERS_0, 0)], min_bytes=20_000, wait_ms=60_000)
            [outcome] = await read(broker, command)
            assert isinstance(outcome, BatchesRead) and outcome.end_offset == 30

    asyncio.run(walk())


def test_a_batch_sent_twice_is_stored_once_also_after_a_restart(tmp_path: Path) -> None:
    first, second = produced([None, b"high", None], sequence=0), produced([None], sequence=3)

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, Message(b"before"))
            assert append(broker, Append(ORDERS_0, first, Acks.LEADER)).base_offset == 1
            again = append(broker, Append(ORDERS_0, produced([None, b"high", None], sequence=0), Acks.ALL))
            assert again.base_offset == 1
            assert again.committed is not None
            await again.committed
            with pytest.raises(OutOfSequence):
                append(broker, Append(ORDERS_0, produced([None], sequence=9), Acks.ALL))
            assert await end_of(broker) == 4
        async with running(FolderDisk(tmp_path)) as broker:
            again = append(broker, Append(ORDERS_0, produced([None, b"high", None], sequence=0), Acks.NONE))
            assert again.base_offset == 1
            assert append(broker, Append(ORDERS_0, second, Acks.NONE)).base_offset == 4

    asyncio.run(walk())


def test_a_damaged_batch_is_refused_whole(tmp_path: Path) -> None:
    [(good, _)] = encode([Message(b"good")], now_ms=1)
    damaged = memoryview(bytearray(good))
    damaged[-2] ^= 1

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            with pytest.raises(WrongChecksum):
                append(broker, Append(ORDERS_0, memoryview(bytearray(good) + damaged), Acks.ALL))
            assert await end_of(broker) == 0

    asyncio.run(walk())


def test_the_lanes_of_a_batch_are_told_to_readers(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            append(broker, Append(ORDERS_0, produced([None, b"critical"]), Acks.LEADER))
            [outcome] = await read(broker, Read(partitions=[PartitionRead(ORDERS_0, 0)]))
            assert isinstance(outcome, BatchesRead)
            assert outcome.lanes == [Lane.NORMAL, Lane.CRITICAL]
            assert [m.offset for b in outcome.batches for m in open_batch(b, 2)] == [0, 1]

    asyncio.run(walk())


def test_times_and_epochs_are_found(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, *(Message(b"x", timestamp_ms=t) for t in (100, 300, 200)))
            assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=150)))[:2] == (1, 300)
            assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=301))).offset == -1
            assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.MAX_TIMESTAMP)))[:2] == (
                1,
                300,
            )
            assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.EARLIEST))).offset == 0
            first_epoch = broker.partition(ORDERS_0).leader_epoch
        async with running(FolderDisk(tmp_path)) as broker:
            epoch = broker.partition(ORDERS_0).leader_epoch
            assert epoch == first_epoch + 1
            await put(broker, Message(b"y"))
            assert end_of_epoch(broker, FindEpochEnd(source=ORDERS_0, epoch=first_epoch)) == (first_epoch, 3)
            assert end_of_epoch(broker, FindEpochEnd(source=ORDERS_0, epoch=epoch)) == (epoch, 4)

    asyncio.run(walk())


def test_the_brokers_own_topics_are_not_for_clients(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            with pytest.raises(InternalTopic):
                await publish(broker, Publish(topic=TopicName("__metadata"), messages=[Message(b"x")]))
            with pytest.raises(InternalTopic):
                await create_topic(broker, CreateTopic(name="__mine"))

    asyncio.run(walk())


def test_producer_ids_never_repeat_across_restarts(tmp_path: Path) -> None:
    given: list[int] = []

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            given.extend(await asyncio.gather(*(init_producer(broker, TakeProducerId()) for _ in range(5))))

    for _ in range(3):
        asyncio.run(walk())
    assert len(given) == len(set(given)) == 15


def test_a_batch_that_cannot_be_opened_is_named_with_the_way_past_it(tmp_path: Path) -> None:
    senseless = bytearray(produced([None, None]))
    senseless[-6:] = b"\xff" * 6  # in the second record: only the first of a small batch is read at the door
    senseless[17:21] = crc32c(senseless[21:]).to_bytes(4, "big")

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, Message(b"before"))
            append(broker, Append(ORDERS_0, memoryview(senseless), Acks.LEADER))
            await put(broker, Message(b"after"))
            found = await read_messages(broker, ReadMessages(source=ORDERS_0))
            assert ([m.value for m in found.messages], found.next_offset) == ([b"before"], 1)
            with pytest.raises(Corrupt, match="go on at offset 3") as raised:
                await read_messages(broker, ReadMessages(source=ORDERS_0, offset=1))
            assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 0, 1)
            found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=3))
            assert [m.value for m in found.messages] == [b"after"]

    asyncio.run(walk())


def test_a_read_before_the_start_begins_at_the_start(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            await create_topic(broker, CreateTopic(name="orders", partitions=1))
            await put(broker, *(Message(b"%d" % n) for n in range(5)))
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=3))
            found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0))
            assert [m.offset for m in found.messages] == [3, 4]

    asyncio.run(walk())
