"""The journal of the delays: `__delayed`, written, committed and taken over like any other.

What sets it apart is what it holds. Its events carry messages, which may be millions: the state is never
written anew, and a start does not read all of it. The entries of most messages lie sorted in runs, and a
checkpoint beside the journal says from which offset on it has to be read. Both follow from the journal, and
whoever takes it over without them reads it from its start.
"""

from typing import Generic, Protocol, TypeVar

from goqueue.broker.delays.records import Record, RecordCodec
from goqueue.broker.storage.journal import Journal
from goqueue.broker.storage.partition import Partition


class DelayMachine(Protocol):
    """What the journal asks of whoever keeps the delays."""

    def apply(self, record: Record, offset: int, *, now_ms: int) -> None: ...
    def restore(self, record: Record, offset: int, *, written_ms: int) -> None: ...

    def begin_replay(self) -> int:
        """Take what is kept beside the journal; returns from where it has to be read. Waits for the disk."""

    def end_replay(self) -> None: ...


M = TypeVar("M", bound=DelayMachine)


class DelayJournal(Journal[Record], Generic[M]):
    def __init__(self, partition: Partition, machine: M) -> None:
        super().__init__(partition, RecordCodec())
        self.machine = machine

    def replay(self) -> None:
        offset = self.machine.begin_replay()
        self._replay(max(offset, self.partition.log.start_offset))
        self.machine.end_replay()

    def _apply(self, event: Record, offset: int, now_ms: int) -> None:
        self.machine.apply(event, offset, now_ms=now_ms)

    def _restore(self, event: Record, offset: int, written_ms: int) -> None:
        self.machine.restore(event, offset, written_ms=written_ms)
