"""The coordinator of consumer groups: carries out what the groups machine decides.

A group at work has those who wait for an answer, and at most one timer, set to when the
machine has something to do next. A timer that has become too early is left alone, fires, and is set
anew: so a heartbeat, which only moves deadlines away, costs no timer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from goqueue.broker.groups.journal import GroupJournal, GroupJournals
from goqueue.broker.groups.stored_times import StoredTimes
from goqueue.broker.groups.watch import GroupWatch
from goqueue.broker.slices import Slices
from goqueue.broker.storage.partition import Partition
from goqueue.core.groups.assigned import AssignedGroup
from goqueue.core.groups.assignors import TopicCounts
from goqueue.core.groups.events import Event
from goqueue.core.groups.group import Group
from goqueue.core.groups.groups import GroupRecord
from goqueue.core.groups.outcome import Outcome
from goqueue.core.telemetry.counters import Counters
from goqueue.model.errors import GoQueueError, NotCoordinator, RebalanceInProgress, ShuttingDown
from goqueue.model.groups import Joined, Synced
from goqueue.model.ports import Clock

log = logging.getLogger(__name__)
Reply = Joined | Synced
R = TypeVar("R", Joined, Synced)
_NS_PER_S = 1_000_000_000


class ActiveGroup:
    """A group with those who wait in it."""

    def __init__(self, journal: GroupJournal, record: GroupRecord) -> None:
        self.journal = journal
        self.record = record
        self.waiting: dict[str, asyncio.Future[Reply]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.timer_ns = 0
        self.watch = GroupWatch(record.membership)
        self.foreseeing = asyncio.Lock()

    @property
    def group(self) -> Group:
        """The group as one in which a member assigns."""
        return self.record.as_classic()

    @property
    def membership(self) -> Group | AssignedGroup:
        return self.record.membership

    @property
    def name(self) -> str:
        return self.record.membership.name


class Coordinator:
    def __init__(self, journals: GroupJournals, clock: Clock, counters: Counters) -> None:
        self.journals = journals
        journals.on_taken_over = self._enter_all
        self._clock = clock
        self._counters = counters
        self._active: dict[str, ActiveGroup] = {}
        self._topics: TopicCounts = {}
        self._to_follow: dict[str, None] = {}
        """Groups that have not heard yet of the topics there are."""
        self.stored_times = StoredTimes()
        self.on_change: Callable[[str], None] = lambda group: None
        """Told of a group whose members or assignments may have changed."""

    def now_ns(self) -> int:
        return self._clock.monotonic_ns()

    async def start(self, numbers: Iterable[int]) -> None:
        """Read journals back, and watch the sessions of the members found there."""
        await self.journals.open(numbers)
        for journal in self.journals:
            await journal.shorten()
            for record in tuple(journal.groups):
                self.carry_out(self._enter(journal, record), Outcome())

    async def take_over(
        self, partition: Partition, read_back: Callable[[GroupJournal], Awaitable[None]]
    ) -> None:
        """Serve the groups of a journal that this node leads from now on."""
        await self.journals.take_over(partition, read_back)

    def _enter_all(self, journal: GroupJournal) -> None:
        """All groups of a journal are at work, before anybody asks for one."""
        self.journals.spare_leases(journal)
        for record in tuple(journal.groups):
            self.carry_out(self._enter(journal, record), Outcome())

    def let_go(self, number: int) -> None:
        """Another node serves the groups of a journal, or nobody does: who waits here looks for it."""
        journal = self.journals.let_go(number)
        for active in [active for active in self._active.values() if active.journal is journal]:
            del self._active[active.name]
            self._to_follow.pop(active.name, None)
            _send_away(active, NotCoordinator(f"another node coordinates group {active.name} now"))
            self.on_change(active.name)

    async def active(self, group: str) -> ActiveGroup:
        """A group at work, which may begin by this."""
        journal = await self.journals.ensure(group)
        return self._enter(journal, journal.groups.ensure(group))

    def known_active(self, group: str) -> ActiveGroup | None:
        """A group at work that has members, or may soon have some."""
        return self._active.get(group)

    def carry_out(self, active: ActiveGroup, outcome: Outcome, *, is_time_up: bool = False) -> None:
        """Journal what must be kept, tell those who wait, set the timer, forget a group that is over."""
        not_before_ns = 0
        try:
            if outcome.events:
                active.journal.submit(*outcome.events).hurry()
        except GoQueueError as error:
            # Nobody is refused for that: after a restart the members that are gone would be missed once more.
            # Where the broker assigns, they are not gone before the journal says so: that is tried again.
            not_before_ns = self.now_ns() + _NS_PER_S
            log.warning("group_not_journalled group=%s reason=%s", active.name, error)
        for member_id, reply in outcome.answers:
            waiter = active.waiting.pop(member_id, None)
            if waiter is not None:
                _answer(waiter, reply)
        self._set_timer(active, not_before_ns)
        counters = self._counters.group(active.name)
        active.watch.note(active.membership, counters, now_ns=self.now_ns(), is_time_up=is_time_up)
        self.on_change(active.name)
        if active.membership.is_vacant:
            self._active.pop(active.name, None)
            self.forget_if_void(active.journal, active.name)

    def enact(self, active: ActiveGroup, events: Sequence[Event]) -> None:
        """Journal and apply what a group decided for somebody who asked; raises when that cannot be."""
        if events:
            active.journal.submit(*events).hurry()
            self.carry_out(active, Outcome())

    def follow(self, topics: TopicCounts) -> None:
        """Topics have come, gone or grown: groups hear of it at once, and so do polls that wait.

        One group after the other, with turns of the loop for others in between: many may read a topic of very
        many partitions. Whoever asks something of a group before has it follow first.
        """
        self._topics = topics
        is_following = bool(self._to_follow)
        self._to_follow = dict.fromkeys(self._active)
        if self._to_follow and not is_following:
            self._follow_some()

    def _follow_some(self) -> None:
        slices = Slices(self._clock)
        while self._to_follow:
            name = next(iter(self._to_follow))
            del self._to_follow[name]
            active = self._active.get(name)
            if active is not None and isinstance(group := active.membership, AssignedGroup):
                events = group.follow(self._topics, now_ns=self.now_ns())
                if events:
                    self.carry_out(active, Outcome(events=events))
            if slices.is_over and self._to_follow:
                asyncio.get_running_loop().call_soon(self._follow_some)
                return

    def forget_if_void(self, journal: GroupJournal, group: str) -> None:
        """Let go of a group in which nothing is left."""
        try:
            if event := journal.groups.drop_if_void(group):
                journal.submit(event)
        except GoQueueError as error:
            log.warning("group_not_journalled group=%s reason=%s", group, error)

    def expect(self, active: ActiveGroup, member_id: str) -> "asyncio.Future[Reply]":
        """A place to wait for an answer. Whoever waited there for the same member is sent away."""
        if displaced := active.waiting.get(member_id):
            _answer(displaced, RebalanceInProgress(active.name))
        waiter: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        active.waiting[member_id] = waiter
        return waiter

    async def answer(
        self, active: ActiveGroup, member_id: str, waiter: "asyncio.Future[Reply]", kind: type[R]
    ) -> R:
        """Wait for an answer; a client that goes away meanwhile is not waited for by others."""
        try:
            reply = await waiter
        except asyncio.CancelledError:
            if active.waiting.get(member_id) is waiter:
                del active.waiting[member_id]
                self.carry_out(active, active.group.abandon(member_id, now_ns=self.now_ns()))
            raise
        assert isinstance(reply, kind), f"{member_id} waited for {kind.__name__}"
        return reply

    async def keep_up(self) -> None:
        """Keep the journals short."""
        for journal in self.journals:
            try:
                await journal.shorten()
            except GoQueueError as error:
                log.warning("journal_not_shortened partition=%s reason=%s", journal.partition.source, error)

    async def close(self) -> None:
        """No more timers; everyone who waits is told to look for the coordinator later."""
        for active in self._active.values():
            _send_away(active, ShuttingDown())
        self._active.clear()
        self._to_follow.clear()
        await self.journals.drain()

    def _enter(self, journal: GroupJournal, record: GroupRecord) -> ActiveGroup:
        name = record.membership.name
        active = self._active.get(name)
        if active is None or active.record is not record:
            active = self._active[name] = ActiveGroup(journal, record)
        return active

    def _set_timer(self, active: ActiveGroup, not_before_ns: int) -> None:
        deadline_ns = active.membership.next_deadline_ns()
        if deadline_ns is not None:
            deadline_ns = max(deadline_ns, not_before_ns)
        if active.timer is not None:
            if deadline_ns is not None and active.timer_ns <= deadline_ns:
                return
            active.timer.cancel()
            active.timer = None
        if deadline_ns is not None:
            delay_s = max(deadline_ns - self.now_ns(), 0) / _NS_PER_S
            active.timer_ns = deadline_ns
            active.timer = asyncio.get_running_loop().call_later(delay_s, self._advance, active)

    def _advance(self, active: ActiveGroup) -> None:
        active.timer = None
        self.carry_out(active, active.membership.advance(now_ns=self.now_ns()), is_time_up=True)


def _send_away(active: ActiveGroup, why: GoQueueError) -> None:
    """A group is at work here no more."""
    if active.timer is not None:
        active.timer.cancel()
    for waiter in active.waiting.values():
        _answer(waiter, why)


def _answer(waiter: "asyncio.Future[Reply]", reply: Reply | GoQueueError) -> None:
    if waiter.done():
        return
    if isinstance(reply, GoQueueError):
        waiter.set_exception(reply)
        waiter.exception()  # a client that has gone away is no bug worth a log line
    else:
        waiter.set_result(reply)
