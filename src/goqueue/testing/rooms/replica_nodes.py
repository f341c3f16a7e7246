"""Nodes with replicas of one partition, without brokers: each on its disk, with one network and one store."""

from random import Random
from uuid import UUID

from goqueue.broker.replication.replication import Replication
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.values import encode, node_key
from goqueue.log.commit_log import CommitLog
from goqueue.log.partition_log import CheckedBatch
from goqueue.log.reading import from_disk
from goqueue.model.cluster import Guard, Incarnation, NodeId, NodeRecord
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import Message
from goqueue.model.peers import Answered, Loss, Neighbour, Peer
from goqueue.model.places import Command
from goqueue.model.ports import Buffer, Stream, StreamUser
from goqueue.model.replication import Follow
from goqueue.model.settings import KiB, TopicSettings
from goqueue.records.batch import encode as encode_batches
from goqueue.records.batch import open_batch
from goqueue.records.layout import read_header
from goqueue.testing.world.clock import SimulatedClock
from goqueue.testing.world.disk import SimulatedDisk
from goqueue.testing.world.network import SimulatedNetwork
from goqueue.testing.world.peers import SimulatedPeers
from goqueue.testing.world.store import SimulatedStore
from goqueue.testing.world.threads import SimulatedThreads

SOURCE = TopicPartition(TopicName("orders"), 0)
TOPIC_ID = UUID(int=9)


class ReplicaNode:
    """One life of a node."""

    def __init__(
        self, village: "ReplicaVillage", node: NodeId, disk: SimulatedDisk, incarnation: int
    ) -> None:
        self.peer = Peer(node, Incarnation(incarnation))
        self.disk = disk
        self.peers = SimulatedPeers(village.network)
        threads = SimulatedThreads(Random(f"{village.seed} {node} {incarnation}"))
        self._commit_log = CommitLog(disk, draw_salt=lambda: incarnation, file_bytes=64 * KiB, files_max=4)
        self.flusher = Flusher(threads, village.clock, self._commit_log, interval_ms=100)
        self.replication = Replication(
            self.peer,
            clock=village.clock,
            threads=threads,
            flusher=self.flusher,
            store=village.store,
            peers=self.peers,
        )
        self.partition = Partition(
            SOURCE,
            f"logs/{SOURCE.topic}/{SOURCE.partition}",
            village.settings,
            disk=disk,
            clock=village.clock,
            leader_epoch=0,
            on_failure=self.replication.failed,
            topic_id=TOPIC_ID,
            commit_log=self._commit_log,
        )
        self.partition.flusher = self.flusher
        self._commit_log.open()
        self._commit_log.make_folder()
        disk.make_folder(self.partition.folder)
        self.replica = self.replication.add(self.partition, min_isr=village.min_isr)
        self.recovered = self.partition.open(must_exist=bool(disk.list(self.partition.folder)))
        self.flusher.end_start([])

    def begin(self) -> None:
        self.peers.serve(self.peer, self)
        self.replication.begin()

    # What other nodes want of it: see `PeerUser`.

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        return self.replication.followed(stream, message)

    async def answer(self, caller: Peer, command: Command, tail: Buffer, *, wait_ms: int) -> Answered:
        raise NotImplementedError

    def lost(self, node: NodeId, loss: Loss) -> None:
        """Nobody decides by that here."""

    # What clients want of it.

    def append(self, *values: bytes) -> int:
        """Store one batch; its first offset."""
        batches = encode_batches([Message(value) for value in values], now_ms=1)
        return self.partition.append([CheckedBatch(read_header(b), b, lane) for b, lane in batches])

    async def publish(self, *values: bytes) -> int:
        """The same with acks=all; returns when it counts."""
        self.partition.admit_all()
        base_offset = self.append(*values)
        if (waiter := self.partition.committed(base_offset + len(values))) is not None:
            await waiter
        return base_offset

    def shown(self) -> dict[int, bytes]:
        """What readers see, by offset."""
        log, mark = self.partition.log, self.partition.commit_mark
        found: dict[int, bytes] = {}
        offset = log.start_offset
        while offset < mark:
            chunk = log.read(offset, 1 << 20, end_offset=mark, read_bytes=from_disk)
            for body in chunk.batches:
                found |= {message.offset: message.value or b"" for message in open_batch(body, 2)}
            offset = chunk.end_offset
        return {offset: value for offset, value in found.items() if log.start_offset <= offset < mark}

    def frames(self, offset: int) -> bytes:
        """Its log, from where a batch begins."""
        log, found = self.partition.log, b""
        while offset < log.end_offset:
            chunk = log.read_steps(offset, 1 << 20, read_bytes=from_disk)
            found += chunk.batches[0]
            offset = chunk.end_offset
        return found


class ReplicaVillage:
    """The nodes that are alive, the disks of all, and what lies between them."""

    def __init__(self, seed: int, *, min_isr: int, settings: TopicSettings) -> None:
        self.seed = seed
        self.min_isr = min_isr
        self.settings = settings
        self.clock = SimulatedClock()
        self.network = SimulatedNetwork(Random(f"network {seed}"))
        self.store: SimulatedStore
        self.nodes: dict[NodeId, ReplicaNode] = {}
        self._disks: dict[NodeId, SimulatedDisk] = {}

    async def start(self, node: NodeId) -> ReplicaNode:
        """Begin a life, with the disk that was left."""
        disk = self._disks.setdefault(node, SimulatedDisk(Random(f"disk {self.seed} {node}")))
        key = node_key(node)
        item = (await self.store.load(key)).items.get(key)
        guards = [Guard(key, item.revision if item is not None else 0)]
        incarnation = await self.store.change(guards, {key: encode(NodeRecord(folder_id=node))}, ())
        self.nodes[node] = begun = ReplicaNode(self, node, disk, incarnation)
        self._introduce()
        begun.begin()
        return begun

    def stop(self, node: NodeId, *, is_power_cut: bool) -> None:
        """End a life at once, by a power cut or by kill -9."""
        ended = self.nodes.pop(node)
        self._disks[node] = ended.disk.crash() if is_power_cut else ended.disk.kill()
        self.network.crash(node, is_power_cut=is_power_cut)
        ended.replication.close()
        self._introduce()

    def disk_of(self, node: NodeId) -> SimulatedDisk:
        """What a node that is down has left."""
        return self._disks[node]

    def _introduce(self) -> None:
        """All that are alive hear who is."""
        for node in self.nodes.values():
            node.peers.meet(
                {
                    other.peer.node: Neighbour(other.peer.incarnation, other.peer.node, 1)
                    for other in self.nodes.values()
                    if other is not node
                }
            )
