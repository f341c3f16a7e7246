"""Which partitions are read from other nodes, and how they are kept fresh.

What this node leads, or holds as one that is in sync, it reads itself. Of all else the leader is asked: at
once when somebody is about to look (`ask`: one call to each leader at a time, with all that was wanted
meanwhile), and with a call that waits there for news (`watch`) as long as somebody has looked lately. Every
call has its deadline, and there are so many of each kind at most.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Protocol, cast

from goqueue.broker.broker import Broker, OpenTopic
from goqueue.broker.remote.chunks import FetchedChunks
from goqueue.broker.remote.partition import RemotePartition
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.readable import Readable
from goqueue.broker.storage.waiters import ReadWaiter, answer, tell_in_turn
from goqueue.core.cluster.values import Topic
from goqueue.model.cluster import NodeId
from goqueue.model.commands import BatchesRead
from goqueue.model.errors import AnswerLost, GoQueueError, NodeUnreachable, NoLeader, NotFound, NotLeader
from goqueue.model.marks import MarksTold, ReadCommitted, TellMarks
from goqueue.model.places import Command

log = logging.getLogger(__name__)
ASK_MS = 2_000
"""So long a leader may take to tell its marks, or to begin to wait for news."""
READ_MS = 5_000
"""The same for batches."""
WATCH_MS = 10_000
"""So long a leader waits for news before it says that there are none."""
PARTITIONS_PER_CALL = 64
WATCHES_MAX = 256
"""Calls to all leaders together that wait for news. Beyond, who polls is told when he asks."""
READS_MAX = 32
"""Batches that are on their way to this node at once, each of a MiB or one batch."""
_PAUSE_S = 0.1
"""Before a leader that could not tell is asked again: another may lead by then."""


class Carrier(Protocol):
    """Runs commands at other nodes, and here."""

    me: NodeId

    async def run_at(self, node: NodeId, command: Command, *, answer_ms: int) -> object:
        """An answer is waited for so long, beyond what the command itself says."""


class Remotes:
    def __init__(self, broker: Broker, carrier: Carrier) -> None:
        self._broker = broker
        self._carrier = carrier
        self._fetched = FetchedChunks()
        self._partitions: dict[tuple[object, int], RemotePartition] = {}
        self._asked: dict[NodeId, dict[RemotePartition, list[asyncio.Future[None]]]] = {}
        """What is to be asked of each leader next."""
        self._asking: set[NodeId] = set()
        self._fresh: dict[RemotePartition, None] = {}
        """What is to be watched and is not."""
        self.watch_count = 0
        """Calls that wait for news."""
        self._is_launching = self._is_closed = False
        self._reads = asyncio.Semaphore(READS_MAX)
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._changed = asyncio.Event()
        broker.agreement.listeners.append(self._changed.set)
        self.follow_topics()

    # Which partitions they are.

    async def follow(self) -> None:
        """Keep to what is agreed, for ever: who holds a partition, and is in sync."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._broker.agreement.together_s)
            self._changed.clear()
            slices = Slices(self._broker.clock)
            for topic in tuple(self._broker.topics.values()):
                self._arrange(topic)
                await slices.pause()
            self._drop_those_gone()

    def follow_topics(self) -> None:
        """Topics have come or grown."""
        for topic in self._broker.topics.values():
            if topic.readables is topic.partitions or len(topic.readables) != len(topic.partitions):
                self._arrange(topic)

    def close(self) -> None:
        self._is_closed = True
        for task in tuple(self._tasks):
            task.cancel()

    def _arrange(self, opened: OpenTopic) -> None:
        topic = self._broker.metadata.topics.get(opened.partitions[0].source.topic)
        if topic is None or topic.topic_id != opened.partitions[0].topic_id:
            return  # it is leaving
        before = opened.readables
        opened.readables = [self._readable(topic, partition) for partition in opened.partitions]
        if before is not opened.partitions:
            for was, now in zip(before, opened.readables, strict=False):
                if was is not now:
                    _wake(was)

    def _readable(self, topic: Topic, partition: Partition) -> Readable:
        number = partition.source.partition
        record = self._broker.metadata.record(topic, number)
        me = self._carrier.me
        if partition.is_here and (record.leader == me or me in record.isr):
            return partition
        remote = self._partitions.get((topic.topic_id, number))
        if remote is None:
            remote = RemotePartition(partition, self, self._fetched)
            self._partitions[topic.topic_id, number] = remote
        remote.place = partition
        return remote

    def _drop_those_gone(self) -> None:
        used = {id(one) for topic in self._broker.topics.values() for one in topic.readables}
        for place, remote in tuple(self._partitions.items()):
            if id(remote) not in used:
                del self._partitions[place]
                remote.let_go()

    # What their leaders say.

    async def read(self, partition: RemotePartition, offset: int, max_bytes: int) -> BatchesRead:
        command = ReadCommitted(
            source=partition.source, topic_id=partition.topic_id, offset=offset, max_bytes=max_bytes
        )
        async with self._reads:
            node = self._leader_of(partition)
            try:
                return cast(BatchesRead, await self._carrier.run_at(node, command, answer_ms=READ_MS))
            except AnswerLost as error:
                # It was only a look: to whoever wanted it nothing has happened.
                raise NodeUnreachable(node) from error

    def ask(self, partition: RemotePartition) -> "asyncio.Future[None]":
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            node = self._leader_of(partition)
        except GoQueueError as error:
            partition.refuse(error)
            answer(waiter)
            return waiter
        self._asked.setdefault(node, {}).setdefault(partition, []).append(waiter)
        if node not in self._asking:
            self._asking.add(node)
            self._begin(self._ask_all(node))
        return waiter

    async def _ask_all(self, node: NodeId) -> None:
        """Ask a leader, one call behind the other, until nobody wants to know more."""
        try:
            while asked := self._asked.get(node):
                some = dict(list(asked.items())[:PARTITIONS_PER_CALL])
                for partition in some:
                    del asked[partition]
                try:
                    await self._tell(node, list(some), wait_ms=0)
                finally:
                    for waiters in some.values():
                        for waiter in waiters:
                            answer(waiter)
        finally:
            self._asking.discard(node)
            for waiters in self._asked.pop(node, {}).values():
                for waiter in waiters:
                    answer(waiter)

    def watch(self, partition: RemotePartition) -> None:
        self._fresh[partition] = None
        self._launch_soon()

    def _launch_soon(self) -> None:
        if not self._is_launching and not self._is_closed:
            self._is_launching = True
            asyncio.get_running_loop().call_soon(self._launch)

    def _launch(self) -> None:
        """Have what is not watched watched, all partitions of a leader together."""
        self._is_launching = False
        by_leader: dict[NodeId | None, list[RemotePartition]] = {}
        for partition in self._fresh:
            try:
                leader = self._leader_of(partition)
            except GoQueueError as error:
                partition.refuse(error)
                leader = None
            by_leader.setdefault(leader, []).append(partition)
        for node, partitions in by_leader.items():
            if node is None:
                self._begin(self._watch_later(self._taken(partitions)))
                continue
            for at in range(0, len(partitions), PARTITIONS_PER_CALL):
                if self.watch_count >= WATCHES_MAX:
                    return  # when one of them ends, these are looked at again
                self.watch_count += 1
                self._begin(self._watch(node, self._taken(partitions[at : at + PARTITIONS_PER_CALL])))

    def _taken(self, partitions: Iterable[RemotePartition]) -> list[RemotePartition]:
        taken = list(partitions)
        for partition in taken:
            del self._fresh[partition]
        return taken

    async def _watch(self, node: NodeId, partitions: list[RemotePartition]) -> None:
        """Wait for news of partitions, once; what is still wanted is watched again."""
        try:
            is_well = await self._tell(node, partitions, wait_ms=WATCH_MS)
            if not is_well:
                await asyncio.sleep(_PAUSE_S)
        finally:
            self.watch_count -= 1
            self._watch_again(partitions)

    async def _watch_later(self, partitions: list[RemotePartition]) -> None:
        await asyncio.sleep(_PAUSE_S)
        self._watch_again(partitions)

    def _watch_again(self, partitions: list[RemotePartition]) -> None:
        for partition in partitions:
            partition.is_wanted = bool(partition.readers)
            if partition.is_wanted:
                self.watch(partition)
        if self._fresh:
            self._launch_soon()

    async def _tell(self, node: NodeId, partitions: list[RemotePartition], *, wait_ms: int) -> bool:
        """Have partitions told what their leader says; False: at least one of them was refused."""
        command = TellMarks(partitions=[one.as_known() for one in partitions], wait_ms=wait_ms)
        try:
            told = cast(MarksTold, await self._carrier.run_at(node, command, answer_ms=ASK_MS))
        except GoQueueError as error:
            trouble = NodeUnreachable(node) if isinstance(error, AnswerLost) else error
            for partition in partitions:
                partition.refuse(trouble)
            return False
        for at, marks in told.marks.items():
            partitions[at].take(marks)
        for at, refusal in told.refused.items():
            partition = partitions[at]
            # Who leads it will hear of what this node knows already.
            is_news_there = isinstance(refusal, NotFound)
            partition.refuse(NotLeader(*partition.source) if is_news_there else refusal)
        return not told.refused

    def _leader_of(self, partition: RemotePartition) -> NodeId:
        topic = self._broker.metadata.topics.get(partition.source.topic)
        if topic is None or topic.topic_id != partition.topic_id:
            raise NotLeader(*partition.source)  # it is gone, and who asks finds that out
        leader = self._broker.metadata.record(topic, partition.source.partition).leader
        if leader is None:
            raise NoLeader(*partition.source)
        return leader

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("partitions_not_watched reason=%r", error, exc_info=error)


def _wake(readable: Readable) -> None:
    """Who waits at a partition that is read in another way from now on looks again."""
    match readable:
        case RemotePartition():
            readable.let_go()
        case Partition():
            tell_in_turn(readable.readers, ReadWaiter.wake)
