"""Where transactions are kept: the journals of `__transactions`, and what is counted of them.

On one node the first journal keeps the exactly-once sinks too, so it is opened with the broker. Of several
nodes each sink is kept with its transactions.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from goqueue.broker.storage.event_codec import EventCodec
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.journal_set import JournalSet
from goqueue.broker.storage.partition import Partition
from goqueue.broker.storage.state_journal import StateJournal
from goqueue.broker.transactions.verified import Verified
from goqueue.broker.transactions.watch import TransactionWatch
from goqueue.core.telemetry.histogram import Histogram
from goqueue.core.transactions.journalled import EVENT_TYPES, Event, Journalled
from goqueue.core.transactions.transactions import Transaction
from goqueue.model.ids import TopicName
from goqueue.model.names import checked_name
from goqueue.model.running_time import RunningTime

TRANSACTIONS_TOPIC = TopicName("__transactions")
SINKS_JOURNAL = 0
_EVENTS: EventCodec[Event] = EventCodec(EVENT_TYPES)


class TimedTransactions(Journalled):
    """What a journal keeps, with the wall times of its events moved to running time."""

    def __init__(self, running: RunningTime) -> None:
        super().__init__()
        self._running = running

    def apply(self, event: Event, *, ahead_ms: int | None = None) -> None:
        super().apply(event, ahead_ms=self._running.ahead_ms() if ahead_ms is None else ahead_ms)

    def restore(self, event: Event, written_ms: int) -> None:
        """Apply what an earlier life has written, at that time."""
        self.apply(event, ahead_ms=self._running.ahead_of_ms(written_ms))


class TransactionJournal(StateJournal[Event]):
    """The transactional ids of one partition, and the sinks."""

    def __init__(self, partition: Partition, running: RunningTime, expect: Callable[[int], None]) -> None:
        self._kept = TimedTransactions(running)
        super().__init__(partition, self._kept, _EVENTS)
        self.transactions = self._kept.transactions
        self.sinks = self._kept.sinks
        self._expect = expect
        """Told when what was begun must have ended."""

    def _apply(self, event: Event, offset: int, now_ms: int) -> None:
        super()._apply(event, offset, now_ms)
        if isinstance(event, Transaction):
            deadline_ms = self.transactions.deadline_ms(event.transactional_id)
            if deadline_ms is not None:
                self._expect(deadline_ms)

    def _restore(self, event: Event, offset: int, written_ms: int) -> None:
        self._kept.restore(event, written_ms)


@dataclass(slots=True)
class TransactionCounts:
    """Since the broker has started."""

    committed: int = 0
    aborted: int = 0
    duration_ms: int = 0
    """Of all that have ended, together."""
    seconds: Histogram = field(default_factory=Histogram)
    """How long each of them was open."""

    def note_end(self, *, is_committed: bool, duration_ms: int) -> None:
        self.committed += is_committed
        self.aborted += not is_committed
        self.duration_ms += duration_ms
        self.seconds.observe(duration_ms / 1000)


class TransactionJournals(JournalSet[TransactionJournal]):
    def __init__(
        self,
        running: RunningTime,
        *,
        new_partition: Callable[[TopicName, int], Partition],
        open_journal: Callable[[Journal[Any]], Awaitable[None]],
    ) -> None:
        self.watch = TransactionWatch(running, lambda: (journal.transactions for journal in self))

        def new_journal(partition: Partition) -> TransactionJournal:
            return TransactionJournal(partition, running, self.watch.expect)

        super().__init__(
            TRANSACTIONS_TOPIC, new_journal, new_partition=new_partition, open_journal=open_journal
        )
        self.counts = TransactionCounts()
        self.verified = Verified()
        """With several nodes: what coordinators have said of transactions that write to what is led here."""
        self.owners: dict[int, str | None] = {}
        """With several nodes: transactional ids of producers that were asked for; None: it has none."""
        self.coordinator_epochs: dict[int, int] = {}
        """With several nodes: the newest epochs of journals from which decisions have come."""
        self.on_taken_over: Callable[[TransactionJournal], None] = lambda journal: None
        """Goes on with what was decided by another node, now that this one leads the journal."""
        self.finishing: set[str] = set()
        """With several nodes: ids whose decided transaction is being carried to all that it has touched."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take_over(
        self, partition: Partition, read_back: Callable[[TransactionJournal], Awaitable[None]]
    ) -> TransactionJournal | None:
        journal = await super().take_over(partition, read_back)
        if journal is not None:
            self.watch.look()
            self.on_taken_over(journal)
        return journal

    @property
    def of_sinks(self) -> TransactionJournal:
        """The journal that keeps the sinks of one node."""
        journal = self.numbered(SINKS_JOURNAL)
        assert journal is not None, "the journal of the sinks is opened with the broker"
        return journal

    def all(self) -> Iterator[Transaction]:
        return (known for journal in self for known in journal.transactions)

    def get(self, transactional_id: str) -> Transaction | None:
        journal = self.find(transactional_id)
        return None if journal is None else journal.transactions.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transactional id that a producer id belongs to; None: it belongs to none."""
        for journal in self:
            if (known := journal.transactions.of_producer(producer_id)) is not None:
                return known
        return None

    async def ensure(self, name: str) -> TransactionJournal:
        """The journal of a transactional id, opened now if it is the first there."""
        if self.get(name) is None:
            checked_name(name, "a transactional id")
        return await super().ensure(name)

    def lock(self, transactional_id: str) -> asyncio.Lock:
        """Held while the transaction of an id is being decided and finished."""
        lock = self._locks.get(transactional_id)
        if lock is None:
            lock = self._locks[transactional_id] = asyncio.Lock()
        return lock
