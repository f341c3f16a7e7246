"""Nodes that hold replicas of one partition, without brokers, each on its simulated disk, in one loop."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from random import Random
from uuid import UUID

from goqueue.broker.replication.replicated import Replicated
from goqueue.broker.replication.replication import Replication
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.values import decode_part, encode, node_key, part_key
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.cluster import Guard, Incarnation, NodeId, NodeRecord, PartitionRecord
from goqueue.model.errors import NotLeader
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.peers import Answered, Loss, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Stream, StreamUser
from goqueue.model.replication import Follow
from goqueue.model.settings import KiB, TopicSettings
from goqueue.records.batch import encode as encode_batches
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.loop import SimulatedLoop
from goqueue.testing.world.store import SimulatedStore
from goqueue.testing.world.threads import SimulatedThreads
from tests.unit.broker.replication.network import LocalPeers, Network

SOURCE = TopicPartition(TopicName("orders"), 0)
TOPIC_ID = UUID(int=9)
KEY = part_key(TOPIC_ID, 0)
A, B, C = NodeId("a"), NodeId("b"), NodeId("c")


class Node:
    """One life of a node."""

    def __init__(
        self, village: "Village", node: NodeId, disk: SimulatedDisk, incarnation: Incarnation
    ) -> None:
        self.peer = Peer(node, incarnation)
        self.disk = disk
        self._village = village
        threads = SimulatedThreads(Random(f"{node} {incarnation}"))
        self.commit_log = CommitLog(disk, draw_salt=lambda: 5, file_bytes=64 * KiB, files_max=4)
        self.flusher = Flusher(threads, village.clock, self.commit_log, interval_ms=100)
        peers = LocalPeers(village.network)
        self.replication = Replication(
            self.peer,
            clock=village.clock,
            threads=threads,
            flusher=self.flusher,
            store=village.store,
            peers=peers,
        )
        self.partition = Partition(
            SOURCE,
            "logs/orders/0",
            village.settings,
            disk=disk,
            clock=village.clock,
            leader_epoch=0,
            on_failure=self.replication.failed,
            topic_id=TOPIC_ID,
            commit_log=self.commit_log,
        )
        self.partition.flusher = self.flusher
        self.commit_log.open()
        self.commit_log.make_folder()
        disk.make_folder(self.partition.folder)
        self.replica: Replicated = self.replication.add(self.partition, min_isr=village.min_isr)
        self.partition.open(must_exist=bool(disk.list(self.partition.folder)))
        self.flusher.end_start([])
        peers.serve(self.peer, self)
        self.replication.begin()

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        return self.replication.followed(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        raise NotImplementedError

    def lost(self, node: NodeId, loss: Loss) -> None:
        pass

    def append(self, *values: bytes) -> int:
        """Store one batch; the end of the log behind it."""
        batches = encode_batches([Message(value) for value in values], now_ms=1)
        self.partition.append([CheckedBatch(read_header(b), b, lane) for b, lane in batches])
        return self.partition.log.end_offset

    async def publish(self, *values: bytes) -> int:
        """The same with acks=all; returns when it counts."""
        self.replica.admit_all()
        end_offset = self.append(*values)
        if (waiter := self.partition.committed(end_offset)) is not None:
            await waiter
        return end_offset

    @property
    def frames(self) -> bytes:
        """All of its log."""
        log, found = self.partition.log, b""
        offset = log.first_offset
        while offset < log.end_offset:
            chunk = log.read_steps(offset, 1 << 20, read_bytes=from_disk)
            found += chunk.batches[0]
            offset = chunk.end_offset
        return found

    @property
    def values(self) -> list[bytes]:
        """What readers see."""
        log, found = self.partition.log, list[bytes]()
        offset = log.start_offset
        while offset < self.partition.commit_mark:
            chunk = log.read(offset, 1 << 20, end_offset=self.partition.commit_mark, read_bytes=from_disk)
            found += [m.value or b"" for body in chunk.batches for m in open_batch(body, 2)]
            offset = chunk.end_offset
        return found


class Village:
    """Some nodes, the network between them, and the store."""

    def __init__(self, *, min_isr: int = 2, segment_bytes: int = 64 * KiB) -> None:
        self.clock = SimulatedClock()
        self.network = Network()
        self.store = SimulatedStore(Random(1))
        self.min_isr = min_isr
        self.settings = TopicSettings(segment_bytes=segment_bytes)
        self.nodes: dict[NodeId, Node] = {}
        self._disks: dict[NodeId, SimulatedDisk] = {}

    async def start(self, *nodes: NodeId) -> None:
        """Let nodes begin a life, each with the disk that it had."""
        for node in nodes:
            disk = self._disks.setdefault(node, SimulatedDisk(Random(f"disk {node}")))
            key = node_key(node)
            before = (await self.store.load(key)).items.get(key)
            revision = await self.store.change(
                [Guard(key, before.revision if before else 0)], {key: encode(NodeRecord(folder_id=node))}, ()
            )
            self.nodes[node] = Node(self, node, disk, Incarnation(revision))

    def stop(self, node: NodeId, *, has_power: bool = False) -> None:
        """End a life at once."""
        ended = self.nodes.pop(node)
        self.network.leave(node)
        ended.replication.close()
        self._disks[node] = ended.disk.kill() if has_power else ended.disk.crash()

    async def elect(
        self, leader: NodeId | None, *, isr: Sequence[NodeId], replicas: Sequence[NodeId] = (A, B, C)
    ) -> None:
        """Write the record by hand, as the controller would."""
        item = (await self.store.load(KEY)).items.get(KEY)
        epoch = decode_part(item.value).epoch if item is not None else 0
        incarnation = self.nodes[leader].peer.incarnation if leader is not None else Incarnation(0)
        record = PartitionRecord(
            leader=leader,
            epoch=epoch + 1,
            replicas=tuple(replicas),
            isr=tuple(isr),
            incarnation=incarnation,
        )
        await self.store.change([Guard(KEY, item.revision if item else 0)], {KEY: encode(record)}, ())
        if leader is not None:
            await until(lambda: self.nodes[leader].replica.is_leader)

    async def record(self) -> PartitionRecord:
        return decode_part((await self.store.load(KEY)).items[KEY].value)

    async def in_sync(self, *nodes: NodeId) -> None:
        """Return when the ISR is these."""
        while set((await self.record()).isr) != set(nodes):
            await asyncio.sleep(0.01)

    async def alike(self, *nodes: NodeId) -> None:
        """Return when the logs of some nodes are the same, byte for byte."""
        await until(lambda: len({self.nodes[node].frames for node in nodes}) == 1)

    def __getitem__(self, node: NodeId) -> Node:
        return self.nodes[node]


async def until(condition: Callable[[], bool]) -> None:
    """Return when something has come true; the test fails if it never does."""
    async with asyncio.timeout(60):
        while True:
            with suppress(NotLeader):  # it is being cut
                if condition():
                    return
            await asyncio.sleep(0.005)


def live(story: Callable[[Village], Coroutine[object, object, None]], village: Village | None = None) -> None:
    """Let a story happen in a simulated world."""
    own = village or Village()
    loop = SimulatedLoop(own.clock)

    async def in_time() -> None:
        async with asyncio.timeout(600):
            await story(own)

    try:
        loop.run(in_time())
        problems = [problem for problem in loop.unhandled if not isinstance(problem, OSError)]
        assert problems == []
    finally:
        for node in tuple(own.nodes.values()):
            node.disk.is_dead = True
        loop.abandon()
