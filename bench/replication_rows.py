"""Replication at work: CPU of a leader with two followers and of each follower, over real sockets.

Batches of one message are appended as fast as the replicas take them, some in each turn of the loop, and each
group waits until all have it on their disks (files in memory). What a leader spends without followers is told
apart, so that what replication adds can be seen.
"""

import asyncio
import shutil
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from uuid import UUID

import uvloop

from bench.measured import Row, at_most, reported
from goqueue.broker.replication.replication import Replication
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.values import encode, part_key
from goqueue.edge.peer.calls import CallCodec, Shape
from goqueue.edge.peer.config import PeerConfig
from goqueue.edge.peer.door import PeerDoor
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.model.cluster import Guard, Incarnation, NodeId, PartitionRecord
from goqueue.model.commands import ReadMessages
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.peers import Answered, Loss, Neighbour, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Stream, StreamUser
from goqueue.model.replication import Follow
from goqueue.model.settings import GiB, KiB, MiB, TopicSettings
from goqueue.node.clock import SystemClock
from goqueue.node.disk import FolderDisk
from goqueue.node.threads import WorkerThreads
from goqueue.records.batch import encode as encode_batches
from goqueue.records.layout import read_header
from goqueue.testing.world.store import SimulatedStore

SOURCE, TOPIC_ID = TopicPartition(TopicName("orders"), 0), UUID(int=9)
LEADER, FOLLOWERS = NodeId("a"), (NodeId("b"), NodeId("c"))
INCARNATION = Incarnation(1)
GROUP = 16
"""Batches that are appended in one turn, as requests of some connections are."""
BUDGET_S = 1.2


def rows() -> list[Row]:
    found = []
    for size, total in ((16 * KiB, 256 * MiB), (MiB, 512 * MiB), (KiB, 32 * MiB)):
        alone_s, _ = _run((), size, total)
        leader_s, follower_s = _run(FOLLOWERS, size, total)
        name = f"replication, batches of {size // KiB} KiB"
        added_s = (leader_s - alone_s) * GiB / total
        detail = f"{leader_s * GiB / total:.2f} s with, {alone_s * GiB / total:.2f} s without followers"
        leader = (f"{name}, what two followers add to the leader", added_s, "s of CPU a GiB")
        follower = (f"{name}, a follower", follower_s * GiB / total, "s of CPU a GiB")
        if size == 16 * KiB:
            found += [at_most(*leader, BUDGET_S, detail), at_most(*follower, BUDGET_S)]
        else:
            found += [reported(*leader, detail), reported(*follower)]
    return found


