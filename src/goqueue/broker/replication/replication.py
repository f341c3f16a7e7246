"""All partitions of a node that have replicas elsewhere: what the store says of them, and their time.

What the store says reaches each replica in the order of its revisions. A node that has lost its session and
registers anew is another one to the others: its replicas begin from nothing, and lead nothing of before.
"""

import asyncio
import itertools
from collections.abc import Iterator
from uuid import UUID

from goqueue.broker.replication.follower import Asking, Links
from goqueue.broker.replication.leader import Throttle
from goqueue.broker.replication.records import Proposals
from goqueue.broker.replication.replicated import Heard, NoRoles, Replicated, Roles, Surroundings
from goqueue.broker.slices import Slices
from goqueue.broker.storage.cutting import Cutter
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.core.cluster.isr import min_isr_of
from goqueue.core.cluster.values import PARTS, decode_part, parsed_part_key
from goqueue.core.telemetry.cluster_counts import ClusterCounts
from goqueue.model.cluster import PartitionRecord
from goqueue.model.errors import Compacted, Unavailable
from goqueue.model.peers import Peer
from goqueue.model.ports import Clock, Peers, Store, Stream, StreamUser, Threads
from goqueue.model.replication import Follow
from goqueue.model.settings import TopicSettings

LAG_MAX_MS = 10_000
"""`replica.lag.max.ms`: a follower that has not caught up for so long leaves the ISR."""
_TICK_S = 1.0
_PAUSE_S = 0.2
"""The store gave no answer: so long until it is asked again."""
_Place = tuple[UUID, int]


