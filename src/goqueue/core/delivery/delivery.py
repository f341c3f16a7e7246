"""A delivery: how far one group is through one partition, message by message.

    0 ........ floor ............................ scan ........ end of the log
      settled     settled | busy | shelf | reserved      not looked at yet

Between floor and scan every message is in exactly one place: settled; busy (out with a lease, waiting
for its next try, or on its way to the dead letters); on the shelf, ready to be handed out; or reserved,
while somebody reads it to hand it out. The floor is the group's committed offset. What must survive changes
by events, through `apply`; the shelf is learnt anew from the log.

Events tell wall times, the delivery keeps running times: a clock that is set moves no deadline. What lies
between the two comes with each event, as `ahead_ms`.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from heapq import heappop, heappush
from uuid import UUID

from goqueue.core.delivery.events import (
    DeliveryKept,
    Extended,
    Leased,
    LeaseKept,
    MovesBegun,
    PassedOver,
    ProducerTaken,
    Returned,
    ReturnKept,
    Settled,
)
from goqueue.core.delivery.key_holds import KeyHolds
from goqueue.core.delivery.lease import Lease
from goqueue.core.delivery.moves import Moves
from goqueue.core.delivery.runs import Run, Runs
from goqueue.core.delivery.shelf import Shelf
from goqueue.model.delivery import PassedRun
from goqueue.model.ids import TopicName, TopicPartition
from goqueue.model.messages import StoredMessage


class Holding(Enum):
    """What a consumer that shows a receipt has: the message, a settled one, or nothing any more."""

    HELD = "held"
    SETTLED = "settled"
    LOST = "lost"


Change = Leased | Settled | Returned | Extended | MovesBegun | ProducerTaken | PassedOver
_PASSED_MAX = 100
"""So many runs that were left out are remembered, the newest of them: enough to go and look."""


class Delivery:
    def __init__(self, kept: DeliveryKept, in_flight: Counter[str], *, ahead_ms: int = 0) -> None:
        self.number = kept.number
        self.group = kept.group
        self.source = TopicPartition(kept.topic, kept.partition)
        self.topic_id: UUID = kept.topic_id
        self.floor = kept.floor
        self.settled = Runs(kept.settled)
        self.busy = Runs()
        self.reserved = Runs()
        self.leases: dict[int, Lease] = {}
        self.attempts: dict[int, int] = {}
        """How often messages have come back, for those that have."""
        self.waiting: dict[int, int] = {}
        """Messages that came back and may not go out yet: offset and when they may."""
        self.keys = KeyHolds()
        self.moves = Moves(kept.producer_id, kept.next_sequences, kept.moves)
        self.passed: dict[int, PassedRun] = {run.first: run for run in kept.passed}
        """What nobody can read and was left out, by first offset."""
        self.shelf = Shelf(kept.floor)
        self._in_flight = in_flight
        self._deadlines: list[tuple[int, int]] = []
        self._due: list[tuple[int, int]] = []
        for lease in kept.leases:
            self._lease(lease.lease, lease.consumer, lease.until_ms + ahead_ms, lease.runs)
            for offset, until_ms in lease.later:
                self._extend(lease.lease, ((offset, offset + 1),), until_ms + ahead_ms)
        for offset, attempts, due_ms in kept.returned:
            self.attempts[offset] = attempts
            if due_ms:
                self._wait(offset, due_ms + ahead_ms)
        for offset in self.moves:
            self.busy.add(offset, offset + 1)

    @property
    def topic(self) -> TopicName:
        return self.source.topic

    @property
    def leased_count(self) -> int:
        return sum(lease.offsets.count for lease in self.leases.values())

    @property
    def touched_end(self) -> int:
        """The offset behind the last message above the floor that anything has become of; 0: of none."""
        ends = [runs.end for runs in (self.settled, self.busy) if runs]
        return max(*ends, 0, *(offset + 1 for offset in self.attempts)) if ends or self.attempts else 0

    def in_flight(self, consumer: str) -> int:
        """What a consumer has out, from all partitions of the group."""
        return self._in_flight[consumer]

    def delivery_count(self, offset: int) -> int:
        """How many times a message has been handed out when it is out the next time, or is now."""
        return self.attempts.get(offset, 0) + 1

    def holding(self, lease: int, offset: int, *, now_ms: int) -> Holding:
        """What a receipt is still worth."""
        if self.is_settled(offset):
            return Holding.SETTLED
        held = self.leases.get(lease)
        return Holding.HELD if held is not None and held.holds(offset, now_ms) else Holding.LOST

    def is_settled(self, offset: int) -> bool:
        return offset < self.floor or offset in self.settled

    def learn(self, first: int, end: int, lane: int) -> None:
        """The scan met a batch of a lane."""
        first = max(first, self.shelf.scan_offset, self.floor)
        if first >= end:
            return
        open_runs = self.settled.gaps(first, end)
        for taken in (self.busy, self.reserved):
            if taken:
                open_runs = [gap for run in open_runs for gap in taken.gaps(*run)]
        self.shelf.learn(first, end, lane, open_runs)

    def lost_within(self, first: int, end: int) -> list[Run]:
        """What of a run nobody will ever have if it cannot be read: neither settled nor out with anybody."""
        open_runs = self.settled.gaps(max(first, self.floor), end)
        lost = Runs(gap for run in open_runs for gap in self.busy.gaps(*run))
        for offset in self.moves:
            if first <= offset < end:
                lost.add(offset, offset + 1)
        return list(lost)

    def find_scan(self) -> int:
        """Where the scan goes on: what is settled behind a message that is not need not be looked at."""
        shelf = self.shelf
        shelf.scan_offset = self.settled.end_of(max(shelf.scan_offset, self.floor))
        return shelf.scan_offset

    def reserve(self, runs: Iterable[Run]) -> None:
        """Somebody is reading these to hand them out; nobody else may meanwhile."""
        for run in runs:
            self.reserved.add(*run)

    def put_back(self, runs: Iterable[Run]) -> None:
        """Those that are still reserved were not handed out after all."""
        for run in runs:
            for piece in self.reserved.within(*run):
                self.reserved.remove(*piece)
                self.shelf.put(*piece)

    def has_come_back_before(self, messages: Iterable[StoredMessage]) -> bool:
        """Whether the shelf has by now what goes before these, which were its first when they were taken."""
        oldest = self.shelf.oldest
        return any(
            (first := oldest[message.lane]) is not None and first < message.offset for message in messages
        )

    def lease(self, runs: Iterable[Run], *, lease: int, consumer: str, until_ms: int) -> Leased:
        """Hand out what is reserved, and still is: it may have been settled meanwhile."""
        still = tuple(piece for run in runs for piece in self.reserved.within(*run))
        return Leased(self.number, lease, consumer, until_ms, still)

    def fall_due(self, now_ms: int) -> None:
        """Messages whose waiting time is over go back on the shelf."""
        while self._due and self._due[0][0] <= now_ms:
            due_ms, offset = heappop(self._due)
            if self.waiting.get(offset) == due_ms:
                del self.waiting[offset]
                self.busy.remove(offset, offset + 1)
                self.shelf.put(offset, offset + 1)

    def overdue(self, now_ms: int) -> list[tuple[Lease, list[Run]]]:
        """Leases that have run out, and what of them has."""
        found: dict[int, Lease] = {}
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            number = heappop(self._deadlines)[1]
            if number in self.leases:
                found[number] = self.leases[number]
        for lease in found.values():
            # Until the journal has heard of it, a lease that ran out is still there to be found.
            self._watch(lease)
        return [(lease, runs) for lease in found.values() if (runs := lease.overdue(now_ms))]

    def next_time_ms(self) -> int | None:
        """When something happens by itself: a lease runs out, or a message may go out again."""
        self._drop_void_deadlines()
        while self._due and self.waiting.get(self._due[0][1]) != self._due[0][0]:
            heappop(self._due)
        times = [heap[0][0] for heap in (self._deadlines, self._due) if heap]
        return min(times, default=None)

    def apply(self, event: Change, *, ahead_ms: int = 0) -> None:
        match event:
            case Leased():
                self._lease(event.lease, event.consumer, event.until_ms + ahead_ms, event.runs)
            case Settled():
                self._released(event.lease, event.runs)
                for run in event.runs:
                    self._settle(*run)
                self._move_floor()
            case Returned():
                for first, end in self._released(event.lease, event.runs):
                    # Message by message, but only for those that failed.
                    for offset in range(first, end):
                        self.attempts[offset] = self.attempts.get(offset, 0) + 1
                        self._wait(offset, event.due_ms + ahead_ms)
            case Extended():
                self._extend(event.lease, event.runs, event.until_ms + ahead_ms)
            case MovesBegun():
                for move in event.moves:
                    first, end = move.offset, move.offset + 1
                    if not self.is_settled(first):
                        self._released(event.lease, ((first, end),))
                        self._engage(first, end)
                        self.waiting.pop(first, None)
                        self.moves.begin(move)
            case ProducerTaken():
                self.moves.take_producer(event.producer_id)
            case PassedOver():
                self._remember(event.passed)
                for run in event.runs:
                    self._settle(*run)
                self._move_floor()

    def settle_below(self, offset: int) -> None:
        """Somebody committed an offset by hand: all below it is settled."""
        if offset > self.floor:
            for lease in tuple(self.leases.values()):
                self._released(lease.number, ((self.floor, offset),))
            self._settle(self.floor, offset)
            self._move_floor()

    def begin_at(self, offset: int) -> None:
        """Somebody wants the messages from an offset on (again), whatever became of them before."""
        self.floor = offset
        self._drop_leases()
        self.settled.clear()
        self.attempts.clear()
        self.waiting.clear()
        self.shelf = Shelf(offset)
        self.busy = Runs((moving, moving + 1) for moving in self.moves if moving >= offset)

    def end(self) -> None:
        """The delivery is over: nobody has anything of it out."""
        self._drop_leases()

    def kept(self, *, ahead_ms: int = 0) -> DeliveryKept:
        """All that must survive, in one event."""
        waiting = {offset: due_ms - ahead_ms for offset, due_ms in self.waiting.items()}
        return DeliveryKept(
            self.number,
            self.group,
            self.source.topic,
            self.topic_id,
            self.source.partition,
            self.floor,
            tuple(self.settled),
            tuple(
                LeaseKept(
                    lease.number,
                    lease.consumer,
                    lease.until_ms - ahead_ms,
                    tuple(lease.offsets),
                    tuple((offset, until_ms - ahead_ms) for offset, until_ms in lease.later.items()),
                )
                for lease in self.leases.values()
            ),
            tuple(
                ReturnKept(offset, attempts, waiting.get(offset, 0))
                for offset, attempts in self.attempts.items()
            ),
            self.moves.producer_id,
            self.moves.next_sequences(),
            self.moves.pending(),
            tuple(self.passed.values()),
        )

    def _lease(self, number: int, consumer: str, until_ms: int, runs: Iterable[Run]) -> None:
        lease = Lease(number, consumer, until_ms)
        for first, end in runs:
            lease.offsets.add(first, end)
            self._engage(first, end)
            if self.waiting:
                for offset in [held for held in self.waiting if first <= held < end]:
                    del self.waiting[offset]
        if lease.offsets:
            self.leases[number] = lease
            self._in_flight[consumer] += lease.offsets.count
            heappush(self._deadlines, (until_ms, number))

    def _extend(self, number: int, runs: Iterable[Run], until_ms: int) -> None:
        lease = self.leases.get(number)
        if lease is not None:
            for run in runs:
                lease.extend(*run, until_ms)
            self._watch(lease)

    def spare(self, until_ms: int) -> None:
        """No lease ends before a time: their ends were told by the clock of another node."""
        for lease in self.leases.values():
            lease.spare(until_ms)
            self._watch(lease)

    def _drop_void_deadlines(self) -> None:
        """Of leases that are over, and of messages that wait for a transaction instead."""
        while self._deadlines:
            deadline_ms, number = self._deadlines[0]
            lease = self.leases.get(number)
            if lease is not None and (not lease.pledged or lease.next_deadline_ms() == deadline_ms):
                return
            heappop(self._deadlines)
            if lease is not None:
                self._watch(lease)

    def _watch(self, lease: Lease) -> None:
        deadline_ms = lease.next_deadline_ms()
        if deadline_ms is not None:
            heappush(self._deadlines, (deadline_ms, lease.number))

    def _engage(self, first: int, end: int) -> None:
        """Messages are busy now, wherever they were."""
        self.reserved.remove(first, end)
        self.shelf.drop(first, end)
        self.busy.add(first, end)

    def _settle(self, first: int, end: int) -> None:
        self.busy.remove(first, end)
        self.reserved.remove(first, end)
        self.shelf.drop(first, end)
        self.settled.add(max(first, self.floor), end)
        for noted in (self.attempts, self.waiting, self.moves):
            if not noted:
                continue
            run = range(first, end)
            for offset in [o for o in noted if o in run] if len(noted) < len(run) else run:
                noted.pop(offset, None)

    def _remember(self, run: PassedRun) -> None:
        self.passed.pop(run.first, None)
        self.passed[run.first] = run
        while len(self.passed) > _PASSED_MAX:
            del self.passed[next(iter(self.passed))]

    def _move_floor(self) -> None:
        if self.settled and self.settled.first <= self.floor:
            first, end = next(iter(self.settled))
            self.settled.remove(first, end)
            self.floor = max(self.floor, end)
            self.shelf.forget_below(self.floor)

    def _released(self, number: int, runs: Iterable[Run]) -> list[Run]:
        """Take runs out of their lease; they stay busy."""
        lease = self.leases.get(number)
        runs = list(runs)
        if lease is not None:
            for run in runs:
                self._in_flight[lease.consumer] -= lease.release(*run)
            if not lease.offsets:
                del self.leases[number]
            if not self._in_flight[lease.consumer]:
                del self._in_flight[lease.consumer]
        return runs

    def _wait(self, offset: int, due_ms: int) -> None:
        self.busy.add(offset, offset + 1)
        self.waiting[offset] = due_ms
        heappush(self._due, (due_ms, offset))

    def _drop_leases(self) -> None:
        for lease in tuple(self.leases.values()):
            self._released(lease.number, tuple(lease.offsets))
