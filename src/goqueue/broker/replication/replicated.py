"""A partition with replicas elsewhere: its machine decides, and here it is done.

The machine (`core/cluster/replica.py`) hears of records, messages and of the log, and answers with effects;
they are carried out in order, those that wait for the disk or the store in tasks. The commit mark is the
machine's: what the disk has here is only one of the voices. While the log is cut or opened anew, the
partition refuses everything, and the machine says nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from goqueue.broker.replication.follower import Asking, Links, Receiver
from goqueue.broker.replication.leader import Sender, Throttle
from goqueue.broker.replication.records import Proposals, look_up
from goqueue.broker.storage.cutting import Cutter
from goqueue.broker.storage.flusher import Flusher
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.waiters import answer
from goqueue.core.cluster.isr import without_copy
from goqueue.core.cluster.replica import Replica
from goqueue.core.cluster.values import encode, part_key
from goqueue.core.telemetry.cluster_counts import ClusterCounts, ElectionType
from goqueue.log.partition_log import STEP_FRAMES_MAX
from goqueue.model.cluster import Guard, NodeId, PartitionRecord
from goqueue.model.errors import (
    Corrupt,
    GoQueueError,
    LeadershipLost,
    NodeUnreachable,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    OffsetNotAvailable,
    Outdated,
    StorageFull,
    Unavailable,
)
from goqueue.model.names import is_internal
from goqueue.model.peers import Pace, Peer
from goqueue.model.ports import Buffer, Clock, Store, Stream, Threads
from goqueue.model.replication import (
    Ack,
    BecameFollower,
    BecameLeader,
    BeginAt,
    CommitMarkMoved,
    CutTo,
    Effect,
    Follow,
    Following,
    FollowLater,
    Frames,
    MoveStart,
    ProposeRecord,
    Resigned,
    SeenMarkMoved,
    Send,
    WriteFrames,
)
from goqueue.model.settings import KiB

log = logging.getLogger(__name__)
_NEWS_S = 0.005
"""A mark that has moved is told with the next frames, or at once; but not more often than this."""
_PUSH_BYTES = 256 * KiB
"""What was written in a turn goes out at once when it is more than this: a follower takes it in pieces."""
_NO_ROOM_S = 1.0
"""A follower whose disk is full, or whose log is to be dropped, asks again after this."""
_HAND_OVER_MS = 60_000
"""A leader whose disk is full makes way for another, at most once in this time."""
_NS_PER_MS = 1_000_000


@dataclass(slots=True)
class Heard:
    """Up to which revision the node's replicas have heard of records and registrations."""

    revision: int = 0


class Roles(Protocol):
    def leads(self, partition: Partition, *, is_leader: bool) -> None:
        """This node leads a partition from now on, or does so no more."""


class NoRoles:
    """For who needs not know."""

    def leads(self, partition: Partition, *, is_leader: bool) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all partitions of a node share."""

    clock: Clock
    threads: Threads
    flusher: Flusher
    cutter: Cutter
    store: Store
    proposals: Proposals
    links: Links
    asking: Asking
    sessions: Iterator[int]
    """Numbers that grow, none of which is used twice while the node runs."""
    heard: Heard
    lag_max_ms: int
    counts: ClusterCounts
    throttle: Throttle
    """What goes to those that a reassignment brings, of all partitions together."""
    roles: Roles
    """Who hears what becomes of each partition here."""

    def now_ms(self) -> int:
        return self.clock.monotonic_ns() // _NS_PER_MS


class ReplicaLogOf:
    """A partition's log as its machine sees it. It starts where batches begin, so that they travel whole."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    @property
    def start_offset(self) -> int:
        return self._partition.log.first_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.end_offset

    @property
    def flushed_offset(self) -> int:
        return self._partition.log.flushed_offset

    @property
    def last_epoch(self) -> int:
        return self._partition.log.last_epoch

    def epoch_end(self, leader_epoch: int) -> tuple[int, int]:
        return self._partition.log.epoch_end(leader_epoch)


