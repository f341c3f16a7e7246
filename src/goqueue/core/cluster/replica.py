"""One replica of a partition, without I/O: it hears of records and messages, and answers with effects.

    follower   follows the record's leader in a session; cuts or begins its log anew where the leader says so
    leader     answers followers, moves the marks, proposes who is in sync
    resigned   has led, and lost a tail or its trust in it: refuses everything until there is a newer epoch

Between the effect `CutTo` or `BeginAt`, or a resignation, and `reopened`, it is *reopening*: it hears of
records, says nothing, and leads nothing. The caller carries effects out in order; frames are written in the
same turn in which `WriteFrames` was returned, and told by `log_moved`. A machine is made once for a
registration of its node: another one would forget that it has resigned.

After `ProposeRecord`: hand the record that comes of it to `take_record`. Without an answer, propose the same
again. If the store says that it rests on something outdated, load the record: a newer one goes to
`take_record`; if it is the same, tell `refused`.
"""

from collections.abc import Iterator
from enum import StrEnum
from uuid import UUID

from goqueue.core.cluster.epochs import compare, cut_point
from goqueue.core.cluster.isr import without_leader
from goqueue.core.cluster.leading import Leading
from goqueue.core.cluster.rules import ALL_RULES, Rules
from goqueue.model.cluster import Incarnation, NodeId, PartitionRecord
from goqueue.model.replication import (
    NO_EPOCH,
    Ack,
    Answer,
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
    Image,
    MoveStart,
    ProposeRecord,
    ReplicaLog,
    Resigned,
    Send,
    WriteFrames,
)


class Role(StrEnum):
    FOLLOWER = "follower"
    LEADER = "leader"
    RESIGNED = "resigned"


