"""What clients hear of a partition that another node leads, or that too few replicas hold."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from goqueue.broker.appending import appended, batches_of, numbered_batches, store
from goqueue.broker.broker import Broker
from goqueue.broker.read.find_offset import end_of_epoch, find_offset
from goqueue.broker.read.read import read, read_messages
from goqueue.broker.storage.partition import Partition
from goqueue.broker.topics.verbs import alter_settings, create_topic, delete_records
from goqueue.broker.upkeep import keep_up_partition
from goqueue.broker.write.append import append
from goqueue.broker.write.publish import publish
from goqueue.model.cluster import NodeId
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
    GoQueueError,
    LeadershipLost,
    NotEnoughReplicas,
    NotLeader,
    OffsetNotAvailable,
)
from goqueue.model.messages import Acks, Message
from goqueue.model.ports import Buffer
from goqueue.model.topics import AlterSettings, CreateTopic, DeleteRecords, SettingChange
from goqueue.node.disk import FolderDisk
from goqueue.records.layout import read_header, stamp_producer
from tests.unit.broker.running import ORDERS, ORDERS_0, running, until


class SomeCopies:
    """Other replicas, in a state that a test chooses. Nothing counts until it says so."""

    def __init__(self) -> None:
        self.is_leader = True
        self.can_commit = True
        self.seen_mark = 0
        self.is_mark_known = True
        self.is_in_sync = False
        self.pushed: list[tuple[int, int, bytes]] = []
        self.flush_count = 0
        self.starts_moved = 0

    def admit_lead(self) -> None:
        if not self.is_leader:
            raise NotLeader(*ORDERS_0, "b")

    def seen(self, end_offset: int) -> None:
        """Nobody has to."""

    def admit_copy(self) -> None:
        if not self.is_in_sync:
            self.admit_lead()

    def admit_all(self) -> None:
        self.admit_lead()
        if not self.can_commit:
            raise NotEnoughReplicas(*ORDERS_0)

    def admit_look_up(self) -> None:
        if not self.is_mark_known:
            raise OffsetNotAvailable(*ORDERS_0)

    def written(self, base_offset: int, end_offset: int, buffers: Sequence[Buffer]) -> None:
        self.pushed.append((base_offset, end_offset, b"".join(buffers)))

    def flushed(self) -> None:
        self.flush_count += 1

    def gone_bad(self, reason: str) -> None:
        """Nothing goes bad here."""

    def progress(self) -> tuple[dict[NodeId, int], dict[NodeId, int]]:
        return {}, {}

    def start_moved(self) -> None:
        self.starts_moved += 1


def walk(root: Path, work: Callable[[Broker, SomeCopies], Awaitable[None]]) -> None:
    async def open_and_work() -> None:
        async with running(FolderDisk(root)) as broker:
            settings = {"segment.bytes": "4096", "retention.ms": "1"}
            await create_topic(broker, CreateTopic(name=ORDERS, partitions=1, settings=settings))
            copies = SomeCopies()
            broker.partition(ORDERS_0).copies = copies
            try:
                await work(broker, copies)
            finally:
                broker.partition(ORDERS_0).copies = None

    asyncio.run(open_and_work())


async def put(broker: Broker, acks: Acks = Acks.LEADER, size: int = 10) -> GoQueueError | None:
    [outcome] = await publish(
        broker, Publish(topic=ORDERS, messages=[Message(bytes(size), timestamp_ms=1)], acks=acks)
    )
    if isinstance(outcome, GoQueueError):
        return outcome
    assert isinstance(outcome, Placed)
    return None


def test_only_the_leader_takes_messages_whatever_the_acks(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.is_leader = False
        for acks in Acks:
            assert isinstance(await put(broker, acks), NotLeader)
        assert broker.partition(ORDERS_0).log.end_offset == 0

    walk(tmp_path, work)


def test_a_copy_serves_readers_that_say_where_they_are_while_it_is_in_sync(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        await put(broker)
        await put(broker)
        broker.partition(ORDERS_0).move_mark(1)
        copies.is_leader = False

        async def look(rack: str) -> BatchesRead | PartitionReadFailed:
            part = PartitionRead(ORDERS_0, 0)
            [outcome] = await read(broker, Read(partitions=[part], min_bytes=1, reader="", rack=rack))
            return outcome

        refused = await look("north")
        assert isinstance(refused, PartitionReadFailed) and isinstance(refused.error, NotLeader)

        copies.is_in_sync = True
        served = await look("north")
        assert isinstance(served, BatchesRead) and served.end_offset == 1  # what counts, and no more
        refused = await look("")
        assert isinstance(refused, PartitionReadFailed) and isinstance(refused.error, NotLeader)

    walk(tmp_path, work)


def test_too_few_replicas_refuse_who_wants_all_of_them_and_nobody_else(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.can_commit = False

        assert isinstance(await put(broker, Acks.ALL), NotEnoughReplicas)
        assert await put(broker, Acks.LEADER) is None
        assert await put(broker, Acks.NONE) is None

        assert broker.partition(ORDERS_0).log.end_offset == 2

    walk(tmp_path, work)


def test_a_message_is_answered_for_when_the_replicas_have_it_and_not_when_the_disk_has(
    tmp_path: Path,
) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = broker.partition(ORDERS_0)
        waiting = asyncio.ensure_future(put(broker, Acks.ALL))
        while not copies.flush_count:
            await asyncio.sleep(0.001)
        assert partition.log.flushed_offset == 1
        assert not waiting.done()
        assert partition.commit_mark == 0

        partition.move_mark(1)

        assert await waiting is None
        found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=10))
        assert len(found.messages) == 1

    walk(tmp_path, work)


def test_a_topic_may_be_answered_when_all_in_sync_have_a_message_in_memory(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = await answered_early(broker)
        waiting = asyncio.ensure_future(put(broker, Acks.ALL))
        while not copies.flush_count:
            await asyncio.sleep(0.001)
        assert not waiting.done(), "the disk of the leader alone says nothing"

        partition.move_seen(1)

        assert await waiting is None
        copies.seen_mark = 2
        assert await put(broker, Acks.ALL) is None
        assert partition.commit_mark == 0, "readers wait for the disks all the same"

    walk(tmp_path, work)


def test_what_counts_is_answered_also_where_the_memory_of_all_would_be_enough(tmp_path: Path) -> None:
    """The seen mark may wait for a copy that is about to join."""

    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = await answered_early(broker)
        waiting = asyncio.ensure_future(put(broker, Acks.ALL))
        await until(lambda: partition.log.end_offset == 1)

        partition.move_mark(1)

        assert await waiting is None

    walk(tmp_path, work)


def test_who_waits_for_memory_alone_hears_that_it_may_be_lost_too(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = await answered_early(broker)
        waiting = asyncio.ensure_future(put(broker, Acks.ALL))
        await until(lambda: partition.log.end_offset == 1)

        partition.refuse_waiters(LeadershipLost(*ORDERS_0))

        assert isinstance(await waiting, LeadershipLost)

    walk(tmp_path, work)


def test_one_node_alone_answers_before_its_disk_has_a_message_where_the_topic_says_so(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = await answered_early(broker)
        partition.copies = None

        stored = store(partition, batches_of([Message(b"x")], now_ms=1), 1, Acks.ALL)
        again = appended(partition, stored.base_offset, 1, Acks.ALL)

        assert stored.committed is None
        assert partition.log.flushed_offset == 0
        assert again.committed is not None, "what is sent twice waits for the disk"
        await again.committed
        assert partition.commit_mark == 1, "the disk was asked for it, though nobody waits"

    walk(tmp_path, work)


def test_a_transaction_waits_for_disks_whatever_the_topic_says(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = await answered_early(broker)
        copies.seen_mark = 10
        [batch] = numbered_batches([Message(b"x")], producer_id=7, producer_epoch=0, first=0, now_ms=1)
        stamp_producer(batch.body, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
        marked = batch._replace(header=read_header(batch.body))

        stored = store(partition, [marked], 1, Acks.ALL)

        assert stored.committed is not None
        partition.move_mark(1)
        await stored.committed

    walk(tmp_path, work)


async def answered_early(broker: Broker) -> Partition:
    """The partition, when its topic asks for memory alone."""
    change = SettingChange("acks.all.waits.for", "written")
    await alter_settings(broker, AlterSettings(name=ORDERS, changes=[change]))
    return broker.partition(ORDERS_0)


def test_what_is_written_is_handed_on_as_it_lies_in_the_file(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        await put(broker)
        await put(broker)

        [(first, second, one), (_, end, other)] = copies.pushed

        assert (first, second, end) == (0, 1, 2)
        [path] = (tmp_path / "logs/orders/0").glob("*.log")
        assert path.read_bytes() == one + other

    walk(tmp_path, work)


def test_a_reader_does_not_wait_for_replicas_that_are_not_there(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        await put(broker)
        copies.can_commit = False

        async with asyncio.timeout(2):
            found = await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=10))

        assert found.messages == []

    walk(tmp_path, work)


def test_who_reads_elsewhere_is_sent_on(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.is_leader = False

        command = Read(partitions=[PartitionRead(ORDERS_0, 0, 100)], min_bytes=1, reader="ann")
        [found] = await read(broker, command)
        assert isinstance(found, PartitionReadFailed)
        assert isinstance(found.error, NotLeader)
        with pytest.raises(NotLeader):
            await read_messages(broker, ReadMessages(source=ORDERS_0, offset=0, limit=10))
        with pytest.raises(NotLeader):
            await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.LATEST))
        with pytest.raises(NotLeader):
            await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=0))

    walk(tmp_path, work)


def test_what_is_deleted_is_told_to_the_others_at_once(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        for _ in range(3):
            await put(broker)
        broker.partition(ORDERS_0).move_mark(3)

        await delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=2))

        assert copies.starts_moved == 1
        assert broker.partition(ORDERS_0).log.start_offset == 2

    walk(tmp_path, work)


def test_who_leads_no_more_when_its_turn_comes_deletes_nothing(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        await put(broker)
        deleting = asyncio.ensure_future(
            delete_records(broker, DeleteRecords(target=ORDERS_0, before_offset=1))
        )
        await asyncio.sleep(0)  # it waits for the mark
        copies.is_leader = False
        broker.partition(ORDERS_0).move_mark(1)

        with pytest.raises(NotLeader):
            await deleting

        assert broker.partition(ORDERS_0).log.start_offset == 0

    walk(tmp_path, work)


def test_a_new_leader_does_not_say_where_the_end_is_before_it_knows(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        await put(broker)
        copies.is_mark_known = False

        for spot in (Spot.LATEST, 5):
            with pytest.raises(OffsetNotAvailable):
                await find_offset(broker, FindOffset(source=ORDERS_0, spot=spot))
        with pytest.raises(OffsetNotAvailable):
            end_of_epoch(broker, FindEpochEnd(source=ORDERS_0, epoch=1))
        assert (await find_offset(broker, FindOffset(source=ORDERS_0, spot=Spot.EARLIEST))).offset == 0

    walk(tmp_path, work)


def test_who_reads_what_a_new_leader_does_not_know_to_count_is_asked_to_come_again(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.can_commit = copies.is_mark_known = False
        for _ in range(3):
            await put(broker)
        broker.partition(ORDERS_0).move_mark(1)

        for offset in (1, 2, 3):
            with pytest.raises(OffsetNotAvailable):
                await read_messages(broker, ReadMessages(source=ORDERS_0, offset=offset))
        assert len((await read_messages(broker, ReadMessages(source=ORDERS_0))).messages) == 1

    walk(tmp_path, work)


def test_a_reader_ahead_of_a_new_leaders_mark_is_not_told_that_its_offset_is_wrong(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.can_commit = False
        for _ in range(3):
            await put(broker)

        [found] = await read(broker, Read(partitions=[PartitionRead(ORDERS_0, 2, 100)], min_bytes=0))

        assert not isinstance(found, PartitionReadFailed)
        assert found.batches == []

    walk(tmp_path, work)


def test_retention_is_the_leaders_and_leaves_what_does_not_count_yet(tmp_path: Path) -> None:
    async def work(broker: Broker, copies: SomeCopies) -> None:
        partition = broker.partition(ORDERS_0)
        for _ in range(6):
            await put(broker, size=3_000)
        copies.is_leader = False
        await keep_up_partition(broker, partition)
        assert partition.log.start_offset == 0

        copies.is_leader = True
        await keep_up_partition(broker, partition)
        assert partition.log.start_offset == 0
        partition.move_mark(4)
        await keep_up_partition(broker, partition)

        assert partition.log.start_offset == 4

    walk(tmp_path, work)


@pytest.mark.parametrize(("is_leader", "told"), [(True, NotEnoughReplicas), (False, NotLeader)])
def test_a_producer_that_sends_ahead_hears_of_no_gap_where_nothing_is_taken(
    tmp_path: Path, is_leader: bool, told: type[GoQueueError]
) -> None:
    """A gap would be final for it: it would begin to count anew, and send again what is stored already."""

    async def work(broker: Broker, copies: SomeCopies) -> None:
        copies.is_leader, copies.can_commit = is_leader, False
        for sequence in (0, 1, 2):
            (batch,) = numbered_batches(
                [Message(b"m", timestamp_ms=1)], producer_id=7, producer_epoch=0, first=sequence, now_ms=1
            )
            with pytest.raises(told):
                append(broker, Append(ORDERS_0, memoryview(bytearray(batch.body)), Acks.ALL))

    walk(tmp_path, work)
