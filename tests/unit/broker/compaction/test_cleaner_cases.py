"""What Kafka's own cleaner is tried with, and what is ours alone: damage, tools, readers of files."""

import asyncio
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from goqueue.broker.compaction.compacting import compact_all, look_at
from goqueue.broker.compaction.verbs import compact_partition
from goqueue.broker.topics.verbs import alter_settings
from goqueue.broker.upkeep import keep_up_partition
from goqueue.broker.write.append import append
from goqueue.broker.write.publish import publish
from goqueue.log.inspection import inspect
from goqueue.log.reading import from_disk
from goqueue.model.commands import Append, Publish
from goqueue.model.errors import KeyRequired
from goqueue.model.messages import Acks, Message
from goqueue.model.topics import AlterSettings, CompactPartition, SettingChange
from goqueue.node.disk import FolderDisk
from goqueue.records.batch import encode
from goqueue.records.layout import read_header, stamp_producer
from goqueue.spark.codec.columns import Columns
from goqueue.spark.codec.decode import decode
from goqueue.spark.source.files import SegmentFiles
from tests.unit.broker.compaction.compacted_topics import (
    CARS,
    CARS_0,
    compact_now,
    make_cars,
    put,
    stored,
    table,
)
from tests.unit.broker.running import running

OFFSETS = Columns(pa.schema([pa.field("offset", pa.int64(), nullable=False)]))
PAIRS = [(b"car-%d" % (number % 7), b"%04d" % number + b"." * 300) for number in range(60)]


def numbered(key: bytes, sequence: int) -> memoryview:
    """A batch of one message of an idempotent producer."""
    [(body, _)] = encode([Message(b"v%d" % sequence, key)], now_ms=1_000)
    stamp_producer(body, producer_id=7, producer_epoch=0, base_sequence=sequence)
    return body


def test_a_producer_goes_on_counting_when_all_its_messages_are_outdated(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            for sequence in range(3):
                append(broker, Append(target=CARS_0, batches=numbered(b"k", sequence), acks=Acks.LEADER))
            await put(broker, (b"k", b"newest"), *PAIRS)
            await compact_now(broker)
            assert [m.value for m in stored(partition) if m.key == b"k"] == [b"newest"]
        # Without recovery points all is told by the batches alone.
        for point in (tmp_path / "logs" / CARS / "0").glob("*.snapshot"):
            point.write_bytes(b"")
        async with running(FolderDisk(tmp_path)) as broker:
            partition = broker.partition(CARS_0)
            assert partition.producers.next_sequence(7, 0) == 3
            assert partition.damage is None
            assert table(partition) == dict(PAIRS) | {b"k": b"newest"}

    asyncio.run(walk())


def test_a_batch_that_has_gone_bad_makes_its_partition_uncleanable(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS)
            spoilt = tmp_path / "logs" / CARS / "0" / f"{0:020d}.log"
            data = bytearray(spoilt.read_bytes())
            data[200] ^= 1
            spoilt.write_bytes(data)
            before = spoilt.read_bytes()
            assert await compact_now(broker) is None
            assert "checksum" in broker.compaction.uncleanable[CARS_0][1]
            assert await look_at(broker, partition) is None
            assert spoilt.read_bytes() == before
            assert not [*spoilt.parent.glob("*.cleaned")]

    asyncio.run(walk())


def test_messages_without_keys_from_before_the_policy_go(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker, {"cleanup.policy": "delete"})
            await publish(broker, Publish(topic=CARS, messages=[Message(b"no key"), Message(b"v", b"k")]))
            changes = [SettingChange("cleanup.policy", "compact")]
            await alter_settings(broker, AlterSettings(name=CARS, changes=changes))
            [refused] = await publish(broker, Publish(topic=CARS, messages=[Message(b"no key")]))
            assert isinstance(refused, KeyRequired)
            await compact_now(broker)
            assert [message.value for message in stored(partition)] == [b"v"]

    asyncio.run(walk())


@pytest.mark.parametrize(("policy", "is_kept"), [("compact", True), ("compact,delete", False)])
def test_age_takes_old_messages_only_where_the_policy_says_so(
    tmp_path: Path, policy: str, is_kept: bool
) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker, {"cleanup.policy": policy, "retention.ms": "1000"})
            old = [Message(b"v", b"k%d" % number, timestamp_ms=1_000) for number in range(3)]
            await publish(broker, Publish(topic=CARS, messages=old))
            await keep_up_partition(broker, partition)
            assert bool(stored(partition)) is is_kept

    asyncio.run(walk())


