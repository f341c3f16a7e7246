"""One round of compaction: which records of a partition stay.

It is told the batches twice, in the order of the log. First those that no round has seen (`note`): then it
knows the newest message of each of their keys, and by its number which of them are outdated. Then all of
them, from the log's start on (`judge`): what is outdated goes, and so does what was aborted or has no key.
Batches of which all stays are not opened the second time.

What deletes a key stays until a horizon, set when it is first met here: by then all that it deletes is gone,
since that came before it. A marker of a transaction stays as long as messages of that transaction do, and
then until a horizon too. The last batch of a producer that is still known stays, without messages if need
be.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goqueue.core.compaction.key_map import KeyMap
from goqueue.core.compaction.memory import zeroes
from goqueue.model.transactions import AbortedTransaction, Marker
from goqueue.records.batch import leave_out, open_batch
from goqueue.records.compacted import emptied, horizon_of, is_filler, keep_some, marker_with_horizon
from goqueue.records.control import marker_of
from goqueue.records.layout import CONTROL, NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from goqueue.records.record_places import RecordPlaces, counts_up, find_keys, find_places, key_images

Batch = tuple[BatchHeader, memoryview]
_OUTDATED = 1
_TOMBSTONE = 2
Flags = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a round builds on, as it was when the round began."""

    clean_end: int
    """Before it no key has two messages."""
    aborted: Sequence[AbortedTransaction]
    last_ends: Mapping[int, int]
    """Of each producer that is known: the offset behind its last batch."""
    now_ms: int
    delete_retention_ms: int


