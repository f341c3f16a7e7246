"""A set of journals: the partitions of an internal topic, each opened when the first name in it appears.

Which journal keeps a name is a matter of its hash. After a restart a journal is opened when its folder
exists: what is never used costs nothing.

With several nodes a set is shared: each journal is a replicated partition, and whoever leads it serves what
it keeps. It is taken over when this node becomes its leader, and let go of when it no longer is; a journal is
never read by two. What was applied and not committed goes with the machine.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import mmh3

from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.partition import Partition
from goqueue.broker.to_the_end import to_the_end
from goqueue.log.partition_log import storage_error
from goqueue.model.errors import CoordinatorLoading, NotCoordinator
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
        resume: Callable[[J], None] = lambda _: None,
    ) -> None:
        """`resume`: told of a journal that was read back, before anybody is served from it."""
        self._topic = topic
        self._new_journal = new_journal
        self._new_partition = new_partition
        self._open_journal = open_journal
        self._resume = resume
        self.is_shared = False
        """Whether other nodes serve those journals that are not open here."""
        self.on_taken_over: Callable[[J], None] = lambda _: None
        """Told of a journal in the turn in which others find it: nobody is to see it half taken over."""
        self._opened: dict[int, J] = {}
        self._opening: dict[int, asyncio.Task[J]] = {}

    def __iter__(self) -> Iterator[J]:
        return iter(tuple(self._opened.values()))

    async def open(self, numbers: Iterable[int]) -> None:
        """After a start: open what earlier lives of the broker have left."""
        await asyncio.gather(*map(self._open, numbers))

    def numbered(self, number: int) -> J | None:
        """A journal by its number, if it is open. Raises NotCoordinator where another node may have it."""
        journal = self._opened.get(number)
        if journal is None and self.is_shared:
            self._refuse(number)
        return journal

    def find(self, name: str) -> J | None:
        """The journal of a name, if any name of it has ever appeared. Raises as `numbered` does."""
        return self.numbered(journal_number(name))

    async def ensure(self, name: str) -> J:
        """The journal of a name, opened now if it is the first there. Raises as `numbered` does."""
        number = journal_number(name)
        return self.numbered(number) or await self._open(number)

    async def take_over(self, partition: Partition, read_back: Callable[[J], Awaitable[None]]) -> J | None:
        """Serve a journal that this node leads from now on; None: it leads it no more.

        Nobody is served before all that is written in it is committed: an earlier leader may have answered
        for it, or not, and from here on it counts.
        """
        number = partition.source.partition
        self.let_go(number)
        task = asyncio.get_running_loop().create_task(self._taken_over(partition, read_back))
        self._opening[number] = task
        try:
            return await task
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # there is one here
                raise
            return None
        finally:
            if self._opening.get(number) is task:
                del self._opening[number]

    def let_go(self, number: int) -> J | None:
        """Another node leads a journal, or nobody does: what this one knew of it, if it was served."""
        if (task := self._opening.pop(number, None)) is not None:
            task.cancel()
        journal = self._opened.pop(number, None)
        if journal is not None:
            journal.retire()
        return journal

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
        self._resume(journal)
        self._opened[number] = journal
        return journal

    async def _taken_over(self, partition: Partition, read_back: Callable[[J], Awaitable[None]]) -> J:
        journal = self._new_journal(partition)
        await read_back(journal)
        await journal.submit()
        self._resume(journal)
        self._opened[partition.source.partition] = journal
        self.on_taken_over(journal)
        return journal

    def _refuse(self, number: int) -> NoReturn:
        if number in self._opening:
            raise CoordinatorLoading(f"{self._topic}/{number} is being read back")
        raise NotCoordinator(f"this node does not lead {self._topic}/{number}")


def journal_number(name: str) -> int:
    """Which journal of a set keeps a name."""
    return mmh3.hash(name, 0, signed=False) % JOURNAL_COUNT
