"""Where groups are kept: the journals of `__consumer_offsets`, a machine for each."""

from collections.abc import Awaitable, Callable

from goqueue.broker.groups.state import EVENTS, Event, GroupsAndDeliveries
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.core.delivery.deliveries import Deliveries
from goqueue.core.groups.groups import GroupRecord, Groups
from goqueue.model.delivery import REDRIVE_GROUP_PREFIX
from goqueue.model.errors import TooManyGroups
from goqueue.model.ids import TopicName
from goqueue.model.names import checked_group_name
from goqueue.model.ports import Clock
from goqueue.model.running_time import RunningTime
from goqueue.model.settings import GroupConfig

OFFSETS_TOPIC = TopicName("__consumer_offsets")
SKEW_MS = 2_000
"""So far the clocks of nodes may differ: no lease ends sooner than this once it is taken over."""


class GroupJournal(StateJournal[Event]):
    """The groups of one partition, and what is out with their consumers."""

    def __init__(self, partition: Partition, groups: Groups, running: RunningTime) -> None:
        self.groups = groups
        self.deliveries = Deliveries()
        self._kept = GroupsAndDeliveries(groups, self.deliveries, running)
        super().__init__(partition, self._kept, EVENTS)

    def _restore(self, event: Event, offset: int, written_ms: int) -> None:
        self._kept.restore(event, written_ms)


class GroupJournals(JournalSet[GroupJournal]):
    def __init__(
        self,
        config: GroupConfig,
        *,
        clock: Clock,
        running: RunningTime,
        new_partition: Callable[[TopicName, int], Partition],
        open_journal: Callable[[Journal[Event]], Awaitable[None]],
    ) -> None:
        super().__init__(
            OFFSETS_TOPIC,
            lambda partition: GroupJournal(partition, Groups(config), running),
            new_partition=new_partition,
            open_journal=open_journal,
            resume=lambda journal: journal.groups.resume(now_ns=clock.monotonic_ns()),
        )
        self._running = running
        self._groups_max = config.groups_max

    def spare_leases(self, journal: GroupJournal) -> None:
        """What another coordinator gave out until a time of its clock is not taken back too early."""
        until_ms = self._running.now_ms() + SKEW_MS
        for delivery in journal.deliveries:
            delivery.spare(until_ms)

    def record(self, group: str) -> GroupRecord | None:
        """What is known of a group."""
        journal = self.find(group)
        return None if journal is None else journal.groups.get(group)

    def _admit_one_more(self) -> None:
        if sum(len(journal.groups) for journal in self) >= self._groups_max:
            raise TooManyGroups(f"there are {self._groups_max} consumer groups here, and may be no more")

    async def ensure(self, name: str) -> GroupJournal:
        """The journal of a group, opened now if it is the first there."""
        if self.record(name) is None:
            checked_group_name(name)
            if not name.startswith(REDRIVE_GROUP_PREFIX):  # the broker's own are as many as topics
                self._admit_one_more()
        return await super().ensure(name)
