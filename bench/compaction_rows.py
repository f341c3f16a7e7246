"""Compaction of a large partition: CPU a message, memory a key, and how long the loop is held."""

import asyncio
import gc
import shutil
import time
from pathlib import Path
from random import Random

import numpy as np

from bench.measured import Row, at_most
from goqueue.broker.broker import Broker
from goqueue.broker.compaction.compacting import compact, look_at
from goqueue.broker.opening import close_broker, open_broker
from goqueue.broker.topics.verbs import create_topic
from goqueue.broker.write.append import append
from goqueue.model.commands import Append
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Acks, Message
from goqueue.model.settings import BrokerConfig, GiB
from goqueue.model.topics import CreateTopic
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.records.batch import encode
from goqueue.testing.world.workshop import WorkshopAtHand

_BATCH = 1_000
_LOOK_S = 0.001
_FREED_S = 0.2
"""By then all is let go that the round has used."""
_TOPIC = TopicName("cars")
_PLACE = TopicPartition(_TOPIC, 0)


def compacting(folder: Path, *, messages: int = 10_000_000, keys: int = 1_000_000) -> list[Row]:
    """One round over messages of 100 bytes, at no set rate."""
    try:
        return asyncio.run(_compacting(folder / "compacted", messages, keys))
    finally:
        shutil.rmtree(folder / "compacted", ignore_errors=True)


async def _compacting(folder: Path, messages: int, keys: int) -> list[Row]:
    threads = WorkerThreads(count=4)
    broker = await open_broker(
        config=BrokerConfig(compaction_interval_ms=10**8, compaction_bytes_per_s=GiB, scrub_bytes_per_s=0),
        disk=FolderDisk(folder),
        clock=SystemClock(),
        threads=threads,
        workshop=WorkshopAtHand(),
        chance=Random(1),
    )
    try:
        await _fill(broker, messages, keys)
        partition = broker.partition(_PLACE)
        partition.log.roll()
        await partition.save_recovery_point()
        gc.collect()
        look_s = await _cost_of_a_look_s()
        holds = _Watch()
        looking = asyncio.create_task(holds.look())
        looked = await look_at(broker, partition)
        assert looked is not None
        watch = asyncio.create_task(_largest_map(broker))
        begun_s = time.process_time()
        done = await compact(broker, partition, looked)
        spent_s = time.process_time() - begun_s - holds.looks * look_s
        assert done is not None and done.records_before == messages
        del looked
        await asyncio.sleep(_FREED_S)
        looking.cancel()
        watch.cancel()
        [map_bytes] = await asyncio.gather(watch)
        detail = f"{messages:,} messages of 100 bytes, {keys:,} keys, {done.records_after:,} stay"
        return [
            at_most("compaction: CPU a message", spent_s / messages * 1e6, "µs", 1, detail),
            at_most("compaction: memory a key", map_bytes / done.records_after, "bytes", 64, detail),
            at_most("compaction: longest time the loop was held", holds.longest_s * 1e3, "ms", 5, detail),
        ]
    finally:
        await close_broker(broker)
        threads.close()


async def _fill(broker: Broker, messages: int, keys: int) -> None:
    settings = {"cleanup.policy": "compact"}
    await create_topic(broker, CreateTopic(name=_TOPIC, partitions=1, settings=settings))
    drawn = np.random.default_rng(1)
    value = b"x" * 84
    for _ in range(messages // _BATCH):
        batch = [Message(value, b"car-%012d" % number) for number in drawn.integers(0, keys, _BATCH)]
        [(body, _)] = encode(batch, now_ms=broker.clock.wall_ms())
        append(broker, Append(target=_PLACE, batches=body, acks=Acks.LEADER))
        await asyncio.sleep(0)


class _Watch:
    """Looks every millisecond how long the loop has let it wait, and how much that takes by itself."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.looks = 0

    async def look(self) -> None:
        """Until it is cancelled. CPU time of the whole process: what others on the machine take is not ours,
        and a thread that keeps the interpreter counts."""
        while True:
            begun_s = time.process_time()
            await asyncio.sleep(_LOOK_S)
            self.longest_s = max(self.longest_s, time.process_time() - begun_s - _LOOK_S)
            self.looks += 1


async def _cost_of_a_look_s() -> float:
    """On a loop that has nothing else to do."""
    watch = _Watch()
    looking = asyncio.create_task(watch.look())
    begun_s = time.process_time()
    await asyncio.sleep(1)
    spent_s = time.process_time() - begun_s
    looking.cancel()
    return spent_s / watch.looks


async def _largest_map(broker: Broker) -> int:
    largest = 0
    try:
        while True:
            largest = max(largest, broker.compaction.keys_bytes)
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        return largest