class Replica:
    def __init__(
        self,
        me: NodeId,
        incarnation: Incarnation,
        topic_id: UUID,
        partition: int,
        log: ReplicaLog,
        image: Image,
        *,
        sessions: Iterator[int],
        commit_mark: int,
        min_isr: int,
        lag_max_ms: int,
        is_seen_enough: bool = False,
        rules: Rules = ALL_RULES,
    ) -> None:
        """`sessions`: numbers that grow, none of which this node uses twice while it runs.

        `is_seen_enough`: publishers are answered by the seen mark, and not by the commit mark.
        """
        self._me = me
        self.incarnation = incarnation
        self._topic_id = topic_id
        self._partition = partition
        self._log = log
        self._image = image
        self._sessions = sessions
        self._min_isr = min_isr
        self._lag_max_ms = lag_max_ms
        self._is_seen_enough = is_seen_enough
        self._rules = rules
        self.role = Role.FOLLOWER
        self.epoch = NO_EPOCH
        self.record: PartitionRecord | None = None
        self.revision = 0
        self.commit_mark = commit_mark
        self.is_reopening = False
        self._leading: Leading | None = None
        self._session: int | None = None
        self._is_going = False
        self._told_mark = commit_mark
        self._acked = (-1, -1)
        self.tells_written = True
        """Whether the leader hears of what is written before it is durable; if not, the seen mark is late."""

    @property
    def leader(self) -> NodeId | None:
        return None if self.record is None else self.record.leader

    @property
    def is_leader(self) -> bool:
        return self._leading is not None

    @property
    def is_in_sync(self) -> bool:
        """Whether it leads, or follows who does and has all that counts."""
        return self.is_leader or (self._is_going and self.record is not None and self._me in self.record.isr)

    @property
    def is_mark_known(self) -> bool:
        """Whether the commit mark has reached all that might have counted under an earlier leader."""
        return self._leading is None or self.commit_mark >= self._leading.begun_at

    @property
    def has_enough_replicas(self) -> bool:
        """Whether `acks=all` may be taken now, and not only refused behind the append."""
        return self._leading is not None and self._leading.has_enough

    @property
    def is_mark_moving(self) -> bool:
        """Whether what is written now comes to count without anybody's help, and this replica hears of it."""
        if self._leading is not None:
            return self._leading.has_enough
        return self._is_going and self.record is not None and len(self.record.isr) >= self._min_isr

    @property
    def seen_mark(self) -> int:
        return self.commit_mark if self._leading is None else max(self._leading.seen_mark, self.commit_mark)

    @property
    def followers(self) -> tuple[NodeId, ...]:
        """Who has a session and takes frames."""
        return () if self._leading is None else tuple(self._leading.followers)

    @property
    def follower_ends(self) -> dict[NodeId, int]:
        """How much each follower has on its disk, in the session that it has."""
        followers = {} if self._leading is None else self._leading.followers
        return {node: follower.durable_offset for node, follower in followers.items()}

    def next_offset(self, target: NodeId) -> int | None:
        """Where the frames begin that a follower gets next; None: it has no session."""
        follower = None if self._leading is None else self._leading.followers.get(target)
        return None if follower is None else follower.sent_offset

    def frames_to(self, target: NodeId, end_offset: int) -> Frames:
        """The message for frames from `next_offset` to an end of whole steps; news alone if both are one."""
        assert self._leading is not None, "only a leader has followers"
        return self._leading.frames_to(target, end_offset, commit_mark=self.commit_mark)

    def take_record(self, record: PartitionRecord, revision: int, *, now_ms: int) -> list[Effect]:
        """The record as the store had it at a revision; older ones than the newest count for nothing."""
        if revision <= self.revision:
            return []
        before, self.record, self.revision = self.record, record, revision
        if record.epoch > self.epoch:
            return self._begin_epoch(record, now_ms=now_ms)
        if self._leading is not None:
            if record.leader == self._me:
                return self._noted(self._leading.take_record(record, revision))
            return self._stop_leading(record)
        if self.role is Role.RESIGNED and record.leader == self._me:
            # The proposal by which it resigned came too late for the record of then.
            return [ProposeRecord(without_leader(record), revision)]
        if before is not None and before.leader != record.leader:
            self._session = None
        return []

    def take_min_isr(self, min_isr: int) -> list[Effect]:
        """`min.insync.replicas` of the topic has changed."""
        self._min_isr = min_isr
        return [] if self._leading is None else self._noted(self._leading.take_min_isr(min_isr))

    def take_seen_enough(self, is_seen_enough: bool) -> list[Effect]:
        """`acks.all.waits.for` of the topic has changed; who publishes from now on goes by it."""
        self._is_seen_enough = is_seen_enough
        return [] if self._leading is None else self._noted(self._leading.take_seen_enough(is_seen_enough))

    def refused(self, proposal: ProposeRecord) -> list[Effect]:
        """What was proposed was not done and never will be, though the record is as it was."""
        return [] if self._leading is None else self._noted(self._leading.refused(proposal))

    def begin_session(self) -> list[Effect]:
        """Ask the leader, from nothing: on a new connection, after a while, or when frames were not good."""
        leader = self.leader
        if self.role is not Role.FOLLOWER or self.is_reopening or leader is None or leader == self._me:
            return []
        self._session = next(self._sessions)
        self._is_going = False
        log = self._log
        self._acked = (log.end_offset, log.flushed_offset)
        follow = Follow(
            session=self._session,
            topic_id=self._topic_id,
            partition=self._partition,
            epoch=self.epoch,
            start_offset=log.start_offset,
            end_offset=log.end_offset,
            durable_offset=log.flushed_offset,
            last_epoch=log.last_epoch if log.end_offset > log.start_offset else NO_EPOCH,
        )
        return [Send(leader, follow)]

    def follow(
        self, sender: NodeId, incarnation: Incarnation, message: Follow, *, now_ms: int
    ) -> list[Effect]:
        """Another replica asks to follow, or somebody who only wants to watch."""
        leading = self._leading
        if message.epoch < self.epoch:
            return [Send(sender, Following(session=message.session, answer=Answer.FENCED, epoch=self.epoch))]
        if leading is None or message.epoch > self.epoch:
            if leading is not None:
                leading.forget(sender)
            return [Send(sender, Following(session=message.session, answer=Answer.LATER))]
        if incarnation > self._image.revision and self._rules.knows_registrations:
            # Who comes back without its copy leaves the ISR before it registers. A leader that has heard of
            # neither would take what is stored there now for that of a replica in sync.
            return [Send(sender, Following(session=message.session, answer=Answer.LATER))]
        if leading.is_late(sender, incarnation, message.session):
            return []
        compared = compare(self._log, message, by_epoch=self._rules.cuts_by_epoch)
        answer = Following(
            session=message.session,
            answer=compared.answer,
            epoch=compared.epoch,
            end_offset=compared.end_offset,
            start_offset=self._log.start_offset,
            commit_mark=self.commit_mark,
        )
        if compared.answer is not Answer.GO:
            leading.forget(sender)
            return [Send(sender, answer)]
        return [
            Send(sender, answer),
            *self._noted(leading.begin(sender, incarnation, message, now_ms=now_ms)),
        ]

    def following(self, sender: NodeId, message: Following) -> list[Effect]:
        """The leader has answered."""
        if not self._is_of_session(sender, message.session):
            return []
        match message.answer:
            case Answer.GO:
                self._is_going = True
                return [*self._take_news(message.commit_mark, message.start_offset), *self._ack()]
            case Answer.CUT:
                self._session, self.is_reopening = None, True
                return [CutTo(cut_point(self._log, message.epoch, message.end_offset))]
            case Answer.BEGIN:
                self._session, self.is_reopening = None, True
                return [BeginAt(message.start_offset)]
            case Answer.LATER:
                return [FollowLater()]
            case Answer.FENCED:
                return []  # The record of a newer epoch is on its way.

    def frames(self, sender: NodeId, message: Frames) -> list[Effect]:
        """Frames have come, or news alone."""
        end_offset = self._log.end_offset
        if not (self._is_of_session(sender, message.session) and self._is_going):
            return []
        if message.base_offset < end_offset:
            return []  # They came twice.
        if message.base_offset > end_offset:
            return self.begin_session()
        if message.end_offset == end_offset:
            return self._take_news(message.commit_mark, message.start_offset)
        self._told_mark = max(self._told_mark, message.commit_mark)
        return [
            WriteFrames(message.base_offset, message.end_offset),
            *self._moved_start(message.start_offset),
        ]

    def ack(self, sender: NodeId, incarnation: Incarnation, message: Ack, *, now_ms: int) -> list[Effect]:
        """A follower is further."""
        if self._leading is None:
            return []
        return self._noted(self._leading.ack(sender, incarnation, message, now_ms=now_ms))

    def disconnected(self, peer: NodeId) -> list[Effect]:
        """Sessions with that node are over; `begin_session` when there is a connection again."""
        if self._leading is not None:
            self._leading.forget(peer)
        if peer == self.leader:
            self._session = None
        return []

    def log_moved(self) -> list[Effect]:
        """Something was written, by an append or from frames, has become durable, or was given up."""
        if self._leading is not None:
            return [*self._leading.drop_behind_start(), *self._noted(self._leading.advance())]
        return [*self._moved_mark(), *self._ack()]

    @property
    def is_at_rest(self) -> bool:
        """Whether there is no need to tell it of time, until something happens to it or to its log."""
        return self._leading is None or self._leading.is_at_rest

    def wake(self, *, now_ms: int) -> None:
        """It was at rest, and was not told of time; something happens now."""
        if self._leading is not None:
            self._leading.wake(now_ms=now_ms)

    def tick(self, *, now_ms: int) -> list[Effect]:
        """Every second or so, but at rest: whoever has not kept up leaves the ISR, or the leader resigns.

        It resigns where too few would be left: it may be its own network that does not work.
        """
        if self._leading is None:
            return []
        lagging = self._leading.find_lagging(lag_max_ms=self._lag_max_ms, now_ms=now_ms)
        if not lagging:
            return []
        if not self._leading.leaves_enough(lagging):
            return self.resign()
        return self._leading.propose_without(lagging)

    def resign(self, *, is_reopening: bool = False) -> list[Effect]:
        """Lead no more: before a log that lost its tail, or was cut, is opened anew, or to make way."""
        if not self._rules.resigns:
            return []
        self.is_reopening = self.is_reopening or is_reopening
        if self._leading is None or self.record is None:
            return []
        self.role, self._leading = Role.RESIGNED, None
        return [Resigned(self.epoch), ProposeRecord(without_leader(self.record), self.revision)]

    def reopened(self, *, now_ms: int) -> list[Effect]:
        """The log was cut, begun anew, or opened again, and is what the port shows now."""
        self.is_reopening = False
        self.commit_mark = max(min(self.commit_mark, self._log.end_offset), self._log.start_offset)
        self._told_mark = self.commit_mark
        if self.role is Role.FOLLOWER and self.record is not None and self._leads_by(self.record):
            return self._begin_epoch(self.record, now_ms=now_ms)
        return self.begin_session()

    def _begin_epoch(self, record: PartitionRecord, *, now_ms: int) -> list[Effect]:
        self.epoch = record.epoch
        self._leading, self._session = None, None
        if not self._leads_by(record) or self.is_reopening:
            self.role = Role.FOLLOWER
            return [BecameFollower(record.epoch, record.leader), *self.begin_session()]
        self.role = Role.LEADER
        self._leading = Leading(
            self._me,
            self._log,
            record,
            self.revision,
            commit_mark=self.commit_mark,
            min_isr=self._min_isr,
            is_seen_enough=self._is_seen_enough,
            now_ms=now_ms,
            rules=self._rules,
        )
        return [
            BecameLeader(record.epoch, self._leading.begun_at),
            *self._noted(self._leading.advance()),
        ]

    def _leads_by(self, record: PartitionRecord) -> bool:
        """Whether it may lead: not in an epoch that an earlier life of this node was elected for."""
        if record.leader != self._me:
            return False
        return record.incarnation == self.incarnation or not self._rules.leads_once

    def _stop_leading(self, record: PartitionRecord) -> list[Effect]:
        """The record names another leader in the same epoch, which only this one's own resignation does."""
        self.role, self._leading = Role.RESIGNED, None
        return [Resigned(record.epoch)]

    def _is_of_session(self, sender: NodeId, session: int) -> bool:
        if self.role is not Role.FOLLOWER or self.is_reopening or sender != self.leader:
            return False
        return session == self._session or not self._rules.forgets_with_session

    def _noted(self, effects: list[Effect]) -> list[Effect]:
        """The mark that the leadership has moved is the replica's, also when that ends."""
        if self._leading is not None:
            self.commit_mark = self._leading.commit_mark
        return effects

    def _take_news(self, commit_mark: int, start_offset: int) -> list[Effect]:
        self._told_mark = max(self._told_mark, commit_mark)
        return [*self._moved_mark(), *self._moved_start(start_offset)]

    def _moved_mark(self) -> list[Effect]:
        """What the leader told of the commit mark, as far as the log is there."""
        offset = min(self._told_mark, self._log.end_offset)
        if offset <= self.commit_mark or self._session is None:
            return []
        self.commit_mark = offset
        return [CommitMarkMoved(offset)]

    def _moved_start(self, start_offset: int) -> list[Effect]:
        return [MoveStart(start_offset)] if start_offset > self._log.start_offset else []

    def _ack(self) -> list[Effect]:
        state = (self._log.end_offset, self._log.flushed_offset)
        if not self.tells_written and state[1] <= self._acked[1]:
            return []
        leader = self.leader
        if self._session is None or leader is None or not self._is_going or state == self._acked:
            return []
        self._acked = state
        return [Send(leader, Ack(session=self._session, written_offset=state[0], durable_offset=state[1]))]