def test_a_segment_that_is_open_for_too_long_is_sealed_and_compacted(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker, {"max.compaction.lag.ms": "60000"})
            old = [Message(b"%d" % number, b"k", timestamp_ms=1_000) for number in range(3)]
            await publish(broker, Publish(topic=CARS, messages=old))
            await compact_all(broker)
            assert [message.value for message in stored(partition)] == [b"2"]

    asyncio.run(walk())


def test_an_inspection_finds_nothing_lost(tmp_path: Path) -> None:
    async def walk() -> None:
        disk = FolderDisk(tmp_path)
        async with running(disk) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS)
            await compact_now(broker)
            await put(broker, *PAIRS)
            await compact_now(broker)
            found = inspect(disk, partition.folder)
            assert (found.lost, found.bad_bytes, found.end_offset) == ([], 0, 120)

    asyncio.run(walk())


def test_a_follower_may_begin_at_any_offset_that_is_gone(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            log = (await make_cars(broker)).log
            await put(broker, *PAIRS)
            await compact_now(broker)
            for offset in range(60):
                chunk = log.read_steps(offset, 10_000, read_bytes=from_disk)
                [data] = chunk.batches
                assert read_header(data, 34).base_offset == offset

    asyncio.run(walk())


def test_spark_reads_what_is_left_from_frames_and_from_files_that_are_swapped(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            log = (await make_cars(broker)).log
            await put(broker, *PAIRS)
            files = SegmentFiles(tmp_path, CARS, 0)
            begun = files.window(0, end_offset=60, max_bytes=3_000)
            assert begun is not None
            await compact_now(broker)
            found: list[int] = []
            offset = 0
            while offset < 60:
                [data] = log.read(offset, 10_000, end_offset=60, read_bytes=from_disk, framed=True).batches
                decoded = decode(data, columns=OFFSETS, offset_range=(offset, 60), topic=CARS, partition=0)
                found += [row for batch in decoded.batches for row in batch.column("offset").to_pylist()]
                offset = decoded.next_offset
            assert found == list(range(53, 60))
            # A reader of files goes on where it was, or is told to ask the node.
            window = files.window(begun.next_offset, end_offset=60, max_bytes=100_000)
            assert window is None or window.next_offset > begun.next_offset

    asyncio.run(walk())


def test_keys_that_do_not_fit_into_memory_take_more_rounds(tmp_path: Path) -> None:
    random = Random(5)
    pairs = [(b"%d" % random.randrange(40), b"%d" % number) for number in range(120)]

    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *pairs)
            object.__setattr__(broker.config, "compaction_memory_bytes", 1_000)
            partition.log.roll()
            await compact_all(broker)
            assert broker.compaction.rounds > 2
            assert table(partition) == dict(pairs)
            assert len(stored(partition)) == len(dict(pairs))

    asyncio.run(walk())


def test_who_asks_for_compaction_while_it_is_at_work_waits_for_it(tmp_path: Path) -> None:
    async def walk() -> None:
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS)
            ask = CompactPartition(target=CARS_0)
            answers = await asyncio.gather(*(compact_partition(broker, ask) for _ in range(3)))
            assert sorted(answer.records_before - answer.records_after for answer in answers) == [0, 0, 53]
            assert table(partition) == dict(PAIRS)

    asyncio.run(walk())


def test_a_compacted_log_opens_whole_when_its_newest_recovery_point_is_torn(tmp_path: Path) -> None:
    async def walk() -> None:
        folder = tmp_path / "logs" / CARS / "0"
        async with running(FolderDisk(tmp_path)) as broker:
            partition = await make_cars(broker)
            await put(broker, *PAIRS[:15])
            await partition.save_recovery_point()
            await put(broker, *PAIRS[15:18])
            await compact_now(broker)
        points = sorted(folder.glob("*.snapshot"))
        points[-1].write_bytes(b"torn")
        async with running(FolderDisk(tmp_path)) as broker:
            partition = broker.partition(CARS_0)
            assert partition.damage is None
            assert table(partition) == dict(PAIRS[:18])

    asyncio.run(walk())