class Replicated:
    """One replica of a partition, in one registration of its node."""

    def __init__(self, partition: Partition, me: Peer, around: Surroundings, *, min_isr: int) -> None:
        self.partition = partition
        self._me = me
        self._around = around
        self.machine = Replica(
            me.node,
            me.incarnation,
            partition.topic_id,
            partition.source.partition,
            ReplicaLogOf(partition),
            around.heard,
            sessions=around.sessions,
            commit_mark=partition.commit_mark,
            min_isr=min_isr,
            lag_max_ms=around.lag_max_ms,
            is_seen_enough=partition.is_seen_enough,
        )
        self._choose_acks()
        self.min_isr_asked = 0
        """What the settings of its topic say; 0: nothing."""
        self._key = part_key(partition.topic_id, partition.source.partition)
        self._senders: dict[NodeId, Sender] = {}
        self._receiver: Receiver | None = None
        self._is_leader = False
        self._is_at_rest = False
        """It leads, and time changes nothing: so it is with most of very many, which are not told of time."""
        self._fresh: tuple[int, list[Buffer]] | None = None
        """What was written in this turn, and where it begins: it goes out in the next, in one piece."""
        self._fresh_bytes = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._disk_work: asyncio.Task[None] | None = None
        """The log is being cut or opened anew. That is not broken off: the next registration waits for it."""
        self._timers: dict[str, asyncio.TimerHandle | asyncio.Handle] = {}
        self._told_s = -_NEWS_S
        """When followers were last told how far messages count."""
        self._seen_waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Who waits until all in sync have what lies before an offset, at least in memory."""
        self._is_closed = False
        self._handed_over_ms = -_HAND_OVER_MS
        self._is_bad = False
        """Bytes that were safe have gone bad: the log is to be dropped, and copied anew."""

    @property
    def is_leader(self) -> bool:
        return self._is_leader

    @property
    def needs_time(self) -> bool:
        """Whether it is to be told when time has passed: see `tick`."""
        return self._is_leader and (not self._is_at_rest or self.partition.is_full)

    @property
    def leader(self) -> NodeId | None:
        return self.machine.leader

    @property
    def disk_work(self) -> list["asyncio.Task[None]"]:
        """What is being done to its files, and is not broken off."""
        return [] if self._disk_work is None or self._disk_work.done() else [self._disk_work]

    def take_record(self, record: PartitionRecord, revision: int) -> None:
        """The store has this record of the partition."""
        self._wake()
        had_enough = self.machine.has_enough_replicas
        self._count(record, revision)
        self._carry_out(self.machine.take_record(record, revision, now_ms=self._around.now_ms()))
        if self._receiver is not None and self._receiver.pace is not self._pace() is Pace.LIVE:
            self._follow_anew()  # it has caught up, and is waited for from now on
        if had_enough and self._is_leader and not self.machine.has_enough_replicas:
            self.partition.refuse_waiters(NotEnoughReplicasAfterAppend(*self.partition.source))

    def _count(self, record: PartitionRecord, revision: int) -> None:
        """Note what has become of the partition, as whoever leads it."""
        machine, me = self.machine, self._me.node
        before = machine.record
        if revision <= machine.revision or record.leader != me or record.incarnation != self._me.incarnation:
            return
        counts, topic = self._around.counts, self.partition.source.topic
        if record.epoch > machine.epoch:
            counts.elections[topic, _election_type(before, record)] += 1
        if before is not None:
            staying = set(before.isr) & set(record.replicas)  # who is no replica any more has not left
            counts.isr_shrinks[topic] += len(staying.difference(record.isr))
            counts.isr_expands[topic] += len(set(record.isr).difference(before.isr))

    def take_min_isr(self, min_isr: int) -> None:
        """The topic's setting has changed."""
        self._wake()
        self._carry_out(self.machine.take_min_isr(min_isr))

    def _choose_acks(self) -> None:
        """Polls wait until leases are seen, and publishers of some topics: for all else one ack will do."""
        self.machine.tells_written = self.partition.is_seen_enough or is_internal(self.partition.source.topic)

    def take_seen_enough(self, is_seen_enough: bool) -> None:
        """What the topic's publishers are answered by may have changed."""
        self._choose_acks()
        self._wake()
        self._carry_out(self.machine.take_seen_enough(is_seen_enough))

    def tick(self) -> None:
        """Every second or so, while it needs it."""
        self._carry_out(self.machine.tick(now_ms=self._around.now_ms()))
        if self._is_leader:
            self._tell_news()
            if self._is_bad:
                self.gone_bad("it leads again, as others were away")
            elif self.partition.is_full:
                self._hand_over()
            else:
                self._is_at_rest = self.machine.is_at_rest

    def _wake(self) -> None:
        """Something happens to it."""
        if self._is_at_rest:
            self._is_at_rest = False
            self.machine.wake(now_ms=self._around.now_ms())

    def _hand_over(self) -> None:
        """Let another lead that may have room; not often, or leadership goes in circles where none has."""
        record, now_ms = self.machine.record, self._around.now_ms()
        others = set() if record is None else set(record.isr) - {self._me.node}
        if others and now_ms >= self._handed_over_ms + _HAND_OVER_MS:
            self._handed_over_ms = now_ms
            log.warning("disk_full_handed_over partition=%s", self.partition.source)
            self.resign()

    def resign(self) -> None:
        """Make way for another leader."""
        self._carry_out(self.machine.resign())

    def close(self) -> None:
        """This registration is over, or the node stops: nothing of it is heard any more."""
        self._is_closed = True
        if self._is_leader:
            self._is_leader = False
            self._refuse_seen(None)
            # What they wait for is in the log, and may come to count: who sent it on must not do so again.
            self.partition.refuse_waiters(LeadershipLost(*self.partition.source))
            self._around.roles.leads(self.partition, is_leader=False)
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for task in tuple(self._tasks):
            if task is not self._disk_work:
                task.cancel()
        self._drop_streams()

    async def drain(self) -> None:
        """Return when its disk is at rest: a log that is being cut is not to be closed meanwhile."""
        if self._disk_work is not None:
            await asyncio.wait({self._disk_work})

    # What the partition tells: see `Copies`.

    @property
    def seen_mark(self) -> int:
        return self.machine.seen_mark

    @property
    def can_commit(self) -> bool:
        return self.machine.is_mark_moving

    def admit_lead(self) -> None:
        if not self._is_leader:
            raise NotLeader(*self.partition.source, self.machine.leader)

    def admit_copy(self) -> None:
        if not self.machine.is_in_sync:
            raise NotLeader(*self.partition.source, self.machine.leader)

    def admit_look_up(self) -> None:
        if not self.machine.is_mark_known:
            raise OffsetNotAvailable(*self.partition.source)

    def admit_all(self) -> None:
        self.admit_lead()
        if not self.machine.has_enough_replicas:
            raise NotEnoughReplicas(*self.partition.source)

    def seen(self, end_offset: int) -> "asyncio.Future[None] | None":
        self.admit_lead()
        if end_offset <= self.machine.seen_mark:
            return None
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seen_waiters.append((end_offset, waiter))
        return waiter

    def written(self, base_offset: int, end_offset: int, buffers: Sequence[Buffer]) -> None:
        if self._is_at_rest:
            self._wake()
        if not self._senders:
            self._carry_out(self.machine.log_moved())
            return
        fresh = self._fresh
        if fresh is None:
            self._fresh = fresh = (base_offset, [*buffers])
            if "push" not in self._timers:
                self._timers["push"] = asyncio.get_running_loop().call_soon(self._push_fresh)
        else:
            fresh[1].extend(buffers)
        self._fresh_bytes += sum(map(len, buffers))
        if self._fresh_bytes >= _PUSH_BYTES or len(fresh[1]) >= 2 * STEP_FRAMES_MAX:
            self._push()

    def _push_fresh(self) -> None:
        del self._timers["push"]
        self._push()

    def _push(self) -> None:
        """Send what was written in the last turn, to all at once."""
        fresh, self._fresh = self._fresh, None
        size, self._fresh_bytes = self._fresh_bytes, 0
        if fresh is None or not self._is_leader:
            return
        base_offset, buffers = fresh
        end_offset = self.partition.log.end_offset
        for sender in tuple(self._senders.values()):
            sender.push(base_offset, end_offset, buffers, size)

    def flushed(self) -> None:
        self._carry_out(self.machine.log_moved())

    def start_moved(self) -> None:
        self._tell_news()

    def lags(self) -> Iterator[tuple[NodeId, int]]:
        """How many messages each follower lacks, if this one leads."""
        if self._is_leader and not self.partition.is_failed:
            end_offset = self.partition.log.end_offset
            for node, has in self.machine.follower_ends.items():
                yield node, max(0, end_offset - has)

    def gone_bad(self, reason: str) -> None:
        self._wake()
        record, me = self.machine.record, self._me.node
        if self._is_closed or record is None:
            return
        if not set(record.isr) - {me}:
            # Nobody else has everything: most of it can be read here, and nowhere else.
            log.error("bad_replica_kept partition=%s reason=%s", self.partition.source, reason)
            return
        if not self._is_bad:
            log.error("bad_replica partition=%s reason=%s", self.partition.source, reason)
        self._is_bad = True
        if self._is_leader:
            self.resign()  # who leads next has it all; then this one follows from nothing
        elif self._receiver is not None:
            self._follow_anew()

    def progress(self) -> tuple[Mapping[NodeId, int], Mapping[NodeId, int]]:
        sent_bytes = {node: sender.sent_bytes for node, sender in self._senders.items()}
        return self.machine.follower_ends, sent_bytes

    def failed(self) -> None:
        """The disk has failed the partition, which has stopped: it is opened anew, and leads no more."""
        if not self._is_closed:
            self._carry_out(self.machine.resign(is_reopening=True))
            self._drop_streams()
            self._disk_work = self._begin(self._reopen())

    def take_over(self, before: "Replicated") -> None:
        """Begin with the log as an earlier registration has left it."""
        work = before._disk_work
        if work is not None and not work.done():
            self._carry_out(self.machine.resign(is_reopening=True))
            self._disk_work = self._begin(self._go_on_behind(work))
        elif self.partition.is_failed:
            self.failed()

    async def _go_on_behind(self, work: "asyncio.Task[None]") -> None:
        await asyncio.wait([work])
        if self.partition.is_failed:
            await self._reopen()
        else:
            self._go_on()

    # What other nodes say.

    def followed(self, stream: Stream, message: Follow) -> Sender | None:
        """Another node asks to follow."""
        self._wake()
        sender = Sender(self, stream, self._around.threads, self._around.throttle)
        effects = self.machine.follow(
            stream.peer.node, stream.peer.incarnation, message, now_ms=self._around.now_ms()
        )
        if not effects:
            return None
        if (before := self._senders.pop(sender.node, None)) is not None:
            before.close()
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Following):
                sender.answer(effect.message)
            else:
                self._do(effect)
        offset = self.machine.next_offset(sender.node)
        if offset is not None and not stream.is_over:
            self._senders[sender.node] = sender
            sender.go(offset)
        return sender

    def acknowledged(self, sender: Sender, ack: Ack) -> None:
        peer = sender.stream.peer
        self._carry_out(self.machine.ack(peer.node, peer.incarnation, ack, now_ms=self._around.now_ms()))

    def sent(self, size: int) -> None:
        self._around.counts.replicated_bytes[self.partition.source.topic] += size

    def lost_follower(self, sender: Sender) -> None:
        if self._senders.get(sender.node) is sender:
            self._wake()
            del self._senders[sender.node]
            self._carry_out(self.machine.disconnected(sender.node))

    def cannot_read(self, error: GoQueueError) -> None:
        """What followers need cannot be read: another replica may have it."""
        log.error("replica_unreadable partition=%s reason=%s", self.partition.source, error)
        if isinstance(error, Corrupt):
            self.gone_bad(str(error))

    def heard(self, receiver: Receiver, message: Following | Frames, frames: Buffer) -> None:
        if receiver is not self._receiver:
            return
        leader = receiver.stream.peer.node
        if isinstance(message, Following):
            self._carry_out(self.machine.following(leader, message))
            return
        for effect in self.machine.frames(leader, message):
            if isinstance(effect, WriteFrames):
                self._write(memoryview(frames))
            else:
                self._do(effect)

    def lost_leader(self, receiver: Receiver) -> None:
        if receiver is self._receiver:
            self._receiver = None
            self._carry_out(self.machine.disconnected(receiver.stream.peer.node))
            self._around.asking.later(self._follow_anew)

    def _write(self, data: memoryview) -> None:
        """Store what the leader sent."""
        partition = self.partition
        try:
            partition.append_frames(data)
        except Corrupt as error:
            log.error("frames_refused partition=%s reason=%s", partition.source, error)
            self._drop_receiver()
            self._around.asking.later(self._follow_anew)
        except StorageFull:
            self._drop_receiver()
            self._later("follow", _NO_ROOM_S, self._follow_anew)
        except GoQueueError as error:
            log.warning("frames_not_stored partition=%s reason=%s", partition.source, error)
            self._drop_receiver()
        else:
            if "ack" not in self._timers:
                # Once a turn, whatever has come in it.
                self._timers["ack"] = asyncio.get_running_loop().call_soon(self._acknowledge)

    def _acknowledge(self) -> None:
        """Ask for a round of the disk, and tell the leader what is written."""
        del self._timers["ack"]
        if not self.machine.is_reopening:
            self.partition.flusher.request(self.partition)
            self._carry_out(self.machine.log_moved())

    def _follow_anew(self) -> None:
        if not self._is_closed:
            self._carry_out(self.machine.begin_session())

    # Effects.

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        if self._is_closed:
            return
        match effect:
            case Send(target, message):
                self._say(target, message)
            case CommitMarkMoved(offset):
                self.partition.move_mark(offset)
                if self._senders:
                    wait_s = self._told_s + _NEWS_S - asyncio.get_running_loop().time()
                    self._later("news", max(0.0, wait_s), self._tell_news)
            case SeenMarkMoved(offset):
                self.partition.move_seen(offset)
                while self._seen_waiters and self._seen_waiters[0][0] <= offset:
                    answer(self._seen_waiters.popleft()[1])
            case MoveStart(start_offset):
                own = self.partition.log
                if own.start_offset < start_offset <= own.end_offset:
                    own.move_start(start_offset)
            case ProposeRecord():
                self._begin(self._propose(effect))
            case BecameLeader(epoch, begun_at):
                self._drop_streams()
                self._is_leader, self.partition.leader_epoch = True, epoch
                log.info("leading partition=%s epoch=%d from=%d", self.partition.source, epoch, begun_at)
                self._around.roles.leads(self.partition, is_leader=True)
            case BecameFollower(epoch, leader):
                self.partition.leader_epoch = epoch
                self._stop_leading(leader)
            case Resigned(epoch):
                log.warning("resigned partition=%s epoch=%d", self.partition.source, epoch)
                self._stop_leading(None)
            case CutTo(end_offset):
                self._disk_work = self._begin(self._cut(end_offset))
            case BeginAt(start_offset):
                self._disk_work = self._begin(self._begin_at(start_offset))
            case FollowLater():
                self._around.asking.later(self._follow_anew)

    def _say(self, target: NodeId, message: object) -> None:
        if isinstance(message, Follow):
            self._ask(target, message)
        elif isinstance(message, Ack) and self._receiver is not None:
            self._receiver.stream.send(message)
        elif isinstance(message, Following) and (sender := self._senders.pop(target, None)) is not None:
            sender.end(message)

    def _ask(self, leader: NodeId, message: Follow) -> None:
        """Open a session. Without a connection one is waited for, and then the question is asked anew."""
        self._drop_receiver()
        if self.partition.damage is not None or self._is_bad:
            self._mend()
            return
        pace = self._pace()
        link = self._around.links.at_hand(leader, pace)
        if link is None:
            self._around.links.tell_when_there(leader, pace, self._follow_if_idle)
            return
        receiver = Receiver(self)
        try:
            receiver.stream = link.follow(message, receiver)
        except NodeUnreachable:  # it was lost just now
            self._around.links.tell_when_there(leader, pace, self._follow_if_idle)
            return
        receiver.pace = pace
        self._receiver = receiver

    def _pace(self) -> Pace:
        """Who is not in sync may have far to go, and does not stand before those that are."""
        record = self.machine.record
        return Pace.LIVE if record is not None and self._me.node in record.isr else Pace.CATCH_UP

    def _mend(self) -> None:
        """A damaged log is dropped and followed anew, once nobody believes that it holds everything."""
        record = self.machine.record
        if record is None or self._me.node in record.isr or self._me.node in record.elr:
            self._begin(self._leave())
            self._later("follow", _NO_ROOM_S, self._follow_anew)
            return
        self._is_bad = False
        log.warning("damaged_replica_dropped partition=%s", self.partition.source)
        self._carry_out(self.machine.resign(is_reopening=True))
        self._begin(self._begin_empty())

    async def _leave(self) -> None:
        """Say that this copy is none to rely on, unless there is no other."""
        found = await look_up(self._around.store, self._key)
        if found is None or not set(found[0].isr) - {self._me.node}:
            return
        record, revision = found
        with suppress(Outdated, Unavailable):  # it is tried again
            left = encode(without_copy(record, self._me.node))
            await self._around.store.change([Guard(self._key, revision)], {self._key: left}, ())

    def _follow_if_idle(self) -> None:
        if self._receiver is None and not self._is_closed:
            self._follow_anew()

    def _stop_leading(self, leader: NodeId | None) -> None:
        was_leader, self._is_leader = self._is_leader, False
        self._drop_streams()
        if was_leader:
            self.partition.refuse_waiters(LeadershipLost(*self.partition.source, leader))
            self._refuse_seen(leader)
            self._around.roles.leads(self.partition, is_leader=False)

    def _refuse_seen(self, leader: NodeId | None) -> None:
        waiters, self._seen_waiters = self._seen_waiters, deque()
        for _, waiter in waiters:
            answer(waiter, NotLeader(*self.partition.source, leader))

    def _tell_news(self) -> None:
        if self._is_leader:
            self._told_s = asyncio.get_running_loop().time()
            for sender in tuple(self._senders.values()):
                sender.tell()

    def _drop_streams(self) -> None:
        self._drop_receiver()
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            sender.close()

    def _drop_receiver(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.close()

    async def _propose(self, proposal: ProposeRecord) -> None:
        found = await self._around.proposals.make(self._key, proposal)
        if found is None:
            self._carry_out(self.machine.refused(proposal))
        else:
            self.take_record(*found)

    async def _cut(self, end_offset: int) -> None:
        log.info("cut partition=%s end_offset=%d", self.partition.source, end_offset)
        await self._around.cutter.cut_to(self.partition, end_offset, why=self._not_leader())
        self._go_on()

    async def _begin_at(self, start_offset: int) -> None:
        log.info("begun_anew partition=%s start_offset=%d", self.partition.source, start_offset)
        await self._around.cutter.begin_at(self.partition, start_offset, why=self._not_leader())
        self._go_on()

    def _go_on(self) -> None:
        """The log is what it should be; if its disk has failed over that, whoever opens it anew goes on."""
        if not self.partition.is_failed:
            self._carry_out(self.machine.reopened(now_ms=self._around.now_ms()))

    async def _begin_empty(self) -> None:
        await self._around.cutter.begin_empty(self.partition, why=self._not_leader())
        self._carry_out(self.machine.reopened(now_ms=self._around.now_ms()))

    async def _reopen(self) -> None:
        """Open a partition anew that has stopped, as often as it takes."""
        partition, around = self.partition, self._around
        while partition.is_failed:
            try:
                # A flush of it that is under way may yet succeed, and what it made safe is not cut.
                await around.flusher.wait_under_way()
                await around.flusher.seal()
                await around.threads.run(partition.reopen)
            except OSError as error:
                log.error("partition_reopen_failed partition=%s reason=%s", partition.source, error)
                await asyncio.sleep(_NO_ROOM_S)
                continue
            if partition.is_failed:
                partition.resume(leader_epoch=partition.leader_epoch)
                self._carry_out(self.machine.reopened(now_ms=around.now_ms()))

    def _not_leader(self) -> NotLeader:
        return NotLeader(*self.partition.source, self.machine.leader)

    def _later(self, what: str, delay_s: float, do: Callable[[], None]) -> None:
        """Do something once, after a while; what is asked for meanwhile is the same."""
        if what not in self._timers and not self._is_closed:

            def act() -> None:
                del self._timers[what]
                do()

            self._timers[what] = asyncio.get_running_loop().call_later(delay_s, act)

    def _begin(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._seen_to(work))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    async def _seen_to(self, work: Coroutine[object, object, None]) -> None:
        try:
            await work
        except GoQueueError as error:
            # The partition has stopped, and is opened anew, or its topic is gone.
            log.warning("replica_interrupted partition=%s reason=%s", self.partition.source, error)


def _election_type(before: PartitionRecord | None, record: PartitionRecord) -> ElectionType:
    """What kind of election a record shows, seen by who leads by it."""
    if record.epoch == 1:
        return ElectionType.FIRST
    if before is not None and record.leader not in before.isr and record.leader not in before.elr:
        return ElectionType.UNCLEAN
    is_preferred = record.leader == record.replicas[0]
    return ElectionType.PREFERRED if is_preferred else ElectionType.FAILOVER