class CompactionRound:
    def __init__(
        self, basis: Basis, *, keys_max: int, records_max: int, factors: Sequence[int], secret: bytes
    ) -> None:
        self._basis = basis
        self._factors = factors
        self._map = KeyMap(keys_max, factors=factors)
        self._records_max = records_max
        self._secret = secret
        self._aborted: dict[int, list[tuple[int, int]]] = {}
        for entry in basis.aborted:
            self._aborted.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        self._flags: Flags = zeroes(records_max, np.uint8)
        """Of each message that was noted, by its number."""
        self._noted = 0
        self._judged = 0
        self._with_data: set[int] = set()
        """Producers of whose transaction, the last one met, messages stay."""
        self.end_offset = basis.clean_end
        """What lies behind it was not noted, and stays as it is."""
        self.horizon_ms: int | None = None
        """The first of those that were met or set."""
        self.records_before = 0
        self.records_after = 0

    @property
    def size_bytes(self) -> int:
        return self._map.size_bytes + self._noted

    def make_room(self, batches: Sequence[Batch]) -> bool:
        """Go on with making room for batches; False: there is more to do before they are noted."""
        count = sum(header.record_count for header, _ in self._fitting(batches) if self._has_keys(header))
        return not self._map.has_room(count) or self._map.make_room(count)

    def note(self, batches: Sequence[Batch]) -> bool:
        """Take in batches behind those before; False: there is no room for all of them, and note no more.

        Raises InvalidRecord when one cannot be opened.
        """
        fitting = self._fitting(batches)
        data = [batch for batch in fitting if self._has_keys(batch[0])]
        if data:
            self._note_records(data)
        if fitting:
            self.end_offset = fitting[-1][0].end_offset
        return len(fitting) == len(batches)

    def _fitting(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """As many of the first batches as there is room for; at least one in all."""
        count = 0
        for at, (header, _) in enumerate(batches):
            if self._has_keys(header):
                count += header.record_count
            has_room = self._map.has_room(count) and self._noted + count <= self._records_max
            if not has_room and (at or self._noted):
                return batches[:at]
        return batches

    def _note_records(self, data: Sequence[Batch]) -> None:
        places = find_places(data)
        keys = find_keys(places)
        first, count = self._noted, len(places.starts)
        self._noted += count
        if self._noted > len(self._flags):
            self._flags = zeroes(self._noted, np.uint8)  # of one batch, as below
        flags = self._flags[first : self._noted]
        flags[keys.is_tombstone] = _TOMBSTONE
        has_key = keys.lengths >= 0
        flags[~has_key] |= _OUTDATED
        if not self._map.has_room(count):
            # One batch has more keys than there may be. To pass it over would let what it deletes live again.
            self._map = KeyMap(count, factors=self._factors)
            self._map.make_room(count)
        images = key_images(places.raw, keys, secret=self._secret)
        numbers = np.arange(first, self._noted, dtype=np.uint32)
        if not has_key.all():
            images, numbers = images[has_key], numbers[has_key]
        outdated = self._map.offer(images, numbers)
        self._flags[outdated] |= _OUTDATED

    def judge(self, batches: Sequence[Batch]) -> list[memoryview | None]:
        """What becomes of batches: the same bytes, others in their place, or None: nothing of it is needed.

        Raises InvalidRecord when one cannot be opened.
        """
        flags = [self._flags_of(header) for header, _ in batches]
        opened = [
            at
            for at, known in enumerate(flags)
            if self._is_judged(batches[at][0]) and (known is None or known.any())
        ]
        places = find_places([batches[at] for at in opened]) if opened else None
        if places is not None:
            self._look_up(flags, opened, places)
        firsts = dict(zip(opened, places.firsts if places is not None else (), strict=False))
        return [
            self._verdict(header, body, flags[at], places, firsts.get(at))
            for at, (header, body) in enumerate(batches)
        ]

    def _flags_of(self, header: BatchHeader) -> Flags | None:
        """What was noted of a batch's messages; None: it was not, since an earlier round has seen it."""
        if not self._is_judged(header) or header.base_offset < self._basis.clean_end:
            return None
        first = self._judged
        self._judged += header.record_count
        return self._flags[first : self._judged]

    def _look_up(self, flags: list[Flags | None], opened: Sequence[int], places: RecordPlaces) -> None:
        """Find what newer messages have outdated of batches that an earlier round has seen."""
        unknown = [(at, place) for place, at in enumerate(opened) if flags[at] is None]
        if not unknown:
            return
        keys = find_keys(places)
        images = key_images(places.raw, keys, secret=self._secret)
        found = (self._map.holds(images) | (keys.lengths < 0)) * np.uint8(_OUTDATED)
        found |= keys.is_tombstone * np.uint8(_TOMBSTONE)
        for at, place in unknown:
            flags[at] = found[places.firsts[place] : places.firsts[place + 1]]

    def _verdict(
        self,
        header: BatchHeader,
        body: memoryview,
        flags: Flags | None,
        places: RecordPlaces | None,
        first: int | None,
    ) -> memoryview | None:
        if header.base_offset >= self.end_offset:
            return body
        if header.attributes & CONTROL:
            return self._marker(header, body)
        self.records_before += header.record_count
        if not self._has_keys(header):
            is_kept_as_is = not header.record_count and not is_filler(header)
            return self._without_records(header, body if is_kept_as_is else None)
        if flags is None or first is None or places is None:
            self._keep(header, header.record_count)
            return body
        is_kept = (flags & _OUTDATED) == 0
        is_tombstone = (flags & _TOMBSTONE) != 0
        horizon_ms = new_horizon_ms = None
        if (is_kept & is_tombstone).any():
            horizon_ms = horizon_of(header)
            if horizon_ms is None:
                horizon_ms = new_horizon_ms = self._basis.now_ms + self._basis.delete_retention_ms
            elif horizon_ms <= self._basis.now_ms:
                is_kept &= ~is_tombstone
                horizon_ms = None
        count = int(is_kept.sum())
        if not count:
            return self._without_records(header, None)
        self._keep(header, count)
        if horizon_ms is not None:
            self._note_horizon(horizon_ms)
        if count == header.record_count and new_horizon_ms is None:
            return body
        is_dense = header.record_count == header.last_offset_delta + 1
        if is_dense and not counts_up(places, first, np.flatnonzero(is_kept)):
            # What records say of their offsets came from outside. It did not count as long as none was
            # missing.
            gone = set(np.flatnonzero(~is_kept).tolist())
            return leave_out(open_batch(body, 0), header, gone)
        return keep_some(header, places, first, is_kept, horizon_ms=new_horizon_ms)

    def _marker(self, header: BatchHeader, body: memoryview) -> memoryview | None:
        producer_id = header.producer_id
        if producer_id in self._with_data:
            self._with_data.discard(producer_id)
            return body
        if self._basis.last_ends.get(producer_id, header.end_offset) < header.end_offset:
            return body  # its epoch is the producer's, which is still known
        horizon_ms = horizon_of(header)
        if horizon_ms is None:
            horizon_ms = self._basis.now_ms + self._basis.delete_retention_ms
            body = marker_with_horizon(body, header, horizon_ms)
        elif horizon_ms <= self._basis.now_ms:
            return None
        self._note_horizon(horizon_ms)
        return body

    def _without_records(self, header: BatchHeader, body: memoryview | None) -> memoryview | None:
        """Of a batch without messages only its numbers may be needed; `body`: it had none before."""
        is_last = header.base_sequence != NO_SEQUENCE and (
            self._basis.last_ends.get(header.producer_id) == header.end_offset
        )
        if not is_last:
            return None
        return emptied(header) if body is None else body

    def _keep(self, header: BatchHeader, count: int) -> None:
        self.records_after += count
        if header.attributes & TRANSACTIONAL:
            self._with_data.add(header.producer_id)

    def _note_horizon(self, horizon_ms: int) -> None:
        self.horizon_ms = horizon_ms if self.horizon_ms is None else min(self.horizon_ms, horizon_ms)

    def _is_judged(self, header: BatchHeader) -> bool:
        return header.base_offset < self.end_offset and self._has_keys(header)

    def _has_keys(self, header: BatchHeader) -> bool:
        """Whether a batch has messages that count."""
        return (
            not header.attributes & CONTROL
            and header.record_count > 0
            and not (header.attributes & TRANSACTIONAL and self._is_aborted(header))
        )

    def _is_aborted(self, header: BatchHeader) -> bool:
        offset = header.base_offset
        return any(first <= offset <= last for first, last in self._aborted.get(header.producer_id, ()))


def dropped_abort(header: BatchHeader, body: memoryview) -> tuple[int, int] | None:
    """Of a marker that went: whose it was and where it stood, if it was an abort."""
    if header.attributes & CONTROL and marker_of(body) is Marker.ABORT:
        return header.producer_id, header.base_offset
    return None
