"""A set of journals: the partitions of an internal topic, each opened when the first name in it appears.

Which journal keeps a name is a matter of its hash. After a restart a journal is opened when its folder
exists: what is never used costs nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import mmh3

from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.partition import Partition
from goqueue.broker.to_the_end import to_the_end
from goqueue.log.partition_log import storage_error
from goqueue.model.ids import TopicName

JOURNAL_COUNT = 50
J = TypeVar("J", bound=Journal[Any])


class JournalSet(Generic[J]):
    def __init__(
        self,
        topic: TopicName,
        new_journal: Callable[[Partition], J],
        *,
        new_partition: Callable[[TopicName, int], Partition],
        open_journal: Callable[[J], Awaitable[None]],
    ) -> None:
        self._topic = topic
        self._new_journal = new_journal
        self._new_partition = new_partition
        self._open_journal = open_journal
        self._opened: dict[int, J] = {}
        self._opening: dict[int, asyncio.Task[J]] = {}

    def __iter__(self) -> Iterator[J]:
        return iter(tuple(self._opened.values()))

    async def open(self, numbers: Iterable[int]) -> None:
        """After a start: open what earlier lives of the broker have left."""
        await asyncio.gather(*map(self._open, numbers))

    def numbered(self, number: int) -> J | None:
        """A journal by its number, if it is open."""
        return self._opened.get(number)

    def find(self, name: str) -> J | None:
        """The journal of a name, if any name of it has ever appeared."""
        return self._opened.get(journal_number(name))

    async def ensure(self, name: str) -> J:
        """The journal of a name, opened now if it is the first there."""
        number = journal_number(name)
        return self._opened.get(number) or await self._open(number)

    async def drain(self) -> None:
        """Return when nothing is being opened any more."""
        await asyncio.gather(*self._opening.values(), return_exceptions=True)

    async def _open(self, number: int) -> J:
        """Open a journal to the end, once, also when whoever asked for it first goes away."""
        task = self._opening.get(number)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._opened_anew(number))
            self._opening[number] = task
            task.add_done_callback(lambda _: self._opening.pop(number))
        return await to_the_end(task)

    async def _opened_anew(self, number: int) -> J:
        journal = self._new_journal(self._new_partition(self._topic, number))
        try:
            await self._open_journal(journal)
        except OSError as error:
            raise storage_error(error, f"opening {journal.partition.source}") from error
        self._opened[number] = journal
        return journal


def journal_number(name: str) -> int:
    """Which journal of a set keeps a name."""
    return mmh3.hash(name, 0, signed=False) % JOURNAL_COUNT
