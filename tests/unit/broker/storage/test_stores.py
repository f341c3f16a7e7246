"""The store of one node, and the simulated one: the suite for all stores, and what is particular to them."""

import asyncio
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from goqueue.broker.broker import Broker
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.journal import JOURNAL_SETTINGS
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.store_journal import EVENTS, HISTORY_MAX, METADATA_TOPIC, Keys, StoreJournal
from goqueue.broker.topics.verbs import create_topic, delete_topic
from goqueue.core.access.usage_hours import USAGE_HOURS
from goqueue.log.commit_log import CommitLog
from goqueue.model.cluster import ABSENT, Guard
from goqueue.model.errors import Compacted, ShuttingDown, StorageFailed, Unknown
from goqueue.model.ids import TopicPartition
from goqueue.model.ports import Store
from goqueue.model.topics import CreateTopic, DeleteTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.store import SimulatedStore, StoreFaults
from tests.unit.broker.lives import NEVER, Lives, PowerLost
from tests.unit.broker.running import running
from tests.unit.broker.storage.store_conformance import StoreConformance, held, next_of
from tests.unit.broker.topics.test_epochs import EARLIER

FOLDER = "logs/__metadata/0"


@asynccontextmanager
async def journal_on(disk: SimulatedDisk) -> AsyncIterator[StoreJournal]:
    threads = WorkerThreads(count=1)
    commit_log = CommitLog(disk, draw_salt=lambda: 1, file_bytes=0, files_max=0)
    disk.make_folder(FOLDER)
    partition = Partition(
        TopicPartition(METADATA_TOPIC, 0),
        FOLDER,
        JOURNAL_SETTINGS,
        disk=disk,
        clock=SystemClock(),
        leader_epoch=0,
        on_failure=lambda _: None,
    )
    partition.flusher = flusher = Flusher(threads, SystemClock(), commit_log, interval_ms=60_000)
    partition.open()
    store = StoreJournal(partition)
    store.journal.replay()
    try:
        yield store
    finally:
        await flusher.wait_under_way()
        partition.close(ShuttingDown())
        await flusher.close()
        threads.close()