class Replication:
    def __init__(
        self,
        me: Peer,
        *,
        clock: Clock,
        threads: Threads,
        flusher: Flusher,
        store: Store,
        peers: Peers,
        lag_max_ms: int = LAG_MAX_MS,
        roles: Roles | None = None,
        counts: ClusterCounts | None = None,
    ) -> None:
        self._me = me
        self._store = store
        self._links = Links(peers, clock)
        self._asking = Asking(clock)
        self._proposals = Proposals(store)
        self._around = Surroundings(
            clock=clock,
            threads=threads,
            flusher=flusher,
            cutter=Cutter(flusher, threads),
            store=store,
            proposals=self._proposals,
            links=self._links,
            asking=self._asking,
            sessions=itertools.count(1),
            heard=Heard(),
            lag_max_ms=lag_max_ms,
            counts=counts or ClusterCounts(),
            throttle=Throttle(clock),
            roles=roles or NoRoles(),
        )
        self._replicas: dict[_Place, Replicated] = {}
        self._records: dict[_Place, tuple[PartitionRecord, int]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: list[asyncio.Task[None]] = []

    def __iter__(self) -> Iterator[Replicated]:
        return iter(self._replicas.values())

    def lags(self) -> dict[tuple[str, str], int]:
        """How many messages followers of partitions that are led here lack, by topic and node."""
        found: dict[tuple[str, str], int] = {}
        for replica in self._replicas.values():
            for node, lag in replica.lags():
                key = replica.partition.source.topic, node
                found[key] = found.get(key, 0) + lag
        return found

    def find(self, topic_id: UUID, number: int) -> Replicated | None:
        return self._replicas.get((topic_id, number))

    def holds(self, partition: Partition) -> bool:
        """Whether it was taken in."""
        return (partition.topic_id, partition.source.partition) in self._replicas

    def add(self, partition: Partition, *, min_isr: int, min_isr_asked: int = 0) -> Replicated:
        """Take a partition in: it follows nobody, and leads nothing, until a record says more.

        `min_isr_asked`: what its topic's settings say, for when it gets more copies, or fewer.
        """
        place = (partition.topic_id, partition.source.partition)
        before = partition.copies
        replica = Replicated(partition, self._me, self._around, min_isr=min_isr)
        replica.min_isr_asked = min_isr_asked
        partition.copies = self._replicas[place] = replica
        if isinstance(before, Replicated):
            replica.take_over(before)
        if (known := self._records.get(place)) is not None:
            replica.take_record(*known)
        return replica

    def take_settings(self, partition: Partition, settings: TopicSettings) -> None:
        """The settings of its topic have changed."""
        place = (partition.topic_id, partition.source.partition)
        replica, known = self._replicas.get(place), self._records.get(place)
        if replica is None:
            return
        replica.take_seen_enough(partition.is_seen_enough)
        min_isr_asked = settings.min_insync_replicas
        if replica.min_isr_asked != min_isr_asked:
            replica.min_isr_asked = min_isr_asked
            if known is not None:
                replica.take_min_isr(min_isr_of(known[0], min_isr_asked))

    def drop(self, partition: Partition) -> None:
        """It is no replica any more, or its topic is gone."""
        replica = self._replicas.pop((partition.topic_id, partition.source.partition), None)
        if replica is not None:
            replica.close()
            self._ending += replica.disk_work

    async def quiet(self) -> None:
        """Return when nothing is done any more to the files of those that were dropped."""
        ending, self._ending = self._ending, []
        if ending:
            await asyncio.wait(ending)

    def begin(self) -> None:
        """Follow what the store says, and let time pass."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._follow_records()), loop.create_task(self._pass_time())]

    def failed(self, partition: Partition) -> None:
        """The disk has failed a partition."""
        replica = self._replicas.get((partition.topic_id, partition.source.partition))
        if replica is not None:
            replica.failed()

    def followed(self, stream: Stream, message: Follow) -> StreamUser | None:
        """Another node opens a session: see `PeerUser`."""
        replica = self._replicas.get((message.topic_id, message.partition))
        return None if replica is None else replica.followed(stream, message)

    def close(self) -> None:
        self._fall_silent()
        for replica in self._replicas.values():
            replica.close()
        self._links.close()

    async def close_in_turn(self) -> None:
        """The same with pauses, for a node that goes on in another registration and has a session to keep."""
        self._fall_silent()
        slices = Slices(self._around.clock)
        while self._replicas:
            replica = self._replicas.popitem()[1]
            replica.close()
            self._ending += replica.disk_work
            await slices.pause()
        self._links.close()

    def _fall_silent(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._proposals.close()
        self._asking.close()

    async def drain(self) -> None:
        """Closed, and the disk is at rest."""
        await self.quiet()
        for replica in tuple(self._replicas.values()):
            await replica.drain()

    async def _follow_records(self) -> None:
        heard = self._around.heard
        while True:
            # All keys, not records alone: a leader must have heard of all that came before a registration.
            try:
                loaded = await self._store.load("")
            except Unavailable:
                await asyncio.sleep(_PAUSE_S)  # a store that is away comes back
                continue
            slices = Slices(self._around.clock)
            for key, item in loaded.items.items():
                self._take(key, item.value, item.revision)
                await slices.pause()
            heard.revision = loaded.revision
            try:
                async for change in self._store.follow("", loaded.revision):
                    for key, value in change.puts.items():
                        self._take(key, value, change.revision)
                    heard.revision = change.revision
            except Compacted:
                continue  # what is there now says it all

    def _take(self, key: str, value: bytes, revision: int) -> None:
        if not key.startswith(PARTS):
            return
        place = parsed_part_key(key)
        record = decode_part(value)
        before = self._records.get(place)
        self._records[place] = (record, revision)
        if (replica := self._replicas.get(place)) is not None:
            replica.take_record(record, revision)
            min_isr = min_isr_of(record, replica.min_isr_asked)
            if before is not None and min_isr_of(before[0], replica.min_isr_asked) != min_isr:
                replica.take_min_isr(min_isr)  # it has more copies now, or fewer

    async def _pass_time(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            slices = Slices(self._around.clock)
            for replica in tuple(self._replicas.values()):
                if replica.needs_time:  # most do not lead, or are at rest
                    replica.tick()
                    if slices.is_over:
                        await slices.pause()