class _Node:
    def __init__(self, folder: Path, node: NodeId, followers: tuple[NodeId, ...]) -> None:
        self.me = Peer(node, INCARNATION)
        self.threads = WorkerThreads(count=2)
        disk, clock = FolderDisk(folder), SystemClock()
        commit_log = CommitLog(disk, draw_salt=lambda: 5, file_bytes=16 * MiB, files_max=8)
        flusher = Flusher(self.threads, clock, commit_log, interval_ms=1_000)
        self.door = PeerDoor(PeerConfig(cluster_id="bench"), CallCodec([Shape(ReadMessages, str)]))
        self._replicas = (LEADER, *followers)
        self._parts = (flusher, clock)
        self.partition = Partition(
            SOURCE,
            "logs/orders/0",
            TopicSettings(),
            disk=disk,
            clock=clock,
            leader_epoch=0,
            on_failure=lambda _: None,
            topic_id=TOPIC_ID,
            commit_log=commit_log,
        )
        self.partition.flusher = flusher
        self.replication: Replication
        commit_log.open()
        commit_log.make_folder()
        disk.make_folder(self.partition.folder)

    async def begin(self, ports: dict[NodeId, int]) -> None:
        flusher, clock = self._parts
        store = SimulatedStore(Random(1))
        record = PartitionRecord(
            leader=LEADER, epoch=1, replicas=self._replicas, isr=self._replicas, incarnation=INCARNATION
        )
        await store.change([Guard(part_key(TOPIC_ID, 0), 0)], {part_key(TOPIC_ID, 0): encode(record)}, ())
        self.replication = Replication(
            self.me, clock=clock, threads=self.threads, flusher=flusher, store=store, peers=self.door
        )
        self.replication.add(self.partition, min_isr=len(self._replicas))
        self.partition.open()
        flusher.end_start([])
        others = {n: Neighbour(INCARNATION, "127.0.0.1", p) for n, p in ports.items() if n != self.me.node}
        self.door.meet(others)
        self.door.serve(self.me, self)
        self.replication.begin()

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        return self.replication.followed(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        raise NotImplementedError

    def lost(self, node: NodeId, loss: Loss) -> None:
        pass

    async def end(self) -> None:
        self.replication.close()
        await self.door.stop()
        self.threads.close()


def _run(followers: tuple[NodeId, ...], size: int, total: int) -> tuple[float, float]:
    """CPU seconds of the leader, and of one follower, for so many bytes in batches."""
    context = get_context("spawn")
    root = Path(tempfile.mkdtemp(prefix="replication-", dir="/dev/shm"))
    pipes, processes = {}, []
    for node in followers:
        pipe, other_end = context.Pipe()
        process = context.Process(target=_follow, args=(other_end, root / node, node, followers))
        process.start()
        pipes[node] = pipe
        processes.append(process)
    try:
        return uvloop.run(_lead(root / LEADER, pipes, followers, size, total))
    finally:
        for pipe in pipes.values():
            pipe.send(None)
        for process in processes:
            process.join()
        shutil.rmtree(root)


async def _lead(
    folder: Path,
    pipes: "dict[NodeId, Connection[object, object]]",
    followers: tuple[NodeId, ...],
    size: int,
    total: int,
) -> tuple[float, float]:
    node = _Node(folder, LEADER, followers)
    ports = {LEADER: await node.door.start("127.0.0.1", 0)}
    for name, pipe in pipes.items():
        port = pipe.recv()
        assert isinstance(port, int)
        ports[name] = port
    for pipe in pipes.values():
        pipe.send(ports)
    await node.begin(ports)
    async with asyncio.timeout(20):
        while not node.partition.is_leader:  # noqa: ASYNC110  # nobody tells of it but a log line
            await asyncio.sleep(0.01)
    await _write(node, size, GROUP * size)
    before, began_s = _told(pipes), time.process_time()
    encoding_s = await _write(node, size, total)
    spent_s = time.process_time() - began_s - encoding_s
    after = _told(pipes)
    await node.end()
    taken = [after[n] - before[n] for n in pipes]
    return spent_s, sum(taken) / len(taken) if taken else 0.0


async def _write(node: _Node, size: int, total: int) -> float:
    """Append, and wait; CPU seconds that building the batches took."""
    partition, value, encoding_s = node.partition, bytes(size - 100), 0.0
    for _ in range(total // size // GROUP):
        began_s = time.thread_time()
        batches = [encode_batches([Message(value)], now_ms=1)[0] for _ in range(GROUP)]
        encoding_s += time.thread_time() - began_s
        for body, lane in batches:
            partition.append([CheckedBatch(read_header(body), body, lane)])
        if (waiter := partition.committed(partition.log.end_offset)) is not None:
            await waiter
    return encoding_s


def _told(pipes: "dict[NodeId, Connection[object, object]]") -> dict[NodeId, float]:
    found = {}
    for node, pipe in pipes.items():
        pipe.send("cpu")
        told = pipe.recv()
        assert isinstance(told, float)
        found[node] = told
    return found


def _follow(
    pipe: "Connection[object, object]", folder: Path, name: NodeId, followers: tuple[NodeId, ...]
) -> None:
    async def follow() -> None:
        node = _Node(folder, name, followers)
        pipe.send(await node.door.start("127.0.0.1", 0))
        ports = pipe.recv()
        assert isinstance(ports, dict)
        await node.begin(ports)
        asked = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe.fileno(), asked.set)
        while True:
            await asked.wait()
            asked.clear()
            if pipe.recv() is None:
                break
            pipe.send(time.process_time())
        await node.end()

    uvloop.run(follow())
