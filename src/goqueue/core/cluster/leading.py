"""A replica that leads: how far its followers are, what counts by that, and who is in sync.

The commit mark is the least durable end of all that are waited for, the seen mark the least written one.
Neither moves while too few are surely in sync. What is known of a follower belongs to one session of it.

Where publishers are answered by the seen mark (`is_seen_enough`), whoever joins has all before it, too. The
mark waits for those who are about to: else a leader that is alone in sync would be ahead of them for ever.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from goqueue.core.cluster.isr import surely_in, waited_for, with_isr
from goqueue.core.cluster.rules import Rules
from goqueue.model.cluster import Incarnation, NodeId, PartitionRecord
from goqueue.model.replication import (
    Ack,
    Answer,
    CommitMarkMoved,
    Effect,
    Follow,
    Following,
    Frames,
    ProposeRecord,
    ReplicaLog,
    SeenMarkMoved,
    Send,
)


@dataclass(slots=True)
class Follower:
    """What is known of a follower in this session."""

    session: int
    incarnation: Incarnation
    sent_offset: int
    written_offset: int
    durable_offset: int


@dataclass(slots=True)
class Pace:
    """Whether a replica keeps up, over all its sessions."""

    caught_up_ms: int
    """When it last had, as it turned out, all that was there."""
    goal_offset: int
    """What was there at `goal_ms`: once it has that, it had caught up then."""
    goal_ms: int


class Leading:
    """One leadership: it ends with its epoch."""

    def __init__(
        self,
        me: NodeId,
        log: ReplicaLog,
        record: PartitionRecord,
        revision: int,
        *,
        commit_mark: int,
        min_isr: int,
        is_seen_enough: bool,
        now_ms: int,
        rules: Rules,
    ) -> None:
        self._me = me
        self._log = log
        self.record = record
        self._revision = revision
        self.begun_at = log.end_offset
        self.commit_mark = commit_mark
        self.seen_mark = log.start_offset
        self._min_isr = min_isr
        self._is_seen_enough = is_seen_enough
        self._begun_ms = now_ms
        self._rules = rules
        self._proposed: ProposeRecord | None = None
        self._newest: dict[NodeId, tuple[Incarnation, int]] = {}
        """The newest session that was heard of, of each follower: what is older is late."""
        self.followers: dict[NodeId, Follower] = {}
        self._paces: dict[NodeId, Pace] = {}

    @property
    def has_enough(self) -> bool:
        """Whether what is written now may come to count."""
        if not self._rules.needs_min_isr:
            return True
        return len(surely_in(self.record, self._proposed)) >= self._min_isr

    def take_record(self, record: PartitionRecord, revision: int) -> list[Effect]:
        """The record has changed within this epoch."""
        self.record, self._revision = record, revision
        # A proposal rests on an older revision: it has been made, and is in this record, or never will be.
        self._proposed = None
        return self.advance()

    def take_min_isr(self, min_isr: int) -> list[Effect]:
        self._min_isr = min_isr
        return self.advance()

    def take_seen_enough(self, is_seen_enough: bool) -> list[Effect]:
        self._is_seen_enough = is_seen_enough
        return self.advance()

    def refused(self, proposal: ProposeRecord) -> list[Effect]:
        """A proposal never will be made, though the record is as it was: its node has come anew."""
        if self._proposed != proposal:
            return []
        self._proposed = None
        if proposal.joining is not None:
            node, incarnation = proposal.joining
            follower = self.followers.get(node)
            # It may have come anew already; its new session is none of those that are over.
            if follower is not None and follower.incarnation == incarnation:
                return [self._end_session(node, Answer.LATER), *self.advance()]
        return self.advance()

    def is_late(self, sender: NodeId, incarnation: Incarnation, session: int) -> bool:
        """Whether a newer session of that follower is known; if not, this is the newest."""
        newest = self._newest.get(sender)
        if newest is not None and (incarnation, session) <= newest and self._rules.forgets_with_session:
            return True
        self._newest[sender] = (incarnation, session)
        return False

    def begin(self, sender: NodeId, incarnation: Incarnation, follow: Follow, *, now_ms: int) -> list[Effect]:
        """A follower goes on from the end of its log, which is part of the leader's."""
        end_offset, durable_offset = follow.end_offset, follow.durable_offset
        before = self.followers.get(sender)
        written_offset = end_offset
        if before is not None and not self._rules.forgets_with_session:
            written_offset = max(written_offset, before.written_offset)
            durable_offset = max(durable_offset, before.durable_offset)
        self.followers[sender] = Follower(
            follow.session, incarnation, end_offset, written_offset, durable_offset
        )
        self._keep_pace(sender, now_ms)
        return self.advance()

    def forget(self, sender: NodeId) -> None:
        """Its session is over."""
        self.followers.pop(sender, None)

    def ack(self, sender: NodeId, incarnation: Incarnation, ack: Ack, *, now_ms: int) -> list[Effect]:
        follower = self.followers.get(sender)
        if follower is None:
            return []
        is_of_session = (follower.incarnation, follower.session) == (incarnation, ack.session)
        if self._rules.forgets_with_session and not is_of_session:
            return []
        if ack.written_offset > follower.sent_offset and self._rules.forgets_with_session:
            return []
        follower.written_offset = max(follower.written_offset, ack.written_offset)
        follower.durable_offset = max(follower.durable_offset, ack.durable_offset)
        self._keep_pace(sender, now_ms)
        return self.advance()

    def frames_to(self, target: NodeId, end_offset: int, *, commit_mark: int) -> Frames:
        """What goes to a follower next: frames up to an end, or none and the news, if that is where it is."""
        follower = self.followers[target]
        base_offset, follower.sent_offset = follower.sent_offset, end_offset
        return Frames(
            session=follower.session,
            base_offset=base_offset,
            end_offset=end_offset,
            commit_mark=commit_mark,
            start_offset=self._log.start_offset,
        )

    def drop_behind_start(self) -> list[Effect]:
        """Followers that were to get what has been given up since: they begin anew, at the start."""
        start_offset = self._log.start_offset
        behind = [node for node, follower in self.followers.items() if follower.sent_offset < start_offset]
        return [self._end_session(node, Answer.BEGIN) for node in behind]

    def advance(self) -> list[Effect]:
        """Move the marks as far as they may, and propose whom the ISR can take in."""
        effects: list[Effect] = []
        if self.has_enough and not (self.record.elr and self._rules.empties_elr_first):
            effects += self._move_marks()
        return effects + self._propose()

    def find_lagging(self, *, lag_max_ms: int, now_ms: int) -> list[NodeId]:
        """Who is in sync by the record and has not kept up for too long."""
        # Asked of each partition every second, and of thousands that are idle: no sets are made for it.
        surely_in = self.record.isr if self._proposed is None else self._proposed.record.isr
        lagging = []
        for node in self.record.isr:
            if node == self._me or node not in surely_in:
                continue
            pace = self._keep_pace(node, now_ms)
            if now_ms - pace.caught_up_ms > lag_max_ms:
                lagging.append(node)
        return sorted(lagging)

    @property
    def is_at_rest(self) -> bool:
        """Whether all in sync have all there is, and it counts: so it stays until something comes."""
        end_offset = self._log.end_offset
        if self._proposed is not None or self.commit_mark < end_offset:
            return False
        for node in self.record.isr:
            follower = self.followers.get(node)
            if node != self._me and (follower is None or follower.durable_offset < end_offset):
                return False
        return True

    def wake(self, *, now_ms: int) -> None:
        """It was at rest until now: so long all that were in sync had everything."""
        for node in self.record.isr:
            follower = self.followers.get(node)
            if follower is not None:
                self._paces[node] = Pace(now_ms, follower.durable_offset, now_ms)

    def leaves_enough(self, nodes: Iterable[NodeId]) -> bool:
        """Whether enough would be in sync without some."""
        return len(set(self.record.isr).difference(nodes)) >= self._min_isr

    def propose_without(self, nodes: Iterable[NodeId]) -> list[Effect]:
        """Take some out of the ISR; one change at a time."""
        if self._proposed is not None:
            return []
        return [self._proposing(set(self.record.isr).difference(nodes), None)]

    def _move_marks(self) -> list[Effect]:
        written, durable = self._log.end_offset, self._log.flushed_offset
        least_written, least_durable = written, durable if self._rules.waits_for_disks else written
        for node in waited_for(self.record, self._proposed, self._rules) - {self._me}:
            follower = self.followers.get(node)
            if follower is None:
                least_written = least_durable = 0
                break
            counted = follower.durable_offset if self._rules.waits_for_disks else follower.written_offset
            least_written = min(least_written, follower.written_offset)
            least_durable = min(least_durable, counted)
        for follower in self._joining():
            least_written = min(least_written, follower.written_offset)
        if not self._rules.waits_to_be_seen:
            least_written = written
        effects: list[Effect] = []
        if least_durable > self.commit_mark:
            self.commit_mark = least_durable
            effects.append(CommitMarkMoved(least_durable))
        if least_written > self.seen_mark:
            self.seen_mark = least_written
            effects.append(SeenMarkMoved(least_written))
        return effects

    def _propose(self) -> list[Effect]:
        if self._proposed is not None:
            return []
        in_sync = set(self.record.isr)
        for node in self.record.replicas:
            follower = self.followers.get(node)
            if node not in in_sync and follower is not None and self._may_join(follower):
                return [self._proposing(in_sync | {node}, (node, follower.incarnation))]
        if self.record.elr and len(in_sync) >= self._min_isr:
            return [self._proposing(in_sync, None)]
        return []

    def _joining(self) -> Iterator[Follower]:
        """Who is about to be in sync, and is waited for until it has all that publishers were told of."""
        if not (self._is_seen_enough and self._rules.joins_with_all_seen):
            return
        for node, follower in self.followers.items():
            is_out = node in self.record.replicas and node not in self.record.isr
            if is_out and self._has_everything(follower):
                yield follower

    def _may_join(self, follower: Follower) -> bool:
        asks_for_seen = self._is_seen_enough and self._rules.joins_with_all_seen
        has_seen = follower.written_offset >= self.seen_mark or not asks_for_seen
        return has_seen and self._has_everything(follower)

    def _has_everything(self, follower: Follower) -> bool:
        """All that counts, and all that might have counted under an earlier leader."""
        has = follower.durable_offset if self._rules.waits_for_disks else follower.written_offset
        return has >= max(self.commit_mark, self.begun_at if self._rules.joins_with_everything else 0)

    def _proposing(self, isr: set[NodeId], joining: tuple[NodeId, Incarnation] | None) -> ProposeRecord:
        record = with_isr(self.record, isr, min_isr=self._min_isr)
        guard = joining if self._rules.guards_incarnation else None
        self._proposed = ProposeRecord(record, self._revision, guard)
        return self._proposed

    def _end_session(self, node: NodeId, answer: Answer) -> Send:
        """End a session that has begun; the follower hears what to do next."""
        session = self.followers.pop(node).session
        return Send(node, Following(session=session, answer=answer, start_offset=self._log.start_offset))

    def _keep_pace(self, node: NodeId, now_ms: int) -> Pace:
        end_offset = self._log.end_offset
        pace = self._paces.get(node)
        if pace is None:
            pace = self._paces[node] = Pace(self._begun_ms, end_offset, self._begun_ms)
        follower = self.followers.get(node)
        has = follower.durable_offset if follower is not None else -1
        if has >= pace.goal_offset:
            pace.caught_up_ms, pace.goal_offset, pace.goal_ms = pace.goal_ms, end_offset, now_ms
        if has >= end_offset:
            pace.caught_up_ms = now_ms
        return pace
