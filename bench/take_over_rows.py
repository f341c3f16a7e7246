"""Journals of groups that another node takes over: reading them back, until their groups are served."""

import asyncio
import tempfile
import time
from pathlib import Path

from bench.measured import Row, at_most
from goqueue.broker.broker import Broker
from goqueue.broker.groups.journal import GroupJournal
from goqueue.broker.groups.offsets import commit_offsets
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.storage.journal_set import journal_number
from goqueue.broker.topics.verbs import create_topic
from goqueue.model.group_commands import CommitOffsets
from goqueue.model.groups import NO_GENERATION, Membership, TopicCommit
from goqueue.model.ids import TopicName
from goqueue.model.settings import BrokerConfig
from goqueue.model.topics import CreateTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.testing.world.workshop import WorkshopAtHand

JOURNALS = 17
"""What a node of three leads of fifty."""
EVENTS = 2_000
TOPIC = TopicName("orders")


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="take-over-", dir="/dev/shm") as folder:
        wall_s, cpu_s = asyncio.run(_measured(Path(folder)))
    what = f"take-over of {JOURNALS} group journals with {EVENTS:,} events each"
    return [at_most(what, cpu_s, "s of CPU", 0.5, f"{wall_s:.2f} s in all")]


async def _measured(folder: Path) -> tuple[float, float]:
    broker = await open_broker(
        config=BrokerConfig(),
        disk=FolderDisk(folder),
        clock=SystemClock(),
        threads=WorkerThreads(),
        workshop=WorkshopAtHand(),
    )
    await create_topic(broker, CreateTopic(name=TOPIC, partitions=1))
    groups = {journal_number(f"group-{number}"): f"group-{number}" for number in range(1_000)}
    numbers = sorted(groups)[:JOURNALS]
    await asyncio.gather(*(_fill(broker, groups[number]) for number in numbers))
    journals = broker.coordinator.journals
    partitions = [journal.partition for number in numbers if (journal := journals.numbered(number))]
    assert len(partitions) == JOURNALS
    journals.is_shared = True
    for number in numbers:
        broker.coordinator.let_go(number)

    async def read_back(journal: GroupJournal) -> None:
        await broker.threads.run(journal.replay)

    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    await asyncio.gather(*(broker.coordinator.take_over(one, read_back) for one in partitions))
    taken = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    journals.is_shared = False
    await close_broker(broker)
    return taken


async def _fill(broker: Broker, group: str) -> None:
    who = Membership(group, "", NO_GENERATION)
    for offset in range(EVENTS):
        await commit_offsets(broker, CommitOffsets(who, [TopicCommit(TOPIC, [(0, offset, -1, "")])]))
