"""Transactions that have written to one partition and are not decided there yet.

The first message of the oldest of them is where readers of committed messages stop: the last stable
offset. The state can be rebuilt from the batches alone: a transaction opens with its first batch in the
partition and is closed by its marker.
"""

from dataclasses import dataclass
from typing import Any

from goqueue.model.transactions import AbortedTransaction, Marker, OpenInPartition
from goqueue.records.layout import CONTROL, TRANSACTIONAL, BatchHeader


@dataclass(slots=True)
class _Open:
    epoch: int
    first_offset: int
    newest_ms: int
    """The largest timestamp of its messages here, which its marker will have too."""
    started_ms: int


class OpenTransactions:
    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}
        """By producer, in the order of their first offsets: offsets only grow."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._open

    @property
    def first_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open.values())).first_offset if self._open else None

    @property
    def oldest(self) -> OpenInPartition | None:
        """The one that began first, if any is open."""
        for producer_id, opened in self._open.items():
            return OpenInPartition(producer_id, opened.epoch, opened.first_offset, opened.started_ms)
        return None

    def is_open_before(self, producer_id: int, end_offset: int) -> bool:
        """Whether a producer has something open that begins before an offset."""
        opened = self._open.get(producer_id)
        return opened is not None and opened.first_offset < end_offset

    def newest_ms(self, producer_id: int) -> int:
        """The time of a transaction's newest message here."""
        return self._open[producer_id].newest_ms

    def all(self) -> list[OpenInPartition]:
        return [
            OpenInPartition(producer_id, opened.epoch, opened.first_offset, opened.started_ms)
            for producer_id, opened in self._open.items()
        ]

    def apply(
        self, header: BatchHeader, marker: Marker | None, *, base_offset: int, seen_ms: int
    ) -> AbortedTransaction | None:
        """A batch has been stored. Returns what readers must be told to pass over, if it is an abort."""
        if not header.attributes & TRANSACTIONAL:
            return None
        producer_id = header.producer_id
        if not header.attributes & CONTROL:
            opened = self._open.get(producer_id)
            if opened is None:
                self._open[producer_id] = _Open(
                    header.producer_epoch, base_offset, header.max_timestamp_ms, seen_ms
                )
            else:
                opened.newest_ms = max(opened.newest_ms, header.max_timestamp_ms)
            return None
        closed = self._open.pop(producer_id, None)
        if closed is None or marker is Marker.COMMIT:
            return None
        first_open = self.first_offset
        return AbortedTransaction(
            producer_id,
            closed.first_offset,
            base_offset,
            base_offset + 1 if first_open is None else first_open,
        )

    def snapshot(self) -> list[list[int]]:
        """The state in plain values, for the recovery point."""
        return [
            [producer_id, opened.epoch, opened.first_offset, opened.newest_ms, opened.started_ms]
            for producer_id, opened in self._open.items()
        ]

    def restore(self, snapshot: Any) -> None:
        """Begin from a recovery point; from nothing when there is none."""
        self._open = {producer_id: _Open(*fields) for producer_id, *fields in snapshot or ()}