class TestStoreJournal(StoreConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        async with journal_on(SimulatedDisk(Random(1))) as store:
            yield store


class TestSimulatedStore(StoreConformance):
    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        yield SimulatedStore(Random(1), StoreFaults(late_ms=2))


def test_keys_and_revisions_outlive_the_process_and_a_journal_written_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("goqueue.broker.storage.state_journal.EVENTS_MAX", 0)
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with journal_on(disk) as store:
            for at in range(250):
                await store.change([], {f"k{at}": b"%d" % at}, [])
            await (await store.open_session(ttl_ms=1)).hold("nodes/1", b"1")
            revision = (await store.load("")).revision
        async with journal_on(disk) as store:
            before = await store.load("")
            assert (len(before.items), before.revision) == (250, revision - 1), "the session's key is gone"
            await store.journal.shorten()
            assert await store.load("") == before
            last = await store.change([Guard("k7", before.items["k7"].revision)], {}, ["k7"])
        async with journal_on(disk) as store:
            after = await store.load("")
            assert (after.revision, len(after.items)) == (last, 249)
            await store.change([Guard("k7", ABSENT)], {"k7": b"1"}, [])

    asyncio.run(walk())


def test_nobody_hears_of_a_change_before_it_is_committed() -> None:
    disk = SimulatedDisk(Random(1))

    async def walk() -> None:
        async with journal_on(disk) as store:
            await store.change([], {"a": b"1"}, [])
            after = (await store.load("")).revision
            news = asyncio.ensure_future(next_of(store.follow("", after)))
            await asyncio.sleep(0)
            disk.faults.fail_syncs(1, under=FOLDER)
            with pytest.raises(Unknown):
                await store.change([], {"a": b"2"}, [])
            with pytest.raises(StorageFailed):
                await store.load("")
            assert not news.done()
            news.cancel()

    asyncio.run(walk())


def test_whoever_asked_may_go_away_and_the_others_hear_of_it_all_the_same() -> None:
    async def walk() -> None:
        async with journal_on(SimulatedDisk(Random(1))) as store:
            news = store.follow("", (await store.load("")).revision)
            asked = asyncio.ensure_future(store.change([], {"a": b"1"}, []))
            await asyncio.sleep(0)
            asked.cancel()
            assert dict((await next_of(news)).puts) == {"a": b"1"}
            assert await held(store) == {"a": b"1"}

    asyncio.run(walk())


def test_whoever_is_far_behind_is_told_to_load_anew() -> None:
    async def walk() -> None:
        async with journal_on(SimulatedDisk(Random(1))) as store:
            first = await store.change([], {"a": b"1"}, [])
            changes = [store.change([], {"a": b"%d" % at}, []) for at in range(HISTORY_MAX + 1)]
            await asyncio.gather(*changes)
            with pytest.raises(Compacted):
                await next_of(store.follow("", first))
            assert (await next_of(store.follow("", first + 1))).revision == first + 2

    asyncio.run(walk())


def test_a_journal_of_events_is_read_as_keys(tmp_path: Path) -> None:
    with tarfile.open(EARLIER) as folder:
        folder.extractall(tmp_path, filter="data")

    async def keys() -> set[str]:
        async with running(FolderDisk(tmp_path)) as broker:
            assert broker.metadata.cluster_id == "2wQfcpyGB1bwAcuO85BBi8"
            return set((await broker.store.load("")).items)

    first = asyncio.run(keys())
    assert {key.partition("/")[0] for key in first} == {
        "cluster", "starts", "producer_ids", "names", "topics", "tenants", "usage", "folder",
    }  # fmt: skip
    assert {"names/orders", "names/acme.bills", "folder/commit_mark", "folder/journals/commit"} < first
    # What tenants hold is noted by the hour when the node stops.
    assert {key for key in asyncio.run(keys()) if not key.startswith(USAGE_HOURS)} == first


def test_events_of_before_become_keys_one_by_one() -> None:
    orders = "f8130c42-3773-4edf-afbd-67f9619699cf"
    created = '["TopicCreated",{"name":"%s","topic_id":"%s","partitions":2,"settings":{},"created_ms":7}]'
    events = [
        '["ClusterFormed",{"cluster_id":"c"}]',
        '["EpochRaised",{"epoch":3}]',
        created % ("orders", orders),
        created % ("old", "00000000-0000-0000-0000-000000000000"),
        created % ("older", "00000000-0000-0000-0000-000000000000"),
        '["PartitionsAdded",{"name":"orders","total":3}]',
        '["PartitionEpochRaised",{"name":"orders","partition":1,"epoch":9}]',
        '["TopicDeleted",{"name":"old"}]',
        '["TopicDeleted",{"name":"older"}]',
        '["TopicRemoved",{"name":"old"}]',
    ]
    keys = Keys()
    for event in events:
        keys.apply(EVENTS.decode(event.encode()))

    assert keys.revision == len(events)
    assert {"names/orders", f"topics/{orders}", f"parts/{orders}/1", "names/older"} < keys.items.keys()
    assert "names/old" not in keys.items
    assert b'"partitions":3' in keys.items[f"topics/{orders}"].value
    assert sum(key.startswith("topics/") for key in keys.items) == 2


async def change_topics(broker: Broker) -> None:
    for at in range(4):
        await create_topic(broker, CreateTopic(name=f"t{at}", partitions=1))
        if at % 2:
            await delete_topic(broker, DeleteTopic(name=f"t{at}"))


@pytest.mark.parametrize("cut_after", [*range(1, 80, 3), NEVER])
def test_no_power_cut_leaves_half_a_change(cut_after: int) -> None:
    lives = Lives(cut_after)
    try:
        lives.live(change_topics, cut_after=cut_after)
    except PowerLost:
        assert cut_after < NEVER

    async def look(broker: Broker) -> None:
        items = (await broker.store.load("")).items
        names = {key.removeprefix("names/") for key in items if key.startswith("names/")}
        assert names == set(broker.topics) == set(broker.metadata.topics)
        assert sum(key.startswith("topics/") for key in items) == len(names)
        await create_topic(broker, CreateTopic(name="last", partitions=1))

    lives.live(look)
