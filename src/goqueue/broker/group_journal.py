"""Where groups are kept: 50 partitions of `__consumer_offsets`, a journal and a machine for each.

A partition is opened when the first group that belongs to it appears, and after a restart when its
folder exists: a broker without groups pays nothing for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

import mmh3

from goqueue.broker.journal import Journal
from goqueue.broker.partition import Partition
from goqueue.core.groups.events import EVENT_TYPES, Event
from goqueue.core.groups.groups import GroupRecord, Groups
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import InvalidGroupName
from goqueue.model.ids import TopicName
from goqueue.model.ports import Clock
from goqueue.model.settings import GroupConfig, MiB

OFFSETS_TOPIC = TopicName("__consumer_offsets")
JOURNAL_COUNT = 50
_SHORTEN_BYTES = 4 * MiB
_SHORTEN_FACTOR = 4


class GroupJournal(Journal[Event]):
    """The groups of one partition."""

    def __init__(self, partition: Partition, groups: Groups) -> None:
        super().__init__(partition, groups, EVENT_TYPES)
        self.groups = groups
        self._state_bytes = 0

    @property
    def is_long(self) -> bool:
        """Few commits of many partitions are long too, but only in proportion to the state they leave."""
        size_max = max(_SHORTEN_BYTES, _SHORTEN_FACTOR * self._state_bytes)
        return super().is_long or self.partition.log.size_bytes > size_max

    async def shorten(self) -> None:
        if self.is_long:
            await super().shorten()
            self._state_bytes = self.partition.log.size_bytes

    async def settled(self) -> None:
        """Return when the disk has all that is written."""
        waiter = self.partition.committed(self.partition.log.end_offset)
        if waiter is not None:
            await waiter


class GroupJournals:
    def __init__(
        self,
        config: GroupConfig,
        *,
        clock: Clock,
        new_partition: Callable[[TopicName, int], Partition],
        open_journal: Callable[[Journal[Event]], Awaitable[None]],
    ) -> None:
        self._config = config
        self._clock = clock
        self._new_partition = new_partition
        self._open_journal = open_journal
        self._opened: dict[int, GroupJournal] = {}
        self._opening: dict[int, asyncio.Task[GroupJournal]] = {}

    def __iter__(self) -> Iterator[GroupJournal]:
        return iter(tuple(self._opened.values()))

    async def open(self, numbers: Iterable[int]) -> None:
        """After a start: open what earlier lives of the broker have left."""
        await asyncio.gather(*map(self._open, numbers))

    def find(self, group: str) -> GroupJournal | None:
        """The journal of a group, if any group of it has ever appeared."""
        return self._opened.get(journal_number(group))

    def record(self, group: str) -> GroupRecord | None:
        """What is known of a group."""
        journal = self.find(group)
        return None if journal is None else journal.groups.get(group)

    async def ensure(self, group: str) -> GroupJournal:
        """The journal of a group, opened now if it is the first there."""
        if not group:
            raise InvalidGroupName
        number = journal_number(group)
        return self._opened.get(number) or await self._open(number)

    async def settle(self) -> None:
        """Return when nothing is being opened any more."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)

    async def _open(self, number: int) -> GroupJournal:
        """Open a journal to the end, once, also when whoever asked for it first goes away."""
        task = self._opening.get(number)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._opened_anew(number))
            self._opening[number] = task
            task.add_done_callback(lambda _: self._opening.pop(number))
        return await asyncio.shield(task)

    async def _opened_anew(self, number: int) -> GroupJournal:
        journal = GroupJournal(self._new_partition(OFFSETS_TOPIC, number), Groups(self._config))
        try:
            await self._open_journal(journal)
        except OSError as error:
            raise storage_error(error, f"opening {journal.partition.source}") from error
        journal.groups.resume(now_ns=self._clock.monotonic_ns())
        self._opened[number] = journal
        return journal


def journal_number(group: str) -> int:
    """Which partition keeps a group."""
    return mmh3.hash(group, 0, signed=False) % JOURNAL_COUNT
