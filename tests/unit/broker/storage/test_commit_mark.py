"""One commit mark: what readers see is on the disk, so nothing that they say of it can outlive it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.groups.lag import group_lag
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.groups.reset_offsets import reset_offsets
from goqueue.broker.read.find_offset import find_offset
from goqueue.broker.read.frames import read_frames, watch_offsets
from goqueue.broker.read.read import read, read_messages
from goqueue.broker.topics.verbs import delete_records
from goqueue.broker.write.publish import publish
from goqueue.model.commands import (
    BatchesRead,
    FindOffset,
    PartitionRead,
    Placed,
    Publish,
    Read,
    ReadFrames,
    ReadMessages,
    Spot,
    WatchOffsets,
)
from goqueue.model.group_commands import CommitOffsets, DescribeLag, ResetOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.topics import DeleteRecords
from goqueue.model.transactions import Isolation
from tests.unit.broker.lives import Lives
from tests.unit.broker.queue.queue_steps import Consumer, ack, join, orders, take, values
from tests.unit.broker.running import ORDERS
from tests.unit.broker.transactions.transaction_steps import committed_offset, new_writer

SOURCE = TopicPartition(ORDERS, 0)
READER = Membership("readers", "", NO_GENERATION)


async def put(broker: Broker, *texts: str, acks: Acks = Acks.LEADER) -> list[int]:
    """Publish; the offsets that were told."""
    messages = [Message(text.encode()) for text in texts]
    placed = await publish(broker, Publish(topic=ORDERS, messages=messages, acks=acks))
    return [one.offset for one in placed if isinstance(one, Placed)]


async def texts_in(broker: Broker, offset: int = 0) -> list[str]:
    found = await read_messages(broker, ReadMessages(source=SOURCE, offset=offset, limit=100))
    return [(message.value or b"").decode() for message in found.messages]


def offsets_committed(broker: Broker) -> int:
    record = broker.coordinator.journals.record(READER.group)
    assert record is not None
    return record.offsets.of(ORDERS, broker.metadata.topic(ORDERS).topic_id)[0][1]


@pytest.mark.parametrize("seed", range(12))
def test_what_was_acknowledged_and_lost_with_the_power_hides_nothing_that_comes_later(seed: int) -> None:
    lives = Lives(seed)

    async def publish_and_ack(broker: Broker) -> Consumer:
        await orders(broker)
        ann = await join(broker)
        await put(broker, "a", "b", "c", "d", "e")
        taken = await take(broker, ann)
        assert values(taken) == ["a", "b", "c", "d", "e"]
        await ack(broker, taken)
        return ann

    ann = lives.live(publish_and_ack)

    async def go_on(broker: Broker) -> list[str]:
        await put(broker, "x", "y", "z", acks=Acks.ALL)
        return values(await take(broker, ann))

    assert lives.live(go_on)[-3:] == ["x", "y", "z"]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_polled_before_its_publisher_is_answered_hides_nothing_either(seed: int) -> None:
    lives = Lives(seed)

    async def begin(broker: Broker) -> Consumer:
        await orders(broker)
        return await join(broker)

    ann = lives.live(begin)

    async def publish_and_ack(broker: Broker) -> None:
        publishing = asyncio.ensure_future(put(broker, "a", "b", "c", "d", "e", acks=Acks.ALL))
        await ack(broker, await take(broker, ann, wait_ms=1_000))
        publishing.cancel()

    lives.live(publish_and_ack)

    async def go_on(broker: Broker) -> list[str]:
        await put(broker, "x", "y", "z", acks=Acks.ALL)
        return values(await take(broker, ann))

    assert lives.live(go_on)[-3:] == ["x", "y", "z"]


@pytest.mark.parametrize("seed", range(12))
def test_an_offset_that_was_committed_is_never_behind_the_end_after_a_power_cut(seed: int) -> None:
    lives = Lives(seed)

    async def read_and_commit(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a", "b", "c")
        seen = await texts_in(broker)
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, len(seen), -1, "")])]))

    lives.live(read_and_commit)

    async def end(broker: Broker) -> tuple[int, int]:
        return offsets_committed(broker), broker.partition(SOURCE).log.end_offset

    committed, end_offset = lives.live(end)
    assert committed == end_offset == 3


async def _messages(broker: Broker) -> object:
    return await texts_in(broker)


async def _fetched(broker: Broker) -> object:
    [outcome] = await read(broker, Read(partitions=[PartitionRead(SOURCE, 0, 1_000)], min_bytes=1, reader=""))
    assert isinstance(outcome, BatchesRead)
    return outcome.end_offset, outcome.high_watermark


async def _frames(broker: Broker) -> object:
    return (
        await read_frames(broker, ReadFrames(source=SOURCE, offset=0, max_bytes=1_000, wait_ms=0))
    ).end_offset


async def _latest(broker: Broker) -> object:
    return (
        await find_offset(
            broker, FindOffset(source=SOURCE, spot=Spot.LATEST, isolation=Isolation.UNCOMMITTED)
        )
    ).offset


async def _ranges(broker: Broker) -> object:
    return (await watch_offsets(broker, WatchOffsets(topics=[ORDERS])))[SOURCE].end_offset


async def _lag(broker: Broker) -> object:
    [lag] = (await group_lag(broker, DescribeLag(group=READER.group))).partitions
    return lag.lag


async def _deleted(broker: Broker) -> object:
    return await delete_records(broker, DeleteRecords(target=SOURCE, before_offset=-1))


async def _reset(broker: Broker) -> object:
    [reset] = await reset_offsets(broker, ResetOffsets(group=READER.group, offsets={SOURCE: 2}))
    return reset.new_offset


@pytest.mark.parametrize(
    ("look", "seen"),
    [
        (_messages, ["a", "b"]),
        (_fetched, (2, 2)),
        (_frames, 2),
        (_latest, 2),
        (_ranges, 2),
        (_lag, 2),
        (_deleted, 2),
        (_reset, 2),
    ],
)
@pytest.mark.parametrize("acks", [Acks.LEADER, Acks.NONE])
def test_whoever_publishes_and_then_looks_sees_his_messages(
    look: Callable[[Broker], Awaitable[object]], seen: object, acks: Acks
) -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, 0, -1, "")])]))
        await put(broker, "a", "b", acks=acks)

        assert await look(broker) == seen

    Lives(1).live(story)


@pytest.mark.parametrize("look", [_messages, _fetched, _frames, _latest, _ranges, _lag])
@pytest.mark.parametrize("seed", range(4))
def test_what_somebody_was_shown_is_there_after_a_power_cut(
    look: Callable[[Broker], Awaitable[object]], seed: int
) -> None:
    lives = Lives(seed)

    async def story(broker: Broker) -> None:
        await orders(broker)
        await commit_offsets(broker, CommitOffsets(READER, [TopicCommit(ORDERS, [(0, 0, -1, "")])]))
        await put(broker, "a", "b")
        await look(broker)

    lives.live(story)

    assert lives.live(texts_in) == ["a", "b"]


@pytest.mark.parametrize("seed", range(8))
def test_a_transaction_never_outlives_the_input_that_it_was_made_of(seed: int) -> None:
    """Read, transform, write, commit the offset: input that was lost would be sent and counted again."""
    lives = Lives(seed)

    async def story(broker: Broker) -> None:
        await orders(broker, partitions=2)
        messages = [Message(b"%d" % number, partition=0) for number in range(3)]
        await publish(broker, Publish(topic=ORDERS, messages=messages, acks=Acks.LEADER))
        seen = await texts_in(broker)
        writer = await new_writer(broker)
        await writer.add(1)
        for text in seen:
            await writer.put(1, f"made of {text}")
        await writer.read_up_to(len(seen))
        await writer.commit()

    lives.live(story)

    async def look(broker: Broker) -> tuple[int, int]:
        return await committed_offset(broker), broker.partition(SOURCE).log.end_offset

    assert lives.live(look) == (3, 3)


def test_what_is_written_is_hidden_until_the_disk_has_it() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        await put(broker, "a")
        partition = broker.partition(SOURCE)

        assert (partition.log.end_offset, partition.commit_mark, partition.last_stable_offset) == (1, 0, 0)
        assert await texts_in(broker) == ["a"]
        assert (partition.commit_mark, partition.has_hidden) == (1, False)

    Lives(1).live(story)


def test_a_reader_behind_the_mark_may_stand_where_the_log_is_written_to() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        [offset] = await put(broker, "a")

        [outcome] = await read(
            broker, Read(partitions=[PartitionRead(SOURCE, offset + 1, 1_000)], min_bytes=1)
        )

        assert isinstance(outcome, BatchesRead)
        assert outcome.high_watermark == 1

    Lives(1).live(story)


def test_a_reader_that_waits_is_not_kept_until_the_flush_interval() -> None:
    async def story(broker: Broker) -> None:
        await orders(broker)
        begun_ns = broker.clock.monotonic_ns()
        reading = asyncio.ensure_future(
            read_messages(broker, ReadMessages(source=SOURCE, offset=0, limit=1, wait_ms=60_000))
        )
        while not broker.partition(SOURCE).readers:
            await asyncio.sleep(0)
        await put(broker, "a")

        assert len((await reading).messages) == 1
        assert broker.clock.monotonic_ns() - begun_ns < 500_000_000

    Lives(1).live(story)
